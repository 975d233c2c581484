"""What rules ask for by name: the sections of a site file, and what is computed from them."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from generator.diagnostics import Finding, Severity, Stage
from generator.engines import conditions
from generator.engines.startup import Verdict, verdicts
from generator.fabric.addressing import Fabric, plan
from generator.fit.assessment import Fit, assess, on_other_nodes
from generator.fit.calibration import Calibration
from generator.records import replace
from generator.rules.flags.checking import CheckedFlags, check_flags
from generator.rules.gateway import GatewayNode
from generator.rules.listening import PortsOfNodes, ports_of_services
from generator.rules.registry import Fault, Rule
from generator.rules.repeated import once
from generator.services import GATEWAY, host
from generator.site.complete import CompletePart, complete_part
from generator.sitefile import redaction
from generator.sitefile.beside import ReadBeside, Source
from generator.sitefile.declaration import Declaration, DeclaredGroup, DeclaredNode
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Document

# What groups with the same settings share: a rule that needs only these gives them the same result.
_SETTINGS = frozenset(("model", "engine", "flags", "verdicts"))


class Facts:
    """The sections that rules ask for by name; None if a section is not available."""

    def __init__(
        self,
        declaration: Declaration,
        document: Document,
        beside: ReadBeside,
        calibration: Calibration | None,
    ) -> None:
        self.declaration = declaration
        self.calibration = calibration
        self.beside = beside
        self.document = document
        # A proxy serves one engine, so a site with several has none.
        self.takes_proxy = not declaration.groups and GATEWAY not in (declaration.services or ())
        self.findings: list[Finding] = []
        self.checked: set[str] = set()
        # The rules that found something, and those that are pointless because of them.
        self.broken: set[str] = set()
        # The rules on settings alone that found nothing; None if the rule could not be checked.
        self.known: dict[str, Sequence[Fault] | None] = {}

    def share(self, other: "Facts") -> None:
        """Reuse what a group with the same settings has, unless it may name that group's nodes."""
        if other.flags:
            self.flags = replace(other.flags, engine=self.declaration.engine)
        if not other.verdicts:
            self.verdicts = other.verdicts
        before, nodes = other.declaration.nodes, self.declaration.nodes
        if before and nodes and (fit := on_other_nodes(other.fit, before, nodes)):
            self.fit = fit

    def check(self, rule: Rule) -> None:
        """Add a rule's faults, unless the rule is pointless or a section is not available."""
        if not rule.unless.isdisjoint(self.broken):
            # What this rule would have made sure of is not known either.
            self.broken.add(rule.id)
            return
        faults = self._faults(rule)
        if faults is None:
            return
        self.checked.add(rule.id)
        if faults:
            engine = self.declaration.engine
            faults = list(once(faults, engine.environment if engine else None))
            suppressed = {
                finding.path for finding in self.findings if finding.rule in rule.suppressed_by
            }
            found = [rule.finding(fault) for fault in faults if fault.path not in suppressed]
            self.findings += found
            self.broken |= {finding.rule for finding in found}

    def _faults(self, rule: Rule) -> Sequence[Fault] | None:
        """The faults of a rule, or None if a section that it needs is not available."""
        if rule.id in self.known:
            return self.known[rule.id]
        faults = self._found(rule)
        if not faults and _SETTINGS.issuperset(rule.needs):
            self.known[rule.id] = faults
        return faults

    def _found(self, rule: Rule) -> Sequence[Fault] | None:
        sections = []
        for name in rule.needs:
            section = self.get(name)
            if section is None:
                return None
            sections.append(section)
        engine = self.declaration.engine
        if rule.engine and engine and engine.name != rule.engine:
            return ()
        return tuple(rule.check(*sections))

    def get(self, name: str) -> object:
        """A section of the site file, or what is computed from it."""
        is_own = hasattr(Facts, name) or name in vars(self)
        return getattr(self if is_own else self.declaration, name)

    def complete(self, group: DeclaredGroup | None = None) -> CompletePart | None:
        """The complete declaration of a site of one engine or of a group, if nothing is missing."""
        return complete_part(self.declaration, self.fabric, self.sources, self.fit, group)

    @cached_property
    def fit(self) -> Fit | None:
        """How the model fits the nodes, if the sections that this depends on are valid."""
        declared = self.declaration
        if declared.nodes is None or declared.model is None or declared.engine is None:
            return None
        return assess(declared.nodes, declared.model, declared.engine)

    @property
    def fits(self) -> Sequence[Fit]:
        """The same, none if it is not known."""
        return [self.fit] if self.fit else []

    @property
    def serving(self) -> Mapping[str, Sequence[str]] | None:
        """The nodes of each group that serves; the only engine of a site has no name."""
        declared = self.declaration
        if declared.nodes is None or (declared.groups is None and self.document.data.get(GROUPS)):
            return None
        if declared.groups is None:
            return {"": [node.name for node in declared.nodes]} if declared.serves else {}
        return {group.name: group.nodes for group in declared.groups if group.is_active}

    @cached_property
    def front(self) -> DeclaredNode | None:
        """The node that runs the services that exist only once."""
        declared = self.declaration
        if declared.services is None or not declared.nodes:
            return None
        return host(declared.services, declared.nodes)

    @cached_property
    def gateway(self) -> GatewayNode | None:
        """The gateway's node and the networks it is on, if the site has a gateway."""
        declared = self.declaration
        if self.front is None or GATEWAY not in (declared.services or ()):
            return None
        interfaces = self.fabric.interfaces.get(self.front.name, ()) if self.fabric else ()
        return GatewayNode(self.front, tuple(each.address.network for each in interfaces))

    @cached_property
    def service_ports(self) -> PortsOfNodes | None:
        """The ports that services use on each node."""
        declared = self.declaration
        if self.front is None or declared.services is None or not declared.nodes:
            return None
        return ports_of_services(declared.services, declared.nodes, self.front)

    @property
    def is_behind_proxy(self) -> bool | None:
        """Whether clients reach the API through a proxy on the API's own node."""
        declared = self.declaration
        if self.front is None or declared.services is None or not declared.nodes:
            return None
        return "proxy" in declared.services and self.front.name == declared.nodes[0].name

    @cached_property
    def joined(self) -> tuple[DeclaredNode, ...] | None:
        """The nodes that must be cabled; a node that is alone in its group needs no cable.

        Unknown while the groups are invalid, or the cables of groups.
        """
        declared = self.declaration
        if declared.nodes is None or (declared.groups is None and self.document.data.get(GROUPS)):
            return None
        groups = declared.groups or ()
        if declared.serves and not groups:
            return declared.nodes
        if declared.cabling is None:
            return None
        wanted = {name for group in groups if len(group.nodes) > 1 for name in group.nodes}
        wanted |= {end.name for cable in declared.cabling for end in cable.endpoints}
        if not groups and not wanted:
            return declared.nodes
        return tuple(node for node in declared.nodes if node.name in wanted)

    @cached_property
    def fabric(self) -> Fabric | None:
        """The planned addresses, computed once the shape has been checked."""
        declared = self.declaration
        if declared.nodes is None or declared.cabling is None or declared.topology is None:
            return None
        if any(f.stage is Stage.SHAPE and f.severity is Severity.ERROR for f in self.findings):
            return None
        return plan(declared.nodes, declared.cabling, declared.topology)

    @cached_property
    def verdicts(self) -> list[Verdict] | None:
        """The settings that the engine would refuse, fail on, or ignore at startup."""
        model, engine = self.declaration.model, self.declaration.engine
        if model is None or engine is None:
            return None
        return verdicts(conditions(engine.name), engine, model)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The contents of the files that the site file names."""
        engine, jobs = self.declaration.engine, self.declaration.jobs or ()
        of_jobs = (file.source for job in jobs for file in job.files if file.source)
        return {path: self.beside(path) for path in (*(engine.sources if engine else ()), *of_jobs)}

    @cached_property
    def secrets(self) -> Sequence[redaction.Secret]:
        """The texts of the site file that look like secrets."""
        return tuple(redaction.secrets(self.document))

    @cached_property
    def flags(self) -> CheckedFlags | None:
        """What the engine's catalog says about its flags and variables."""
        return check_flags(self.declaration.engine) if self.declaration.engine else None
