"""Rules about the model and how it is split."""

from collections.abc import Iterator, Sequence

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import version
from generator.diagnostics import (
    Severity,
    listed,
    misspelt,
    removal,
    replacements,
)
from generator.models.architecture import known_checkpoint, shape
from generator.rules import splits
from generator.rules.compatibility import is_longer
from generator.rules.registry import Fault, rule
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

_KINDS = ("attention_layers", "sliding_layers", "linear_layers", "mamba_layers", "expert_layers")


@rule("SG501", depends_on="model")
def unknown_model(model: DeclaredModel) -> Iterator[Fault]:
    """The catalog has a model of this name.

    The name is the last part of its Hugging Face id, in lower case, or the whole id if several
    owners have a model of that name. A model outside the catalog is given by `source` and
    `architecture`.

    Bad:
        model:
          name: gpt-os-120b

    Good:
        model:
          name: gpt-oss-120b
    """
    if model.name and catalogs.checkpoint(model.name) is None:
        owned = [name for name in catalogs.checkpoint_names() if name.endswith(f"/{model.name}")]
        near = catalogs.near_checkpoints(model.name)
        yield Fault(
            f"several models of the catalog are called '{model.name}'"
            if owned
            else f"the catalog has no model '{model.name}'",
            ("model", "name"),
            f"write {listed(map(repr, owned))}"
            if owned
            else _guessed(near)
            or "for another write 'source' and what 'sparkgen describe-model config.json' prints",
            proposals=replacements(("model", "name"), owned or misspelt(model.name, near)),
        )


def _guessed(near: Sequence[str]) -> str:
    return f"did you mean {listed(map(repr, near[:_MOST]))}?" if near else ""


# More names than this are no guess: 'sparkgen models' lists them.
_MOST = 6


@rule("SG508", depends_on="model")
def like_an_unknown_model(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """`like`, `weight_gb` and `format` go with a `source`; a cache of fixed size is for vLLM.

    `like` names a model of the catalog that has the same shape as the `source`; `weight_gb` and
    `format` are then those of the source itself. The catalog lacks the sizes of some checkpoints:
    state these in `weight_gb`. Other engines have no flag for the size of the KV cache in bytes.

    Source: vLLM, `--kv-cache-memory-bytes`.

    Bad:
        model:
          source: example/DeepSeek-V4-Flash-int4
          like: deepseek-v4-flahs
          context_length: 8192

    Good:
        model:
          source: example/DeepSeek-V4-Flash-int4
          like: deepseek-v4-flash
          weight_gb: 81.2
          context_length: 8192
    """
    if model.like and catalogs.checkpoint(model.like) is None:
        near = catalogs.near_checkpoints(model.like)
        yield Fault(
            f"the catalog has no model '{model.like}'",
            ("model", "like"),
            _guessed(near) or "write the name of one that 'sparkgen models' lists",
            proposals=replacements(("model", "like"), misspelt(model.like, near)),
        )
    if model.like and not model.source:
        yield Fault(
            "'like' describes a source, and there is none",
            ("model", "like"),
            "write the model's Hugging Face id as 'source', or 'name' in place of 'like'",
            at_key=True,
        )
    for key in ("weight_gb", "format"):
        if key == "weight_gb" and _lacks_size(model):
            continue
        if getattr(model, key) and not model.like:
            yield Fault(
                f"'{key}' is the size or format of a checkpoint that is 'like' another",
                ("model", key),
                "write it under 'architecture', or say what the model is 'like'",
                at_key=True,
            )
    if model.kv_cache_memory and not ENGINE_TRAITS[engine.name].pool_flag:
        yield Fault(
            f"{ENGINE_TRAITS[engine.name].title} has no flag for the size of its KV cache",
            ("model", "kv_cache_memory"),
            "remove it: its share of the memory decides",
            at_key=True,
        )


def _lacks_size(model: DeclaredModel) -> bool:
    """Whether the catalog has the model but not its size."""
    known = catalogs.checkpoint(model.name) if model.name else None
    return known is not None and known.weight_gb is None


@rule("SG502", depends_on="model")
def no_model(model: DeclaredModel) -> Iterator[Fault]:
    """A site names its model.

    Either by a `name` from the catalog or by a `source`.

    Bad:
        model:
          context_length: 8192

    Good:
        model:
          name: gpt-oss-120b
          context_length: 8192
    """
    if not model.name and not model.source:
        yield Fault(
            "'model' has neither 'name' nor 'source'",
            ("model",),
            "write 'name: gpt-oss-120b', or 'source: OWNER/NAME' for one outside the catalog",
            at_key=True,
        )


@rule("SG503", depends_on="model")
def architecture_of_a_known_model(model: DeclaredModel) -> Iterator[Fault]:
    """The architecture of a model in the catalog is not repeated.

    The catalog has the shapes of its models; `architecture` is for a `source`.

    Bad:
        model:
          name: gpt-oss-120b
          architecture: {layers: 36, heads: 64, kv_heads: 8}

    Good:
        model:
          source: openai/gpt-oss-120b
          architecture: {layers: 36, heads: 64, kv_heads: 8}
    """
    if model.name and model.architecture is not None:
        yield Fault(
            f"the catalog knows the architecture of '{model.name}'",
            ("model", "architecture"),
            "remove it, or write 'source' in place of 'name'",
            at_key=True,
        )


@rule("SG506", unless="SG503", depends_on="model")
def kinds_that_do_not_add_up(model: DeclaredModel) -> Iterator[Fault]:
    """The layers of each kind add up to the model's layers.

    Each layer mixes tokens in one way: with attention over all of them or over a window, with
    linear attention, or with Mamba. If layers combine attention and Mamba, all of them do
    (Falcon-H1), and each is counted as both. A model with Mamba layers may also have layers that
    are only a feed-forward network; others may not.

    Source: arithmetic; with kinds that don't add up, the computed memory is silently wrong.

    Bad:
        model:
          source: example/hybrid-1b
          architecture:
            {layers: 44, heads: 12, kv_heads: 2, attention_layers: 44, mamba_layers: 40,
             mamba_num_heads: 24, mamba_head_dim: 128, ssm_state_size: 256}

    Good:
        model:
          source: example/hybrid-1b
          architecture:
            {layers: 44, heads: 12, kv_heads: 2, attention_layers: 44, mamba_layers: 44,
             mamba_num_heads: 24, mamba_head_dim: 128, ssm_state_size: 256}
    """
    own, known = model.architecture, shape(model)
    if own is None or known is None or known.lacks or known.adds_up:
        return
    kinds = [name for name in _KINDS if own.get(name)]
    count = sum(own[name] for name in kinds)
    kinds_text = listed((f"{own[name]} {name}" for name in kinds), "and")
    yield Fault(
        f"{kinds_text} are {count} layers, and 'layers' says {own['layers']}",
        ("model", "architecture", "layers"),
        "count each layer once, as what it mixes tokens with; where all are attention and Mamba at "
        "once, write both as many as 'layers'",
    )


@rule("SG507", unless="SG503", depends_on="model")
def impossible_shape(model: DeclaredModel) -> Iterator[Fault]:
    """The shape of a model is possible.

    Each KV head is shared by the same number of attention heads. A layer without a stated head size
    is as wide as all its heads together; with one, its width is at least a multiple of 64, as in
    every model of the catalog. Memory and splits are computed from these figures.

    Source: Hugging Face transformers, `repeat_kv` and `hidden_size // num_attention_heads`.

    Bad:
        model:
          source: example/model
          architecture: {layers: 80, heads: 64, kv_heads: 5}

    Good:
        model:
          source: example/model
          architecture: {layers: 80, heads: 64, kv_heads: 8}
    """
    known = shape(model) if model.architecture is not None else None
    if known is None or known.latent:
        return
    if known.heads % known.kv_heads:
        yield Fault(
            f"{known.heads} attention heads can't share {known.kv_heads} KV heads evenly",
            ("model", "architecture", "kv_heads"),
            "write num_key_value_heads of the model's config.json",
        )
    elif known.hidden_size and not known.head_dim and known.hidden_size % known.heads:
        yield Fault(
            f"a width of {known.hidden_size} is not a multiple of {known.heads} heads",
            ("model", "architecture", "hidden_size"),
            "write hidden_size of the model's config.json, and 'head_dim' if it has one",
        )
    elif known.hidden_size and known.hidden_size % known.heads and known.hidden_size % _ROW:
        yield Fault(
            f"a width of {known.hidden_size} is not a multiple of {known.heads} heads or of {_ROW}",
            ("model", "architecture", "hidden_size"),
            "write hidden_size of the model's config.json",
        )


# If the head size is given, the width need not match it, but is a multiple of this.
_ROW = 64


@rule("SG504", unless="SG501 SG503", depends_on="model")
def context_too_long(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """The context is no longer than the model supports.

    Engines refuse to start with a longer one, unless YaRN or their own override is set.

    Source: vLLM, `--max-model-len` above the derived length raises an error unless explicitly
    allowed.

    Bad:
        model:
          name: gpt-oss-120b
          context_length: 1000000

    Good:
        model:
          name: gpt-oss-120b
          context_length: 131072
    """
    known = shape(model)
    longest = known.max_context if known else None
    if longest and model.context_length and model.context_length > longest:
        if is_longer(engine, model.context_length):
            return
        yield Fault(
            f"a context of {model.context_length} tokens, and the model was made for {longest}",
            ("model", "context_length"),
            f"write {longest} or less",
            proposals=replacements(("model", "context_length"), [longest]),
            unsafe=True,
        )


@rule("SG510", unless="SG501 SG503 SG507 SG603", depends_on="model")
def tensor_size_illegal(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """Tensor parallelism splits attention heads, and splits or replicates KV heads, evenly.

    Hardly any model's head count is divisible by three: use pipeline stages on three nodes.

    Source: vLLM, `verify_with_parallel_config` and `QKVParallelLinear`; SGLang likewise.

    Bad:
        topology:
          kind: ring
        engine:
          parallel: {tensor: 3}

    Good:
        topology:
          kind: ring
        engine:
          parallel: {pipeline: 3}
    """
    if not _is_own_build(engine):
        yield from _illegal_tensor(model, engine)


@rule("SG533", Severity.WARNING, unless="SG501 SG503 SG603", depends_on="model")
def tensor_size_of_a_patch(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """A custom build splits heads like the engine does, unless a patch pads them.

    This is SG510 for a version with a local part. Patches that pad a model's heads make three
    tensor ranks possible; without one, the engine fails at startup. A build that has such a patch
    says so: `supports: [padded-heads]` under `engine.own`.

    Source: vLLM, `verify_with_parallel_config`; patches to it for three DGX Sparks.

    Bad:
        topology:
          kind: ring
        engine:
          version: 0.33.0+own
          image: example.org/vllm:0.33.0-own
          parallel: {tensor: 3}

    Good:
        topology:
          kind: ring
        engine:
          version: 0.33.0+own
          image: example.org/vllm:0.33.0-own
          parallel: {pipeline: 3}
    """
    if _is_own_build(engine) and "padded-heads" not in engine.own.supports:
        yield from _illegal_tensor(model, engine)


def _is_own_build(engine: DeclaredEngine) -> bool:
    return bool(version(engine.version).local)


def _illegal_tensor(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    known, size = shape(model), engine.parallel.tensor
    if known is None or size == 1:
        return
    path = ("engine", "parallel")
    stages = size * engine.parallel.pipeline
    advice = f"write 'pipeline: {stages}' in place of 'tensor: {size}'"
    legal = splits.legal_splits(engine.parallel, known)
    if len(legal) > 1:
        advice += ", or another tensor size"
    proposals = splits.proposals(engine.parallel, legal)
    if known.heads % size:
        message = f"{known.heads} attention heads do not divide by tensor size {size}"
        yield Fault(message, path, advice, proposals=proposals, unsafe=True)
    elif not known.latent and known.kv_heads % size and size % known.kv_heads:
        message = f"{known.kv_heads} KV heads do not divide by tensor size {size}"
        yield Fault(message, path, advice, proposals=proposals, unsafe=True)


@rule("SG511", unless="SG501 SG503 SG603", depends_on="model")
def too_many_stages(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """A pipeline stage has at least one layer.

    There can't be more stages than layers.

    Bad:
        model:
          source: example/one-layer
          architecture: {layers: 1, heads: 64, kv_heads: 8}
        engine:
          parallel: {pipeline: 2}

    Good:
        model:
          source: example/two-layers
          architecture: {layers: 2, heads: 64, kv_heads: 8}
        engine:
          parallel: {pipeline: 2}
    """
    known, stages = shape(model), engine.parallel.pipeline
    if known and stages > known.layers:
        yield Fault(
            f"{stages} pipeline stages for {known.layers} layers",
            ("engine", "parallel", "pipeline"),
            f"write {known.layers} or less",
        )


@rule("SG513", unless="SG501 SG503 SG603", depends_on="model")
def data_parallel_replicas(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """A dense model has no data parallel ranks that span several nodes.

    Replicas of a dense model that each span several nodes are separate services, not ranks: vLLM
    resets a dense model's data parallel size to 1, and the followers in the other replicas never
    join.

    Source: vLLM, vllm/v1/engine/core.py, `run_engine_core`; pull request 39405 has a table of the
    layouts that run.

    Bad:
        topology:
          kind: switch
        model:
          name: llama-3.1-70b-instruct-fp8
        engine:
          parallel: {tensor: 2, data: 2}

    Good:
        topology:
          kind: switch
        model:
          name: llama-3.1-70b-instruct-fp8
        engine:
          parallel: {tensor: 2, pipeline: 2}
    """
    known, sizes = shape(model), engine.parallel
    split = sizes.tensor * sizes.pipeline > 1
    joins = ENGINE_TRAITS[engine.name].joins_dense_replicas
    if not joins and sizes.data > 1 and split and known and known.experts == 0:
        yield Fault(
            "a dense model has no data parallel ranks that span several nodes",
            ("engine", "parallel"),
            "use tensor and pipeline alone, or a site of its own for each replica",
        )


@rule("SG512", unless="SG501 SG503", depends_on="model")
def experts_of_a_dense_model(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """Expert parallelism needs experts.

    A dense model has none.

    Source: vLLM refuses `--enable-expert-parallel` without experts.

    Bad:
        model:
          name: llama-3.1-70b-instruct-fp8
        engine:
          parallel: {tensor: 2, expert: true}

    Good:
        model:
          name: gpt-oss-120b
        engine:
          parallel: {tensor: 2, expert: true}
    """
    known = shape(model)
    if engine.parallel.expert and known and known.experts == 0:
        yield Fault(
            "the model is dense: it has no experts to spread",
            ("engine", "parallel", "expert"),
            "remove 'expert'",
            at_key=True,
            proposals=removal(("engine", "parallel", "expert")),
        )


@rule("SG505", Severity.NOTE, unless="SG502", depends_on="model")
def source_without_architecture(model: DeclaredModel) -> Iterator[Fault]:
    """A model outside the catalog comes with its architecture.

    A `source` that is in the catalog is checked as if it were given by `name`.

    Without the architecture, nothing can say whether heads and layers divide by the parallel sizes,
    whether the model supports the context, or whether it fits. The engine reports that on the
    nodes, after loading for half an hour.

    Bad:
        model:
          source: example/model

    Good:
        model:
          source: example/model
          architecture: {layers: 32, heads: 32, kv_heads: 8}

    Good:
        model:
          source: example/Qwen3.6-27B-int4
          like: qwen3.6-27b
          format: int4
          weight_gb: 19.5
    """
    if model.source and not (model.architecture or model.like or known_checkpoint(model)):
        printed = "the 'architecture' that 'sparkgen describe-model config.json' prints"
        alike = catalogs.named_after(model.source)
        yield Fault(
            "without its architecture, heads, layers, context and memory can't be checked",
            ("model", "source"),
            f"write 'like: {alike}' and 'weight_gb' if it has that shape, or else {printed}"
            if alike
            else f"add {printed}",
        )
