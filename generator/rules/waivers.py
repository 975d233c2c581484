"""Waivers: warnings that a site accepts in the open, with a reason."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from generator.declaration import Waiver
from generator.diagnostics import Finding, Related, Severity, path_text, removal
from generator.rules.registry import RULES


def waived(
    findings: Sequence[Finding], waivers: Sequence[Waiver] | None, judged: Collection[str]
) -> list[Finding]:
    """The findings without the waived warnings, and a warning for every waiver without use.

    Whether a waiver has a use is not known where its rule was not judged; and where the waivers
    can't be read, not what they were to silence.
    """
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if waivers is None:
        return errors
    warnings = [finding for finding in findings if finding.severity is not Severity.ERROR]
    accepted = {(waiver.rule, waiver.path) for waiver in waivers}
    used = accepted & {_place(finding) for finding in warnings}
    kept = [finding for finding in warnings if _place(finding) not in accepted]
    unused = []
    for index, waiver in enumerate(waivers):
        waits = waiver.rule in RULES and waiver.rule not in judged
        if waits or (waiver.rule, waiver.path) in used:
            continue
        missed = next((i for i, f in enumerate(kept) if f.rule == waiver.rule), None)
        if missed is None:
            unused.append(_unused(waiver, ("waivers", index)))
        else:
            # The warning stands, and says that a waiver misses it: one mistake, one finding.
            note = Related("a waiver names another place", ("waivers", index, "path"))
            kept[missed] = replace(kept[missed], related=(*kept[missed].related, note))
    return errors + kept + unused


def _place(finding: Finding) -> tuple[str, str]:
    return finding.rule, path_text(finding.path)


def _unused(waiver: Waiver, path: tuple[str, int]) -> Finding:
    rule = RULES.get(waiver.rule)
    if rule is None:
        message, key = f"{waiver.rule} is no rule that can be waived", "rule"
    elif rule.severity is Severity.ERROR:
        message, key = f"{waiver.rule} is an error, which can't be waived", "rule"
    else:
        message, key = f"{waiver.rule} does not warn at {waiver.path}", "path"
    return Finding(
        "SG190",
        Severity.WARNING,
        message,
        (*path, key),
        help="take the waiver out",
        proposals=removal(path),
    )
