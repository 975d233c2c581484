"""What a rule is: an id, a severity, and a check that is handed the sections it names.

A check is a generator of faults. Its parameters say which sections of the declaration it needs
(`nodes`, `cabling`, `topology`, `model`, `engine`, ..., `fabric`, the addresses that would come
out, `fit`, what the nodes would hold, `flags`, what the engine's catalog says, and `document`, the
file itself); it is not judged where one of them is unsound.

A rule's docstring is its documentation: the first line says the rule, the rest why and, after
`Source:`, who says so; `Bad:` and `Good:` are pieces of site files. `sparkgen explain` prints it.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from generator.diagnostics import Finding, KeyPath, Proposal, Related, Severity


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check has to say: a finding without the rule that says it."""

    message: str
    path: KeyPath
    help: str = ""
    at_key: bool = False
    related: tuple[Related, ...] = ()
    proposals: tuple[Proposal, ...] = ()


Check = Callable[..., Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `unless` names rules that make this one pointless once they have spoken.

    Those in `not_beside` do so only at the place that they have spoken of.
    """

    id: str
    severity: Severity
    check: Check
    needs: tuple[str, ...]
    unless: frozenset[str]
    not_beside: frozenset[str]

    def finding(self, fault: Fault) -> Finding:
        """The fault as the report shows it."""
        return Finding(
            self.id,
            self.severity,
            fault.message,
            fault.path,
            fault.at_key,
            fault.help,
            fault.related,
            proposals=fault.proposals,
        )


RULES: dict[str, Rule] = {}
# Rules that are no check of a declaration: a severity and a docstring.
DOCUMENTED: dict[str, tuple[Severity, str]] = {}


def rule(
    number: str, severity: Severity = Severity.ERROR, unless: str = "", not_beside: str = ""
) -> Callable[[Check], Check]:
    """Register a check under an id that is never used for another rule."""

    def register(check: Check) -> Check:
        assert number not in RULES, number
        needs = tuple(inspect.signature(check).parameters)
        RULES[number] = Rule(
            number,
            severity,
            check,
            needs,
            frozenset(unless.split()),
            frozenset(not_beside.split()),
        )
        return check

    return register


def documented(
    number: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register the docstring of a rule whose findings come from elsewhere."""

    def register(entry: Callable[[], None]) -> Callable[[], None]:
        assert number not in DOCUMENTED, number
        DOCUMENTED[number] = severity, entry.__doc__ or ""
        return entry

    return register
