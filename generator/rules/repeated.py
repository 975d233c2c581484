"""One finding for a variable that is written at several places."""

from collections.abc import Iterable

from generator.diagnostics import Edit, KeyPath, Proposal, Related, Rewrite
from generator.records import replace
from generator.rules.registry import Fault, Faults
from generator.settings.environment import Environment


def once(faults: Iterable[Fault], environment: Environment | None) -> Faults:
    """Each fault once: at the first of the places that it holds for, with the others beside it."""
    known = set()
    for fault in faults:
        places = environment.places(fault.path, fault.at_key) if environment else ()
        key = (fault.message, places or fault.path)
        if key not in known:
            known.add(key)
            yield _of_all(fault, [place for place in places if place != fault.path])


def _of_all(fault: Fault, others: list[KeyPath]) -> Fault:
    if not others:
        return fault
    related = (*fault.related, *(Related("also", place) for place in others))
    proposals = tuple(_edits(proposal, fault.path, others) for proposal in fault.proposals)
    return replace(fault, related=related, proposals=proposals)


def _edits(proposal: Proposal, path: KeyPath, others: list[KeyPath]) -> Proposal:
    """The edits of a proposal, made at the other places as well."""
    more: list[Edit] = [
        replace(edit, path=(*other, *edit.path[len(path) :]))
        for other in others
        for edit in proposal
        if not isinstance(edit, Rewrite) and edit.path[: len(path)] == path
    ]
    return (*proposal, *more)
