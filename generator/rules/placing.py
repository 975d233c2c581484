"""Moves findings about a group's model, engine and nodes to their places in the site file."""

from generator.diagnostics import Edit, Finding, KeyPath, Related, Rewrite
from generator.records import replace
from generator.sitefile.declaration import DeclaredGroup
from generator.sitefile.source import Document, value_at


def placed(finding: Finding, group: DeclaredGroup) -> Finding:
    """The finding with all of its places in the group, or in the group that it is like."""
    return replace(
        finding,
        path=_placed(finding.path, group),
        related=tuple(Related(r.text, _placed(r.path, group)) for r in finding.related),
        proposals=tuple(
            tuple(_edit(edit, group) for edit in proposal) for proposal in finding.proposals
        ),
    )


def view(document: Document, group: DeclaredGroup) -> Document:
    """The document as seen by the rules about the group's model and engine."""
    if group.source is None:
        return document
    written = value_at(document.data, group.source)
    own = {key: written[key] for key in ("model", "engine") if key in written}
    return replace(document, data={**document.data, **own})


def _edit(edit: Edit, group: DeclaredGroup) -> Edit:
    return edit if isinstance(edit, Rewrite) else replace(edit, path=_placed(edit.path, group))


def _placed(path: KeyPath, group: DeclaredGroup) -> KeyPath:
    if path[:1] in (("model",), ("engine",)):
        return (*group.written, *path)
    # All nodes means those of the group; a single one is in the site's list.
    return (*group.entry, "nodes") if path == ("nodes",) else path
