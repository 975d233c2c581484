"""The lines of a file in a bundle, each with what prints it and what its values follow from."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from generator.bundle import plan
from generator.bundle.payload import FOLDER as PAYLOAD
from generator.bundle.payload import original
from generator.bundle.render import recipe
from generator.bundle.tree import Tree
from generator.diagnostics import KeyPath
from generator.records import record
from generator.site import Site
from generator.sitefile.source import Document
from generator.why.groups import GroupView, view
from generator.why.origins import Origins
from generator.why.tracing import traced

TEMPLATES = "templates"


@record
class SourceLine:
    """A key of the site file and its line, counted from one; None if the key is not written.

    `file` names the base if the key is written there.
    """

    path: KeyPath
    line: int | None
    file: str = ""


@record
class Value:
    """A derived value in a line, how it follows, and from what."""

    name: str
    how: str
    sources: tuple[SourceLine, ...]


@record
class Because:
    """A line of a bundle, the places in templates or code that print it, and its values."""

    number: int
    text: str
    printed_by: tuple[str, ...]
    values: tuple[Value, ...]


def why(site: Site, document: Document, bundle: Tree, path: str) -> list[Because]:
    """Each line of a file in the bundle, with its origin."""
    lines = bundle[path].text.removesuffix("\n").split("\n")
    if original(path) in plan.payload():
        place = f"{TEMPLATES}/{PAYLOAD}/{original(path)}"
        return [Because(i, text, (f"{place}:{i}",), ()) for i, text in enumerate(lines, 1)]
    found = recipe(site, path)
    if found is None:
        return [Because(i, text, *_made_by_code(site, path)) for i, text in enumerate(lines, 1)]
    part = found[1]["site"]
    seen = view(site, part, document.data)
    origins = Origins(part, seen.data)
    because = []
    for number, line in enumerate(traced(*found), 1):
        places = {f"{TEMPLATES}/{piece.template}:{piece.line}": None for piece in line.pieces}
        values = (
            Value(name, origin.how, tuple(_sources(origins, seen, document, keys)))
            for name, origin, keys in (
                origins.of(field, line.text.strip()) for field in line.fields
            )
        )
        because.append(Because(number, line.text, tuple(places), tuple(dict.fromkeys(values))))
    return because


def _sources(
    origins: Origins, seen: GroupView, document: Document, keys: tuple[KeyPath, ...]
) -> Iterator[SourceLine]:
    for key in keys:
        path = seen.place(key)
        span = document.locate(path) if origins.is_written(key) else None
        yield SourceLine(path, span.line + 1, span.file) if span else SourceLine(path, None)


def _made_by_code(site: Site, path: str) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    """The origin of files that no template renders."""
    name = PurePosixPath(path).name
    made = {entry.path: entry.made for entry in plan.operator_entries(site)}.get(path)
    if plan.CARRIED in path or plan.is_context(path):
        place, how = "generator/derive/files.py", "carried byte by byte from beside the site file"
    elif made:
        place = f"{made.__module__.replace('.', '/')}.py"
        how = (made.__doc__ or "").partition(";")[0]
    elif plan.is_recorded(path):
        place, how = "generator/pipeline.py", "the text that the site was read from"
    else:
        is_manifest = name == plan.MANIFEST
        place = "generator/bundle/manifest.py"
        how = "what the bundle holds" if is_manifest else "the checksums of the node's files"
    return (place,), (Value(name, how, ()),)
