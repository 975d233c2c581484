"""The environment of a node: which interface, address and RoCE device each program is told.

Every value is the node's own, from the same fabric that netplan is written from.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

from generator.addressing import FABRIC_PREFIX, FabricInterface
from generator.declaration import Kind, Topology
from generator.engines import ENGINES
from generator.site import ControlPlane, Engine, Rank, Variables

CONTROL_PLANE = "control plane"

# RoCE as switches take it: DSCP 26 is priority 3, which may be paused. The traffic class that NCCL
# is told has the two bits of ECN below it, here "capable" (RFC 3168).
QOS_DSCP = 26
QOS_PRIORITY = 3
ECT_0 = 2

# What the engine writes, kept over restarts; outside the container each user has folders of
# their own.
ENGINE_CACHE = "/var/cache/sparkgen"
CACHES = {
    "HF_HOME": "huggingface",
    "TRITON_CACHE_DIR": "triton",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}


def derived(
    rank: Rank,
    control: ControlPlane,
    interfaces: Sequence[FabricInterface],
    topology: Topology,
    engine: Engine,
    hub: str | None,
    qos: bool = False,
) -> list[Variables]:
    """A rank's environment before the site file's own values.

    `hub` is the Hugging Face cache, None where the engine is given a file in place of it.
    """
    own = ENGINES[engine.name].environment(rank, engine)
    groups = [
        Variables(
            "NCCL, the same as in /etc/nccl.conf", nccl(topology.kind, interfaces, control, qos)
        ),
        Variables(CONTROL_PLANE, control_plane(control, rank.head)),
        Variables(engine.title, own),
        Variables(
            "caches are kept here"
            if hub is None
            else "models are read from here, caches kept there",
            _folders(hub, engine),
        ),
    ]
    alone = rank.count == 1
    return [g for g in groups if g.values and not (alone and g.title == CONTROL_PLANE)]


def _folders(hub: str | None, engine: Engine) -> Mapping[str, str]:
    """The cache of models is mounted read-only and nothing is fetched; all else has its own."""
    models = {} if hub is None else {"HF_HUB_CACHE": f"{hub}/hub"}
    return models | {"HF_HUB_OFFLINE": "1"} | caches(engine)


def caches(engine: Engine) -> dict[str, str]:
    """Folders of what the engine keeps over restarts, by the variable that names each."""
    names = {**CACHES, **ENGINES[engine.name].CACHES}
    return {variable: f"{ENGINE_CACHE}/{name}" for variable, name in names.items()}


def nccl(
    kind: Kind,
    interfaces: Sequence[FabricInterface],
    control: ControlPlane,
    qos: bool = False,
) -> dict[str, str]:
    """NCCL's settings on a node, for nccl.conf and the container alike.

    `NCCL_NET=IB` makes NCCL fail where it would fall back to sockets in silence. A leading `=`
    matches names exactly; without it they are prefixes (NCCL, src/misc/socket.cc and
    src/transport/net_ib). The GID index is left alone: it differs between nodes and moves.
    """
    if not interfaces:
        return {"NCCL_IB_DISABLE": "1"}
    values = {
        "NCCL_NET": "IB",
        "NCCL_IB_DISABLE": "0",
        "NCCL_IB_HCA": "=" + ",".join(f"{interface.hca}:1" for interface in interfaces),
        "NCCL_SOCKET_IFNAME": f"={control.interface}",
    }
    if qos:
        values["NCCL_IB_TC"] = str(QOS_DSCP << 2 | ECT_0)
    return values | (_ring(interfaces) if kind == "ring" else {})


def _ring(interfaces: Sequence[FabricInterface]) -> dict[str, str]:
    """On a ring a peer is reached by one of two ports: NCCL picks it by subnet, from 2.30.7 on.

    NCCL compares GIDs by one prefix length, 24 unless told (src/transport/net_ib/connect.cc).
    """
    values = {"NCCL_NET_PLUGIN": "none", "NCCL_IB_SUBNET_AWARE_ROUTING": "1"}
    prefix = interfaces[0].address.network.prefixlen
    if prefix != FABRIC_PREFIX:
        values["NCCL_IB_SUBNET_PREFIX_LEN"] = str(prefix)
    return values


def control_plane(control: ControlPlane, head: IPv4Address) -> dict[str, str]:
    """The same interface for Gloo, PyTorch, UCX and Open MPI; only NCCL knows the leading `=`."""
    return {
        "GLOO_SOCKET_IFNAME": control.interface,
        "TP_SOCKET_IFNAME": control.interface,
        "UCX_NET_DEVICES": control.interface,
        "OMPI_MCA_btl_tcp_if_include": control.interface,
        "MASTER_ADDR": str(head),
    }


def login_part(groups: Sequence[Variables]) -> dict[str, str]:
    """What of an environment jobs are told that a person starts by hand: the control plane."""
    return next((dict(group.values) for group in groups if group.title == CONTROL_PLANE), {})


def nccl_part(groups: Sequence[Variables]) -> dict[str, str]:
    """What of an environment NCCL reads, which is what nccl.conf says."""
    return {
        name: value
        for group in groups
        for name, value in group.values.items()
        if name.startswith("NCCL_")
    }


def with_overrides(groups: Sequence[Variables], own: Mapping[str, str]) -> tuple[Variables, ...]:
    """The groups with the site's own values: in place where a name is derived, else at the end."""
    derived = {name for group in groups for name in group.values}
    merged = [
        Variables(group.title, {name: own.get(name, value) for name, value in group.values.items()})
        for group in groups
    ]
    rest = {name: own[name] for name in sorted(own) if name not in derived}
    return tuple(merged) + ((Variables("set in the site file", rest),) if rest else ())
