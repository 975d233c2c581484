"""From a document's faults to findings: each mistake once, at its place.

What was meant is known by what would be right: each mistake of the table proposes edits, and the
one after which most faults are gone shows the cause of all of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from generator.diagnostics import (
    Finding,
    KeyPath,
    Proposal,
    Related,
    Rename,
    Stage,
    listed,
    reading_error,
)
from generator.grouping import grouped
from generator.records import record, replace
from generator.sitefile.key_rules import rules_at, section_of
from generator.sitefile.mistakes.faults import SchemaFault, SchemaFaults
from generator.sitefile.mistakes.single import finding_of, guesses
from generator.sitefile.sections import SERVED
from generator.sitefile.source import Document, value_at


@record
class Cause:
    """A mistake, and the edit that undoes it: the faults that are gone then follow from it."""

    finding: Finding
    edit: Proposal


_Explained = frozenset[tuple[str, KeyPath]]
# Each edit is checked against the schema, and one of the text is read again.
_MOST_CAUSES = 60
_MOST_LINES = 20_000


def no_mapping() -> Finding:
    """The file contains a list or text."""
    message = "a site file is a mapping of keys to values"
    return reading_error("SG103", message, (), help="start with 'version: 1'")


def findings(document: Document) -> tuple[list[Finding], frozenset[str]]:
    """The findings about a document that is a mapping, with those of reading.

    The second part are the sections with a fault, wherever its cause is.
    """
    faults = SchemaFaults(document)
    wrong = [fault for fault in faults.all if not _is_replaced(fault, faults.data)]
    faulty = frozenset(name for fault in wrong for name in _sections(fault, faults.data))
    is_said = _said(faults)
    left = {fault.key: fault for fault in wrong if not is_said(fault)}
    found = []
    causes = [*_causes(faults, left.values())] if left else []
    while causes:
        cause, explained = max(causes, key=lambda one: len(one[1] & left.keys()))
        gone = explained & left.keys()
        if not gone:
            break
        alike = [other for other, its in causes if its & left.keys() == gone]
        found.append(_readings(cause, alike))
        left = {key: fault for key, fault in left.items() if key not in gone}
    found += [finding_of(fault, faults) for fault in left.values() if fault.kind != "twice"]
    twice = [f for f in faults.twice if ("twice", f.path) in left]
    edits = [edit for finding in found for proposal in finding.proposals for edit in proposal]
    faulty |= {one.key for one in edits if isinstance(one, Rename) and len(one.path) == 1}
    found += [f for f in document.findings if f.rule == "SG111"]
    read = [f for f in document.findings if f.rule not in ("SG003", "SG111")]
    found = _without_the_rest(found, document)
    return [*read, *twice, *together(found)], faulty


def _sections(fault: SchemaFault, data: Mapping[str, Any]) -> Iterator[str]:
    """The section that a fault is in, and the one that lacks an unknown key which is its own."""
    yield str(fault.path[0])
    if fault.kind == "unknown":
        yield section_of(str(fault.path[-1]), fault.path[:-1])
        # With a sign before it, it may be an entry of the list above.
        if len(fault.path) == 1 and not str(fault.path[0])[:1].isalnum():
            yield next(reversed([*takewhile(lambda key: key != fault.path[0], data)]), "")


def _without_the_rest(found: list[Finding], document: Document) -> list[Finding]:
    """In a file that ends within a line, what should follow is missing with the rest of it."""
    end = document.text.count("\n")
    if document.text.endswith("\n") or document.parts:
        return found
    spans = [(f, f.span or document.locate(f.path, at_key=f.at_key)) for f in found]
    last = [f for f, span in spans if span and span.line == end and f.rule != "SG102"]
    ends = last[0].path if last else ()
    kept = [f for f in found if f.rule != "SG102" or f.path != ends[: len(f.path)] or not ends]
    # What the last line was to say is not known.
    return [replace(f, unsafe=True) if f in last else f for f in kept]


def _causes(
    faults: SchemaFaults, left: Iterable[SchemaFault]
) -> Iterator[tuple[Cause, _Explained]]:
    """What may be the cause of several faults, in the order of the table; then of each alone."""
    from generator.sitefile.mistakes.table import TABLE

    most = max(4, min(_MOST_CAUSES, _MOST_LINES // len(faults.lines)))
    known = [Cause(*one) for mistake in TABLE for one in mistake.find(faults)]
    for fault in list(left)[:most]:
        if fault.kind != "twice":
            finding = finding_of(fault, faults)
            known += [Cause(finding, edit) for edit in guesses(fault, finding, faults)]
    for cause in known[:most]:
        if explained := faults.explained_by(cause.edit):
            yield cause, explained


def _readings(cause: Cause, alike: Iterable[Cause]) -> Finding:
    """The finding of a cause; if other edits of the same key do as well, a person chooses."""
    own = cause.finding
    others = [
        one.finding
        for one in alike
        if one.finding.path == own.path
        and one.finding.message == own.message
        and one.finding.proposals != own.proposals
    ]
    proposals = own.proposals
    for one in others:
        proposals += tuple(edits for edits in one.proposals if edits not in proposals)
    help_text = ", or ".join(dict.fromkeys(one.help for one in (own, *others)))
    return replace(own, help=help_text, proposals=proposals)


def _said(faults: SchemaFaults) -> Callable[[SchemaFault], bool]:
    """Whether reading has said it: of a key that it left out, an empty one, or one with a tag."""
    read, twice = faults.document.findings, {f.path for f in faults.twice}
    misnamed = {f.path for f in faults.of("check_with") if f.of_name}
    tagged = {f.path for f in read if f.rule == "SG010"}
    merged = {faults.document.locate(f.path) for f in read if f.rule == "SG004"}
    unread = {f.path[:-1] for f in read if f.rule == "SG004"}
    unread |= {f.path for f in read if f.rule == "SG009"}
    above = {path[:end] for path in unread for end in range(len(path) + 1)}

    def is_said(fault: SchemaFault) -> bool:
        path = fault.path
        if any(path[:end] in tagged for end in range(len(path) + 1)):
            return True
        if fault.kind == "unknown" and merged and faults.document.locate(path) in merged:
            return True
        if fault.kind in ("required", "dependencies", "minlength"):
            return path[:-1] in unread
        if fault.kind == "type" and path in above:
            return True
        return fault.kind == "nullable" and (path in twice or path in misnamed)

    return is_said


def _is_replaced(fault: SchemaFault, data: Any) -> bool:
    """Whether another key stands in the place of a missing one."""
    if fault.kind == "excludes":
        return fault.constraint in _IN_PLACE_OF_BOTH
    if fault.kind not in ("required", "dependencies"):
        return False
    here, key = value_at(data, fault.path[:-1]) or {}, fault.path[-1]
    if len(here) == 1 and not re.search(r"\w", str(next(iter(here)))):
        # Dots in place of all that is in it.
        return True
    other = rules_at(fault.path).get("meta", {}).get("unless")
    of_both = key in SERVED and any(one in here for one in _IN_PLACE_OF_BOTH)
    return key in _IN_PLACE_OF_BOTH or of_both or (other is not None and other in here)


# What may replace both a model and an engine.
_IN_PLACE_OF_BOTH = ("groups", "same_as")


def together(found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of one kind, in the entries of one list or the keys of one mapping, as one."""
    lacking: dict[Any, list[Finding]] = {}
    for finding in found:
        is_lack = finding.rule == "SG102" and finding.path and "needs" not in finding.message
        lacking.setdefault(finding.path if is_lack else id(finding), []).append(finding)
    ones = (_all_missing(many) if many[1:] else many[0] for many in lacking.values())
    kinds = grouped((_kind(one), one) for one in ones)
    for first, *others in kinds.values():
        yield _of_all(first, others) if others else first


def _kind(finding: Finding) -> tuple[Any, ...]:
    if finding.stage is Stage.RULES:
        return _kind_of_flag(finding)
    if same := _everywhere(finding):
        return finding.at_key, same
    path: list[Any] = ["*" if isinstance(part, int) else part for part in finding.path]
    words = re.sub(r"'[^']{0,200}'|[0-9]+", "''", finding.message)
    is_known = finding.rule == "SG106" or (finding.rule == "SG101" and bool(finding.proposals))
    is_any = finding.rule == "SG103" and "valuesrules" in rules_at(finding.path[:-1])
    if path and (is_any or (finding.at_key and is_known)):
        path[-1] = "*"
    if finding.rule == "SG102":
        words = re.sub("[0-9]+", "", finding.message)
    return finding.rule, tuple(path), words, len(finding.proposals), finding.unsafe


def _everywhere(finding: Finding) -> str:
    """What was searched and replaced in a whole file: quotes, or the form of keys."""
    if finding.help.startswith("U+"):
        return finding.help.partition(" ")[0]
    edits = [edit for proposal in finding.proposals for edit in proposal]
    meant = [edit.key for edit in edits if isinstance(edit, Rename) and finding.rule == "SG101"]
    key = str(finding.path[-1]) if meant else ""
    forms = {"in capitals": key.lower(), "with hyphens": key.replace("-", "_")}
    return next((name for name, form in forms.items() if meant == [form]), "")


def _kind_of_flag(finding: Finding) -> tuple[Any, ...]:
    """What flags have in common that are unknown for one reason: all else is by itself."""
    edits = [edit for proposal in finding.proposals for edit in proposal]
    key = edits[0].key if len(edits) == 1 and isinstance(edits[0], Rename) else None
    dashed = str(finding.path[-1]).replace("_", "-") == key
    is_elsewhere = not edits and finding.help.startswith("write it under")
    is_variable = not edits and str(finding.path[-1]).isupper()
    if finding.rule != "SG632" or not (dashed or is_elsewhere or is_variable):
        return (id(finding),)
    return finding.rule, finding.path[:-1], "-" if dashed else finding.help


def _of_all(first: Finding, others: list[Finding]) -> Finding:
    count = f"{len(others)} more" if len(others) > 1 else "one more"
    single = all(len(one.proposals) == 1 for one in (first, *others))
    edits = tuple(edit for one in (first, *others) for edit in one.proposals[0]) if single else ()
    helps = dict.fromkeys(one.help.removeprefix("write ") for one in (first, *others))
    are_several = first.rule == "SG102" and len(helps) > 1
    return replace(
        first,
        message=f"{first.message}, and {count}",
        help=f"write {listed([*helps][:3], 'and')}" if are_several else first.help,
        related=(*first.related, *(Related("also", one.path) for one in others)),
        proposals=(edits,) if single else (),
    )


def _all_missing(found: list[Finding]) -> Finding:
    """The keys that one mapping lacks, as one finding."""
    keys = [re.findall(r"'([^']{0,200})'", one.message)[0] for one in found]
    rest = found[0].message.partition(" is missing")[2]
    return replace(
        found[0],
        message=f"the keys {listed(map(repr, keys), 'and')} are missing{rest}",
        help=", ".join([found[0].help, *(one.help.removeprefix("write ") for one in found[1:])]),
        proposals=(),
    )
