"""What `check` says of a bundle on disk: which files are not what the site says."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.diagnostics import Severity
from generator.output import Comparison
from generator.reports.remarks import Place, Remark


@dataclass(frozen=True, slots=True)
class _Kind:
    """A way in which a file differs; `word` goes after `FILE is`."""

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


_UNBUILT = _Kind(
    "SG801", "not built yet", "run 'sparkgen build', or say with '--out DIR' where the bundles are"
)


def lines(comparison: Comparison, folder: Path) -> Iterator[str]:
    """The differences as text, a line each, and at last how many there are and what to do."""
    for kind, path in _differences(comparison):
        note = " (note)" if kind.severity is Severity.NOTE else ""
        yield f"{kind.rule}: {folder / path}: {kind.word}{_mode(comparison, path)}{note}"
    if comparison.drifted:
        yield f"{folder.name}: {_summary(comparison)}"
    if comparison.manifest_only:
        yield f"note: {folder}: made by another version of sparkgen, or the site file was reworded"


def remarks(comparison: Comparison, folder: Path) -> Iterator[Remark]:
    """The differences as programs are told them, each about a file as a whole."""
    for kind, path in _differences(comparison):
        file = str(folder / path)
        message = f"{file} is {kind.word}{_mode(comparison, path)}"
        yield Remark(kind.rule, kind.severity, message, kind.help, Place(file))


def _summary(comparison: Comparison) -> str:
    if not comparison.built:
        return _UNBUILT.help
    count = len([*comparison.changed, *comparison.edited, *comparison.left_over])
    told = "1 file differs" if count == 1 else f"{count} files differ"
    return f"{told}; {_EDITED.help if comparison.edited else _BUILD}"


def _mode(comparison: Comparison, path: str) -> str:
    """The modes of a file that differs in nothing else."""
    if path not in comparison.modes:
        return ""
    found, wanted = comparison.modes[path]
    return f", mode {found:04o} in place of {wanted:04o}"


def _differences(comparison: Comparison) -> Iterator[tuple[_Kind, str]]:
    """Each kind with a path; of a bundle that is not there at all it is the folder's own."""
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
