"""A site file with all its sections, and the fabric that its cables form."""

from collections.abc import Mapping, Sequence
from typing import Any

from generator.diagnostics import KeyPath
from generator.fabric.addressing import Fabric
from generator.fit.assessment import Fit
from generator.models.architecture import source_of
from generator.records import record, replace, values
from generator.site.serving import DEFAULT_REVISION
from generator.sitefile.beside import Source
from generator.sitefile.declaration import (
    Access,
    Declaration,
    DeclaredEngine,
    DeclaredGroup,
    DeclaredJob,
    DeclaredModel,
    DeclaredNode,
    Identity,
    Settings,
    Topology,
)
from generator.sitefile.lock import Lock


@record
class CompleteDeclaration:
    """The sections of a site file; rules may still have found faults in them.

    `pins` are a lock's images by name, and `sources` the files that the site file names beside it.
    A site of several engines has a part for each in its `groups`; one of one engine is a part
    itself.
    """

    identity: Identity
    nodes: tuple[DeclaredNode, ...]
    topology: Topology
    fabric: Fabric
    services: Mapping[str, Settings]
    groups: "tuple[CompletePart, ...]"
    pins: Mapping[str, str]
    jobs: tuple[DeclaredJob, ...]
    sources: Mapping[str, Source]
    access: Access

    @property
    def parts(self) -> "tuple[CompletePart, ...]":
        """What serves a model each: the groups, or else the site itself if it has an engine."""
        return self.groups

    @property
    def images(self) -> tuple[tuple[str, KeyPath], ...]:
        """The images of its engines that come from a registry, with the path that names each."""
        found = {
            part.engine.image: (*part.place, "engine", "image")
            for part in reversed(self.parts)
            if part.engine.image and part.engine.derived is None
        }
        of_jobs = {job.image: (*job.path, "image") for job in self.jobs if job.image}
        return tuple((of_jobs | found).items())

    @property
    def downloads(self) -> tuple[tuple[str, str, KeyPath], ...]:
        """What engines need from the hub: repository, revision, and the path that names it."""
        return tuple({e[:2]: e for part in reversed(self.parts) for e in part.fetched}.values())

    def locked(self, lock: Lock) -> "CompleteDeclaration":
        """The declaration with the lock's images and commits in place of names."""
        groups = tuple(group.locked(lock) for group in self.groups)
        return replace(self, groups=groups, pins=_pins(lock))


@record
class CompletePart(CompleteDeclaration):
    """Nodes that serve a model together: a group, or all nodes of a site.

    `source` is the model's Hugging Face id, or its folder on the nodes; `commits` are those that a
    lock has for repositories, and `memory` is how the model fits the nodes. A group has a name, and
    a `place` in the site file where its model and engine are written. `alternatives` are those that
    take turns with it in one `slot`, and `is_active` marks the one that runs.
    """

    model: DeclaredModel
    source: str
    engine: DeclaredEngine
    memory: Fit | None
    commits: Mapping[str, str] = {}
    group: str = ""
    place: KeyPath = ()
    slot: str = ""
    alternatives: tuple[str, ...] = ()
    is_active: bool = True

    @property
    def parts(self) -> "tuple[CompletePart, ...]":
        """Itself."""
        return (self,)

    @property
    def fetched(self) -> tuple[tuple[str, str, KeyPath], ...]:
        """What its engine needs from the hub."""
        if self.model.file:
            return ()
        revision = self.model.revision or DEFAULT_REVISION
        model = (*self.place, *self.model.path)
        found: list[tuple[str, str, KeyPath]] = [(self.source, revision, model)]
        if (drafts := self.model.speculative) and drafts.checkpoint:
            path = (*model[:-1], "speculative", "source")
            found.append((drafts.checkpoint, DEFAULT_REVISION, path))
        return tuple(entry for entry in found if not entry[0].startswith("/"))

    def locked(self, lock: Lock) -> "CompletePart":
        """The part with the lock's image and commits in place of names."""
        image = lock.image(self.engine.image)
        engine = replace(self.engine, image=image.pinned) if image else self.engine
        commits = {name: lock.commit(name, revision) for name, revision, _ in self.fetched}
        known = {name: commit for name, commit in commits.items() if commit}
        return replace(self, engine=engine, commits=known, pins=_pins(lock))


def _pins(lock: Lock) -> Mapping[str, str]:
    return {image.image: image.pinned for image in lock.images}


def complete(
    declared: Declaration,
    fabric: Fabric | None,
    sources: Mapping[str, Source],
    groups: Sequence[CompletePart] = (),
) -> CompleteDeclaration | None:
    """The declaration of a network or of groups; None if something is missing.

    `fabric` is None if the cabling is not valid.
    """
    names = ("identity", "nodes", "topology", "services", "jobs", "access")
    sections: dict[str, Any] = {name: getattr(declared, name) for name in names}
    if fabric is None or any(section is None for section in sections.values()):
        return None
    return CompleteDeclaration(
        **sections, fabric=fabric, groups=tuple(groups), pins={}, sources=sources
    )


def complete_part(
    declared: Declaration,
    fabric: Fabric | None,
    sources: Mapping[str, Source],
    memory: Fit | None,
    group: DeclaredGroup | None = None,
) -> CompletePart | None:
    """The declaration of a group, or of a site with one engine; None if something is missing."""
    whole = complete(declared, fabric, sources)
    if whole is None or declared.model is None or declared.engine is None:
        return None
    source = source_of(declared.model)
    if source is None:
        return None
    return CompletePart(
        **values(whole),
        model=declared.model,
        source=source,
        engine=declared.engine,
        memory=memory,
        group=group.name if group else "",
        place=group.written if group else (),
        slot=group.slot if group else "",
        alternatives=group.alternatives if group else (),
        is_active=group is None or group.is_active,
    )
