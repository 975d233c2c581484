"""What `check` reports about a bundle on disk: which files don't match the site."""

from collections.abc import Iterator
from pathlib import Path

from generator import __version__
from generator.bundle.output import Comparison
from generator.diagnostics import Severity
from generator.records import record
from generator.reports.remarks import Place, Remark


@record
class _Kind:
    """A way in which a file differs; `word` follows `FILE is`."""

    rule: str
    word: str
    help: str
    severity: Severity = Severity.ERROR


_BUILD = "run 'sparkgen build' and commit what it writes"
_MISSING = _Kind("SG801", "missing", _BUILD)
_STALE = _Kind("SG802", "stale", _BUILD)
_EDITED = _Kind(
    "SG803",
    "edited by hand",
    "say it in the site file if it is to stay, and run 'sparkgen build --force'",
)
_LEFT_OVER = _Kind("SG804", "left over", "'sparkgen build' removes it")
_FOREIGN = _Kind("SG805", "not of the bundle", "'sparkgen build' leaves it alone", Severity.NOTE)
_INTERRUPTED = _Kind("SG807", "half written by an interrupted build", "run 'sparkgen build'")
_ABANDONED = _Kind(
    "SG808",
    "left over",
    "run install.sh --uninstall on its nodes if they still have it, then git rm -r",
)
_UNBUILT = _Kind(
    "SG801", "not built yet", "run 'sparkgen build', or say with '--out DIR' where the bundles are"
)


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
    return f"{_ABANDONED.rule}: {folder}: {_ABANDONED.word}, {why}; {_ABANDONED.help} {folder}"


def abandoned_remark(folder: Path, why: str) -> Remark:
    """The same as a remark."""
    message = f"{folder} is {_ABANDONED.word}, {why}"
    hint = f"{_ABANDONED.help} {folder}"
    return Remark(_ABANDONED.rule, _ABANDONED.severity, message, hint, Place(str(folder)))


def interrupted(folder: Path) -> str:
    """The message of a command that stops at a half-written bundle."""
    return f"{_INTERRUPTED.rule}: {folder}: {_INTERRUPTED.word}; {_INTERRUPTED.help}"


def _summary(comparison: Comparison) -> str:
    if comparison.interrupted:
        return _INTERRUPTED.help
    if not comparison.built:
        return _UNBUILT.help
    count = len([*comparison.changed, *comparison.edited, *comparison.left_over])
    count_text = "1 file differs" if count == 1 else f"{count} files differ"
    return f"{count_text}; {_EDITED.help if comparison.edited else _BUILD}"


def _mode(comparison: Comparison, path: str) -> str:
    """The modes of a file that doesn't differ otherwise."""
    if path not in comparison.modes:
        return ""
    found, wanted = comparison.modes[path]
    return f", mode {found:04o} in place of {wanted:04o}"


def _differences(comparison: Comparison) -> Iterator[tuple[_Kind, str]]:
    """Each kind with a path; a bundle that is missing altogether has the folder's own."""
    if comparison.interrupted:
        yield _INTERRUPTED, ""
    if not comparison.built:
        yield _UNBUILT, ""
    for kind, paths in (
        (_MISSING, comparison.missing if comparison.built else ()),
        (_STALE, comparison.stale),
        (_EDITED, comparison.edited),
        (_LEFT_OVER, comparison.left_over),
        (_FOREIGN, comparison.foreign),
    ):
        yield from ((kind, path) for path in paths)
