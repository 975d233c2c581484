"""Rules about llama.cpp's settings, and about who can reach its workers."""

from pathlib import PurePosixPath

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Severity, removal, replacements
from generator.fabric.topologies import TOPOLOGIES
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Topology

NAME = "llama.cpp"

_ROOT = PurePosixPath("/")
_IN_THE_ROOT = "the file is in the root folder, which can't be mounted into a container"
_A_FOLDER = "move it to a folder, such as /srv/models"


@rule("SG653", of_version=True)
def file_of_the_model(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """llama.cpp, and no other engine, gets its model as a GGUF file."""
    if ENGINE_TRAITS[engine.name].reads_gguf:
        yield from _file(model)
    elif model.file:
        yield Fault(
            "'file' names a GGUF file, which only llama.cpp can load",
            ("model", "file"),
            "remove it, or write 'name: llama.cpp' under 'engine'",
            at_key=True,
            proposals=removal(("model", "file")) + replacements(("engine", "name"), [NAME]),
        )


def _file(model: DeclaredModel) -> Faults:
    """Faults of the file's path."""
    from generator.engines.llama_cpp.engine import is_no_part, part

    if not model.file:
        yield Fault(
            "llama.cpp needs the model as a GGUF file",
            ("model",),
            "write 'file: /srv/models/NAME.gguf' under 'model', with its path on the head",
            at_key=True,
        )
    elif is_no_part(model.file):
        yield Fault(
            "llama.cpp can't find the model's parts: they have other names than it expects",
            ("model", "file"),
            "name the files NAME-00001-of-0000N.gguf and so on, and write the first one",
        )
    elif (number := part(model.file)) and number != 1:
        first = model.file.replace(f"-{number:05}-of-", "-00001-of-")
        yield Fault(
            "a model in parts is loaded from its first part",
            ("model", "file"),
            f"write '{first}'",
            proposals=replacements(("model", "file"), [first]),
        )
    elif PurePosixPath(model.file).parent == _ROOT:
        yield Fault(_IN_THE_ROOT, ("model", "file"), _A_FOLDER)


@rule("SG654", unless="SG510 SG512 SG603", engine=NAME)
def unsupported_split(engine: DeclaredEngine, nodes: Nodes) -> Faults:
    """llama.cpp splits a model over nodes by its layers."""
    sizes = engine.parallel
    if sizes.tensor > 1 or sizes.data > 1 or sizes.expert:
        count, path = len(nodes), ("engine", "parallel")
        several = replacements(path, [{"pipeline": count}])
        yield Fault(
            "llama.cpp splits a model by its layers alone",
            path,
            f"write 'parallel: {{pipeline: {count}}}'" if count > 1 else "remove 'parallel'",
            at_key=True,
            proposals=several if count > 1 else removal(path),
        )


@rule("SG656", unless="SG551", engine=NAME)
def file_of_the_drafts(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """llama.cpp gets the draft model as a GGUF file, too."""
    source = model.speculative.source if model.speculative else None
    if source and not source.startswith("/"):
        yield Fault(
            "llama.cpp needs the draft model as a GGUF file",
            ("model", "speculative", "source"),
            "write its path on the head, such as /srv/models/DRAFT.gguf",
        )
    elif source and PurePosixPath(source).parent == _ROOT:
        yield Fault(_IN_THE_ROOT, ("model", "speculative", "source"), _A_FOLDER)


@rule("SG657", Severity.WARNING, unless="SG654", engine=NAME)
def open_workers(engine: DeclaredEngine, topology: Topology) -> Faults:
    """Nobody else is on the switch that llama.cpp's workers are on."""
    if TOPOLOGIES[topology.kind].switched:
        yield Fault(
            "llama.cpp's workers require no key, and the whole switch can reach them",
            ("engine", "name"),
            "keep these ports in a VLAN of their own and say so in a waiver, or join the nodes by "
            "cables",
        )
