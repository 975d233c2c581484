"""Rules about the model and how it is split."""

from collections.abc import Iterator

from generator import catalogs
from generator.architecture import shape
from generator.declaration import DeclaredEngine, DeclaredModel
from generator.diagnostics import (
    Rename,
    Replace,
    Severity,
    all_nearest,
    did_you_mean,
    misspelt,
    removal,
    replacements,
)
from generator.rules import splits
from generator.rules.environment import version_tuple
from generator.rules.registry import Fault, rule
from generator.rules.support import is_longer


@rule("SG501")
def unknown_model(model: DeclaredModel) -> Iterator[Fault]:
    """The catalog knows the model by its name.

    The name is the last part of its Hugging Face id, in lower case. A model outside the catalog is
    given by `source` and `architecture`.

    Bad:
        model:
          name: gpt-os-120b

    Good:
        model:
          name: gpt-oss-120b
    """
    if model.name and catalogs.checkpoint(model.name) is None:
        yield Fault(
            f"the catalog has no model '{model.name}'",
            ("model", "name"),
            did_you_mean(model.name, catalogs.checkpoint_names())
            or "for another model write 'source: OWNER/NAME' and its 'architecture'",
            proposals=replacements(
                ("model", "name"),
                misspelt(model.name, all_nearest(model.name, catalogs.checkpoint_names())),
            ),
        )


@rule("SG502")
def no_model(model: DeclaredModel) -> Iterator[Fault]:
    """A site names its model.

    By a `name` of the catalog, or a `source`.

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


@rule("SG503")
def architecture_of_a_known_model(model: DeclaredModel) -> Iterator[Fault]:
    """The architecture of a model of the catalog is not written again.

    The catalog knows the shape of its models; `architecture` is for a `source`.

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
            "take it out, or write 'source' in place of 'name'",
            at_key=True,
        )


@rule("SG504", unless="SG501 SG503")
def context_too_long(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """A context is no longer than the model was made for.

    Engines refuse to start with a longer one, unless YaRN or their own override is asked for.

    Source: vLLM, `--max-model-len` above the derived length raises unless it is allowed by hand.

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
        if is_longer(engine):
            return
        yield Fault(
            f"a context of {model.context_length} tokens, and the model was made for {longest}",
            ("model", "context_length"),
            f"write {longest} or less",
            proposals=replacements(("model", "context_length"), [longest]),
        )


@rule("SG510", unless="SG501 SG503 SG603")
def tensor_size_illegal(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """Tensor parallelism divides attention heads, and divides or copies KV heads, evenly.

    Almost no model's heads divide by three: three nodes take pipeline stages.

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
    known, size = shape(model), engine.parallel.tensor
    if known is None or not known.heads or size == 1:
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
        yield Fault(message, path, advice, proposals=proposals)
    elif known.kv_heads and not known.latent and known.kv_heads % size and size % known.kv_heads:
        message = f"{known.kv_heads} KV heads do not divide by tensor size {size}"
        yield Fault(message, path, advice, proposals=proposals)


@rule("SG511", unless="SG501 SG503 SG603")
def too_many_stages(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """A pipeline stage has at least one layer.

    There are no more stages than layers.

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
    if known and known.layers and stages > known.layers:
        yield Fault(
            f"{stages} pipeline stages for {known.layers} layers",
            ("engine", "parallel", "pipeline"),
            f"write {known.layers} or less",
        )


@rule("SG513", unless="SG501 SG503 SG603")
def data_parallel_replicas(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """A dense model has no data parallel ranks that span several nodes.

    Replicas of a dense model that each span several nodes are separate services, not ranks: vLLM
    resets a dense model's data parallel size to 1, and followers of the other replicas never join.

    Source: vLLM, vllm/v1/engine/core.py, `run_engine_core`; pull request 39405 has the table of
    what runs.

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
    if engine.name == "vllm" and sizes.data > 1 and split and known and known.experts == 0:
        yield Fault(
            "a dense model has no data parallel ranks that span several nodes",
            ("engine", "parallel"),
            "use tensor and pipeline alone, or a site of its own for each replica",
        )


@rule("SG512", unless="SG501 SG503")
def experts_of_a_dense_model(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """Expert parallelism needs experts.

    A dense model has none to spread.

    Source: vLLM refuses `--enable-expert-parallel` without.

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
            "take 'expert' out",
            at_key=True,
            proposals=removal(("engine", "parallel", "expert")),
        )


@rule("SG551")
def drafts_without_model(model: DeclaredModel) -> Iterator[Fault]:
    """EAGLE-3 and `draft` name the model that drafts; `mtp` has none.

    The draft model is downloaded like the model itself. A prediction head is part of the model.

    Bad:
        model:
          name: gpt-oss-120b
          speculative: {method: eagle3, tokens: 3}

    Good:
        model:
          name: gpt-oss-120b
          speculative: {method: eagle3, source: nvidia/gpt-oss-120b-Eagle3-long-context, tokens: 3}
    """
    drafts = model.speculative
    if drafts and drafts.method == "mtp" and drafts.source:
        yield Fault(
            "'mtp' drafts with the model's own prediction head",
            ("model", "speculative", "source"),
            "take 'source' out",
            at_key=True,
        )
    elif drafts and drafts.method != "mtp" and not drafts.source:
        yield Fault(
            f"'{drafts.method}' needs a draft model",
            ("model", "speculative"),
            "write 'source: OWNER/NAME' in it",
            at_key=True,
        )


@rule("SG552", Severity.WARNING)
def drafts_over_stages(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """EAGLE-3 over pipeline stages wants vLLM 0.33 or later.

    The draft model reads hidden states of layers that lie on other stages. Older versions do not
    carry them to the last stage: they refuse to start, or fail at the first request. 0.33 does, for
    some models.

    Source: vLLM, vllm/v1/worker/gpu/model_runner.py of 0.19.0 and pull request 50514.

    Bad:
        model:
          name: llama-3.1-70b-instruct-fp8
          speculative: {method: eagle3, source: example/eagle3-of-the-model, tokens: 3}
        engine:
          version: 0.19.0
          image: vllm/vllm-openai:v0.19.0
          parallel: {pipeline: 2}

    Good:
        model:
          name: llama-3.1-70b-instruct-fp8
          speculative: {method: eagle3, source: example/eagle3-of-the-model, tokens: 3}
        engine:
          version: 0.19.0
          image: vllm/vllm-openai:v0.19.0
          parallel: {tensor: 2}
    """
    drafts, stages = model.speculative, engine.parallel.pipeline
    if not (drafts and drafts.method == "eagle3" and engine.name == "vllm" and stages > 1):
        return
    if version_tuple(engine.version) < _EAGLE3_OVER_STAGES:
        yield Fault(
            f"vLLM {engine.version} does not run EAGLE-3 over {stages} pipeline stages",
            ("model", "speculative", "method"),
            "split the model by 'tensor' alone, or take vLLM 0.33.0",
        )


_EAGLE3_OVER_STAGES = (0, 33)


@rule("SG505", Severity.NOTE, unless="SG502")
def source_without_architecture(model: DeclaredModel) -> Iterator[Fault]:
    """A model outside of the catalog comes with its architecture.

    Without it nobody can say whether heads and layers divide by the parallel sizes, whether the
    context is one that the model was made for, and whether it fits: the engine says so on the
    nodes, when it has loaded for half an hour.

    Bad:
        model:
          source: example/model

    Good:
        model:
          source: example/model
          architecture: {layers: 32, heads: 32, kv_heads: 8}
    """
    if model.source and model.architecture is None:
        known = catalogs.checkpoint(model.source.lower())
        if known and known.hf_id == model.source:
            name = model.source.rsplit("/", 1)[-1].lower()
            yield Fault(
                f"the catalog knows '{model.source}', and all that is to be checked of it",
                ("model", "source"),
                f"write 'name: {name}' in place of 'source'",
                proposals=(
                    (Rename(("model", "source"), "name"), Replace(("model", "source"), name)),
                ),
            )
            return
        yield Fault(
            "without its architecture, heads, layers, context and memory can't be checked",
            ("model", "source"),
            "add 'architecture: {layers: N, heads: N, kv_heads: N}' from the model's config.json",
        )
