"""What `check` reports about a bundle on disk: which files don't match the site."""

from collections.abc import Iterator
from pathlib import Path

from generator import __version__
from generator.bundle.output import Comparison
from generator.diagnostics import Severity
from generator.records import record
from generator.reports.remarks import Place, Remark
from generator.resources import rows
from generator.rules.registry import documented


@record
class _Kind:
    """A way in which a file differs; `word` follows `FILE is`."""

    rule: str
    word: str
    help: str
    severity: Severity


_KINDS = {
    kind: _Kind(rule, word, help_text, documented()[rule].severity)
    for kind, rule, word, help_text in rows("drift")
}


def lines(comparison: Comparison, folder: Path) -> Iterator[str]:
    """The differences as text, one per line, then how many there are and what to do."""
    for kind, path in _differences(comparison):
        note = " (note)" if kind.severity is Severity.NOTE else ""
        yield f"{kind.rule}: {folder / path}: {kind.word}{_mode(comparison, path)}{note}"
    if comparison.drifted:
        yield f"{folder.name}: {_summary(comparison)}"
    if comparison.made_by not in ("", __version__):
        yield f"note: {folder}: made by sparkgen {comparison.made_by}, and this is {__version__}"
    elif comparison.origin and not comparison.drifted:
        yield f"note: {folder}: the site file was reworded"


def remarks(comparison: Comparison, folder: Path) -> Iterator[Remark]:
    """The differences as remarks, each about a whole file."""
    for kind, path in _differences(comparison):
        file = str(folder / path)
        message = f"{file} is {kind.word}{_mode(comparison, path)}"
        yield Remark(kind.rule, kind.severity, message, kind.help, Place(file))


def downgrade(comparison: Comparison, folder: Path, is_forced: bool) -> str:
    """A bundle that a newer version built, which this one would downgrade."""
    rule = "overwritten" if is_forced else "SG809"
    return f"{rule}: {folder} was made by sparkgen {comparison.made_by}, and this is {__version__}"


def abandoned(folder: Path, why: str) -> str:
    """A bundle without a site, as text."""
    kind = _KINDS["abandoned"]
    return f"{kind.rule}: {folder}: {kind.word}, {why}; {kind.help} {folder}"


def abandoned_remark(folder: Path, why: str) -> Remark:
    """The same as a remark."""
    kind = _KINDS["abandoned"]
    message = f"{folder} is {kind.word}, {why}"
    return Remark(kind.rule, kind.severity, message, f"{kind.help} {folder}", Place(str(folder)))


def interrupted(folder: Path) -> str:
    """The message of a command that stops at a half-written bundle."""
    kind = _KINDS["interrupted"]
    return f"{kind.rule}: {folder}: {kind.word}; {kind.help}"


def _summary(comparison: Comparison) -> str:
    if comparison.interrupted:
        return _KINDS["interrupted"].help
    if not comparison.built:
        return _KINDS["unbuilt"].help
    count = len([*comparison.changed, *comparison.edited, *comparison.left_over])
    count_text = "1 file differs" if count == 1 else f"{count} files differ"
    return f"{count_text}; {_KINDS['edited' if comparison.edited else 'stale'].help}"


def _mode(comparison: Comparison, path: str) -> str:
    """The modes of a file that doesn't differ otherwise."""
    if path not in comparison.modes:
        return ""
    found, wanted = comparison.modes[path]
    return f", mode {found:04o} in place of {wanted:04o}"


def _differences(comparison: Comparison) -> Iterator[tuple[_Kind, str]]:
    """Each kind with a path; a bundle that is missing altogether has the folder's own."""
    if comparison.interrupted:
        yield _KINDS["interrupted"], ""
    if not comparison.built:
        yield _KINDS["unbuilt"], ""
    for kind, paths in (
        (_KINDS["missing"], comparison.missing if comparison.built else ()),
        (_KINDS["stale"], comparison.stale),
        (_KINDS["edited"], comparison.edited),
        (_KINDS["left over"], comparison.left_over),
        (_KINDS["foreign"], comparison.foreign),
    ):
        yield from ((kind, path) for path in paths)
