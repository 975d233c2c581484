"""The environment of a node: the interface, address and RoCE device that each program gets.

Every value is the node's own, from the same fabric as its netplan.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.vocabularies import VARIABLE
from generator.engines import ENGINES
from generator.engines.offload import ORIGIN as OFFLOAD_ORIGIN
from generator.fabric.addressing import FabricInterface
from generator.origin import Origin
from generator.resources import rows
from generator.site import ControlPlane, Engine, Rank, Variables
from generator.sitefile.declaration import KvOffload, Topology
from generator.sitefile.text_types import PLAIN_VALUE

CONTROL_PLANE = "control plane"

# What the engine writes is kept across restarts; outside the container each user has folders of
# their own.
ENGINE_CACHE = "/var/cache/sparkgen"
NCCL_CONF = "/etc/nccl.conf"
CACHES = {
    "HF_HOME": "huggingface",
    "TRITON_CACHE_DIR": "triton",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}

# What all but NCCL take the interface of the control plane from.
INTERFACE_VARIABLES = (
    *("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES"),
    "OMPI_MCA_btl_tcp_if_include",
)
_CACHED = Origin("", "caches are kept across restarts")
# For the variables derived here; topologies, services and engines declare those that they add.
ORIGINS: Mapping[str, Origin] = {
    **{name: Origin(keys, how) for name, keys, how in rows("variables")},
    **dict.fromkeys(CACHES, _CACHED),
}


def engine_origins(engine: str) -> Mapping[str, Origin]:
    """The same for an engine's caches, and for its KV cache on disk."""
    module = ENGINES[engine]
    stores = (KvOffload("/srv/kv", 1, 1, connector) for connector in module.OFFLOAD)
    return {
        **dict.fromkeys(ENGINE_TRAITS[engine].caches, _CACHED),
        **{name: OFFLOAD_ORIGIN for store in stores for name in module.offload_variables(store)},
    }


def derived(
    rank: Rank,
    control: ControlPlane,
    interfaces: Sequence[FabricInterface],
    topology: Topology,
    engine: Engine,
    hub: str | None,
    more: Mapping[str, str] = {},
    has_vocabularies: bool = False,
    offload: KvOffload | None = None,
) -> list[Variables]:
    """A rank's environment before the site file's own values.

    `hub` is the Hugging Face cache, None if the engine reads a file instead; `more` are NCCL's
    variables for the fabric as a whole and for the site's services.
    """
    own = ENGINES[engine.name].environment(rank, engine)
    groups = [
        Variables("NCCL, the same as in /etc/nccl.conf", nccl(topology, interfaces, control, more)),
        Variables(CONTROL_PLANE, control_plane(control, rank.head)),
        Variables(engine.title, own),
        Variables(
            "caches are kept here"
            if hub is None
            else "models are read from here, caches kept there",
            _folders(hub, engine, has_vocabularies),
        ),
    ]
    if offload:
        kept = ENGINES[engine.name].offload_variables(offload)
        groups.append(Variables("the KV cache on disk", kept))
    alone = rank.count == 1
    return [g for g in groups if g.values and not (alone and g.title == CONTROL_PLANE)]


def _folders(hub: str | None, engine: Engine, has_vocabularies: bool) -> Mapping[str, str]:
    """The models' cache is read-only and nothing is downloaded; other caches have own folders."""
    models = {} if hub is None else {"HF_HUB_CACHE": f"{hub}/hub"}
    if hub is not None and has_vocabularies:
        models[VARIABLE] = f"{hub}/tiktoken"
    return models | {"HF_HUB_OFFLINE": "1"} | caches(engine)


def caches(engine: Engine) -> dict[str, str]:
    """The folders that the engine keeps across restarts, by the variable that names each."""
    names = {**CACHES, **ENGINE_TRAITS[engine.name].caches}
    return {variable: f"{ENGINE_CACHE}/{name}" for variable, name in names.items()}


def nccl(
    topology: Topology,
    interfaces: Sequence[FabricInterface],
    control: ControlPlane,
    more: Mapping[str, str] = {},
) -> dict[str, str]:
    """NCCL's settings on a node, both for nccl.conf and the container.

    `NCCL_NET=IB` makes NCCL fail where it would silently fall back to sockets. A leading `=`
    matches names exactly; without it they are prefixes (NCCL, src/misc/socket.cc and
    src/transport/net_ib). The GID index is left alone: it differs between nodes and changes.
    """
    if not interfaces:
        return {"NCCL_IB_DISABLE": "1"}
    hcas = [i.hca for i in interfaces if i.half.half in topology.rdma_halves]
    values = {
        "NCCL_NET": "IB",
        "NCCL_IB_DISABLE": "0",
        "NCCL_IB_HCA": "=" + ",".join(f"{hca}:1" for hca in hcas),
        "NCCL_SOCKET_IFNAME": f"={control.interface}",
    }
    return {**values, **more}


def control_plane(control: ControlPlane, head: IPv4Address) -> dict[str, str]:
    """The same interface for Gloo, PyTorch, UCX and Open MPI; only NCCL has the leading `=`."""
    return {**dict.fromkeys(INTERFACE_VARIABLES, control.interface), "MASTER_ADDR": str(head)}


def login_part(groups: Sequence[Variables]) -> dict[str, str]:
    """The part of an environment for jobs that a person starts by hand: the control plane."""
    return next((dict(group.values) for group in groups if group.title == CONTROL_PLANE), {})


def nccl_part(groups: Sequence[Variables]) -> dict[str, str]:
    """The part of an environment that NCCL reads, which is the content of nccl.conf."""
    return {
        name: value
        for group in groups
        for name, value in group.values.items()
        if name.startswith("NCCL_")
    }


def with_overrides(groups: Sequence[Variables], own: Mapping[str, str]) -> tuple[Variables, ...]:
    """The groups with the site's own values: in place of derived ones, otherwise at the end."""
    if not own:
        return tuple(groups)
    derived = {name for group in groups for name in group.values}
    merged = [
        Variables(group.title, {name: own.get(name, value) for name, value in group.values.items()})
        for group in groups
    ]
    rest = {name: own[name] for name in sorted(own) if name not in derived}
    return tuple(merged) + ((Variables("set in the site file", rest),) if rest else ())


# Most values are the same on all nodes.
@lru_cache(maxsize=1024)
def is_raw(value: str) -> bool:
    """Whether Compose would read a value in an environment file differently from Docker.

    Compose treats quotes, `$`, `#` and backslashes in such a file as syntax, and trims spaces
    (compose-go, dotenv); Docker takes everything after the first `=` literally (docker/cli,
    pkg/kvfile).
    """
    return not PLAIN_VALUE.fits(value)


def plain_part(groups: Sequence[Variables]) -> tuple[Variables, ...]:
    """The groups with only those values that every reader of such files reads the same way."""
    plain = (
        Variables(g.title, {name: text for name, text in g.values.items() if not is_raw(text)})
        for g in groups
    )
    return tuple(group for group in plain if group.values)


def raw_part(groups: Sequence[Variables]) -> dict[str, str]:
    """The values that are omitted there."""
    return {
        name: value for group in groups for name, value in group.values.items() if is_raw(value)
    }
