"""Rules about a site and its lock. Documented here, checked by the pipeline."""

from collections.abc import Iterator

from generator.derive.image import image_build
from generator.diagnostics import Finding, KeyPath, Severity
from generator.rules.registry import documented
from generator.services import images
from generator.site.complete import CompleteDeclaration
from generator.sitefile.lock import Lock


def unreadable(why: str, name: str) -> Finding:
    """The finding for a lock that can't be read."""
    advice = "run 'sparkgen lock' again, or delete the file"
    return Finding("SG850", Severity.ERROR, f"the lock {name} can't be used: {why}", help=advice)


def named_images(declared: CompleteDeclaration) -> tuple[tuple[str, KeyPath], ...]:
    """The images of engines and services, each with the path that names it."""
    return (*declared.images, *images(declared.services, declared.nodes))


def older(declared: CompleteDeclaration, lock: Lock) -> Iterator[Finding]:
    """The images and models that a site names and its lock does not cover, if it pins any."""
    if not lock.images and not lock.models:
        return
    for image, path in named_images(declared):
        if lock.image(image) is None:
            yield _older(f"the image {image}", path)
    for part in declared.parts:
        build = image_build(part.engine, part.sources)
        known = lock.image(build.name) if build else None
        if build and (known is None or known.inputs != f"sha256:{build.inputs}"):
            yield _older(
                f"the image {build.name} as it is built now", (*part.place, "engine", "image")
            )
    for source, revision, path in declared.downloads:
        if not lock.commit(source, revision):
            yield _older(f"{source}, revision {revision}", path)


def _older(what: str, path: KeyPath) -> Finding:
    advice = "capture the nodes once they have it, and run sparkgen lock"
    message, severity = f"the lock does not cover {what}", documented()["SG851"].severity
    return Finding("SG851", severity, message, path, help=advice)
