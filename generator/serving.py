"""The model and the engine of a serving group, with every default filled in."""

from collections.abc import Sequence

from generator import catalogs
from generator.addressing import FabricInterface
from generator.control import LOOPBACK
from generator.declaration import DeclaredEngine, DeclaredModel, DeclaredNode
from generator.engines import ENGINES
from generator.site import Api, ControlPlane, Engine, Model


def model_of(declared: DeclaredModel) -> Model:
    """The model by the name that the engine downloads and serves it under."""
    checkpoint = catalogs.checkpoint(declared.name) if declared.name else None
    source = checkpoint.hf_id if checkpoint else declared.source
    assert source, "a rule sees to it that a model is named"
    architecture = declared.architecture or {}
    return Model(
        source=source,
        served_name=declared.served_name or source.rsplit("/", 1)[-1].lower(),
        format=checkpoint.format if checkpoint else None,
        revision=declared.revision,
        context_length=declared.context_length,
        max_sequences=declared.max_sequences,
        kv_cache_dtype=declared.kv_cache_dtype,
        quantization=declared.quantization,
        speculative=declared.speculative,
        file=declared.file,
        gated=checkpoint.gated if checkpoint else architecture.get("gated", False),
    )


def engine_of(
    declared: DeclaredEngine,
    head: DeclaredNode,
    control: ControlPlane,
    interfaces: Sequence[FabricInterface],
) -> Engine:
    """The engine with its defaults: launcher, ports, and where the API listens."""
    module = ENGINES[declared.name]
    launcher = declared.launcher or module.LAUNCHERS[0]
    defaults = module.default_ports(launcher, declared.parallel)
    listen, host = _listen(declared.bind, head, control, interfaces)
    return Engine(
        name=declared.name,
        title=module.TITLE,
        version=declared.version,
        image=declared.image,
        nccl=declared.nccl,
        launcher=launcher,
        api=Api(listen, host, declared.port or module.API_PORT),
        ports={name: declared.ports.get(name, port) for name, port in defaults.items()},
        parallel=declared.parallel,
        memory_utilization=declared.memory_utilization,
        key=module.API_KEY if module.API_KEY in declared.secrets else None,
        uses_nccl=module.USES_NCCL,
        secrets=declared.secrets,
    )


def _listen(
    bind: str | None,
    head: DeclaredNode,
    control: ControlPlane,
    interfaces: Sequence[FabricInterface],
) -> tuple[str, str]:
    """Where the API listens, and where clients find it: on management unless told otherwise.

    On a node without management it is not open to anybody else.
    """
    management = str(head.management.address.ip) if head.management else ""
    fabric = str(interfaces[0].address.ip) if interfaces else ""
    if bind == "all":
        return "0.0.0.0", management or str(control.address)
    address = {"fabric": fabric, "local": ""}.get(bind or "management", management)
    return address or str(LOOPBACK), address or str(LOOPBACK)
