"""What was found of a running cluster, each part with its place in its owner's file."""

from collections.abc import Mapping

from generator.diagnostics import Span
from generator.records import record

# Written by a capture in place of a value that it did not keep.
REMOVED = "[removed]"


@record
class Word:
    """A text and its place; `breaks` means that it ends a shell command."""

    text: str
    file: str
    span: Span
    breaks: bool = False

    @property
    def is_removed(self) -> bool:
        """Whether a capture left the value on the node."""
        return self.text == REMOVED or self.text.endswith(f"={REMOVED}")


@record
class Variable:
    """A variable, and the place of its value; `is_blank`: spaces surround its name or value."""

    name: str
    value: Word
    is_blank: bool = False


@record
class Container:
    """A container: `words` are its entrypoint and command, `options` its other settings.

    `base` are the image's own variables; `is_changed` means that something changes it first,
    `is_running` that its process was seen, `is_launched` that a launcher adds to it. `mods` are
    folders with a run.sh that changes the image, `env_files` have further variables.
    """

    name: str
    image: Word | None = None
    words: tuple[Word, ...] = ()
    env: tuple[Variable, ...] = ()
    options: Mapping[str, Word] = {}
    mounts: tuple[Word, ...] = ()
    base: frozenset[str] = frozenset()
    is_changed: bool = False
    is_running: bool = False
    is_launched: bool = False
    mods: tuple[Word, ...] = ()
    env_files: tuple[Word, ...] = ()


@record
class Interface:
    """A network interface; `has_link` is None if it was not checked.

    `master` is the bond or bridge that it is part of, `dhcp` whether it requests an address.
    """

    name: str
    place: Word
    addresses: tuple[Word, ...] = ()
    mtu: Word | None = None
    has_link: bool | None = None
    master: Word | None = None
    dhcp: Word | None = None


@record
class Neighbor:
    """Who is heard on an interface: a node, and its interface, empty if not stated."""

    name: str
    interface: str = ""


@record
class FoundNode:
    """A node; `programs` are versions of what is installed, `neighbors` what LLDP heard.

    `assigned` are variables that a script sets itself. `gateway` is the interface of the default
    route. `repeats` are interfaces that two files set up differently, the later one second.
    """

    name: str = ""
    interfaces: tuple[Interface, ...] = ()
    containers: tuple[Container, ...] = ()
    settings: tuple[Variable, ...] = ()
    assigned: tuple[Variable, ...] = ()
    programs: Mapping[str, str] = {}
    neighbors: Mapping[str, Neighbor] = {}
    management: Word | None = None
    user: Word | None = None
    release: Word | None = None
    visible_gib: float | None = None
    units: Mapping[str, Word] = {}
    caches: Mapping[str, str] = {}
    place: Word | None = None
    gateway: str = ""
    repeats: tuple[tuple[Interface, Interface], ...] = ()


@record
class Loss:
    """What a site file can't contain, or what could not be read, and its place."""

    text: str
    place: Word


@record
class Found:
    """Everything that files say: nodes, their number if it is stated, and the files' texts."""

    nodes: tuple[FoundNode, ...]
    texts: Mapping[str, str]
    losses: tuple[Loss, ...] = ()
    count: int | None = None
