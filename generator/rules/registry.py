"""Rules: each has an id, a severity, and a check that receives the sections it names.

A check is a generator of faults. Its parameters say which sections of the declaration it needs
(`nodes`, `cabling`, `topology`, `model`, `engine`, ..., `fabric`, the addresses that would come
out, `sources`, the files beside the site that it names, `fit`, what the nodes would hold, `flags`,
what the engine's catalog says, `verdicts`, what would end its start, `groups`, `joined`, the
nodes that cables have to join, `takes_proxy`, whether a proxy may stand before the engine,
`is_behind_proxy`, whether one does on its node, `gateway`, the node of the gateway,
`service_ports`, what services take on each node, `document`, the file itself, and `calibration`,
what was measured); it is skipped where one of them is invalid.

A rule's docstring is its documentation: the first line says the rule, the rest why and, after
`Source:`, who says so; `Bad:` and `Good:` are pieces of site files. `sparkgen explain` prints it.
"""

from collections.abc import Callable, Iterator
from functools import partial

from generator.diagnostics import Finding, KeyPath, Proposal, Related, Severity, Stage
from generator.records import record


@record
class Fault:
    """What a check has to say: a finding without the rule that says it."""

    message: str
    path: KeyPath
    help: str = ""
    at_key: bool = False
    related: tuple[Related, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    unsafe: bool = False


Check = Callable[..., Iterator[Fault]]


@record
class Rule:
    """One rule; `unless` names rules that make this one pointless once they have spoken.

    Those in `suppressed_by` do so only at the place that they have spoken of. `of_serving`: where
    there are groups it is checked once for each, of the nodes, model and engine of that. A rule of
    one `engine` holds for no other.
    """

    id: str
    severity: Severity
    check: Check
    needs: tuple[str, ...]
    unless: frozenset[str]
    suppressed_by: frozenset[str]
    stage: Stage
    of_serving: bool
    engine: str = ""

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
            stage=self.stage,
            unsafe=fault.unsafe,
        )


# What each group has of its own.
_OF_SERVING = frozenset(("model", "engine", "fit", "flags", "verdicts", "sources"))

RULES: dict[str, Rule] = {}
# Rules that are no check of a declaration: a severity and a docstring.
DOCUMENTED: dict[str, tuple[Severity, str]] = {}


def rule(
    number: str,
    severity: Severity = Severity.ERROR,
    unless: str = "",
    suppressed_by: str = "",
    stage: Stage = Stage.RULES,
    of_serving: bool = False,
    engine: str = "",
) -> Callable[[Check], Check]:
    """Register a check under an id that is never used for another rule."""

    def register(check: Check) -> Check:
        assert number not in RULES, number
        # Every parameter is annotated, and `inspect.signature` of all rules takes milliseconds.
        needs = tuple(name for name in check.__annotations__ if name != "return")
        RULES[number] = Rule(
            number,
            severity,
            check,
            needs,
            frozenset(unless.split()),
            frozenset(suppressed_by.split()),
            stage,
            of_serving or not _OF_SERVING.isdisjoint(needs),
            engine,
        )
        return check

    return register


# A rule about whether nodes and cables have a shape that addresses can be given to.
shape_rule = partial(rule, stage=Stage.SHAPE)


def documented(
    number: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register the docstring of a rule whose findings come from elsewhere."""

    def register(entry: Callable[[], None]) -> Callable[[], None]:
        assert number not in DOCUMENTED, number
        DOCUMENTED[number] = severity, entry.__doc__ or ""
        return entry

    return register
