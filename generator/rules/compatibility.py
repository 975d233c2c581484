"""Rules about a model on an engine: its format, layers, stages and license."""

import re
from collections.abc import Iterator
from math import gcd

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import place
from generator.diagnostics import Replace, Severity, listed
from generator.fit.requested import stages_of
from generator.models.architecture import GATED_DELTA, known_checkpoint, shape
from generator.models.formats import named_form
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

_BLOCK = 128

_TOKENS = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}
_LONGER = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"}
_CONFIG_FLAGS = ("hf-overrides", "json-model-override-args", "override-kv", "rope-scaling")
# Keys of config.json, or of a GGUF header, that hold the longest context. Source: vLLM,
# vllm/transformers_utils/model_arch_config_convertor.py:396; SGLang, get_context_length.
_LENGTH = re.compile(
    r"(?:max_position_embeddings|n_positions|max_seq_len|seq_length|model_max_length"
    r"|max_sequence_length|\.context_length)\W+(?:int:)?(\d+)"
)


@rule("SG526", Severity.WARNING, unless="SG501 SG503")
def extended_context(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A context is longer than the model supports only on request, since it costs quality."""
    known = shape(model)
    longest = known.max_context if known else None
    context = model.context_length
    if not longest or not context or context <= longest:
        return
    has_yarn = any("yarn" in override.lower() for override in _overrides(engine))
    is_made = has_yarn or _has_length(engine, context)
    if is_longer(engine, context) and not is_made:
        yarn = known.max_context_yarn if known else None
        made = f", or {yarn} with YaRN" if yarn else ""
        yield Fault(
            f"a context of {context} tokens is longer than the model's {longest}{made}",
            ("model", "context_length"),
            f"write {longest} or less, unless you need long prompts",
        )


def is_longer(engine: DeclaredEngine, context: int) -> bool:
    """Whether YaRN or an override of the model's context to at least this length is set."""
    given = (variable.value for name in _LONGER for variable in engine.environment.of(name))
    allowed = any(value.lower() in ("1", "true") for value in given)
    is_scaled = any("rope" in override for override in _overrides(engine))
    return allowed or is_scaled or _has_length(engine, context)


def _has_length(engine: DeclaredEngine, context: int) -> bool:
    """Whether the model's configuration is overridden to at least this length."""
    lengths = (length for override in _overrides(engine) for length in _LENGTH.findall(override))
    return any(int(length) >= context for length in lengths)


def _overrides(engine: DeclaredEngine) -> Iterator[str]:
    """The overrides of the model's configuration, as text."""
    for flag in _CONFIG_FLAGS:
        if (value := engine.settings.value(flag)) is not None:
            yield f"{flag} {value}"


# From which release on what requests Marlin's kernels, for dense models and for experts.
_MARLIN = (
    ((0, 15), "'VLLM_NVFP4_GEMM_BACKEND: marlin' under engine.env"),
    ((0, 17), "'moe-backend: marlin' under engine.args"),
)


@rule("SG527", Severity.NOTE, unless="SG501 SG503")
def broken_nvfp4(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """The kernels for the model's format are known to be correct on a GB10."""
    first = ENGINE_TRAITS[engine.name].nvfp4_kernels
    old = first is not None and place(engine.version) < first
    form = _form(model) or named_form(model.source or "")
    if old and form.startswith("nvfp4") and not _uses_marlin(engine):
        known = shape(model)
        since, marlin = _MARLIN[bool(known and known.experts)]
        way = f"write {marlin}" if since <= place(engine.version) else "take vLLM 0.20 or later"
        ways = [way, *[f"write 'name: {name}'" for name in _int4(model)][:1]]
        yield Fault(
            f"vLLM {engine.version} may give garbage answers with this model, or stop with an "
            "illegal instruction: before 0.20, some models in NVFP4 did on a GB10",
            model.path,
            f"check some answers first; if they are wrong, {listed(ways)}",
        )


def _uses_marlin(engine: DeclaredEngine) -> bool:
    given = [engine.settings.word(flag) for flag in ("moe-backend", "linear-backend")]
    kernels = engine.environment.of("VLLM_NVFP4_GEMM_BACKEND")
    return "marlin" in (*given, *(variable.value for variable in kernels))


def _int4(model: DeclaredModel) -> Iterator[str]:
    """The names of the same model's INT4 checkpoints."""
    known = known_checkpoint(model)
    siblings = catalogs.siblings(known) if known else ()
    return (other.name for other in siblings if "int4" in other.format)


@rule("SG528", Severity.NOTE, unless="SG501 SG503 SG511 SG529 SG603")
def unequal_stages(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """Pipeline stages differ by one layer at most."""
    for given in engine.environment.of(ENGINE_TRAITS[engine.name].stage_variable):
        stages = stages_of(given.value)
        if stages and max(stages) - min(stages) > 1:
            yield Fault(
                f"stages are uneven: the largest has {max(stages)} layers, one has {min(stages)}",
                given.path,
                "'sparkgen fit' shows what each node holds",
            )


@rule("SG529", unless="SG501 SG503 SG603")
def stages_of_another_model(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """Explicit stage sizes add up to the model's layers, with one number per stage."""
    known, count = shape(model), engine.parallel.pipeline
    layers = known.layers if known else None
    each = f"{count} stage{'' if count == 1 else 's'}"
    for given in engine.environment.of(ENGINE_TRAITS[engine.name].stage_variable):
        stages = stages_of(given.value) or ()
        if len(stages) != count or (layers and sum(stages) != layers):
            yield to_remove(
                f"{given.name} must give a number of layers for each of {each}"
                + (f", {layers} in all" if layers else ""),
                given.path,
                "remove it: the engine splits layers evenly",
            )


@rule("SG530", Severity.WARNING, unless="SG501 SG503")
def gated_without_token(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A model that needs a token to download has one among the secrets."""
    if model.name and model.file:
        return  # The GGUF file comes from another publisher than the catalog's.
    checkpoint = known_checkpoint(model)
    gated = checkpoint.gated if checkpoint else (model.architecture or {}).get("gated", False)
    if gated and not _TOKENS & set(engine.secrets) and not (model.source or "").startswith("/"):
        yield Fault(
            "the model is gated: its download needs a token, and none is among the secrets",
            model.path,
            "write 'secrets: [HF_TOKEN]' under 'engine'",
        )


@rule("SG531", Severity.NOTE, unless="SG501 SG503")
def slow_delta_layers(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """Gated delta layers have dedicated kernels on a GB10."""
    known, fixed = shape(model), ENGINE_TRAITS[engine.name].delta_kernels
    delta = known and known.recurrent and known.recurrent.kind == GATED_DELTA
    if "gated-delta" in engine.own.supports or catalogs.is_patched(engine.image, engine.version):
        return
    if delta and fixed and place(engine.version) < fixed:
        later = ".".join(map(str, fixed))
        yield Fault(
            f"the model's gated delta layers are slow on a GB10 with {engine.name} "
            f"{engine.version}: it has no kernels for them",
            ("engine", "version"),
            f"use {engine.name} {later} or later",
        )


@rule("SG532", unless="SG501 SG503 SG510 SG603")
def split_scale_blocks(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A slice of an FP8 expert consists of whole scale blocks."""
    known, sizes = shape(model), engine.parallel
    if _form(model) != "fp8-block128" or sizes.expert or not known or not known.moe:
        return
    if "fp8-slices" in engine.own.supports:
        return
    inside, hidden = known.moe.size, known.hidden_size
    shards = sizes.tensor * (sizes.data if ENGINE_TRAITS[engine.name].shares_experts else 1)
    if inside and hidden and shards > 1 and not _loads(engine, inside, shards, hidden):
        yield Fault(
            f"{inside} columns of an FP8 expert do not split {shards} ways in blocks of {_BLOCK}",
            ("engine", "parallel"),
            "write 'expert: true', which keeps experts whole, or another tensor size",
            proposals=((Replace(("engine", "parallel", "expert"), True),),),
        )


def _loads(engine: DeclaredEngine, inside: int, shards: int, hidden: int) -> bool:
    """Whether the engine loads slices of this size."""
    if inside % shards == 0 and inside // shards % _BLOCK == 0:
        return True
    finest = ENGINE_TRAITS[engine.name].finest_block(engine.version)
    if finest is None:
        return True
    return inside % shards == 0 and gcd(_BLOCK, inside // shards, hidden) >= finest


def _form(model: DeclaredModel) -> str:
    """The format of the weights."""
    checkpoint = known_checkpoint(model)
    given = (model.architecture or {}).get("format", "")
    return checkpoint.format if checkpoint else str(given)


@rule("SG676", Severity.NOTE, unless="SG501 SG603", of_version=True)
def tuned_at_each_start(engine: DeclaredEngine) -> Faults:
    """FlashInfer's tuning survives a restart."""
    off = engine.settings.is_off("enable-flashinfer-autotune")
    traits = ENGINE_TRAITS[engine.name]
    until = traits.tuned_by_one and ".".join(map(str, traits.tuned_by_one[1]))
    if traits.tunes_anew(engine.version, engine.parallel.ranks) and not off:
        yield Fault(
            f"every start takes minutes longer: {traits.title} {engine.version} keeps "
            "FlashInfer's tuning on rank 0 alone and repeats it",
            ("engine", "version"),
            f"use {traits.title} {until} or later, which keeps it",
        )
