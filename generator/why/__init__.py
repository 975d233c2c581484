"""Where the lines of a bundle come from: `tracing` follows the templates, `origins` the values."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from generator.diagnostics import KeyPath
from generator.render import CHECKSUMS, DASHBOARD, MANIFEST, recipe
from generator.site import Site
from generator.source import Document
from generator.tree import Tree
from generator.why.origins import Origins
from generator.why.tracing import traced

TEMPLATES = "templates"


@dataclass(frozen=True, slots=True)
class Source:
    """A key of the site file, and its line from one; None where it is not written."""

    path: KeyPath
    line: int | None


@dataclass(frozen=True, slots=True)
class Value:
    """Something derived that stands in a line, how it follows, and from what."""

    name: str
    how: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Because:
    """A line of a bundle, the places in templates or code that print it, and its values."""

    number: int
    text: str
    printed_by: tuple[str, ...]
    values: tuple[Value, ...]


def why(site: Site, document: Document, bundle: Tree, path: str) -> list[Because]:
    """Each line of a file of the bundle with where it comes from."""
    found = recipe(site, path)
    if found is None:
        lines = bundle[path].text.removesuffix("\n").split("\n")
        return [Because(i, text, *_made_by_code(path)) for i, text in enumerate(lines, 1)]
    origins = Origins(site, document.data)
    because = []
    for number, line in enumerate(traced(*found), 1):
        places = {f"{TEMPLATES}/{piece.template}:{piece.line}": None for piece in line.pieces}
        values = (
            Value(name, origin.how, tuple(_sources(origins, document, keys)))
            for name, origin, keys in (
                origins.of(field, line.text.strip()) for field in line.fields
            )
        )
        because.append(Because(number, line.text, tuple(places), tuple(dict.fromkeys(values))))
    return because


def _sources(origins: Origins, document: Document, keys: tuple[KeyPath, ...]) -> Iterator[Source]:
    for path in keys:
        span = document.locate(path) if origins.is_written(path) else None
        yield Source(path, span.line + 1 if span else None)


def _made_by_code(path: str) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    """What writes the files that no template prints."""
    name = PurePosixPath(path).name
    if path == DASHBOARD:
        return ("generator/services/dashboard.py",), (
            Value(name, "panels of the engine's metrics", ()),
        )
    what = {CHECKSUMS: "the checksums of the node's files", MANIFEST: "what the bundle holds"}
    return ("generator/render.py",), (Value(name, what[name], ()),)
