"""The rules as documentation: their docstrings in, pages for a terminal and in Markdown out."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from textwrap import dedent, fill, indent

from generator.diagnostics import Severity
from generator.rules import bundle, reading
from generator.rules.registry import DOCUMENTED, RULES

__all__ = ["GROUPS", "MODULES", "Explanation", "explain", "explanations", "listing", "markdown"]

# These register what they document when they are imported.
MODULES = (reading, bundle)

# By the first digit of a rule's id.
GROUPS: Mapping[str, str] = {
    "0": "YAML",
    "1": "schema",
    "2": "nodes, cabling and topology",
    "3": "addresses and network",
    "4": "NCCL and environment",
    "5": "model and memory",
    "6": "engine and flags",
    "7": "secrets and security",
    "8": "bundle and drift",
    "9": "a fault of sparkgen's own",
}
_WIDTH = 80
_PAGE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known of a rule; `bad` and `good` are pieces of site files, empty if it has none."""

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
    documents |= DOCUMENTED
    return {rule: parse(rule, *documents[rule]) for rule in sorted(documents)}


def parse(rule: str, severity: Severity, docstring: str) -> Explanation:
    """A docstring taken apart: title, text, and `Source:`, `Bad:` and `Good:` if it has them."""
    title, _, rest = inspect.cleandoc(docstring).partition("\n")
    text, *parts = re.split(r"^(Source|Bad|Good):", rest, flags=re.MULTILINE)
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    return Explanation(
        rule,
        severity,
        title.removesuffix("."),
        text.strip(),
        named.get("Source", "").strip(),
        _example(named.get("Bad", "")),
        _example(named.get("Good", "")),
    )


def _example(part: str) -> str:
    return dedent(part.strip("\n")).rstrip() + "\n" if part else ""


def explain(rule: str) -> str:
    """One rule as a terminal shows it."""
    known = explanations()[rule]
    blocks = [fill(f"{rule} ({known.severity}): {known.title}", _WIDTH), *_prose(known, _WIDTH)]
    blocks += [f"{name}:\n\n{indent(example, '    ')}" for name, example in _examples(known)]
    return "\n\n".join(block.rstrip("\n") for block in blocks) + "\n"


def listing() -> str:
    """All rules, one a line, in their groups."""
    return "\n".join(
        f"SG{digit}xx: {name}\n"
        + "".join(f"  {one.rule}  {one.severity:<8} {one.title}\n" for one in _group(digit))
        for digit, name in GROUPS.items()
    )


def markdown() -> str:
    """The page of all rules, in Markdown."""
    return _PREFACE + "".join(
        f"\n## SG{digit}xx: {name}\n" + "".join(map(_section, _group(digit)))
        for digit, name in GROUPS.items()
    )


def _section(known: Explanation) -> str:
    heading = f'<a id="{known.rule.lower()}"></a>\n\n### {known.rule}: {known.title}'
    blocks = [heading, f"Severity: {known.severity}.", *_prose(known, _PAGE_WIDTH)]
    blocks += [f"{name}:\n\n```yaml\n{example}```" for name, example in _examples(known)]
    return "".join(f"\n{block}\n" for block in blocks)


def _group(digit: str) -> Iterator[Explanation]:
    return (known for rule, known in explanations().items() if rule[2] == digit)


def _prose(known: Explanation, width: int) -> Iterator[str]:
    """The paragraphs of a rule, its source as the last one."""
    source = f"Source: {known.source}" if known.source else ""
    for paragraph in [*known.text.split("\n\n"), source]:
        if paragraph:
            yield fill(paragraph, width, break_long_words=False, break_on_hyphens=False)


def _examples(known: Explanation) -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in (("Bad", known.bad), ("Good", known.good)) if text)


_PREFACE = """\
# Rules

Printed by `sparkgen explain --docs` from the rules' own docstrings; not to be edited. `sparkgen
explain SG204` prints one of them.

An error stops the build. A warning does so under `--strict`; a site accepts one in the open, with a
reason, in its `waivers`. A number is never used for another rule.

An example is the piece of a site file that matters. What it leaves out is sound: one node if its
topology is `single`, three in a closed ring if it is `ring`, four on a switch if it is `switch`,
and two on a cable otherwise.
"""
