"""The shape of a site's model, from the catalog or as given in the site file."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from generator import catalogs
from generator.catalogs import Checkpoint
from generator.records import record, replace
from generator.sitefile.declaration import DeclaredModel

ModelFacts = Mapping[str, Any]

# Kinds of layers that keep a state of fixed size instead of a growing cache, and their sizes.
GATED_DELTA, KIMI_DELTA, MAMBA = "gated_delta", "kimi_delta", "mamba"
WIDE_STATE = 4
_GATED_DELTA = ("linear_key_heads", "linear_key_dim", "linear_value_heads", "linear_value_dim")
# In the order of `Compressed`.
_COMPRESSED = (
    "sliding_window",
    "qk_rope_head_dim",
    "index_head_dim",
    "q_lora_rank",
    "o_lora_rank",
    "o_groups",
)
_SOURCES = ("sources_by_1", "sources_by_2")
# Fields of a shape that have the same name in a site file, those of its attention, and others.
_AS_WRITTEN = (
    *("max_context_yarn", "hidden_size", "head_dim", "vocab_size", "tied_embeddings"),
    *("intermediate_size", "tables_gb"),
)
_OF_ATTENTION = (
    *("sliding_layers", "sliding_window", "encoder", "global_kv_heads", "global_head_dim"),
    *("shared_values", "convolution_window"),
)
_RENAMED = {
    "gated_attention": "output_gate",
    "value_dim": "value_head_dim",
    "unlike": "not_modelled",
}
_MAMBA = ("mamba_layers", "mamba_num_heads", "mamba_head_dim", "ssm_state_size")


@record
class Latent:
    """Multi-head latent attention (MLA): ranks and parts of a head, in elements.

    `cached_rope` is the cached size of positions, which engines pad.
    """

    kv_rank: int
    rope: int
    q_rank: int | None
    nope: int | None
    value: int | None
    cached_rope: int = 0


@record
class Recurrent:
    """Layers that keep a state per sequence; sizes in elements.

    `keys` and `values` are the total widths of all key and value heads, `state` is the size of one
    layer's state, and `state_bytes` the bytes per element. Layers with `short_convolutions` also
    keep their last inputs.
    """

    kind: str
    layers: int
    keys: int
    values: int
    state: int
    state_bytes: int = WIDE_STATE
    short_convolutions: int = 0


@record
class Indexer:
    """Sparse attention's index of keys, kept whole on every rank; `head` in elements.

    An entry stands for `pooled` tokens, and is in 16 bits if `wide`.
    """

    layers: int
    heads: int
    head: int
    pooled: int = 1
    wide: bool = False


@record
class Compressed:
    """DeepSeek-V4's attention: all layers have a window, some also entries of several tokens.

    `fours` are the layers with an entry and an index for every 4 tokens, `rest` those with one for
    every 128; `ones` and `twos` those that cache entries for others too. Sizes in elements.
    """

    fours: int
    rest: int
    ones: int
    twos: int
    head: int
    window: int
    rope: int
    index_head: int
    q_rank: int
    o_rank: int
    o_groups: int

    @property
    def sources(self) -> int:
        """The number of layers that cache entries for others too."""
        return self.ones + self.twos

    @property
    def indexed_every(self) -> int:
        """The fewest tokens of an entry that the index selects from."""
        return 1 if self.ones else 2 if self.twos else 4


@record
class Experts:
    """Layers of experts; sizes are the width inside one expert, in elements.

    An expert has three `matrices` (gate, up, down) or two; `width` is that of its input, which is
    the model's own unless a latent projection precedes it.
    """

    layers: int
    count: int
    chosen: int | None
    size: int | None
    shared: int
    matrices: int
    width: int | None


@record
class Excess:
    """How much more than computed a rank was seen to hold with an engine, split over this many."""

    engine: str
    tensor: int
    gib: float


@record
class Shape:
    """What determines how a model can be split and how much memory it takes; None is unknown.

    No experts means a dense model. A latent KV cache (MLA) is kept whole on every tensor rank, so
    its heads need not be divisible. Sizes are in elements, contexts and windows in tokens.
    `cache_elements` is what all layers cache per token, if it was given rather than to be computed,
    and `cache_bytes` the same for a cache of one type only. `tables_gb` is the size of tables
    beside the layers that engines may keep on disk. `lacks` names the sizes that are missing to
    complete a group of them.

    Layers that attend to all tokens may have other heads (`global_kv_heads`, `global_head_dim`),
    and one projection for keys and values (`shared_values`); `value_dim` is the size of a value's
    head if it differs from a key's. Short convolutions beside the attention of every layer keep
    their last inputs, `convolution_window` tokens of them. `unlike` is what isn't modelled of the
    model, and `excess` what logs show beyond what formulas explain. The `tower` that encodes images
    has a width and tokens of the largest image. An `encoder` reads each text at
    once, and caches nothing.
    """

    layers: int
    heads: int
    kv_heads: int
    max_context: int | None
    experts: int
    latent: bool
    attention_layers: int
    max_context_yarn: int | None = None
    hidden_size: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    tied_embeddings: bool = False
    gated_attention: bool = False
    intermediate_size: int | None = None
    sliding_layers: int = 0
    sliding_window: int | None = None
    cache_elements: int | None = None
    cache_bytes: int | None = None
    mla: Latent | None = None
    recurrent: Recurrent | None = None
    indexer: Indexer | None = None
    moe: Experts | None = None
    tables_gb: float = 0.0
    encoder: bool = False
    lacks: tuple[str, ...] = ()
    global_kv_heads: int | None = None
    global_head_dim: int | None = None
    shared_values: bool = False
    value_dim: int | None = None
    compressed: Compressed | None = None
    convolution_window: int = 0
    tower: tuple[int, ...] = ()
    unlike: str = ""
    excess: tuple[Excess, ...] = ()

    @property
    def mixers(self) -> int:
        """The number of layers that mix tokens, by kind; a layer of two kinds counts twice."""
        recurrent = self.recurrent.layers if self.recurrent else 0
        return self.attention_layers + self.sliding_layers + recurrent

    @property
    def layers_alone(self) -> int:
        """The number of layers that are feed-forward only; only models with Mamba have any."""
        has_states = self.recurrent is not None and self.recurrent.kind == MAMBA
        return max(0, self.layers - self.mixers) if has_states else 0

    @property
    def has_both(self) -> bool:
        """Whether every layer is both attention and Mamba (Falcon-H1)."""
        attention = self.attention_layers + self.sliding_layers
        recurrent = self.recurrent.layers if self.recurrent else 0
        return attention == recurrent == self.layers

    @property
    def keeps_states(self) -> bool:
        """Whether layers keep something of fixed size for each sequence."""
        return self.recurrent is not None or self.convolution_window > 0

    @property
    def latent_index(self) -> Indexer | None:
        """The index that chooses what of a latent cache is attended to."""
        return self.indexer if self.mla else None

    @property
    def indexes_pools(self) -> bool:
        """Whether the index selects pools of tokens of plain attention (Qwen3.8-Flash-Next)."""
        return self.mla is None and self.indexer is not None and self.indexer.pooled > 1

    @property
    def adds_up(self) -> bool:
        """Whether the kinds of layers add up to the number of layers; true if they aren't known."""
        if self.has_both:
            return True
        fewer_experts = self.moe is None or self.moe.layers <= (self.layers_alone or self.layers)
        return self.mixers + self.layers_alone == self.layers and fewer_experts


def shape(model: DeclaredModel) -> Shape | None:
    """The shape of a model of the catalog, or the one given inline; None if there is neither."""
    if model.architecture is not None:
        return shape_of(model.architecture)
    if (checkpoint := known_checkpoint(model)) is None:
        return None
    return known_shape(checkpoint) if model.like else _shape_by_name(checkpoint.name)


@cache
def _shape_by_name(name: str) -> Shape | None:
    """The same for a checkpoint of the catalog, which many rules ask for in each group."""
    found = catalogs.checkpoint(name)
    return known_shape(found) if found else None


def source_of(model: DeclaredModel) -> str | None:
    """The model's Hugging Face id or its folder; None if the catalog has no such name."""
    checkpoint = known_checkpoint(model)
    return checkpoint.hf_id if checkpoint else model.source


def served_name(model: DeclaredModel, source: str) -> str:
    """The name that clients request: the site's own, or else the last part of the source's."""
    return model.served_name or source.rsplit("/", 1)[-1].lower()


def known_checkpoint(model: DeclaredModel) -> Checkpoint | None:
    """The catalog's checkpoint for a name, or for a source without an architecture.

    For a source that is like one in the catalog, that one with the source's own id, size and
    format.
    """
    if model.like and (base := catalogs.checkpoint(model.like)):
        return replace(
            base,
            hf_id=model.source or base.hf_id,
            format=model.format or base.format,
            weight_gb=model.weight_gb,
            vision_gb=0.0,
            basis="observed",
            mtp_gb=0.0,
            tables_gb=None,
        )
    if model.name:
        found = catalogs.checkpoint(model.name)
        if found and model.weight_gb:
            # The size that a site gives is that of all its files.
            return replace(found, weight_gb=model.weight_gb, vision_gb=0.0, basis="observed")
        return found
    known = catalogs.checkpoint(model.source) if model.source and not model.architecture else None
    return known if known and known.hf_id.lower() == (model.source or "").lower() else None


def tensor_sizes(known: Shape, most: int) -> tuple[int, ...]:
    """Tensor sizes up to `most` that divide attention heads, and divide or replicate KV heads."""
    heads, kv = known.heads, known.kv_heads
    return tuple(
        size
        for size in range(1, most + 1)
        if not heads % size and (known.latent or not kv % size or not size % kv)
    )


def is_of_modelopt(model: DeclaredModel) -> bool:
    """Whether NVIDIA quantized it, which it does with ModelOpt, or others may have done so.

    vLLM uses the method that such a checkpoint names instead of any other that it is given: its
    0.32 does so with a checkpoint that has `quant_algo: NVFP4`.
    """
    checkpoint = known_checkpoint(model)
    source = checkpoint.hf_id if checkpoint else model.source or ""
    quantized = checkpoint is None or checkpoint.format in ("nvfp4", "nvfp4-mixed", "fp8")
    is_by_others = checkpoint is None and "nvfp4" in source.lower()
    return (source.startswith("nvidia/") or is_by_others) and quantized


def known_shape(checkpoint: Checkpoint) -> Shape:
    """The shape of a checkpoint of the catalog."""
    known, facts = checkpoint.architecture, checkpoint.architecture.facts
    attention, moe = facts.get("attention", {}), facts.get("moe", {})
    attention_layers = attention.get("kv_layers", known.layers)
    own = _layers_of_their_own(known.layers, attention)
    by_heads = known.head_dim or "kv_lora_rank" in attention
    return Shape(
        **_taken(facts, "max_context_yarn", "vocab_size", "tied_embeddings"),
        layers=known.layers,
        heads=known.heads,
        kv_heads=known.kv_heads,
        max_context=checkpoint.max_context,
        experts=known.experts or 0,
        latent=attention.get("kv_replicated", False),
        hidden_size=known.hidden_size,
        head_dim=known.head_dim,
        intermediate_size=moe.get("dense_intermediate", facts.get("intermediate_size")),
        attention_layers=attention_layers,
        cache_elements=None if by_heads else facts.get("kv_elements_per_token"),
        cache_bytes=attention.get("kv_bytes_per_token"),
        indexer=_indexer(attention, attention_layers),
        moe=_experts(moe, known.layers, known.hidden_size, own),
        tables_gb=checkpoint.tables_gb or _tables(facts, checkpoint.format),
        compressed=_compressed(known.head_dim, attention),
        tower=tuple(facts.get("vision_tower", ())),
        excess=tuple(
            Excess(*map(each.get, Excess.__match_args__)) for each in facts.get("excess", ())
        ),
        **_attention(attention),
    )


def shape_of(own: ModelFacts) -> Shape:
    """The shape given in a site file, with the keys of its schema."""
    layers = own["layers"]
    moe = {
        "experts": own.get("experts"),
        "top_k": own.get("experts_per_token"),
        "intermediate": own.get("expert_intermediate_size"),
        "shared": own.get("shared_experts", 0),
        "shared_intermediate": own.get("shared_intermediate_size"),
        "first_dense": own.get("dense_layers", 0),
        "matrices": own.get("expert_matrices", 3),
        "latent": own.get("expert_latent_size"),
    }
    states = own.get("linear_layers", 0) + own.get("mamba_layers", 0)
    others = own.get("sliding_layers", 0) + states
    attention = own.get("attention_layers", max(0, layers - others))
    return Shape(
        **_taken(own, *_AS_WRITTEN),
        layers=layers,
        heads=own["heads"],
        kv_heads=own["kv_heads"],
        max_context=own.get("max_context"),
        experts=own.get("experts", 0),
        latent=bool({"kv_lora_rank", "layers_by_4", *_SOURCES} & own.keys()),
        attention_layers=attention,
        cache_elements=own.get("kv_elements_per_token"),
        indexer=_indexer(own, attention),
        moe=_experts(moe, layers, own.get("hidden_size"), own.get("expert_layers"))
        if own.get("experts")
        else None,
        lacks=tuple(lacking_sizes(own)),
        compressed=_compressed(own.get("head_dim"), own),
        **_attention(own),
    )


def _attention(facts: ModelFacts) -> dict[str, Any]:
    """What the catalog says of the attention in the words of a site file."""
    named = {name: facts[key] for name, key in _RENAMED.items() if key in facts}
    states = {"mla": _latent(facts), "recurrent": _recurrent(facts)}
    return _taken(facts, *_OF_ATTENTION) | named | states


def _taken(facts: ModelFacts, *names: str) -> dict[str, Any]:
    """The facts with these names; a shape has a value of its own for those that are missing."""
    return {name: facts[name] for name in names if name in facts}


def _tables(facts: ModelFacts, form: str) -> float:
    """Size of the tables beside the layers, in GB: 16 bits in a checkpoint that isn't packed."""
    tables = facts.get("ngram_tables") or facts.get("engram_tables") or {}
    given = tables.get("weight_gb", tables.get("parameters_b", 0) * (2 if form == "bf16" else 1))
    return float(given)


def lacking_sizes(own: ModelFacts) -> Iterator[str]:
    """Keys that a group of sizes needs but the section `architecture` doesn't have."""
    groups = (
        ("sliding_layers", ("sliding_window",)),
        ("linear_layers", ("kda_heads", "kda_head_dim") if "kda_heads" in own else _GATED_DELTA),
        ("mamba_layers", _MAMBA),
        *((key, ("head_dim", *_COMPRESSED)) for key in ("layers_by_4", *_SOURCES)),
    )
    for key, needed in groups:
        if own.get(key):
            yield from (name for name in needed if name not in own)


def _latent(facts: ModelFacts) -> Latent | None:
    if "kv_lora_rank" not in facts:
        return None
    return Latent(
        facts["kv_lora_rank"],
        facts.get("qk_rope_head_dim", 0),
        facts.get("q_lora_rank"),
        facts.get("qk_nope_head_dim"),
        facts.get("v_head_dim"),
        facts.get("cached_rope_dim", facts.get("qk_rope_head_dim", 0)),
    )


def _compressed(head: int | None, facts: ModelFacts) -> Compressed | None:
    counts = facts.get("compress_ratio_counts") or {
        4: facts.get("layers_by_4", 0),
        128: facts.get("layers_by_128", 0),
    }
    sizes = _all(facts, *_COMPRESSED)
    entries = (counts.get(4, 0), counts.get(128, 0), *(facts.get(key, 0) for key in _SOURCES))
    if not head or not sizes or not any(entries):
        return None
    return Compressed(*(*entries, head, *sizes))


def _recurrent(facts: ModelFacts) -> Recurrent | None:
    """Gated delta rule, Kimi's variant of it, or Mamba 2; None if their sizes are missing."""
    wide = facts.get("state_dtype_bytes", WIDE_STATE)
    if kda := _all(facts, "linear_layers", "kda_heads", "kda_head_dim"):
        layers, heads, head = kda
        return Recurrent(KIMI_DELTA, layers, heads * head, heads * head, heads * head * head, wide)
    if sizes := _all(facts, "linear_layers", *_GATED_DELTA):
        layers, keys, key, values, value = sizes
        state = values * key * value
        others = facts.get("short_convolutions", 0)
        return Recurrent(GATED_DELTA, layers, keys * key, values * value, state, wide, others)
    if sizes := _all(facts, *_MAMBA):
        layers, heads, head, state = sizes
        inner, keys = heads * head, facts.get("n_groups", 1) * state
        return Recurrent(MAMBA, layers, keys, inner, inner * state, wide)
    return None


def _all(facts: ModelFacts, *names: str) -> tuple[int, ...]:
    """The facts with these names, or nothing if one of them is missing."""
    found = tuple(facts[name] for name in names if facts.get(name))
    return found if len(found) == len(names) else ()


def _indexer(facts: ModelFacts, layers: int) -> Indexer | None:
    if "index_head_dim" not in facts:
        return None
    if {"compress_ratio_counts", "layers_by_4", *_SOURCES} & facts.keys():
        return None  # Its index has entries of several tokens, and is part of the compressed cache.
    return Indexer(
        facts.get("index_layers", layers),
        facts.get("index_heads", 1),
        facts["index_head_dim"],
        facts.get("index_kpool", 1),
        facts.get("index_wide", False),
    )


def _layers_of_their_own(layers: int, attention: ModelFacts) -> int | None:
    """The number of layers that are experts only, as all expert layers are in models with Mamba."""
    if "mamba_layers" not in attention:
        return None
    own: int = attention["kv_layers"] + attention["mamba_layers"]
    return layers - own if own < layers else None


def _experts(facts: ModelFacts, layers: int, width: int | None, own: int | None) -> Experts | None:
    if not facts.get("experts"):
        return None
    shared, size = facts.get("shared") or 0, facts.get("intermediate")
    inside = facts.get("shared_intermediate") or (shared * size if size else 0)
    return Experts(
        layers=max(0, layers - facts.get("first_dense", 0)) if own is None else own,
        count=facts["experts"],
        chosen=facts.get("top_k"),
        size=size,
        shared=inside if shared else 0,
        matrices=facts.get("matrices", 3),
        width=facts.get("latent") or width,
    )
