"""The cluster in operation: nodes, cables, programs and their settings, and what clients see."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from generator.activation import NOTHING, Activation
from generator.operation.meaning import same
from generator.records import record
from generator.site import places

# The text of each file that a program reads, by its path on the node.
Reads = Mapping[str, str]
# Of an engine that serves: its group. Of a cable: its two ends, such as `spark1:p0` and `rack:1`.
Ends = tuple[str, str]

# What is fetched, built, installed, written or copied.
_Fetched = Literal["image", "squashfs", "model", "folder", "vocabulary", "file", "job's file"]
NeedKind = _Fetched | Literal["built image", "environment", "secret", "key", "kept", "package"]


@record
class Need:
    """What a program needs on its node that no bundle contains.

    `name` is an image, a repository of the hub, a path, or the name of a secret. `place` is the
    folder that models and vocabularies are read from, the release in an environment, the checksum
    of a file or of what an image is built from, or of keys between nodes these nodes; `source` is
    the model's revision, the vocabulary's URL, or the image that pyxis gets a file of. `kept` is
    what a service stores, and a `package` one of Ubuntu's.
    """

    kind: NeedKind
    name: str
    place: str = ""
    source: str = ""


@record
class Program:
    """What runs under a unit of systemd, or is run after an installation.

    `reads` are the files that it reads as it starts, and `activation` says how it is started.
    `is_engine`: it is a rank of an engine, which is started with the other ranks. What `boots` is
    started at each boot. Those of its files in `reloads` it reads again while it runs.
    """

    unit: str
    reads: Reads
    needs: frozenset[Need] = frozenset()
    activation: Activation = NOTHING
    is_engine: bool = False
    boots: bool = True
    reloads: frozenset[str] = frozenset()

    @cached_property
    def _compared(self) -> dict[int, tuple["Program", bool]]:
        """The programs that it was compared with, which is asked again for each step."""
        return {}

    def is_like(self, other: "Program | None") -> bool:
        """Whether it would run in the same way."""
        if other is None or self is other:
            return self is other
        if id(other) not in self._compared:
            self._compared[id(other)] = (
                other,
                self.reads.keys() == other.reads.keys()
                and all(same(path, text, other.reads[path]) for path, text in self.reads.items()),
            )
        return self._compared[id(other)][1]

    def command(self, was: "Program | None") -> str:
        """What has it run in place of what runs under its unit; empty if nothing has to."""
        if was is None:
            return self.activation.first or self.activation.step
        texts = (
            (p, self.reads.get(p, ""), was.reads.get(p, "")) for p in {**self.reads, **was.reads}
        )
        is_reloaded = all(p in self.reloads or same(p, one, other) for p, one, other in texts)
        return f"systemctl reload {self.unit}" if is_reloaded else self.activation.step

    def mentions(self, word: str) -> bool:
        """Whether it has been started with an address."""
        whole = re.compile(rf"(?<![\w.]){re.escape(word)}(?![\w.])")
        return any(whole.search(text) for text in self.reads.values())


@record
class NodeFolder:
    """A node's folder of a bundle, as far as installing it has effects.

    `address` is the one that people reach the node at, empty if it has no management network, and
    `user` their login. `links` is netplan's file, and `guarded` what install.sh takes back unless
    it is confirmed. `asked` is what its jobs need. `has_secrets`: installing it makes the file for
    secrets.
    """

    node: str
    checksums: str
    address: str = ""
    user: str = ""
    links: str = ""
    guarded: Mapping[str, str] = {}
    programs: Mapping[str, Program] = {}
    asked: frozenset[Need] = frozenset()
    has_secrets: bool = False

    @cached_property
    def needs(self) -> frozenset[Need]:
        """What its programs and jobs need."""
        return self.asked.union(*(program.needs for program in self.programs.values()))


@record
class LiveNode:
    """A node as it is: `name` is that of its host, `installed` the folder that it was given last.

    `links` is what netplan has applied, `has` what was brought, and `running` the programs as they
    were started. An unconfirmed change is taken back by a timer. `is_checked`: its links have been
    tried since they changed, and measured since it was plugged.
    """

    name: str
    address: str
    user: str
    is_on: bool = True
    copied: NodeFolder | None = None
    installed: NodeFolder | None = None
    is_confirmed: bool = True
    is_checked: bool = True
    is_measured: bool = True
    links: str = ""
    has: frozenset[Need] = frozenset()
    running: Mapping[str, Program] = {}


# An engine's group and nodes.
EnginePlace = tuple[str, ...]


@record
class LiveEngine:
    """An engine on its nodes, by rank; `names` are those that clients may request.

    `group` is empty if it is the only one. `model` is a repository or a folder if that is known,
    `url` where its API listens for others, `key` the secret that requests need. Of `turns`, the
    engines that run one at a time, one `is_active`. It stops within `stop_seconds`, and serves
    `load_seconds` after its start. `job` is its name in Slurm and the script that submits it, if
    that starts all ranks. `ignores_names` is the program's name if it answers whatever name a
    request has.
    """

    group: str
    unit: str
    nodes: tuple[str, ...]
    names: tuple[str, ...]
    url: str
    model: str = ""
    key: str = ""
    turns: tuple[str, ...] = ()
    is_active: bool = True
    stop_seconds: int = 0
    load_seconds: int = 0
    job: tuple[str, ...] = ()
    ignores_names: str = ""

    @property
    def place(self) -> EnginePlace:
        """What tells it from an engine of the same group on other nodes."""
        return self.group, *self.nodes

    @cached_property
    def endpoint(self) -> tuple[str, str]:
        """Where requests reach it, whatever its group is called."""
        return self.nodes[0], self.url

    @property
    def rivals(self) -> tuple[str, ...]:
        """The units of the engines that take turns with it, without its own."""
        return tuple(places.unit(name) for name in self.turns if name != self.group)


@record
class Door:
    """An address of clients: the units on its node that answer there, and the engines behind.

    `key` is what requests need: a client's own key of the proxy, the engine's secret, or nothing.
    `drains`: the proxy there can send an engine no more requests before it stops.
    `trusted` is the site whose own authority clients must trust, or the path of a certificate.
    Requests to the address in `clear` are sent on to it. `checks_names`: it refuses others.
    """

    url: str
    node: str
    units: tuple[str, ...]
    groups: tuple[str, ...]
    names: tuple[str, ...]
    key: str = ""
    drains: bool = False
    trusted: str = ""
    clear: str = ""
    checks_names: bool = False


@record
class LiveCable:
    """A cable: its number and label, and its ends."""

    number: int
    label: str
    ends: Ends

    def __str__(self) -> str:
        return f"cable {self.number}{f' ({self.label})' if self.label else ''}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """What its ends are plugged into, including a switch."""
        return tuple(end.partition(":")[0] for end in self.ends)


@record
class Desired:
    """What a bundle makes of a cluster: folders by node in the order of ranks, engines, doors.

    `elsewhere` are the files that programs elsewhere read, by their paths in the bundle.
    """

    folders: Mapping[str, NodeFolder]
    cables: tuple[LiveCable, ...]
    engines: tuple[LiveEngine, ...]
    doors: tuple[Door, ...]
    elsewhere: Mapping[str, str] = {}

    @cached_property
    def by_group(self) -> Mapping[str, LiveEngine]:
        """The engines by their groups."""
        return {engine.group: engine for engine in self.engines}

    @cached_property
    def running(self) -> Mapping[str, LiveEngine]:
        """Those that do not wait for their turn."""
        return {engine.group: engine for engine in self.engines if engine.is_active}

    @cached_property
    def asked(self) -> Mapping[str | tuple[str, str], list[LiveEngine]]:
        """Those by each name that is requested, and by where requests reach them."""
        found: dict[str | tuple[str, str], list[LiveEngine]] = {}
        for engine in self.running.values():
            keys: tuple[str | tuple[str, str], ...] = (*engine.names, engine.endpoint)
            for key in keys:
                found.setdefault(key, []).append(engine)
        return found


@record
class Cluster:
    """A cluster as it is: its nodes by their names in the new bundle, and the cable in each port.

    `serving` are the engines that answer, and `prepared` what was done on switches. `drained` are
    proxies' nodes, each with a group that the proxy there may send no requests, and `elsewhere` the
    files that were loaded elsewhere.
    """

    nodes: Mapping[str, LiveNode]
    plugged: Mapping[str, LiveCable]
    serving: Mapping[EnginePlace, LiveEngine]
    prepared: frozenset[str] = frozenset()
    drained: frozenset[tuple[str, str]] = frozenset()
    elsewhere: Mapping[str, str] = {}

    @cached_property
    def listening(self) -> Mapping[tuple[str, str], LiveEngine]:
        """The engines that answer, by where requests reach them."""
        return {engine.endpoint: engine for engine in self.serving.values()}


PROXY, WEB_UI, LOGINS = "sparkgen-proxy", "sparkgen-web-ui", "ssh-keys"
CLIENT_KEY = "a key of the proxy"
# What an engine relies on beside itself: who reaches it, its paths, and its files.
RELIED_ON = ("firewall", "sparkgen-kv-cache", "sparkgen-qos", "sparkgen-routes")
