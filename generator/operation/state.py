"""The cluster in operation: nodes, cables, programs and their settings, and what clients see."""

from collections.abc import Mapping
from typing import Literal

from generator.records import record

# The text of each file that a program reads, by its path on the node.
Reads = Mapping[str, str]


@record
class Need:
    """What a program needs on its node that no bundle contains.

    `name` is an image, a repository of the hub, a path, or the name of a secret. `place` is the
    folder that models and vocabularies are read from, or the checksum of what an image is built
    from; `source` is the model's revision, or the vocabulary's URL.
    """

    kind: Literal["image", "built image", "model", "folder", "vocabulary", "file", "secret", "key"]
    name: str
    place: str = ""
    source: str = ""


@record
class Program:
    """What runs under a unit of systemd, or as a job: what it reads as it starts, and needs.

    `is_engine`: it is a rank of an engine, which is started with the other ranks.
    """

    unit: str
    reads: Reads
    needs: frozenset[Need] = frozenset()
    is_engine: bool = False


@record
class Folder:
    """A node's folder of a bundle, as far as installing it has effects.

    `address` is the one that people reach the node at, empty if it has no management network, and
    `user` their login. `links` is netplan's file, `guarded` what install.sh takes back unless it is
    confirmed, and `firewall` the firewall's rules, None without one.
    """

    node: str
    checksums: str
    address: str
    user: str
    links: str
    guarded: Reads
    programs: Mapping[str, Program]
    firewall: str | None = None


@record
class Node:
    """A node as it is: `name` is that of its host, `installed` the folder that it was given last.

    `links` is what netplan has applied, `firewall` the rules in force, `has` what was brought, and
    `running` the programs as they were started. An unconfirmed change is taken back by a timer.
    """

    name: str
    address: str
    user: str
    is_on: bool = True
    copied: Folder | None = None
    installed: Folder | None = None
    is_confirmed: bool = True
    links: str = ""
    firewall: str | None = None
    has: frozenset[Need] = frozenset()
    running: Mapping[str, Program] = {}


@record
class Engine:
    """An engine on its nodes, by rank; `names` are those that clients may request.

    `group` is empty if it is the only one. `url` is where its API listens for others, `key` the
    secret that requests need. Of `turns`, the engines that run one at a time, one `is_active`. It
    stops within `stop_seconds`, and serves `load_seconds` after its start.
    """

    group: str
    unit: str
    nodes: tuple[str, ...]
    names: tuple[str, ...]
    url: str
    key: str = ""
    turns: tuple[str, ...] = ()
    is_active: bool = True
    stop_seconds: int = 0
    load_seconds: int = 0


@record
class Door:
    """An address of clients: the units on its node that answer there, and the engines behind.

    `key` is what requests need: a client's own key of the proxy, the engine's secret, or nothing.
    """

    url: str
    node: str
    units: tuple[str, ...]
    groups: tuple[str, ...]
    names: tuple[str, ...]
    key: str = ""


@record
class Desired:
    """What a bundle makes of a cluster: folders by node in the order of ranks, engines, doors.

    Each cable has a number or a label, and two ends, such as `spark1:p0` or `rack:1`.
    """

    folders: Mapping[str, Folder]
    cables: tuple[tuple[str, tuple[str, str]], ...]
    engines: tuple[Engine, ...]
    doors: tuple[Door, ...]


CLIENT_KEY = "a key of the proxy"
