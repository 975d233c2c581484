"""Which keys of a site file a derived value comes from, as far as they are written.

How it follows is in `schemas/origins.tsv`, or beside the code that derives the variable.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.derive import environment
from generator.diagnostics import KeyPath
from generator.engines import handed_on
from generator.fabric.addressing import Cable, FabricInterface, Peer
from generator.origin import Origin, declared, origin_of
from generator.settings.flags import EngineSettings
from generator.site import Container, Member, Model, Site
from generator.sitefile.source import value_at
from generator.why.tracing import Field

_VARIABLE = re.compile(r"(?:export )?([A-Za-z_][A-Za-z0-9_]*)=")
_FLAG = re.compile(r"--(?:no-)?([A-Za-z][\w-]*)")
_VARIABLES = ("Variables.values", "Member.raw_environment", "Node.nccl", "Node.login")
_OWN_VARIABLE = "written in the site file, and so is its name"
_OWN_FLAG = "written in the site file, spelled as the engine's parser takes it"

_ENGINE = Origin("engine.name engine.launcher", "what the engine needs on this machine")
# For classes that declare nothing; a test ensures that no bundle shows this.
UNKNOWN = Origin("", "derived from the site file")
# Keys whose default follows from others.
_DEFAULTED = {
    "engine.bind": "engine.bind|nodes[0].management",
    "engine.launcher": "engine.launcher|engine.name",
    "engine.ports.master": "engine.ports.master|engine.name",
    "model.name": "model.source|model.name",
    "model.served_name": "model.served_name|model.source|model.name",
}
_PLACE = Origin("nodes", "the rank's own place in the group")

_ADDRESS = Origin(
    "topology.control_plane|topology.kind {node}.management",
    "the node's address on the control plane",
)


def variable_origins(site: Site) -> dict[str, Origin]:
    """The origins of the site's variables by name, and of those that only some sites have."""
    parts = [environment.ORIGINS, {n: o for n, o in declared().items() if n.isupper()}]
    if part := site.serving:
        parts.append(environment.engine_origins(part.engine.name))
        parts.append({ENGINE_TRAITS[part.engine.name].address_variable: _ADDRESS})
    return {name: origin for part in parts for name, origin in part.items()}


class Origins:
    """Finds the origins of what was rendered for one site; `data` is the content of its file."""

    def __init__(self, site: Site, data: Mapping[str, Any]) -> None:
        self._data = data
        part = site.serving
        self._owned = handed_on.owned(part.engine.name) if part else {}
        args = data.get("engine", {}).get("args", {})
        engine = (part.engine.name, part.engine.version) if part else ("", "")
        self._settings = EngineSettings(*engine, args)
        self._variables = variable_origins(site)
        self._nodes: dict[int, int] = {}
        self._halves: dict[int, int] = {}
        self._source = part.model.source if part else None
        self._ranks = {node.name: node.rank for node in site.nodes}
        self._cables = {
            node.rank: sorted({interface.cable - 1 for interface in node.interfaces})
            for node in site.nodes
        }
        for node in site.nodes:
            held: list[object] = [node, node.management, node.control, *node.interfaces]
            if isinstance(node, Member):
                held += [node.container, *node.environment, *node.container.mounts]
            self._nodes |= {id(each): node.rank for each in held}
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
        return value_at(self._data, path) is not None

    def _origin(self, field: Field, line: str) -> tuple[str, Origin]:
        """A variable or flag has an origin of its own, found by its name."""
        if field.key in _VARIABLES and (variable := _VARIABLE.match(line)):
            return variable[1], self._variable(variable[1], self._nodes.get(id(field.owner)))
        if field.key == "Container.command" and (flag := _FLAG.search(line)):
            return f"--{flag[1]}", self._flag(flag[1])
        if field.key == "Container.command" and self._source and self._source in line:
            return "Model.source", _declared(Model, "source")
        return field.key, _declared(type(field.owner), field.name)

    def _variable(self, name: str, node: int | None) -> Origin:
        if node is not None and self.is_written(("nodes", node, "env", name)):
            return Origin(f"{{node}}.env.{name}", _OWN_VARIABLE)
        if self.is_written(("engine", "env", name)):
            return Origin(f"engine.env.{name}", _OWN_VARIABLE)
        return self._variables.get(name, _ENGINE)

    def _flag(self, name: str) -> Origin:
        if name in self._settings:
            return Origin(f"engine.args.{self._settings.path(name)[-1]}", _OWN_FLAG)
        if name not in self._owned:
            return _declared(Container, "command")
        key = self._owned[name].partition(" ")[0]
        return Origin(_DEFAULTED.get(key, key), "the engine's flag for it") if key else _PLACE

    def _keys(self, pattern: str, owner: object) -> Iterator[KeyPath]:
        """The first alternative that is written, or the last; one path per cable if many count."""
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
        """The cables of an object, or else of its node; all cables if it has neither."""
        if isinstance(owner, Cable):
            return [(owner.number - 1,)]
        if isinstance(owner, FabricInterface | Peer):
            return [(owner.cable - 1,)]
        if id(owner) in self._halves:
            return [(self._halves[id(owner)] - 1,)]
        node = self._nodes.get(id(owner))
        return [()] if node is None else [(cable,) for cable in self._cables[node]]


def _declared(kind: type, field: str) -> Origin:
    return origin_of(kind, field) or UNKNOWN
