"""Failures as rows for people, faults of the same effect together, and as data."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Any

from generator import resources
from generator.columns import columns
from generator.failures.analysis import Availability, Failure, FaultPair
from generator.records import record, values

HEAD = ("WHAT FAILS", "STILL ANSWERS", "SERVES AGAIN", "WHAT TO DO", "VERIFY.PY")

_TO_DO = {kind: words for kind, words, *_ in resources.rows("faults")}
_NAMED = 4
# What people open in a browser, and no request for a name needs.
_PAGES = {"sparkgen-web-ui": "the web UI"}


@record
class FailureRow:
    """Faults with the same effect, in words."""

    faults: tuple[str, ...]
    answers: str
    again: str
    to_do: str
    told_by: str

    @property
    def what(self) -> str:
        """What fails: the first few by name."""
        return _some(self.faults)


def rows(failures: Iterable[Failure]) -> tuple[FailureRow, ...]:
    """The rows of a table, in the order of the first fault of each."""
    found: dict[tuple[str, ...], list[str]] = {}
    for failure in failures:
        told = ", ".join(check for check, _ in failure.fault.told_by) or "-"
        effect = (_answers(failure), _again(failure), _to_do(failure), told)
        found.setdefault((failure.fault.kind, *effect), []).append(failure.fault.what)
    return tuple(FailureRow(tuple(faults), *effect) for (_, *effect), faults in found.items())


def text(found: Iterable[FailureRow], width: int | None) -> str:
    """The rows as a table for a terminal."""
    cells = [(row.what, row.answers, row.again, row.to_do, row.told_by) for row in found]
    return columns(HEAD, cells, width) + "\n"


def text_of_pairs(pairs: Iterable[FaultPair], width: int | None) -> str:
    """The pairs of faults as a table for a terminal."""
    head = ("ONE OF", "TOGETHER WITH ONE OF", "LOST")
    cells = [
        (*(_some([f.what for f in one]) for one in (pair.one, pair.other)), ", ".join(pair.lost))
        for pair in pairs
    ]
    none = "No two faults take a name that neither takes alone.\n"
    return columns(head, cells, width) + "\n" if cells else none


def data(failure: Failure) -> dict[str, Any]:
    """A failure in the types of JSON."""
    fault = failure.fault
    return {
        "kind": fault.kind,
        "what": fault.what,
        "answers": [{**values(one), "to": one.to or None} for one in failure.answers],
        "heals": failure.heals,
        "within_seconds": failure.within,
        "waiting": failure.waiting,
        "relayed": failure.cut,
        "to_do": _to_do(failure),
        "verify": [
            {"check": check, "nodes": [node for node in nodes if node != fault.blind]}
            for check, nodes in fault.told_by
        ],
    }


def data_of_pair(pair: FaultPair) -> dict[str, Any]:
    """A pair of faults in the types of JSON."""
    one, other = ([fault.what for fault in faults] for faults in (pair.one, pair.other))
    return {"one_of": one, "and_one_of": other, "lost": pair.lost}


def _some(every: Sequence[Any], word: Callable[[Any], str] = str) -> str:
    """The first few in words, and how many others there are."""
    more = len(every) - _NAMED
    named = every if more <= 1 else every[:_NAMED]
    return ", ".join([*map(word, named), *([f"{more} others"] if more > 1 else [])])


def _answers(failure: Failure) -> str:
    """What still answers, in as few words as possible."""
    good = [one for one in failure.answers if one.to]
    lost = failure.lost
    if not good:
        return "nothing" if lost else "-"
    page = [title for unit, title in _PAGES.items() if failure.fault.what.startswith(f"{unit} on ")]
    said = f"all but {_some([*lost, *page])}" if lost or page else "everything"
    if lost and len(lost) >= len(good):
        return _some(good, _told)
    own = [one for one in good if one.replicas < one.of or (lost and one.urls)]
    return f"{said}; {_some(own, _told)}" if own else said


def _told(answer: Availability) -> str:
    """A name that is answered, with what is not as usual, and where."""
    fewer = answer.replicas < answer.of
    by = f" by {answer.replicas} of {answer.of} replicas" if fewer else ""
    at = f" at {' and '.join(answer.urls)}" if 0 < len(answer.urls) <= _NAMED else ""
    return f"{answer.name}{by}{at}"


def _again(failure: Failure) -> str:
    """When everything serves again."""
    if failure.within is None:
        return "when it is started again"
    if failure.heals:
        return f"by itself, within {duration(failure.within)}"
    if failure.within:
        return f"within {duration(failure.within)} of the repair"
    if any(one.replicas < one.of for one in failure.answers):
        return "with the repair"
    groups = _some([*filter(None, failure.waiting)])
    return f"{groups} can't restart before the repair".lstrip() if failure.waiting else "-"


def _to_do(failure: Failure) -> str:
    found = _TO_DO.get(failure.fault.kind, "")
    again = "start the engine again" if found else "start it again"
    return "; then ".join(filter(None, [found, again * (failure.within is None)])) or "-"


def duration(seconds: int) -> str:
    """Seconds up to two minutes, then minutes, rounded up."""
    return f"{seconds} s" if seconds <= 120 else f"{ceil(seconds / 60)} min"
