"""The rules that a site must meet, each with its reason and its source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module

from generator.catalogs.engines import module_name, names
from generator.diagnostics import Finding, Related, Severity, Stage
from generator.engines import ENGINES
from generator.engines.startup import Verdict, verdicts
from generator.fabric.addressing import Fabric, plan
from generator.fabric.shapes import site_kind
from generator.fit import calibration as measurements
from generator.fit.assessment import Fit, assess, on_other_nodes
from generator.fit.calibration import Calibration, calibrated
from generator.records import record, replace
from generator.rules.cabling import meant
from generator.rules.flags.checking import CheckedFlags, check_flags
from generator.rules.gateway import GatewayNode
from generator.rules.listening import PortsOfNodes, ports_of_services
from generator.rules.policy import Policy
from generator.rules.registry import RULES, Fault, Rule
from generator.rules.repeated import once
from generator.rules.waivers import waived
from generator.services import GATEWAY, SERVICES, host
from generator.site.complete import CompleteDeclaration, CompletePart, complete, complete_part
from generator.sitefile import redaction
from generator.sitefile.beside import Beside, Source
from generator.sitefile.declaration import Declaration, DeclaredGroup, DeclaredNode
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Document

__all__ = ["RULES", "check"]

# Each of these modules registers its rules when it is imported.
_SUBJECTS = (
    "access advice advisories cabling compatibility container engine environment files flags "
    "gateway groups host_memory images jobs management memory model nccl network nodes offload "
    "ports requirements secrets security services serving sharing speculation startup switches "
    "variables venv"
)
for _name in (*_SUBJECTS.split(), *map(module_name, names())):
    import_module(f"{__name__}.{_name}")

# What groups with the same settings share: a rule that needs only these gives them the same result.
_SETTINGS = frozenset(("model", "engine", "flags", "verdicts"))


def check(
    declaration: Declaration, document: Document, beside: Beside, policy: Policy | None = None
) -> tuple[list[Finding], CompleteDeclaration | None]:
    """All findings of the rules, and the declaration if every required section is valid."""
    measured = _calibration(declaration, beside)
    declared = _settled(calibrated(_shaped(declaration), measured))
    facts = _Facts(declared, document, beside, measured)
    # While 'groups' is invalid, a top-level model or engine does not apply to all nodes.
    has_groups = declaration.groups or GROUPS in document.data
    for number in _in_order():
        if not (RULES[number].of_serving and has_groups):
            facts.check(RULES[number])
    parts = _parts(facts)
    findings, checked = _together(facts, parts)
    taken = policy.applied(findings) if policy else findings
    return waived(taken, declaration.waivers, checked), _complete(facts, parts)


def _shaped(declaration: Declaration) -> Declaration:
    """The declaration with the kind of topology that the cables form, if the site names none."""
    topology, nodes, cables = declaration.topology, declaration.nodes, declaration.cabling
    if topology is None or topology.is_stated:
        return declaration
    if not nodes or cables is None:
        return replace(declaration, topology=None)
    names = [node.name for node in nodes]
    ends = [tuple(meant(end, names) for end in cable.endpoints) for cable in cables]
    kind = site_kind(names, [(a, b) for a, b in ends], declaration.groups is not None)
    return replace(declaration, topology=replace(topology, kind=kind))


def _settled(declaration: Declaration) -> Declaration:
    """The declaration with every 'auto' of its model replaced by a number."""
    if declaration.model is None or not declaration.model.automatic:
        return declaration
    from generator.fit import automatic

    return automatic.settled(declaration)


def _calibration(declaration: Declaration, beside: Beside) -> Calibration | None:
    """The measurements, if the site names a file of them."""
    path = declaration.calibration
    return measurements.read(path, beside(path)) if path else None


def _complete(facts: "_Facts", parts: Sequence["_Part"]) -> CompleteDeclaration | None:
    """The declaration of the site or of its groups, if nothing is missing."""
    if facts.declaration.serves and facts.declaration.groups is None:
        return facts.complete()
    groups = [part.facts.complete(part.group) for part in parts]
    known = [group for group in groups if group]
    if len(known) != len(parts):
        return None
    return complete(facts.declaration, facts.fabric, facts.sources, known)


@record
class _Part:
    """A group and everything known about it."""

    group: DeclaredGroup
    facts: "_Facts"


def _parts(site: "_Facts") -> list[_Part]:
    """All groups, checked; rules about settings alone run once for groups with equal settings."""
    alike: dict[str, _Facts] = {}
    of_serving = [rule for rule in map(RULES.__getitem__, _in_order()) if rule.of_serving]
    parts = []
    for group in site.declaration.groups or ():
        facts = _facts_of(group, site)
        # Compared as text, because 1 == True.
        first = alike.setdefault(repr((facts.declaration.model, facts.declaration.engine)), facts)
        if first is not facts:
            facts.share(first)
        parts.append(_Part(group, facts))
        for rule in of_serving:
            facts.check(rule)
    return parts


def _facts_of(group: DeclaredGroup, site: "_Facts") -> "_Facts":
    """The facts of a group, as if it were a site of its own."""
    from generator.fabric.subsets import group_kind, of_nodes
    from generator.rules.placing import view

    declared = site.declaration.of_group(group)
    kind = None
    if declared.nodes and declared.topology and site.fabric:
        kind = group_kind(site.fabric, group.nodes)
    topology = replace(declared.topology, kind=kind) if declared.topology and kind else None
    services = declared.services
    if services is not None and site.front:
        is_first = site.front.name == group.nodes[0]
        services = {
            name: own for name, own in services.items() if is_first or not SERVICES[name].IS_ON_HEAD
        }
    declared = replace(declared, topology=topology, services=services)
    facts = _Facts(
        _settled(calibrated(declared, site.calibration)),
        view(site.document, group),
        site.beside,
        site.calibration,
    )
    if topology and site.fabric:
        facts.fabric = of_nodes(site.fabric, group.nodes)
    facts.takes_proxy = False
    facts.front, facts.gateway = site.front, site.gateway
    facts.service_ports = site.service_ports
    facts.findings, facts.broken = list(site.findings), set(site.broken)
    return facts


def _together(site: "_Facts", parts: Sequence[_Part]) -> tuple[list[Finding], set[str]]:
    """All findings without duplicates: groups with the same settings report the same ones."""
    if not parts:
        return site.findings, site.checked
    from generator.rules.placing import placed

    count = len(site.findings)
    of_groups = (
        placed(finding, part.group) for part in parts for finding in part.facts.findings[count:]
    )
    checked = site.checked.union(*(part.facts.checked for part in parts))
    known: dict[tuple[object, ...], Finding] = {}
    for finding in of_groups:
        known.setdefault((finding.rule, finding.path, finding.message), finding)
    return [*site.findings, *_one_of_each(known.values())], checked


def _one_of_each(findings: Iterable[Finding]) -> Iterator[Finding]:
    """One finding for all groups of what is one thing to write, with the places of the others."""
    same: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule in _OF_ALL_GROUPS:
            same.setdefault(finding.rule, []).append(finding)
        else:
            yield finding
    for first, *others in same.values():
        related = [Related(other.message, other.path) for other in others]
        nodes = dict.fromkeys(node for each in (first, *others) for node in each.nodes)
        yield replace(first, related=(*first.related, *related), nodes=tuple(nodes))


# What the nodes' memory is, is one question, however many groups would not fit in less.
_OF_ALL_GROUPS = ("SG537",)


@cache
def _in_order() -> tuple[str, ...]:
    """The rule ids by stage and number, each after the rules that make it pointless."""
    ordered: dict[str, Rule] = {}

    def add(number: str) -> None:
        if number not in ordered:
            others = RULES[number].unless | RULES[number].suppressed_by
            for other in sorted(others & RULES.keys()):
                add(other)
            ordered[number] = RULES[number]

    for number in sorted(RULES, key=lambda number: (RULES[number].stage, number)):
        add(number)
    return tuple(ordered)


class _Facts:
    """The sections that rules ask for by name; None if a section is not available."""

    def __init__(
        self,
        declaration: Declaration,
        document: Document,
        beside: Beside,
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
        # The faults of rules that depend on settings alone; None if the rule could not be checked.
        self.known: dict[str, Sequence[Fault] | None] = {}

    def share(self, other: "_Facts") -> None:
        """Reuse the results of a group with the same settings."""
        self.flags, self.verdicts, self.known = other.flags, other.verdicts, other.known
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
        if _SETTINGS.issuperset(rule.needs):
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
        is_own = hasattr(_Facts, name) or name in vars(self)
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
        return verdicts(ENGINES[engine.name].conditions(), engine, model)

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
