"""Rules that report the advisories in `schemas/advisories.yaml` that apply to a site."""

from generator.catalogs.advisories import Advisory, advisories, named, within
from generator.diagnostics import KeyPath, Severity
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine
from generator.sitefile.source import Document

# The subjects of the advisories that each rule reports.
SUBJECTS = {"SG229": ("os",), "SG421": ("nccl",), "SG689": ("engine", "image")}


@rule("SG229", Severity.WARNING)
def release_with_a_fault(nodes: Nodes, document: Document) -> Faults:
    """The nodes do not run a release of DGX OS that needs a workaround."""
    releases: dict[KeyPath, str] = {}
    for node in nodes:
        if node.os:
            own = "os" in document.data["nodes"][node.index]
            releases[(*node.path, "os") if own else ("defaults", "os")] = node.os
    for path, release in releases.items():
        for entry in advisories(*SUBJECTS["SG229"]):
            if named(entry.os, release):
                yield _fault(f"DGX OS {release}", entry, path)


@rule("SG421", Severity.WARNING, unless="SG401")
def nccl_with_a_fault(engine: DeclaredEngine) -> Faults:
    """The NCCL in the image has no known fault."""
    if not engine.nccl or engine.nccl_patched:
        return
    for entry in advisories(*SUBJECTS["SG421"]):
        if within(entry.nccl, engine.nccl) and _has_engine(entry, engine):
            yield _fault(f"NCCL {engine.nccl}", entry, ("engine", "nccl"))


@rule("SG689", Severity.WARNING, suppressed_by="SG609")
def engine_with_a_fault(engine: DeclaredEngine, nodes: Nodes) -> Faults:
    """The engine and its image have no known fault."""
    for entry in advisories(*SUBJECTS["SG689"]):
        if len(nodes) < entry.nodes or not _has_engine(entry, engine):
            continue
        if entry.subject == "image" and named(entry.images, engine.image):
            yield _fault(f"the image {engine.image}", entry, ("engine", "image"))
        elif entry.subject == "engine":
            what = f"{entry.engine} {engine.version}"
            yield _fault(what, entry, ("engine", "version"))


def _has_engine(entry: Advisory, engine: DeclaredEngine) -> bool:
    """Whether an advisory applies to the engine, its version and its settings."""
    avoided = entry.unless and all(engine.settings.value(f) == v for f, v in entry.unless.items())
    right = entry.engine in (None, engine.name) and within(entry.version, engine.version)
    return right and not avoided


def _fault(what: str, entry: Advisory, path: KeyPath) -> Fault:
    return Fault(f"{what} {entry.effect} ({entry.id})", path, entry.remedy)
