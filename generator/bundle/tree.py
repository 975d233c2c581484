"""A bundle in memory: every file's text, its mode, and what a change of it needs on the node."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter

from generator.activation import Activation
from generator.records import record


@record
class File:
    """One file of a bundle; `path` is relative to the bundle, with slashes.

    A file that is carried may hold any bytes: those that are no UTF-8 are surrogates in its text.
    """

    path: str
    text: str
    mode: int
    activation: Activation

    @property
    def data(self) -> bytes:
        """The bytes on disk."""
        return _encoded(self.text)

    @property
    def sha256(self) -> str:
        """The checksum of the bytes, in hexadecimal."""
        return _sha256(self.text)

    @property
    def executable(self) -> bool:
        """Whether the file is a script to run: all of a mode that git keeps."""
        return bool(self.mode & 0o100)


def encoded(text: str) -> bytes:
    """The bytes of a text as they were read by `decoded`."""
    return text.encode(errors="surrogateescape")


def decoded(data: bytes) -> str:
    """Any bytes as text, of which `encoded` makes the same bytes again."""
    return data.decode(errors="surrogateescape")


# Most texts are alike on all nodes, and a node has fewer files than that.
_encoded = lru_cache(maxsize=128)(encoded)


# Of each text it is asked twice: a few hundred nodes after the first time in the manifest.
@lru_cache(maxsize=4096)
def _sha256(text: str) -> str:
    return sha256(_encoded(text)).hexdigest()


Tree = Mapping[str, File]


def tree(files: Iterable[File]) -> Tree:
    """Files by path, in the order of their paths."""
    return {file.path: file for file in sorted(files, key=attrgetter("path"))}
