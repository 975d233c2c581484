"""The documentation of rules, for a terminal and in Markdown."""

from collections.abc import Iterator, Mapping
from functools import cache
from textwrap import fill, indent
from typing import Any

import yaml

from generator.catalogs.advisories import Advisory, advisories
from generator.diagnostics import Severity
from generator.records import record, values
from generator.resources import SCHEMAS, rows
from generator.rules.advisories import SUBJECTS
from generator.rules.registry import RULES, documented

# By the first digit of a rule's id.
GROUPS: Mapping[str, str] = dict(rows("rule-groups"))
_WIDTH = 80
_PAGE_WIDTH = 100


@record
class Explanation:
    """The documentation of a rule; `bad` and `good` are parts of site files, empty if missing."""

    rule: str
    severity: Severity
    title: str
    text: str
    source: str
    bad: str
    good: str


@cache
def explanations() -> Mapping[str, Explanation]:
    """Every rule's explanation, by id."""
    documents = {rule.id: (rule.severity, rule.check.__doc__ or "") for rule in RULES.values()}
    documents |= {rule: (one.severity, one.title) for rule, one in documented().items()}
    written = _written()
    return {
        rule: explanation(rule, *documents[rule], written.get(rule, {}))
        for rule in sorted(documents)
    }


def _written() -> Mapping[str, Mapping[str, str]]:
    """What `schemas/rules/` has for each rule: why, the source, and examples of both kinds."""
    files = (SCHEMAS / "rules").glob("*.yaml")
    groups = [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in files]
    return {rule: parts for group in groups for rule, parts in group.items()}


@cache
def retired() -> Mapping[str, str]:
    """Why each rule that no longer exists is gone, or what says the same now."""
    return {rule: why for rule, _, why in rows("retired-rules")}


def explanation(
    rule: str, severity: Severity, docstring: str, written: Mapping[str, str]
) -> Explanation:
    """The title, which is the docstring of a rule's check, and what is written of the rule."""
    return Explanation(
        rule,
        severity,
        docstring.removesuffix("."),
        written.get("why", "").strip(),
        written.get("source", "").strip(),
        written.get("bad", ""),
        written.get("good", ""),
    )


def explain(rule: str) -> str:
    """One rule for a terminal."""
    known = explanations()[rule]
    blocks = [fill(f"{rule} ({known.severity}): {known.title}", _WIDTH), *_prose(known, _WIDTH)]
    blocks += [f"{name}:\n\n{indent(example, '    ')}" for name, example in _examples(known)]
    return "\n\n".join(block.rstrip("\n") for block in blocks) + "\n"


def explain_advisory(number: str) -> str:
    """One advisory for a terminal."""
    (known,) = (entry for entry in advisories() if entry.id == number)
    return "\n\n".join(fill(text, _WIDTH) for text in _about(known)) + "\n"


def listing() -> str:
    """All rules, one per line, by group."""
    return "\n".join(
        f"SG{digit}xx: {name}\n"
        + "".join(f"  {one.rule}  {one.severity:<8} {one.title}\n" for one in _group(digit))
        for digit, name in GROUPS.items()
    )


def data(number: str) -> dict[str, Any]:
    """Rules and advisories for scripts: the one with that number, or all without a number.

    The format is stable: keys are added, never renamed or removed.
    """
    return {
        "version": 1,
        "rules": [
            {**values(one), "severity": str(one.severity)}
            for one in explanations().values()
            if number in ("", one.rule)
        ],
        "advisories": [
            {
                "advisory": entry.id,
                "date": str(entry.date),
                "subject": _named(entry),
                "effect": entry.effect,
                "remedy": entry.remedy,
                "source": entry.source,
            }
            for entry in advisories()
            if number in ("", entry.id)
        ],
    }


def markdown() -> str:
    """The page of all rules, in Markdown."""
    return (SCHEMAS / "pages/rules.txt").read_text("utf-8") + "".join(
        f"\n## SG{digit}xx: {name}\n" + "".join(map(_section, _group(digit)))
        for digit, name in GROUPS.items()
    )


def page_of(known: Explanation) -> str:
    """A rule in the page of all rules, without its heading."""
    return "\n\n".join(_blocks(known)) + "\n"


def _section(known: Explanation) -> str:
    heading = f'<a id="{known.rule.lower()}"></a>\n\n### {known.rule}: {known.title}'
    return "".join(f"\n{block}\n" for block in [heading, *_blocks(known)])


def _blocks(known: Explanation) -> Iterator[str]:
    yield f"Severity: {known.severity}."
    yield from _prose(known, _PAGE_WIDTH)
    yield from (f"{name}:\n\n```yaml\n{example}```" for name, example in _examples(known))


def _group(digit: str) -> Iterator[Explanation]:
    return (known for rule, known in explanations().items() if rule[2] == digit)


def _prose(known: Explanation, width: int) -> Iterator[str]:
    """The paragraphs of a rule, with its source as the last one."""
    source = f"Source: {known.source}" if known.source else ""
    for paragraph in [*known.text.split("\n\n"), source]:
        if paragraph.startswith(" "):
            yield paragraph  # An example keeps its lines.
        elif paragraph:
            yield fill(paragraph, width, break_long_words=False, break_on_hyphens=False)
    for entry in advisories(*SUBJECTS[known.rule]) if known.rule in SUBJECTS else ():
        yield fill(" ".join(_about(entry)), width, break_long_words=False, break_on_hyphens=False)


def _about(entry: Advisory) -> Iterator[str]:
    """The text of an advisory, in paragraphs."""
    yield f"{entry.id} ({entry.date}): {_named(entry)} {entry.effect}."
    yield f"To do: {entry.remedy}."
    yield f"Source: {entry.source}."


def _named(entry: Advisory) -> str:
    """The faulty component: `vllm >=0.27.1, <0.32 on 2 nodes or more`."""
    names = {
        "os": f"DGX OS {', '.join(entry.os)}",
        "nccl": f"NCCL {entry.nccl}",
        "engine": f"{entry.engine} {entry.version}",
        "image": f"each of the images {', '.join(entry.images)}",
        "node": f"kernel {entry.kernel}" if entry.kernel else f"driver {entry.driver}",
    }
    many = f" on {entry.nodes} nodes or more" if entry.nodes > 1 else ""
    return names[entry.subject] + many


def _examples(known: Explanation) -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in (("Bad", known.bad), ("Good", known.good)) if text)
