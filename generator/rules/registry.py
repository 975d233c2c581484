"""Rules: each has an id, a severity, and a check that receives the sections that it names.

A check is a generator of faults. Its parameters name the sections of the declaration that it needs
(`nodes`, `cabling`, `topology`, `model`, `engine`, ...) or one of these: `fabric`, the planned
addresses; `sources`, the files that the site file names; `fit`, the memory each node would use;
`flags`, what the engine's catalog says about its flags; `verdicts`, what would fail at the engine's
startup; `groups`; `joined`, the nodes that must be cabled; `takes_proxy`, whether the engine may
have a proxy; `is_behind_proxy`, whether it has one on its own node; `gateway`, the gateway's node;
`service_ports`, the ports that services use on each node; `serving`, the nodes of each group that
serves; `beside`, what reads the files that the site file names; `document`, the file itself;
`secrets`, what in it looks like one; and `calibration`, the measurements. A check is skipped if one
of them is invalid.

The docstring of a check is the rule's title; rules whose findings other code makes have theirs in
`schemas/rules-without-check.tsv`. Why it is a rule, the evidence, and excerpts of site
files that break it and that don't, are in `schemas/rules/`; `sparkgen explain` prints both.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from generator.diagnostics import Finding, KeyPath, Proposal, Related, Severity, Stage, removal
from generator.records import record, values
from generator.resources import rows


@record
class Fault:
    """A fault that a check found: a finding that does not yet name its rule."""

    message: str
    path: KeyPath
    help: str = ""
    at_key: bool = False
    related: tuple[Related, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    unsafe: bool = False
    nodes: tuple[str, ...] = ()
    derived_help: str = ""


def to_remove(message: str, path: KeyPath, help_text: str = "remove it", **more: Any) -> Fault:
    """The fault of what is removed to mend it."""
    return Fault(message, path, help_text, proposals=removal(path), **more)


Faults = Iterator[Fault]
Check = Callable[..., Faults]


@record
class Rule:
    """One rule; `unless` names rules whose findings make this one pointless.

    Those in `suppressed_by` suppress it only at the same place. If `of_serving` is set, the rule is
    checked once for each group, with that group's nodes, model and engine. A rule with an `engine`
    applies to that engine alone. If `of_version` is set, findings need the engine's true version.
    """

    id: str
    severity: Severity
    check: Check
    needs: tuple[str, ...]
    unless: frozenset[str]
    suppressed_by: frozenset[str]
    stage: Stage
    of_serving: bool
    of_version: bool
    engine: str = ""

    def finding(self, fault: Fault) -> Finding:
        """The finding for a fault of this rule."""
        return Finding(self.id, self.severity, stage=self.stage, **values(fault))


# Sections that each group has for itself.
_OF_SERVING = frozenset(("model", "engine", "fit", "fits", "flags", "verdicts", "sources"))
# Sections that are known for a version of the engine alone.
_OF_VERSION = frozenset(("flags", "verdicts"))

RULES: dict[str, Rule] = {}
# Ids that more than one rule has, which a test reports.
REPEATED: set[str] = set()


def rule(
    number: str,
    severity: Severity = Severity.ERROR,
    unless: str = "",
    suppressed_by: str = "",
    stage: Stage = Stage.RULES,
    of_serving: bool = False,
    engine: str = "",
    of_version: bool | None = None,
) -> Callable[[Check], Check]:
    """Register a check under an id that is never reused.

    Unless it is given, a rule of one engine, or of its flags or startup, needs the version.
    """

    def register(check: Check) -> Check:
        if number in RULES:
            REPEATED.add(number)
        # Every parameter is annotated; `inspect.signature` on all rules would take milliseconds.
        needs = tuple(name for name in check.__annotations__ if name != "return")
        by_default = bool(engine) or not _OF_VERSION.isdisjoint(needs)
        RULES[number] = Rule(
            number,
            severity,
            check,
            needs,
            frozenset(unless.split()),
            frozenset(suppressed_by.split()),
            stage,
            of_serving or not _OF_SERVING.isdisjoint(needs),
            by_default if of_version is None else of_version,
            engine,
        )
        return check

    return register


# A rule about whether nodes and cables form a shape that can be given addresses.
shape_rule = partial(rule, stage=Stage.SHAPE)


@record
class Documented:
    """A rule that code elsewhere checks, and what it is about: a site, a bundle, a node, ..."""

    severity: Severity
    about: str
    title: str


@cache
def documented() -> Mapping[str, Documented]:
    """The rules of `schemas/rules-without-check.tsv`, by id."""
    return {
        number: Documented(Severity(severity), about, title)
        for number, severity, about, title in rows("rules-without-check")
    }
