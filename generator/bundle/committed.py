"""A bundle as it was written before, with what its manifest records."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from generator.activation import NOTHING, RESTART
from generator.bundle.plan import MANIFEST, activations
from generator.bundle.tree import File, Tree, decoded
from generator.records import record

# The bytes of a file, and whether it is executable: all of a mode that git keeps.
Content = tuple[bytes, bool]


@record
class Committed:
    """A bundle: its files, its nodes by rank, the two ends of each cable, its site file's name.

    `nodes` have no particular order if their ranks are not known. `sha256` is the checksum of the
    site file and its base, and `generator` the version of sparkgen that built the bundle; both are
    empty if not known.
    """

    tree: Tree
    nodes: tuple[str, ...]
    cables: tuple[tuple[str, str], ...] = ()
    site_file: str = ""
    sha256: str = ""
    generator: str = ""


NONE = Committed({}, ())


def bundle_of(files: Mapping[str, Content], tree: Tree) -> Committed:
    """The bundle among these files: those that its manifest or the tree has."""
    manifest = parsed(files[MANIFEST][0]) if MANIFEST in files else {}
    listed = entries(manifest)
    kept = {
        path: _file(path, content, listed.get(path, {}), tree.get(path))
        for path, content in files.items()
        if path in listed or path in tree or path == MANIFEST
    }
    folders = {path.partition("/")[0] for path in files}
    ranks = manifest.get("nodes")
    nodes = [name for name in ranks if name in folders] if isinstance(ranks, list) else []
    site = manifest.get("site")
    site = site if isinstance(site, dict) else {}
    return Committed(
        kept,
        tuple(nodes) or tuple(sorted(_nodes(kept))),
        _cables(manifest.get("cables")),
        str(site.get("file", "")),
        str(site.get("sha256", "")),
        str(manifest.get("generator", "")),
    )


def _cables(listed: object) -> tuple[tuple[str, str], ...]:
    pairs = listed if isinstance(listed, list) else []
    return tuple((str(p[0]), str(p[1])) for p in pairs if isinstance(p, list) and len(p) == 2)


def _nodes(tree: Tree) -> set[str]:
    """Folders that contain a root tree."""
    return {p.partition("/")[0] for p in tree if p.endswith("/SHA256SUMS") and p.count("/") == 1}


def _file(path: str, content: Content, entry: Mapping[str, Any], new: File | None) -> File:
    """The file; its text is that of the tree's own if the bytes are, so that both compare fast."""
    data, executable = content
    text = new.text if new and new.data == data else decoded(data)
    change = entry.get("change")
    # An activation that this version doesn't have counts as a restart, to be safe.
    unknown = RESTART if change else NOTHING
    known = activations().get(str(change), unknown)
    return File(path, text, _mode(entry, executable), known)


def _mode(entry: Mapping[str, Any], executable: bool) -> int:
    """The mode that the manifest states, unless the file on disk contradicts it."""
    try:
        stated = int(str(entry.get("mode")), 8)
    except ValueError:
        stated = 0
    plain = 0o755 if executable else 0o644
    return stated if stated and bool(stated & 0o100) == executable else plain


# Several ask for the same one, and that of a large site takes a while.
@lru_cache(maxsize=4)
def parsed(manifest: bytes) -> Mapping[str, Any]:
    """The content of a manifest; empty if it can't be read."""
    try:
        content = json.loads(manifest)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def entries(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The entry of each file in a manifest."""
    files = manifest.get("files")
    if not isinstance(files, dict):
        return {}
    return {path: entry for path, entry in files.items() if isinstance(entry, dict)}
