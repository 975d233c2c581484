"""Rules about a KV cache that is kept on disk."""

from collections.abc import Iterator

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import place
from generator.diagnostics import listed
from generator.engines import ENGINES, written_offload
from generator.models.architecture import shape
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

_PATH = ("model", "kv_offload")


@rule("SG678", of_version=True)
def unsupported_kv_offload(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """The engine can keep its KV cache on disk, across as many nodes as it serves on."""
    offload, connector, flag = model.kv_offload, "", ""
    if offload:
        connector = offload.connector
    elif stated := written_offload(engine.name, engine.settings, engine.environment.on_head):
        connector = stated.connector
        flag = next(each for each in stated.flags if each in engine.settings)
    if not connector or (flag and catalogs.is_patched(engine.image, engine.version)):
        return
    path = _PATH if offload else engine.settings.path(flag)
    connectors, title = ENGINES[engine.name].OFFLOAD, ENGINE_TRAITS[engine.name].title
    traits = connectors.get(connector)
    of_connector = (*_PATH, "connector") if offload else path
    if not connectors:
        yield to_remove(
            f"{title} keeps no KV cache on disk",
            path,
            f"remove it: {listed(_having_some(), 'and')} do",
            at_key=True,
            unsafe=True,
        )
    elif traits is None:
        having = (
            ENGINE_TRAITS[n].title for n, each in ENGINES.items() if connector in each.OFFLOAD
        )
        yield to_remove(
            f"'{connector}' is set up for {listed(having, 'and')} alone",
            of_connector,
            f"remove it: {title} has a connector of its own",
            unsafe=bool(flag),
        )
    elif offload and place(engine.version) < traits.since:
        first = ".".join(map(str, traits.since))
        yield Fault(
            f"{title} {engine.version} keeps no KV cache on disk; {first} is the first that does",
            path,
            "remove it, or use a later image",
            at_key=True,
        )
    elif (
        not traits.spans_nodes
        and engine.parallel.tensor * engine.parallel.pipeline > 1
        and not catalogs.is_patched(engine.image, engine.version)
        and "kv-on-disk" not in engine.own.supports
    ):
        yield Fault(
            f"the ranks of {title} have to be on one machine to share a KV cache on disk",
            path,
            "remove it, or write 'supports: [kv-on-disk]' under engine.own if your build can; "
            f"{listed(_spanning())} keeps each rank's part on its own node",
            at_key=True,
        )
    elif not traits.keeps_states and (known := shape(model)) and known.recurrent:
        yield to_remove(
            f"{title} does not start with LMCache for a model with layers of Mamba or linear "
            "attention",
            of_connector,
            f"remove it: {title}'s own connector keeps their states",
            unsafe=bool(flag),
        )


def _having_some() -> Iterator[str]:
    """The engines that keep a KV cache on disk, and those that do so on one node only."""
    spanning = set(_spanning())
    for name, module in ENGINES.items():
        if module.OFFLOAD:
            title = ENGINE_TRAITS[name].title
            yield title if title in spanning else f"{title} on one node"


def _spanning() -> Iterator[str]:
    for name, module in ENGINES.items():
        if any(traits.spans_nodes for traits in module.OFFLOAD.values()):
            yield ENGINE_TRAITS[name].title


@rule("SG679", unless="SG678", suppressed_by="SG632", of_version=True)
def kv_offload_configured_twice(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A KV cache on disk is configured in one place."""
    if not model.kv_offload:
        return
    traits = ENGINES[engine.name].OFFLOAD.get(model.kv_offload.connector)
    if traits is None:
        return
    for setting in engine.settings:
        is_off = setting.name == "enable-prefix-caching" and setting.value is False
        if is_off or setting.name in traits.contradicted_by:
            yield to_remove(
                f"'{setting.name}' contradicts 'model.kv_offload', which sets it up",
                setting.path(),
                "remove one of the two",
                at_key=True,
                unsafe=True,
            )
