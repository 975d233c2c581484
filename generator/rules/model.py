"""Rules about the model and how it is split."""

from collections.abc import Sequence

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Severity, listed, misspelt, replacements
from generator.models.architecture import known_checkpoint, shape, tensor_sizes
from generator.rules import splits
from generator.rules.compatibility import is_longer
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

_KINDS = ("attention_layers", "sliding_layers", "linear_layers", "mamba_layers", "expert_layers")


@rule("SG501")
def unknown_model(model: DeclaredModel) -> Faults:
    """The catalog has a model of this name."""
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


@rule("SG508")
def like_an_unknown_model(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """`like`, `weight_gb` and `format` go with a `source`; a cache of fixed size is for vLLM."""
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
            "'like' needs a 'source', and the model has none",
            ("model", "like"),
            "write the model's Hugging Face id as 'source', or 'name' in place of 'like'",
            at_key=True,
        )
    known = catalogs.checkpoint(model.name) if model.name else None
    is_sized = known is None or known.weight_gb is not None
    for key in ("weight_gb", "format") if is_sized else ("format",):
        if getattr(model, key) and not model.like:
            yield Fault(
                f"'{key}' is the size or format of a checkpoint that is 'like' another",
                ("model", key),
                "write it under 'architecture', or say what the model is 'like'",
                at_key=True,
            )
    if model.kv_cache_gib and not ENGINE_TRAITS[engine.name].pool_flag:
        yield Fault(
            f"{ENGINE_TRAITS[engine.name].title} has no flag for the size of its KV cache",
            ("model", "kv_cache_gib"),
            "remove it: its share of the memory decides",
            at_key=True,
        )


@rule("SG502")
def no_model(model: DeclaredModel) -> Faults:
    """A site names its model."""
    if not model.name and not model.source:
        yield Fault(
            "'model' has neither 'name' nor 'source'",
            ("model",),
            "write 'name: gpt-oss-120b', or 'source: OWNER/NAME' for one outside the catalog",
            at_key=True,
        )


@rule("SG503")
def architecture_of_a_known_model(model: DeclaredModel) -> Faults:
    """The architecture of a model in the catalog is not repeated."""
    if model.name and model.architecture is not None:
        yield Fault(
            f"the catalog knows the architecture of '{model.name}'",
            ("model", "architecture"),
            "remove it, or write 'source' in place of 'name'",
            at_key=True,
        )


@rule("SG506", unless="SG503")
def kinds_that_do_not_add_up(model: DeclaredModel) -> Faults:
    """The layers of each kind add up to the model's layers."""
    own, known = model.architecture, shape(model)
    if own is None or known is None or known.lacks or known.adds_up:
        return
    kinds = [name for name in _KINDS if own.get(name)]
    count = sum(own[name] for name in kinds)
    kinds_text = listed((f"{own[name]} {name}" for name in kinds), "and")
    yield Fault(
        f"{kinds_text} add up to {count} layers, and 'layers' is {own['layers']}",
        ("model", "architecture", "layers"),
        "count each layer in one of these keys; where every layer has attention and Mamba, write "
        "the number of 'layers' in both",
    )


@rule("SG507", unless="SG503")
def impossible_shape(model: DeclaredModel) -> Faults:
    """The shape of a model is possible."""
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


@rule("SG504", unless="SG501 SG503")
def context_too_long(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """The context is no longer than the model supports."""
    known = shape(model)
    longest = known.max_context if known else None
    if longest and model.context_length and model.context_length > longest:
        if is_longer(engine, model.context_length):
            return
        yield Fault(
            f"a context of {model.context_length} tokens is longer than the model's {longest}",
            ("model", "context_length"),
            f"write {longest} or less",
            proposals=replacements(("model", "context_length"), [longest]),
            unsafe=True,
        )


@rule("SG510", unless="SG501 SG503 SG507 SG603")
def tensor_size_illegal(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """Tensor parallelism splits attention heads, and splits or replicates KV heads, evenly."""
    if not catalogs.is_patched(engine.image, engine.version):
        yield from _illegal_tensor(model, engine)


@rule("SG533", Severity.WARNING, unless="SG501 SG503 SG603")
def tensor_size_of_a_patch(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A custom build splits heads like the engine does, unless a patch pads them."""
    if (
        catalogs.is_patched(engine.image, engine.version)
        and "padded-heads" not in engine.own.supports
    ):
        yield from _illegal_tensor(model, engine)


def _illegal_tensor(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
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
    if size not in tensor_sizes(known, size):
        what = f"{known.heads} attention" if known.heads % size else f"{known.kv_heads} KV"
        message = f"{what} heads do not divide by tensor size {size}"
        yield Fault(message, path, advice, proposals=proposals, unsafe=True)


@rule("SG511", unless="SG501 SG503 SG603")
def too_many_stages(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A pipeline stage has at least one layer."""
    known, stages = shape(model), engine.parallel.pipeline
    if known and stages > known.layers:
        yield Fault(
            f"{stages} pipeline stages for {known.layers} layers",
            ("engine", "parallel", "pipeline"),
            f"write {known.layers} or less",
        )


@rule("SG513", unless="SG501 SG503 SG603")
def data_parallel_replicas(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A dense model has no data parallel ranks that span several nodes."""
    known, sizes = shape(model), engine.parallel
    split = sizes.tensor * sizes.pipeline > 1
    joins = ENGINE_TRAITS[engine.name].joins_dense_replicas
    if not joins and sizes.data > 1 and split and known and known.experts == 0:
        yield Fault(
            "a dense model can't be data-parallel over several nodes",
            ("engine", "parallel"),
            "use 'tensor' or 'pipeline', or a group of its own for each replica",
        )


@rule("SG512", unless="SG501 SG503")
def experts_of_a_dense_model(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """Expert parallelism needs experts."""
    known = shape(model)
    if engine.parallel.expert and known and known.experts == 0:
        yield to_remove(
            "the model is dense: it has no experts to spread",
            ("engine", "parallel", "expert"),
            "remove 'expert'",
            at_key=True,
        )


@rule("SG505", Severity.NOTE, unless="SG502")
def source_without_architecture(model: DeclaredModel) -> Faults:
    """A model outside the catalog comes with its architecture."""
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
