"""A bundle in memory: every file's text, its mode, and how its changes are applied on the node."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter

from generator.activation import NOTHING, Activation
from generator.records import record


@record
class File:
    """One file of a bundle; `path` is relative to the bundle, with slashes.

    A carried file may have any bytes: those that are not UTF-8 are surrogates in its text.
    """

    path: str
    text: str
    mode: int = 0o644
    activation: Activation = NOTHING

    @property
    def data(self) -> bytes:
        """The bytes on disk."""
        return encoded(self.text)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal."""
        return _sha256(self.text)

    @property
    def executable(self) -> bool:
        """Whether the file is executable, which is all of a mode that git keeps."""
        return bool(self.mode & 0o100)


# Most texts are the same on all nodes, and a node has fewer files than this.
@lru_cache(maxsize=128)
def encoded(text: str) -> bytes:
    """Encode text, restoring the bytes that `decoded` read."""
    return text.encode(errors="surrogateescape")


def decoded(data: bytes) -> str:
    """Decode any bytes as text, which `encoded` turns into the same bytes again."""
    return data.decode(errors="surrogateescape")


# Each checksum is needed twice, in the node's list and, a few hundred nodes later, in the manifest.
@lru_cache(maxsize=1 << 14)
def _sha256(text: str) -> str:
    return sha256(encoded(text)).hexdigest()


Tree = Mapping[str, File]


def tree(files: Iterable[File]) -> Tree:
    """Files by path, in the order of their paths."""
    return {file.path: file for file in sorted(files, key=attrgetter("path"))}
