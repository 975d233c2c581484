"""Rules about TensorRT-LLM's settings, and about MPI and Slurm, which start it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog
from generator.catalogs.flags import FlagCatalog
from generator.diagnostics import (
    Proposal,
    Related,
    Replace,
    Severity,
    all_nearest,
    listed,
    misspelt,
    replacements,
)
from generator.fit import requested
from generator.models.architecture import shape
from generator.rules.images import with_added
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.settings.values import Argument
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Settings

NAME = "tensorrt-llm"

_CONFIG = ("engine", "args", ENGINE_TRAITS[NAME].settings_flag)
_KV_CACHE_DTYPES = ("auto", "fp8", "nvfp4")


@rule("SG661", engine=NAME)
def setting_with_another_place(engine: DeclaredEngine) -> Faults:
    """A setting under `config` is made only there."""
    from generator.engines.tensorrt_llm.engine import OWNED_SETTINGS

    settings = engine.settings.value(_CONFIG[-1])
    if not isinstance(settings, dict):
        return
    known = catalog(engine.name, engine.settings.version)
    for path in _paths(settings):
        name, written = _full(".".join(path), known), f"'{'.'.join(path)}' under 'config'"
        key = OWNED_SETTINGS.get(name)
        if key is not None:
            instead = f"use the key {key}" if key else "it follows from the nodes; remove it"
            yield Fault(f"{written} is set by sparkgen", (*_CONFIG, *path), instead, at_key=True)
        elif name in engine.settings:
            yield Fault(
                f"{written} is a flag too",
                (*_CONFIG, *path),
                "keep one of the two",
                at_key=True,
                related=(Related(f"'{name}'", engine.settings.path(name)),),
            )


def _paths(settings: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The settings, and those inside each section."""
    for name, value in settings.items():
        yield (name,)
        yield from ((name, key) for key in (value if isinstance(value, dict) else ()))


def _full(name: str, known: FlagCatalog | None) -> str:
    found = known.find(name) if known else None
    return found.flag.name if found else name


@rule(
    "SG662", unless="SG603 SG604 SG632 SG633 SG636 SG637", suppressed_by="SG638 SG639", engine=NAME
)
def argument_with_a_blank(engine: DeclaredEngine, nodes: Nodes) -> Faults:
    """An argument that MPI or Slurm passes on has no space."""
    if len(nodes) == 1 and engine.launcher != "slurm":
        return
    for setting in engine.settings:
        if setting.name != _CONFIG[-1] and " " in _text(setting.value):
            yield Fault(
                f"'{setting.name}' has a space, at which the launcher of the ranks would cut it",
                setting.path(),
                "write it without a space: in a file that it names, or under 'config' if it is a "
                "setting of the LLM API",
            )


def _text(value: Argument) -> str:
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


@rule("SG663", Severity.WARNING, engine=NAME)
def name_for_clients(engine: DeclaredEngine, model: DeclaredModel) -> Faults:
    """A served name needs TensorRT-LLM 1.3."""
    from generator.engines.tensorrt_llm.engine import has_names

    if model.served_name and not has_names(engine.version):
        yield Fault(
            f"TensorRT-LLM {engine.version} can't rename the model in its API",
            ("model", "served_name"),
            "remove it, or use TensorRT-LLM 1.3.0rc29",
            at_key=True,
        )


@rule("SG665", Severity.WARNING, unless="SG201 SG202 SG208 SG602", engine=NAME)
def image_without_ssh(engine: DeclaredEngine, nodes: Nodes) -> Faults:
    """An image for MPI contains an SSH server."""
    if engine.launcher == "slurm" or len(nodes) == 1:
        return
    known = catalogs.image(engine.image)
    if known and known.engine == engine.name:
        text, edits = with_added(engine)
        slurm: Proposal = (Replace(("engine", "launcher"), "slurm"),)
        yield Fault(
            "the image does not contain an SSH server, with which MPI starts the ranks",
            ("engine", "image"),
            f"write {text}, which is built with one; or 'launcher: slurm'",
            proposals=(edits, slurm),
        )


@rule("SG668", unless="SG602", of_version=True)
def guard_of_a_job(engine: DeclaredEngine, services: Mapping[str, Settings]) -> Faults:
    """The guard needs a Docker container to watch."""
    if engine.launcher == "slurm" and "guard" in services:
        yield Fault(
            "the guard can't stop a Slurm job",
            ("services", "guard"),
            "remove it, and lower 'engine.memory_utilization'; or write "
            f"'launcher: {ENGINE_TRAITS[engine.name].launchers[0]}'",
            at_key=True,
        )


@rule("SG667", unless="SG647 SG648", engine=NAME)
def cache_type(engine: DeclaredEngine, model: DeclaredModel) -> Faults:
    """A type of TensorRT-LLM's KV cache is `auto`, `fp8` or `nvfp4`."""
    dtype = model.kv_cache_dtype
    if dtype and dtype not in _KV_CACHE_DTYPES:
        near = all_nearest(dtype, _KV_CACHE_DTYPES)
        yield Fault(
            f"TensorRT-LLM has no KV cache of type '{dtype}'",
            ("model", "kv_cache_dtype"),
            f"write {listed(_KV_CACHE_DTYPES)}",
            proposals=replacements(("model", "kv_cache_dtype"), misspelt(dtype, near)),
        )


@rule("SG669", Severity.WARNING, unless="SG603 SG632 SG633 SG636 SG639", engine=NAME)
def prompt_of_many_tokens(engine: DeclaredEngine, model: DeclaredModel) -> Faults:
    """A prompt as long as the context is accepted."""
    known = shape(model)
    longest = model.context_length or (known.max_context if known else None)
    if not longest:
        return
    settings, config = engine.settings, _CONFIG[-1]
    given = settings.number(config, "max_num_tokens")
    step = requested.step(engine) if given is None else int(given)
    chunked = "enable_chunked_prefill"
    if settings.is_on(chunked) or settings.is_on(config, chunked) or step >= longest:
        return
    yield Fault(
        f"prompts of more than {step} tokens are rejected, however long the context is",
        ("model", "context_length") if model.context_length else ("model",),
        f"write 'enable_chunked_prefill: true' under 'engine.args', or there "
        f"'max_num_tokens: {longest}'",
        at_key=not model.context_length,
    )
