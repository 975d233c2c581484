"""What was found of a running cluster, each part with its place in its owner's file."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from generator.diagnostics import KeyPath, Span, visible
from generator.records import record
from generator.sitefile.redaction import MASK, blanked, is_secret_key

# Written by a capture in place of a value that it did not keep.
REMOVED = "[removed]"
GUESSED_PREFIX = "guessed: the length of the prefix"


# What Compose sets to nothing, because its own environment does not have it.
LEFT_EMPTY = "Compose leaves it empty"


@record
class Word:
    """A text and its place; `breaks` means that it ends a shell command.

    `doubt` says why a shell doesn't execute it, or may not, `around` are the kinds of blocks that
    it is in, and `remark` is said of what is less certain than stated. `script` is its text with
    the places of its parts, if a shell may read it, and `host` where SSH has it executed.
    """

    text: str
    file: str
    span: Span
    breaks: bool = False
    doubt: str = ""
    around: tuple[str, ...] = ()
    remark: str = ""
    script: Any = None
    host: str = ""

    @property
    def is_removed(self) -> bool:
        """Whether a capture left the value on the node."""
        return self.text == REMOVED or self.text.endswith(f"={REMOVED}")


class ItemEnd(StrEnum):
    """What becomes of something that an input says."""

    SITE = "in the site"
    DEFAULT = "default, same effect"
    OTHER = "of another program"
    LOST = "not held"


@record
class Item:
    """Something that an input says: what it is, its value, and all words that say it.

    `kind` is the kind of file, whose keys `schemas/adoption.tsv` knows, and `owner` the container
    that it is about, if any.
    """

    what: str
    value: str
    words: tuple[Word, ...]
    kind: str = ""
    owner: str = ""

    @property
    def place(self) -> Word:
        """Where it begins."""
        return self.words[0]


@record
class Ended:
    """An item and its end: a path of the site, or a reason; an item without an end has none."""

    item: Item
    end: ItemEnd | None
    path: KeyPath = ()
    why: str = ""

    @property
    def line(self) -> str:
        """The item and its end as one line, in which other people's text can't be more than text.

        The value of a key is not shown.
        """
        item = self.item
        value = MASK if item.value and is_secret_key(item.what.lstrip("-")) else item.value
        shown = value if value.startswith(item.what) else f"{item.what} {value}".strip()
        shown = f"{shown[:_LONGEST]}..." if len(shown) > _LONGEST else shown
        shown = _SETTING.sub(_masked, shown)
        why = self.why or ".".join(map(str, self.path))
        return visible(blanked(f"{shown}: {why}" if shown else why))


def _masked(found: re.Match[str]) -> str:
    """A setting in a text, without its value if that is a secret."""
    return f"{found[1]}{MASK}" if is_secret_key(found[2] or found[3]) else found[0]


_SETTING = re.compile(r"(?<![\w-])(-{0,2}([\w-]{1,60})=|--([\w-]{1,60}) )[^\s,]+")
# Values of items longer than this are cut in reports.
_LONGEST = 120


@record
class FoundVariable:
    """A variable, and the place of its value; `is_blank`: spaces surround its name or value."""

    name: str
    value: Word
    is_blank: bool = False


@record
class FoundContainer:
    """A container: `words` are its entrypoint and command, `options` its other settings.

    `base` are the image's own variables; `is_changed` means that something changes it first,
    `is_running` that its process was seen, `is_launched` that a launcher adds to it. `mods` are
    folders with a run.sh that changes the image, `env_files` have further variables. `items` are
    all settings in its file.
    """

    name: str
    image: Word | None = None
    words: tuple[Word, ...] = ()
    env: tuple[FoundVariable, ...] = ()
    options: Mapping[str, Word] = {}
    mounts: tuple[Word, ...] = ()
    base: frozenset[str] = frozenset()
    is_changed: bool = False
    is_running: bool = False
    is_launched: bool = False
    mods: tuple[Word, ...] = ()
    env_files: tuple[Word, ...] = ()
    items: tuple[Item, ...] = ()

    @property
    def owner(self) -> str:
        """What items about it belong to: its name, or else its image's."""
        image = self.image
        return self.name or (f"{image.text} (line {image.span.line + 1})" if image else "")


@record
class FoundInterface:
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
    `unread` are the beginnings of files that could not be read.
    """

    name: str = ""
    interfaces: tuple[FoundInterface, ...] = ()
    containers: tuple[FoundContainer, ...] = ()
    settings: tuple[FoundVariable, ...] = ()
    assigned: tuple[FoundVariable, ...] = ()
    programs: Mapping[str, str] = {}
    neighbors: Mapping[str, Neighbor] = {}
    management: Word | None = None
    user: Word | None = None
    release: Word | None = None
    visible_gib: float | None = None
    units: Mapping[str, Word] = {}
    place: Word | None = None
    gateway: str = ""
    repeats: tuple[tuple[FoundInterface, FoundInterface], ...] = ()
    unread: tuple[Word, ...] = ()


@record
class Loss:
    """What a site file can't contain, or what could not be read, and its place."""

    text: str
    place: Word


@record
class Found:
    """Everything that files say: nodes, all items, and the files' texts."""

    nodes: tuple[FoundNode, ...]
    texts: Mapping[str, str]
    losses: tuple[Loss, ...] = ()
    items: tuple[Item, ...] = ()
