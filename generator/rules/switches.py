"""Rules about switches that the site describes."""

from collections.abc import Mapping, Sequence

from generator.catalogs.switches import LOSSLESS, known
from generator.catalogs.versions import version
from generator.diagnostics import Rename, all_nearest, did_you_mean, listed, replacements
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.services import QOS
from generator.sitefile.declaration import DeclaredCable, Endpoint, Settings, Topology

Cabling = Sequence[DeclaredCable]


def _ends(nodes: Nodes, cabling: Cabling) -> list[Endpoint]:
    """The ends of cables at switches."""
    names = {node.name for node in nodes}
    return [end for cable in cabling for end in cable.endpoints if end.name not in names]


@rule("SG226", unless="SG203 SG213 SG214")
def switch_without_cables(nodes: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """Cables end at every switch that is described."""
    cabled = {end.name for end in _ends(nodes, cabling)}
    described = {switch.name for switch in topology.switches}
    for switch in topology.switches:
        if switch.name not in cabled:
            free = sorted(cabled - described)
            near = all_nearest(switch.name, free) or (free if len(free) == 1 else [])
            yield Fault(
                f"no cable ends at a switch called '{switch.name}'",
                switch.path,
                did_you_mean(switch.name, free)
                or (f"the cables end at {listed(sorted(cabled), 'and')}" if cabled else "")
                or "remove it: there is no switch here",
                at_key=True,
                proposals=tuple((Rename(switch.path, name),) for name in near),
            )


@rule("SG227", unless="SG203 SG213 SG214")
def port_of_a_switch(nodes: Nodes, cabling: Cabling, topology: Topology) -> Faults:
    """A cable ends at a 200 Gb/s port of the switch."""
    ends = _ends(nodes, cabling)
    used = {str(end) for end in ends}
    for switch in topology.switches:
        model = known(switch.model)
        if model is None:
            continue
        free = [port for port in model.ports if f"{switch.name}:{port}" not in used]
        for end in ends:
            if end.name == switch.name and end.port not in model.ports:
                near = all_nearest(end.port, free)
                yield Fault(
                    f"the {model.title} has no port '{end.port}' at 200 Gb/s",
                    end.path,
                    f"{listed(free[:4], 'and')} {'is' if len(free) == 1 else 'are'} free"
                    if free
                    else f"it has {len(model.ports)} of them, and all are taken",
                    proposals=replacements(end.path, [f"{switch.name}:{port}" for port in near]),
                    unsafe=True,
                )


@rule("SG228", unless="SG226")
def lossless_switch(topology: Topology, services: Mapping[str, Settings]) -> Faults:
    """With `qos`, a switch that sparkgen writes commands for has the release of its OS stated."""
    if QOS not in services:
        return
    for switch in topology.switches:
        if known(switch.model) is None:
            continue
        if switch.os is None:
            yield Fault(
                f"the commands for lossless RoCE depend on the release of {switch.name}",
                switch.path,
                "add 'os:' with what '/system/resource/print' says, such as 'os: \"7.23\"'",
                at_key=True,
            )
        elif version(switch.os) < version(LOSSLESS):
            yield Fault(
                f"RouterOS {switch.os} has no lossless queues for RoCE",
                (*switch.path, "os"),
                f"upgrade to {LOSSLESS} or later, or remove 'qos' from services",
            )
