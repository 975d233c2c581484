"""Which keys of a site file a derived value comes from, and by which rule.

Keys are written as in a site file. `{node}` and `{cable}` stand for the entry of the node or cable
that the value belongs to; of `a|b` the first that is written counts, and where none is, the last
has its default.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.addressing import Cable, FabricInterface, Peer
from generator.diagnostics import KeyPath
from generator.engines import ENGINES
from generator.environment import CACHES
from generator.site import Site
from generator.why.tracing import Field


@dataclass(frozen=True, slots=True)
class Origin:
    """Patterns of keys, and how the value follows from what they hold."""

    keys: str
    how: str = "as it is written"


_USER = "{node}.user|defaults.user|user"
_CACHE = f"model.cache|{_USER}"
_ADDRESS = Origin(
    "{cable}.subnets|topology.subnet_pool {node}.host",
    "a cable's half takes its own subnet, or the pool's next; a node its host number on it",
)
_CABLED = Origin("{cable}.endpoints", "each port that a cable ends at has two halves")
_CONTROL = Origin(
    "topology.control_plane|topology.kind {node}.management",
    "control traffic takes the management network on a ring, else the fabric's first half",
)
_LISTEN = Origin(
    "engine.bind|nodes[0].management",
    "the API listens on the head's management address unless engine.bind says otherwise",
)
_SPLIT = Origin("engine.parallel", "how the model is split over the ranks")
_DRAWN = Origin("nodes cabling", "drawn from nodes and cables, generator/diagram/layout.py")
_TIMES = Origin("", "times that hold for every site, generator/container.py")
_RANK = Origin("nodes", "ranks follow the order of the list; the first node is the head")
_MOUNTS = Origin(
    f"{_CACHE} model engine",
    "what the engine reads and writes, generator/container.py",
)

_SETTINGS = Origin("engine", "the environment, generator/environment.py")

_MEMORY = Origin("model engine nodes", "what each rank holds, generator/fit/")

# By class and field, else by class alone.
_ORIGINS: Mapping[str, Origin] = {
    "Api": _LISTEN,
    "Api.port": Origin("engine.port", "the engine's own port unless the site says another"),
    "Api.url": Origin("engine.bind|nodes[0].management engine.port", _LISTEN.how),
    "Bandwidth": Origin(
        "topology.kind topology.halves", "NVIDIA's thresholds for a healthy fabric of this kind"
    ),
    "Badge": _DRAWN,
    "Box": _DRAWN,
    "Cable": Origin("{cable}", "cables are numbered in the order of the list"),
    "Cable.subnets": Origin("{cable}.subnets|topology.subnet_pool topology.halves", _ADDRESS.how),
    "Container": Origin("engine", "what Docker is told, generator/container.py"),
    "Container.command": Origin("model engine", "the engine's command line, generator/engines/"),
    "Container.devices": Origin("cabling", "RDMA devices only where there is a fabric"),
    "Container.env_files": Origin("engine.secrets", "values that are secret stay on the node"),
    "Container.health": _RANK,
    "Container.image": Origin("engine.image"),
    "Container.mounts": _MOUNTS,
    "ControlPlane": _CONTROL,
    "Drawing": _DRAWN,
    "Engine": Origin("engine"),
    "Engine.image": Origin("engine.image"),
    "Engine.is_pinned": Origin("engine.image", "whether the image is named by its digest"),
    "Engine.launcher": Origin("engine.launcher|engine.name", "the engine's first one by default"),
    "Engine.memory_utilization": Origin("engine.memory_utilization"),
    "Engine.nccl": Origin("engine.nccl"),
    "Engine.ports": Origin("engine.ports|engine.name", "the engine's own unless the site differs"),
    "Engine.secrets": Origin("engine.secrets"),
    "Engine.title": Origin("engine.name", "the engine's name as people write it"),
    "Engine.version": Origin("engine.version"),
    "FabricInterface": _CABLED,
    "FabricInterface.address": _ADDRESS,
    "FabricInterface.mtu": Origin("topology.mtu|topology.kind", "9000, but 1500 on a switch"),
    "FabricInterface.ping_size": Origin(
        "topology.mtu|topology.kind", "the MTU less 28 bytes of headers: a ping that fills a frame"
    ),
    "Fit": _MEMORY,
    "Forward": Origin(
        "engine.bind engine.port engine.ports services", "what people open, generator/access.py"
    ),
    "Guard": Origin("services.guard", "when memory counts as short, generator/services/"),
    "Half": _CABLED,
    "Health": _TIMES,
    "Health.test": _RANK,
    "Health.url": Origin("engine.bind engine.port", "how the head is asked whether it serves"),
    "Line": _DRAWN,
    "Link": Origin("topology.kind|nodes", "two nodes of a ring, and the cable between them"),
    "Login": Origin("nodes", "how each node is reached, through the head where it must be"),
    "Management": Origin("{node}.management"),
    "Management.gateway": Origin("{node}.management.gateway|defaults.management.gateway"),
    "Management.interface": Origin(
        "{node}.management.interface|defaults.management.interface|{node}.management"
    ),
    "Model": Origin("model"),
    "Model.context_length": Origin("model.context_length"),
    "Model.is_path": Origin("model.source|model.name", "a folder of the nodes, or the cache"),
    "Model.max_sequences": Origin("model.max_sequences"),
    "Model.served_name": Origin(
        "model.served_name|model.source|model.name", "the last part of the model's id"
    ),
    "Model.source": Origin("model.source|model.name", "the catalog has the Hugging Face id"),
    "Monitoring": Origin("services.monitoring", "the exporters' own, generator/services/"),
    "Mount": _MOUNTS,
    "Node": Origin("{node}"),
    "Node.environment": _SETTINGS,
    "Node.hosts": Origin("nodes cabling", "the names and addresses that the node reaches"),
    "Node.interfaces": _CABLED,
    "Node.is_head": _RANK,
    "Node.login": _SETTINGS,
    "Node.memory_gb": Origin("{node}.memory_gb|defaults.memory_gb"),
    "Node.name": Origin("{node}.name"),
    "Node.nccl": _SETTINGS,
    "Node.rank": _RANK,
    "Node.ssh": Origin(_USER + " {node}.management"),
    "Node.user": Origin(_USER),
    "Node.visible_gib": Origin(
        "{node}.visible_gib|defaults.visible_gib|{node}.memory_gb|defaults.memory_gb",
        "what CUDA sees of the memory, generator/hardware.py",
    ),
    "Page": _MEMORY,
    "Parallel": _SPLIT,
    "Peer": Origin("{cable} {peer}.host", "a neighbor's half on the same subnet"),
    "Site": Origin(""),
    "Site.both_halves": Origin("topology.halves", "one half alone gives about 100 Gb/s"),
    "Site.cables": Origin("cabling"),
    "Site.description": Origin("description"),
    "Site.file": Origin("", "the name of the site file"),
    "Site.has_fabric": Origin("cabling", "whether there are cables"),
    "Site.hubs": Origin("model.cache|user", "the folder that each node's engine reads models from"),
    "Site.kind": Origin("topology.kind"),
    "Site.mtu": Origin("topology.mtu|topology.kind", "9000, but 1500 on a switch"),
    "Site.name": Origin("name"),
    "Site.nodes": _RANK,
    "Site.renderer": Origin("topology.renderer"),
    "Site.start_order": Origin("nodes", "workers before the head"),
    "Site.test_nccl": Origin("engine.nccl"),
    "Site.workers": _RANK,
    "Socket": _DRAWN,
    "Text": _DRAWN,
    "Times": _TIMES,
    "Variables": _SETTINGS,
    "WebUi": Origin("services.web_ui engine.bind", "what the web UI is told, generator/services/"),
}

_VARIABLE = re.compile(r"(?:export )?([A-Za-z_][A-Za-z0-9_]*)=")
_FLAG = re.compile(r"--(?:no-)?([A-Za-z][\w-]*)")
_VARIABLES = ("Variables.values", "Node.nccl", "Node.login")
_OWN_VARIABLE = "written in the site file, and so is its name"
_OWN_FLAG = "written in the site file, spelled as the engine's parser takes it"

_IFNAME = Origin(_CONTROL.keys, _CONTROL.how)
_HEAD = Origin("topology.control_plane|topology.kind nodes[0].management", "the head's address")
_FOLDER = Origin(_CACHE, "models are read there, caches kept apart")
_ENGINE = Origin("engine.name engine.launcher", "what the engine needs on this machine")
_ENVIRONMENT: Mapping[str, Origin] = {
    "NCCL_IB_HCA": Origin("{cable}", "exactly the RoCE devices of the node's cabled ports"),
    "NCCL_SOCKET_IFNAME": _IFNAME,
    "NCCL_NET": Origin("cabling", "fail, rather than fall back to sockets in silence"),
    "NCCL_IB_DISABLE": Origin("cabling", "RDMA is on where there is a fabric"),
    "NCCL_NET_PLUGIN": Origin("topology.kind", "a ring's peers are found by NCCL's own transport"),
    "NCCL_IB_SUBNET_AWARE_ROUTING": Origin("topology.kind", "a ring's peer is behind one port"),
    "NCCL_IB_SUBNET_PREFIX_LEN": Origin("cabling", "NCCL compares 24 bits unless told"),
    "GLOO_SOCKET_IFNAME": _IFNAME,
    "TP_SOCKET_IFNAME": _IFNAME,
    "UCX_NET_DEVICES": _IFNAME,
    "OMPI_MCA_btl_tcp_if_include": _IFNAME,
    "MASTER_ADDR": _HEAD,
    "VLLM_HOST_IP": Origin(_CONTROL.keys, "the node's address on the control plane"),
    "HF_HUB_CACHE": _FOLDER,
    "HF_HUB_OFFLINE": Origin("", "nothing is downloaded while it serves"),
    **dict.fromkeys(CACHES, Origin("", "caches are kept over restarts")),
}

# Of a class that stands in no table: that this is said of no bundle is a test's business.
UNKNOWN = Origin("", "derived from the site file")
# Where the default of a key follows from others.
_DEFAULTED = {
    "engine.bind": _LISTEN.keys,
    "engine.launcher": "engine.launcher|engine.name",
    "engine.ports.master": "engine.ports.master|engine.name",
    "model.name": "model.source|model.name",
    "model.served_name": "model.served_name|model.source|model.name",
}
_PLACE = Origin("nodes", "the rank's own place in the group")


class Origins:
    """Finds the origins of what was printed for one site; `data` is what its file holds."""

    def __init__(self, site: Site, data: Mapping[str, Any]) -> None:
        self._data = data
        self._owned = ENGINES[site.engine.name].OWNED_FLAGS
        self._nodes: dict[int, int] = {}
        self._halves: dict[int, int] = {}
        self._source = site.model.source
        self._ranks = {node.name: node.rank for node in site.nodes}
        self._cables = {
            node.rank: sorted({interface.cable - 1 for interface in node.interfaces})
            for node in site.nodes
        }
        for node in site.nodes:
            container = node.container
            parts = (node, node.management, node.control, container, *node.interfaces)
            more = (*node.environment, *container.mounts)
            self._nodes |= {id(part): node.rank for part in (*parts, *more)}
            self._halves |= {id(each.half): each.cable for each in node.interfaces}

    def of(self, field: Field, line: str) -> tuple[str, Origin, tuple[KeyPath, ...]]:
        """The field, how it follows, and the keys that it follows from, as far as written."""
        name, origin = self._origin(field, line)
        keys = [
            path for pattern in origin.keys.split() for path in self._keys(pattern, field.owner)
        ]
        return name, origin, tuple(dict.fromkeys(keys))

    def is_written(self, path: KeyPath) -> bool:
        """Whether the site file has a value there."""
        value: Any = self._data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return False
        return True

    def _origin(self, field: Field, line: str) -> tuple[str, Origin]:
        """A variable or flag has an origin of its own; it is known by its name."""
        if field.key in _VARIABLES and (variable := _VARIABLE.match(line)):
            return variable[1], self._variable(variable[1])
        if field.key == "Container.command" and (flag := _FLAG.search(line)):
            return f"--{flag[1]}", self._flag(flag[1])
        if field.key == "Container.command" and self._source in line:
            return "Model.source", origin_of("Model.source")
        return field.key, origin_of(field.key)

    def _variable(self, name: str) -> Origin:
        if self.is_written(("engine", "env", name)):
            return Origin(f"engine.env.{name}", _OWN_VARIABLE)
        return _ENVIRONMENT.get(name, _ENGINE)

    def _flag(self, name: str) -> Origin:
        if self.is_written(("engine", "args", name)):
            return Origin(f"engine.args.{name}", _OWN_FLAG)
        if name not in self._owned:
            return origin_of("Container.command")
        key = self._owned[name].partition(" ")[0]
        return Origin(_DEFAULTED.get(key, key), "the engine's flag for it") if key else _PLACE

    def _keys(self, pattern: str, owner: object) -> Iterator[KeyPath]:
        """The first written of the alternatives, or the last; for each cable where many count."""
        *_, last = alternatives = [list(self._paths(each, owner)) for each in pattern.split("|")]
        written = (paths for paths in alternatives if any(self.is_written(path) for path in paths))
        yield from next(written, last)

    def _paths(self, pattern: str, owner: object) -> Iterator[KeyPath]:
        node = self._nodes.get(id(owner))
        head, _, rest = pattern.partition(".")
        tail: KeyPath = tuple(rest.split(".")) if rest else ()
        if head == "{node}":
            yield ("nodes", *(() if node is None else (node,)), *tail)
        elif isinstance(owner, Peer) and head == "{peer}":
            yield ("nodes", self._ranks[owner.node], *tail)
        elif head == "{cable}":
            yield from (("cabling", *cable, *tail) for cable in self._cables_of(owner))
        elif head == "nodes[0]":
            yield ("nodes", 0, *tail)
        else:
            yield (head, *tail)

    def _cables_of(self, owner: object) -> list[KeyPath]:
        """The cable of a thing, or all of its node; all there are of what has neither."""
        if isinstance(owner, Cable):
            return [(owner.number - 1,)]
        if isinstance(owner, FabricInterface | Peer):
            return [(owner.cable - 1,)]
        if id(owner) in self._halves:
            return [(self._halves[id(owner)] - 1,)]
        node = self._nodes.get(id(owner))
        return [()] if node is None else [(cable,) for cable in self._cables[node]]


def origin_of(key: str) -> Origin:
    """The origin by class and field, else by class."""
    return _ORIGINS.get(key) or _ORIGINS.get(key.partition(".")[0], UNKNOWN)
