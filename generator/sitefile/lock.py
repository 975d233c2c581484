"""The lock beside a site: which image and which commit of a model its names stood for on the nodes.

    version: 1
    images:
      - {image: vllm/vllm-openai:v0.33.0, digest: sha256:...}
    models:
      - {source: openai/gpt-oss-120b, revision: main, commit: ...}
    files:
      - {file: files/chat.jinja, sha256: ...}
    answers:
      - {node: spark1, image: ..., settings: ..., status: accepted, weights: 36400000000}

Each entry is a line, in order, with a blank one between two: git merges changes of two entries.
An answer is what an engine said of the settings with that checksum; a group's also names the group,
and `weights` are the bytes of a rank's parameters, if the engine said how many.
An image that was built on the nodes has no digest, but the checksum of its `layers`; one that the
site builds has that of its `inputs` too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
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
        return _HEAD + "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"version: {VERSION}"
        yield from _listed("images", self.images, "image")
        yield from _listed("models", self.models, "source revision")
        yield from _listed("files", self.files, "file")
        yield from _listed("answers", self.answers, "group node")


def _listed(key: str, entries: Sequence[Any], order: str) -> Iterator[str]:
    """The lines of a list, each entry in one; a value that is empty is left out."""
    rows = [{name: getattr(entry, name) for name in _FORMS[key]} for entry in entries]
    rows.sort(key=lambda row: [row[name] for name in order.split()])
    for before, row in zip([f"{key}:", *[""] * len(rows)], rows, strict=False):
        yield before
        yield f"  - {{{', '.join(f'{name}: {_plain(row[name])}' for name in row if row[name])}}}"


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
    if data.get("version") != VERSION or set(data) - {"version", *_KEYS}:
        raise LockError("it was written by another version of sparkgen")
    images = tuple(LockedImage(**entry) for entry in _entries(data, "images"))
    models = tuple(LockedModel(**entry) for entry in _entries(data, "models"))
    if any(bool(image.digest) == bool(image.layers) for image in images):
        raise LockError("an image has a digest, or the checksum of its layers")
    answers = tuple(
        LockedAnswer(**{"group": "", "image": "", **entry}) for entry in _entries(data, "answers")
    )
    files = tuple(LockedFile(**entry) for entry in _entries(data, "files"))
    return Lock(images, models, answers, raw, files)


_IMAGE: Mapping[str, str] = {
    "image": _TEXT,
    "digest": _DIGEST,
    "layers": _DIGEST,
    "inputs": _DIGEST,
}
_MODEL: Mapping[str, str] = {"source": _TEXT, "revision": _TEXT, "commit": _COMMIT}
_ANSWER: Mapping[str, str] = {
    "node": _TEXT,
    "group": _TEXT,
    "image": _TEXT,
    "settings": r"[0-9a-f]{64}",
    "status": r"accepted|refused|could not ask",
    "weights": r"[1-9]\d{0,14}",
}
_FILE: Mapping[str, str] = {"file": r"[A-Za-z0-9._@+/-]+", "sha256": r"[0-9a-f]{64}"}
_FORMS = {"images": _IMAGE, "models": _MODEL, "files": _FILE, "answers": _ANSWER}
# What an entry of each list must have.
_KEYS = {
    "images": {"image"},
    "models": {*_MODEL},
    "files": {*_FILE},
    "answers": {"node", "settings", "status"},
}


def _entries(data: Mapping[str, Any], key: str) -> Iterator[dict[str, str]]:
    entries, forms = data.get(key, []), _FORMS[key]
    if not isinstance(entries, list):
        raise LockError(f"'{key}' is not a list")
    for entry in entries:
        if not isinstance(entry, dict) or not {*entry} <= {*forms} or len(entry) < 2:
            raise LockError(f"an entry of '{key}' has other keys than {', '.join(forms)}")
        for name, value in entry.items():
            if not isinstance(value, str) or not re.fullmatch(forms[name], value):
                raise LockError(f"'{name}' of an entry of '{key}' has another form")
        if not _KEYS[key] <= {*entry}:
            raise LockError(f"an entry of '{key}' lacks a key")
        yield {name: str(value) for name, value in entry.items()}
