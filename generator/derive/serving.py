"""The model and the engine of a serving group, with every default filled in."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.vocabularies import HARMONY, HARMONY_PARSER
from generator.derive.environment import is_raw
from generator.engines import ENGINES, handed_on
from generator.fabric.addressing import FabricInterface
from generator.models.architecture import known_checkpoint, served_name
from generator.records import made_of
from generator.site import ENGINE_ENV, RAW_ENV, Api, ControlPlane, Engine, Model
from generator.site.control_plane import LOOPBACK
from generator.site.places import place
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, DeclaredNode
from generator.sitefile.defaults import default


def model_of(
    declared: DeclaredModel,
    engine: DeclaredEngine,
    source: str,
    commits: Mapping[str, str] = MappingProxyType({}),
) -> Model:
    """The model under the name by which the engine downloads and serves it, its `source`."""
    checkpoint = known_checkpoint(declared)
    parser = checkpoint.architecture.reasoning_parser if checkpoint else None
    architecture = declared.architecture or {}
    return made_of(
        Model,
        declared,
        source=source,
        served_name=served_name(declared, source),
        format=checkpoint.format if checkpoint else None,
        commits=commits,
        gated=checkpoint.gated if checkpoint else architecture.get("gated", False),
        handed_on=handed_on.values(engine, declared),
        vocabularies=HARMONY if not declared.file and parser == HARMONY_PARSER else (),
    )


def engine_of(
    declared: DeclaredEngine,
    nodes: Sequence[DeclaredNode],
    control: ControlPlane,
    interfaces: Sequence[FabricInterface],
    *,
    is_behind_proxy: bool = False,
    group: str = "",
    held_by_others: float = 0.0,
) -> Engine:
    """The engine with its defaults: launcher, ports, and where the API listens."""
    module, traits = ENGINES[declared.name], ENGINE_TRAITS[declared.name]
    launcher = declared.launcher or traits.launchers[0]
    defaults = module.default_ports(launcher, declared.parallel)
    listen, host = _listen(
        "local" if is_behind_proxy else declared.bind, nodes[0], control, interfaces
    )
    return made_of(
        Engine,
        declared,
        title=traits.title,
        launcher=launcher,
        api=Api(listen, host, declared.port or traits.api_port, declared.has_all(traits.tls_flags)),
        ports={name: declared.ports.get(name, port) for name, port in defaults.items()},
        key=traits.api_key if traits.api_key in declared.secrets else None,
        env_files=tuple(_env_files(declared, group)),
        is_derived=declared.derived is not None,
        task=traits.task(declared.settings.value),
        held_by_others=held_by_others,
    )


def _env_files(declared: DeclaredEngine, group: str) -> Iterator[str]:
    """Environment files, in which later values override earlier ones."""
    yield place(ENGINE_ENV, group)
    if any(is_raw(variable.value) for variable in declared.environment):
        yield place(RAW_ENV, group)


def _listen(
    bind: str | None,
    head: DeclaredNode,
    control: ControlPlane,
    interfaces: Sequence[FabricInterface],
) -> tuple[str, str]:
    """The address that the API listens on, and the one for clients: by default on management.

    On a node without management it is not open to other machines.
    """
    management = str(head.management.address.ip) if head.management else ""
    fabric = str(interfaces[0].address.ip) if interfaces else ""
    if bind == "all":
        return "0.0.0.0", management or str(control.address)
    address = {"fabric": fabric, "local": ""}.get(bind or default("engine.bind"), management)
    return address or str(LOOPBACK), address or str(LOOPBACK)
