"""Versions that differ between nodes, of the system or of what a name refers to."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from generator.capture import Capture
from generator.diagnostics import listed
from generator.drift.seen import Seen, remark
from generator.locking.locking import commit_on, image_on
from generator.reports.remarks import Place, Remark
from generator.resources import rows
from generator.site import Part, Site


def between(site: Site, seen: Sequence[Seen]) -> Iterator[Remark]:
    """Versions that differ between nodes, or between the nodes of an engine."""
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in seen:
        for what, value in _versions(one.capture):
            values[what][value].append(one.node.name)
    for part in site.parts:
        names = {node.name for node in part.nodes}
        for one in (one for one in seen if one.node.name in names and len(names) > 1):
            for what, value in _contents(part, one):
                values[what][value].append(one.node.name)
    for what, by_value in values.items():
        if len(by_value) > 1:
            versions = "; ".join(f"{v} on {listed(names, 'and')}" for v, names in by_value.items())
            message = f"{what} differs: {versions}"
            advice = "bring all nodes to the same: what one is updated to, the others wait for"
            yield remark("SG867", message, advice, Place(seen[0].capture.archive))


def _contents(part: Part, seen: Seen) -> Iterator[tuple[str, str]]:
    """What an engine's names refer to on a node: its image, its models and its libraries."""
    image = image_on(seen.capture, part.engine.image) if part.engine.image else None
    if image and (known := image.digest or image.layers):
        kind = "digest" if image.digest else "layers"
        yield f"{image.image}, by its {kind},", known[:19]
    for source in part.model.downloads if not part.model.file else ():
        revision = part.model.revision_of(source)
        if commit := commit_on(seen.capture, source, revision, seen.hub(part)):
            yield f"{source}, revision {revision},", commit[:12]
    for name, version in seen.found.programs.items():
        yield f"{name} of the running process", version


def _versions(capture: Capture) -> Iterator[tuple[str, str]]:
    groups = sorted(capture.texts.get("commands/groups.txt", "").split())
    if groups:
        yield "what the user is a member of", ", ".join(groups)
    for what, paths, pattern in rows("node-versions"):
        texts = (text for path, text in capture.texts.items() if re.fullmatch(paths, path))
        found = [version for text in texts for version in re.findall(pattern, text)]
        # Each update adds its own release.
        shown = found[-1:] if what == "the release of DGX OS" else sorted(set(found))
        if shown:
            yield what, ", ".join(shown)
