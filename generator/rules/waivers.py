"""Waivers: warnings that a site openly accepts, with a reason."""

import re
from collections.abc import Collection, Iterator, Sequence

from generator.diagnostics import (
    Finding,
    KeyPath,
    Proposal,
    Related,
    Severity,
    all_nearest,
    listed,
    path_text,
    removal,
    replacements,
)
from generator.records import replace
from generator.rules.registry import RULES, Rule
from generator.sitefile.declaration import Waiver
from generator.sitefile.renamed import earlier_path


def waived(
    findings: Sequence[Finding], waivers: Sequence[Waiver] | None, checked: Collection[str]
) -> list[Finding]:
    """The findings without the waived warnings, plus a warning for every unused waiver.

    Whether a waiver is used is unknown if its rule was not checked; and if the waivers can't be
    read, so is which warnings they were to silence.
    """
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if waivers is None:
        return errors
    renamed = [note for index, waiver in enumerate(waivers) for note in _renamed(waiver, index)]
    waivers = [replace(waiver, paths=tuple(map(_now, waiver.paths))) for waiver in waivers]
    warnings = [finding for finding in findings if finding.severity is not Severity.ERROR]
    places = [(waiver.rule, path) for waiver in waivers for path in waiver.paths]
    kept = [finding for finding in warnings if not any(_matches(*at, finding) for at in places)]
    # An error made by the policy already says that a waiver does not help.
    candidates = [
        *warnings,
        *(f for f in errors if f.rule in RULES and not _is_error(RULES[f.rule])),
    ]
    wrong = {finding.path[0] for finding in errors if finding.path}
    unused = []
    for index, waiver in enumerate(waivers):
        # An error in the same section may hide what the waiver is for.
        is_hidden = bool(wrong & {re.split(r"[.\[]", path)[0] for path in waiver.paths})
        is_warning = waiver.rule in RULES and not _is_error(RULES[waiver.rule])
        if is_warning and (is_hidden or waiver.rule not in checked):
            continue
        idle = [
            place
            for place, path in enumerate(waiver.paths)
            if not any(_matches(waiver.rule, path, finding) for finding in candidates)
        ]
        missed = next((i for i, f in enumerate(kept) if f.rule == waiver.rule), None)
        if idle and missed is not None and not waiver.is_list:
            if near := all_nearest(waiver.paths[0], [path_text(kept[missed].path)]):
                kept[missed] = _misspelt(waiver, ("waivers", index, "path"), near[0])
                continue
            # The warning stays, and mentions the waiver that misses it: one mistake, one finding.
            note = Related("a waiver names another place", ("waivers", index, "path"))
            kept[missed] = replace(kept[missed], related=(*kept[missed].related, note))
        elif len(idle) == len(waiver.paths):
            unused.append(_unused(waiver, ("waivers", index)))
        else:
            unused += [_idle(waiver, ("waivers", index, "path", place)) for place in idle]
    return errors + kept + unused + renamed


def _is_error(rule: Rule) -> bool:
    return rule.severity is Severity.ERROR


def _matches(rule: str, path: str, finding: Finding) -> bool:
    """Whether a finding is of that rule and at that place; `*` matches any text."""
    pattern = ".*".join(map(re.escape, path.split("*")))
    return finding.rule == rule and re.fullmatch(pattern, path_text(finding.path)) is not None


def _now(path: str) -> str:
    return path_text(earlier.path) if (earlier := earlier_path(path)) else path


def _renamed(waiver: Waiver, index: int) -> Iterator[Finding]:
    """A place by the earlier name of a key."""
    for number, path in enumerate(waiver.paths):
        if earlier := earlier_path(path):
            place: KeyPath = ("waivers", index, "path", number)[: 4 if waiver.is_list else 3]
            yield replace(earlier, path=place, proposals=())


def _misspelt(waiver: Waiver, path: KeyPath, meant: str) -> Finding:
    """A place with nearly the name of the one at which the rule warns."""
    message = f"{waiver.rule} warns at {meant}, not at {waiver.paths[0]}"
    return _warning(message, path, f"write '{meant}'", replacements(path, [meant]))


def _idle(waiver: Waiver, path: KeyPath) -> Finding:
    """One place of several at which there is nothing to silence."""
    message = f"{waiver.rule} does not warn at {waiver.paths[int(path[-1])]}"
    return _warning(message, path, "remove it from the list", removal(path))


def _unused(waiver: Waiver, path: tuple[str, int]) -> Finding:
    rule = RULES.get(waiver.rule)
    if rule is None:
        message, key = f"{waiver.rule} is not a rule that can be waived", "rule"
    elif rule.severity is Severity.ERROR:
        message, key = f"{waiver.rule} is an error, which can't be waived", "rule"
    else:
        message, key = f"{waiver.rule} does not warn at {listed(waiver.paths)}", "path"
    # A mistake elsewhere may be hiding what the waiver was for.
    return _warning(message, (*path, key), "remove the waiver", removal(path), unsafe=True)


def _warning(
    message: str, path: KeyPath, way: str, edits: tuple[Proposal, ...], unsafe: bool = False
) -> Finding:
    warning = Severity.WARNING
    return Finding("SG190", warning, message, path, help=way, proposals=edits, unsafe=unsafe)
