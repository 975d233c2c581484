"""NCCL's environment variables: which releases read a name, and what else reads those none does.

The catalog is read on first use. Source: NVIDIA/nccl, tags 2.10 to 2.30.7, and libnccl.so of 2.31.2
and 2.32.3.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from generator import diagnostics
from generator.catalogs.versions import Release, release
from generator.grouping import grouped
from generator.records import record
from generator.resources import rows, words

# The newest release that the catalog covers.
LATEST: Release = (2, 32, 3)

_PREFIX = "NCCL_"

_MAJOR = 2
# NCCL has a few minor versions in a year: one so far beyond the last is a slip of the finger.
_LAST_MINOR = LATEST[1] + 10
# The first that has kernels for Blackwell, and so for a GB10. Source: its release notes.
BLACKWELL: Release = (2, 25, 1)

# Makes stock NCCL connect only what it uses; a patched build does so anyway.
LAZY = ("NCCL_CUMEM_ENABLE", "NCCL_RUNTIME_CONNECT")
# Read by patched builds, or by a plugin that only a custom build has.
_PATCHED = r"NCCL_(SKIP_TREE_CONNECT|SWITCHLESS_\w+|RING_EDGE_DEVS|RELAY_ENABLE|MESH_\w+)"
# Read by plugins that NVIDIA's images bring along: HPC-X's network plugin, the inspector.
_PLUGINS = r"NCCL_(IBEXT_DISABLE|PLUGIN_P2P|(SHARP|UCX|INSPECTOR)_\w+)"

# Read by no release, and it changes nothing: what people mean by it is the engine's business.
HARMLESS = frozenset({"NCCL_TIMEOUT"})


@record
class Instead:
    """What to write in place of a name; `same` is a name that takes the same values."""

    advice: str
    same: str


@record
class Parameter:
    """A variable and the releases that read it; both are empty if it was removed before 2.10."""

    name: str
    first: Release
    last: Release
    is_integer: bool


def never_was(text: str) -> bool:
    """Whether no such release has existed since 2.10, as far as that can be known."""
    numbers = release(text)
    if numbers[:1] != (_MAJOR,):
        return True
    if len(numbers) > 1 and not min(_patches()) <= numbers[1] <= _LAST_MINOR:
        return True
    patches = _patches().get(numbers[1]) if len(numbers) > 1 else None
    return patches is not None and len(numbers) > 2 and numbers[2] not in patches


def releases() -> list[str]:
    """All known releases."""
    return [f"{_MAJOR}.{minor}.{patch}" for minor, some in _patches().items() for patch in some]


def releases_of(text: str) -> list[str]:
    """The releases of the same minor version, one of which a misspelled version may be."""
    numbers = release(text)
    patches = _patches().get(numbers[1], ()) if len(numbers) > 1 else ()
    return [f"{_MAJOR}.{numbers[1]}.{patch}" for patch in patches if numbers[0] == _MAJOR]


def parameter(name: str) -> Parameter | None:
    """What is known of a variable; None if no release has read it."""
    return _parameters().get(name)


def is_ours(name: str) -> bool:
    """Whether a name is meant for NCCL, not for a plugin of an image."""
    return name.upper().startswith(_PREFIX) and not re.fullmatch(_PLUGINS, name)


def is_patched(name: str) -> bool:
    """Whether only patched builds are known to read a name."""
    return re.fullmatch(_PATCHED, name) is not None


def nearest(name: str) -> list[str]:
    """The variables that a misspelled one most likely stands for."""
    stems = (known.removeprefix(_PREFIX) for known in names())
    found = diagnostics.all_nearest(name.upper().removeprefix(_PREFIX), stems)
    return [f"{_PREFIX}{stem}" for stem in found]


def names() -> Iterator[str]:
    """The variables that the newest release reads."""
    return (known.name for known in _parameters().values() if known.last == LATEST)


@cache
def _patches() -> Mapping[int, list[int]]:
    """The releases of each minor version since 2.10; those after the last may be missing."""
    releases = (map(int, text.split(".")) for text in words("nccl-releases.txt"))
    return grouped((minor, patch) for _, minor, patch in releases)


@record
class AllowedValues:
    """The values that a variable takes: a range of whole numbers, or words, or a list of them."""

    least: int
    most: int
    words: tuple[str, ...]
    is_list: bool


@cache
def values() -> Mapping[str, AllowedValues]:
    """The variables of which the values are known."""
    return {
        name: AllowedValues(int(least or 0), int(most or 0), tuple(words_.split()), bool(is_list))
        for name, least, most, words_, is_list in rows("nccl-values")
    }


@cache
def instead() -> Mapping[str, Instead]:
    """Of names that NCCL has dropped, and of those that no release reads but that people copy."""
    return {name: Instead(advice, same) for name, advice, same in rows("nccl-names")}


@cache
def _parameters() -> Mapping[str, Parameter]:
    return {
        name: Parameter(name, release(first), release(last), kind == "integer")
        for name, first, last, kind, _ in rows("nccl-parameters")
    }
