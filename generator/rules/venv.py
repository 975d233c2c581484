"""Rules about an engine that runs from a virtual environment, without a container."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import KeyPath, removal
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

_VENV: KeyPath = ("engine", "venv")


@rule("SG614")
def unsupported_venv_engine(engine: DeclaredEngine) -> Faults:
    """An engine in a virtual environment is a Python package, and has no image."""
    if not engine.venv:
        return
    if engine.image:
        yield Fault(
            "the engine runs from an image or from a virtual environment, not from both",
            _VENV,
            "remove one of the two",
            at_key=True,
            proposals=(*removal(_VENV), *removal(("engine", "image"))),
        )
    elif not ENGINE_TRAITS[engine.name].runs_from_venv:
        yield Fault(
            f"{ENGINE_TRAITS[engine.name].title} runs in a container alone",
            _VENV,
            "write 'image:' and a container image in its place; to run it on the node itself,"
            " leave out 'model' and 'engine', which keeps the network",
            at_key=True,
        )


@rule("SG615", unless="SG614")
def container_options_without_container(
    engine: DeclaredEngine, model: DeclaredModel, nodes: Nodes
) -> Faults:
    """Without a container, nothing is mounted and no option of Docker is set."""
    if not engine.venv:
        return
    own = engine.container
    given = {"shm": own.shm_gib, "devices": own.devices, "hardened": own.hardened}
    for key in (key for key, value in given.items() if value):
        yield to_remove(
            f"'{key}' has no effect: the engine runs without a container",
            ("engine", "container", key),
            at_key=True,
        )
    for file in engine.files:
        if file.inside != file.place:
            yield to_remove(
                f"nothing is mounted at {file.inside}: the engine runs without a container",
                ("engine", "files", file.index, "target"),
                f"remove it, and name {file.place} where it is read",
                at_key=True,
            )
    for node in nodes:
        if node.model_path and node.model_path != model.source:
            yield Fault(
                "nothing is mounted at the model's place: the engine runs without a container",
                (*node.path, "model_path"),
                f"remove it, and link {model.source} to it on {node.name}",
                at_key=True,
            )
