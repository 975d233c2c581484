"""All rules, checked on a site and on each of its groups."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from generator.diagnostics import Finding, Related
from generator.fabric.shapes import site_kind
from generator.fit import calibration as measurements
from generator.fit.calibration import calibrated
from generator.records import replace
from generator.rules.cabling import meant
from generator.rules.facts import Facts
from generator.rules.policy import Policy
from generator.rules.registry import RULES, Fault, Rule
from generator.rules.waivers import waived
from generator.services import SERVICES
from generator.site.complete import CompleteDeclaration, complete
from generator.sitefile.beside import ReadBeside
from generator.sitefile.declaration import Declaration, DeclaredGroup
from generator.sitefile.sections import GROUPS
from generator.sitefile.source import Document

# Groups, each with everything known about it.
_Parts = Sequence[tuple[DeclaredGroup, Facts]]


def check(
    declaration: Declaration, document: Document, beside: ReadBeside, policy: Policy | None = None
) -> tuple[list[Finding], CompleteDeclaration | None]:
    """All findings of the rules, and the declaration if every required section is valid."""
    path = declaration.calibration
    measured = measurements.read(path, beside(path)) if path else None
    declared = _settled(calibrated(_shaped(declaration), measured))
    facts = Facts(declared, document, beside, measured)
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


def _complete(facts: Facts, parts: _Parts) -> CompleteDeclaration | None:
    """The declaration of the site or of its groups, if nothing is missing."""
    if facts.declaration.serves and facts.declaration.groups is None:
        return facts.complete()
    groups = [own.complete(group) for group, own in parts]
    known = [group for group in groups if group]
    if len(known) != len(parts):
        return None
    return complete(facts.declaration, facts.fabric, facts.sources, known)


def _parts(site: Facts) -> _Parts:
    """All groups, checked; rules about settings alone run once for groups with equal settings."""
    alike: dict[str, Facts] = {}
    known: dict[tuple[str, object], dict[str, Sequence[Fault] | None]] = {}
    of_serving = [rule for rule in map(RULES.__getitem__, _in_order()) if rule.of_serving]
    parts = []
    for group in site.declaration.groups or ():
        facts = _facts_of(group, site)
        settings, names = _settings(facts.declaration)
        first = alike.setdefault(settings, facts)
        if first is not facts:
            facts.share(first)
        facts.known = known.setdefault((settings, names), facts.known)
        parts.append((group, facts))
        for rule in of_serving:
            facts.check(rule)
    return parts


def _settings(declared: Declaration) -> tuple[str, object]:
    """The model and engine as text, because 1 == True, and the names that clients request.

    Without nodes that have no variables. No startup condition and no memory depends on the names.
    """
    engine, model, count = declared.engine, declared.model, len(declared.nodes or ())
    if engine and engine.environment.is_shared:
        engine = engine.on(())
    names = model and (model.served_name, model.aliases)
    unnamed = model and replace(model, served_name=None, aliases=())
    return repr((unnamed, engine, count)), names


def _facts_of(group: DeclaredGroup, site: Facts) -> Facts:
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
    facts = Facts(
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


def _together(site: Facts, parts: _Parts) -> tuple[list[Finding], set[str]]:
    """All findings without duplicates: groups with the same settings report the same ones."""
    if not parts:
        return site.findings, site.checked
    from generator.rules.placing import placed

    count = len(site.findings)
    of_groups = (
        placed(finding, group) for group, facts in parts for finding in facts.findings[count:]
    )
    checked = site.checked.union(*(facts.checked for _, facts in parts))
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
