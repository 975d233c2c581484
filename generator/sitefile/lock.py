"""The lock beside a site: which image and which commit of a model its names stood for on the nodes.

    version: 1
    locked:
      - {image: vllm/vllm-openai:v0.33.0, digest: sha256:...}
      - {source: openai/gpt-oss-120b, revision: main, commit: ...}
      - {file: files/chat.jinja, sha256: ...}
      - {node: spark1, image: ..., settings: ..., status: accepted, weights: 36400000000}

Each entry is a line that tells by its keys what it is, in order, with a blank one between two:
git merges changes of two entries, and whatever lines of two locks follow each other are a lock.
An answer is what an engine said of the settings with that checksum; a group's also names the group,
`weights` are the bytes of a rank's parameters, if the engine said how many, and `rehearsal` is the
end of a start with random weights.
An image that was built on the nodes has no digest, but the checksum of its `layers`; one that the
site builds has that of its `inputs` too.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from generator.records import record, replace
from generator.sitefile import source
from generator.sitefile.beside import ReadBeside

VERSION = "1"
SUFFIX = ".lock.yaml"
_DIGEST, _COMMIT = r"sha256:[0-9a-f]{64}", r"[0-9a-f]{40}"
_TEXT = r"[A-Za-z0-9][A-Za-z0-9._/:@-]*"
_HEAD = """\
# What the site's names stood for on its nodes. Written by 'sparkgen lock'; not to be edited.
"""


@record
class LockedImage:
    """One image: its digest in registries, or the checksum of its layers."""

    image: str
    digest: str = ""
    layers: str = ""
    inputs: str = ""

    @property
    def pinned(self) -> str:
        """The image with its digest, if it has one."""
        return f"{self.image}@{self.digest}" if self.digest else self.image


@record
class LockedModel:
    """One model: its commit, by the name of a branch or tag or by the commit itself."""

    source: str
    revision: str
    commit: str


@record
class LockedFile:
    """One file that the bundle carries from beside the site, by its path there."""

    file: str
    sha256: str


@record
class LockedAnswer:
    """What the engine on a node said of its settings, which are given by their checksum."""

    group: str
    node: str
    image: str
    settings: str
    status: str
    weights: str = ""
    rehearsal: str = ""


@record
class Lock:
    """What is locked; `raw` is the file's content."""

    images: tuple[LockedImage, ...]
    models: tuple[LockedModel, ...]
    answers: tuple[LockedAnswer, ...] = ()
    raw: bytes = b""
    files: tuple[LockedFile, ...] = ()

    @property
    def pins(self) -> bytes:
        """What bundles are built from, which answers don't change; empty if nothing is pinned."""
        if not self.answers:
            return self.raw
        own = replace(self, answers=())
        return own.text().encode() if self.images or self.models else b""

    def image(self, name: str) -> LockedImage | None:
        """The locked image for a name."""
        return next((image for image in self.images if image.image == name), None)

    def commit(self, name: str, revision: str) -> str:
        """The commit of a model's revision; empty if it is not locked."""
        found = (m.commit for m in self.models if (m.source, m.revision) == (name, revision))
        return next(found, "")

    def text(self) -> str:
        """The text of the file."""
        entries = (*self.images, *self.models, *self.files, *self.answers)
        lines = [f"  - {{{row}}}\n" for _, row in sorted(map(_row, entries))]
        return f"{_HEAD}version: {VERSION}\nlocked:\n" + "\n".join(lines)


def _row(entry: Any) -> tuple[tuple[int, tuple[str, ...]], str]:
    """Where an entry is among others, and its text; a value that is empty is left out."""
    at = [kind.made for kind in _KINDS].index(type(entry))
    values = {name: getattr(entry, name) for name in _KINDS[at].forms}
    text = ", ".join(f"{name}: {_plain(value)}" for name, value in values.items() if value)
    return (at, tuple(values[name] for name in _KINDS[at].order)), text


def _plain(value: str) -> str:
    """A value as YAML takes it for text; all of them are plain ASCII."""
    return value if re.fullmatch(r"[A-Za-z0-9][\w ./:@+-]*", value) else f'"{value}"'


class LockError(Exception):
    """A lock can't be read; the message says why, in one line."""


def lock_name(site: str) -> str:
    """The name of a site file's lock, which is beside it; empty for text that is from no file."""
    name = PurePath(site).name
    return name.removesuffix(".yaml") + SUFFIX if name.endswith(".yaml") else ""


def read(site: str, beside: ReadBeside) -> Lock | None:
    """The lock beside a site file, if there is one; raises LockError if it can't be read."""
    name = lock_name(site)
    found = beside(name) if name else None
    if not found or not found.files or found.is_folder:
        return None
    return parse(name, found.files[0].data)


def parse(name: str, raw: bytes) -> Lock:
    """Parse a lock; raises LockError if the text is not one."""
    document = source.read(name, raw)
    data = document.data
    if document.findings or not isinstance(data, dict):
        raise LockError("it is not a lock")
    if data.get("version") != VERSION or set(data) - {"version", "locked", *_LISTS}:
        raise LockError("it was written by another version of sparkgen")
    made: dict[Any, Any] = {}
    for entry in (_entry(row) for key in data if key != "version" for row in _rows(data, key)):
        what, _ = _row(entry)
        if made.setdefault(what, entry) != entry:
            raise LockError(f"{' '.join(what[1]).strip()} is locked in two ways: lock it anew")
    of_kinds: list[Any] = [
        tuple(one for one in made.values() if isinstance(one, kind.made)) for kind in _KINDS
    ]
    images, models, files, answers = of_kinds
    return Lock(images, models, answers, raw, files)


@record
class _Kind:
    """What an entry of one kind has, what it must have, and what orders those of its kind."""

    made: type
    forms: Mapping[str, str]
    needed: tuple[str, ...]
    order: tuple[str, ...]


_IMAGE = {"image": _TEXT, "digest": _DIGEST, "layers": _DIGEST, "inputs": _DIGEST}
_MODEL = {"source": _TEXT, "revision": _TEXT, "commit": _COMMIT}
_FILE = {"file": r"[A-Za-z0-9._@+/-]+", "sha256": r"[0-9a-f]{64}"}
_ANSWER = {
    "node": _TEXT,
    "group": _TEXT,
    "image": _TEXT,
    "settings": r"[0-9a-f]{64}",
    "status": r"accepted|refused|could not ask",
    "weights": r"[1-9]\d{0,14}",
    "rehearsal": r"accepted|refused|could not ask",
}
_KINDS = (
    _Kind(LockedImage, _IMAGE, ("image",), ("image",)),
    _Kind(LockedModel, _MODEL, (*_MODEL,), ("source", "revision")),
    _Kind(LockedFile, _FILE, (*_FILE,), ("file",)),
    _Kind(LockedAnswer, _ANSWER, ("node", "settings", "status"), ("group", "node")),
)
# Each kind had a list of its own.
_LISTS = ("images", "models", "files", "answers")


def _rows(data: Mapping[str, Any], key: str) -> list[Any]:
    if data[key] and not isinstance(data[key], list):
        raise LockError(f"'{key}' is not a list")
    return list(data[key])


def _entry(row: Any) -> Any:
    """An entry by its keys; raises LockError if it is none."""
    own = row if isinstance(row, dict) else {}
    of_keys = (kind for kind in _KINDS if {*kind.needed} <= {*own} <= {*kind.forms})
    kind = next(of_keys, None)
    if kind is None:
        raise LockError("an entry lacks a key, or has other ones")
    for name, value in own.items():
        if not isinstance(value, str) or not re.fullmatch(kind.forms[name], value):
            raise LockError(f"'{name}' of an entry has another form")
    if kind.made is LockedImage and ("digest" in own) == ("layers" in own):
        raise LockError("an image has a digest, or the checksum of its layers")
    return kind.made(**{"group": "", "image": ""} | own if "node" in own else own)
