"""Which layers of a model are of what kind, as a config.json says it: by names, letters or numbers.

Key names are those of transformers' `configuration_*.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.records import record, replace

Config = Mapping[str, Any]

FULL, WINDOW, LINEAR, MAMBA, EXPERTS, DENSE = (
    "full",
    "window",
    "linear",
    "mamba",
    "experts",
    "dense",
)

_NAMES: Mapping[str, str] = {
    "full_attention": FULL,
    "global_attention": FULL,
    "attention": FULL,
    "global": FULL,
    "full": FULL,
    "deepseek_sparse_attention": FULL,
    "qwen_sparse_attention": FULL,
    "indexed_attention": FULL,
    "minimax_m3_sparse": FULL,
    "sliding_attention": WINDOW,
    "sliding_window": WINDOW,
    "chunked_attention": WINDOW,
    "local_attention": WINDOW,
    "local": WINDOW,
    "linear_attention": LINEAR,
    "kda": LINEAR,
    "mamba": MAMBA,
    "mamba2": MAMBA,
    "moe": EXPERTS,
    "mlp": DENSE,
    "ffn": DENSE,
}
# Inkling's names; elsewhere "hybrid" is something else.
_OF_INKLING: Mapping[str, str] = {"hybrid": FULL, "hybrid_sliding": WINDOW}
# Nemotron's letters. Source: transformers, `NemotronHConfig.hybrid_override_pattern`.
_LETTERS: Mapping[str, str] = {"M": MAMBA, "*": FULL, "E": EXPERTS, "-": DENSE}
# Lists that name or number the kind of each layer: what a number stands for, where it does.
_LISTS: Mapping[str, Mapping[Any, str]] = {
    "layers_block_type": _NAMES,
    "layer_types": _NAMES,
    "attention_types": _NAMES,
    "hybrid_layer_pattern": {0: FULL, 1: WINDOW},
    "sliding_window_layout": {0: FULL, 1: WINDOW},
    "attn_type_list": {1: FULL},
}
# Families with a window of which a config.json does not say which layers have it.
_WINDOW_EVERY: Mapping[str, int] = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2_moe": 4}
# Families whose every layer is attention and Mamba at once.
_BOTH = ("falcon_h1",)


@record
class LayerKinds:
    """How many layers of each kind; `unknown` are names and numbers that stand for no known kind.

    `count` is how many layers are spoken of: 0 where nothing is said and all are full attention.
    """

    count: int
    of: Mapping[str, int]
    unknown: tuple[str, ...] = ()
    source: str = ""

    def __getitem__(self, kind: str) -> int:
        return self.of.get(kind, 0)


def layer_kinds(config: Config, layers: int) -> LayerKinds:
    """The kinds of layers of a model of so many."""
    for found in _said(config, layers):
        return _with_mamba(found) if _has_mamba(config) else found
    return LayerKinds(0, {})


def _has_mamba(config: Config) -> bool:
    """Whether linear layers are Mamba's: transformers 5 writes both by one name."""
    is_linear = "linear_num_value_heads" in config or "linear_attn_config" in config
    return not is_linear and any(name in config for name in ("mamba_num_heads", "mamba_n_heads"))


def _with_mamba(found: LayerKinds) -> LayerKinds:
    of = {MAMBA if kind == LINEAR else kind: count for kind, count in found.of.items()}
    return replace(found, of=of)


def pattern_length(config: Config) -> int:
    """Layers of Nemotron's pattern or list, which may be all that says their number."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return len(pattern)
    blocks = config.get("layers_block_type")
    return len(blocks) if isinstance(blocks, list) else 0


def _said(config: Config, layers: int) -> Iterator[LayerKinds]:
    kind = str(config.get("model_type", ""))
    if kind in _BOTH:
        yield LayerKinds(layers, {FULL: layers, MAMBA: layers}, source="model_type")
    if isinstance(pattern := config.get("hybrid_override_pattern"), str) and pattern:
        yield _counted("hybrid_override_pattern", list(pattern), _LETTERS)
    for name, meanings in _LISTS.items():
        entries = config.get(name)
        if entries and isinstance(entries, list):
            own = _OF_INKLING if kind.startswith("inkling") else {}
            yield _counted(name, entries[:layers], {**meanings, **own})
    yield from _by_indices(config, layers)
    yield from _by_period(config, layers, kind)


def _counted(name: str, entries: Sequence[Any], meanings: Mapping[Any, str]) -> LayerKinds:
    known = [meanings.get(entry) if _is_plain(entry) else None for entry in entries]
    strange = {str(entry)[:40] for entry, kind in zip(entries, known, strict=True) if kind is None}
    counts = Counter(kind for kind in known if kind)
    return LayerKinds(len(entries), dict(counts), tuple(sorted(strange)), name)


def _is_plain(entry: object) -> bool:
    return isinstance(entry, str | int) and not isinstance(entry, bool)


def _by_indices(config: Config, layers: int) -> Iterator[LayerKinds]:
    """Lists of the layers that are of one kind."""
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("full_attn_layers"), list):
        full = len(linear["full_attn_layers"])
        if full <= layers:
            counts = {FULL: full, LINEAR: layers - full}
            yield LayerKinds(layers, counts, source="linear_attn_config")
    yield from _by_heads(config, layers)
    indices = config.get("attn_layer_indices")
    if isinstance(indices, list) and len(indices) <= layers:
        counts = {FULL: len(indices), MAMBA: layers - len(indices)}
        yield LayerKinds(layers, counts, source="attn_layer_indices")
    if config.get("attention_chunk_size"):
        # Llama 4: layers with positions see a chunk, those without see all.
        ropes = config.get("no_rope_layers")
        if isinstance(ropes, list) and ropes:
            chunked = sum(1 for rope in ropes[:layers] if rope == 1)
        else:
            chunked = layers - layers // (_count(config.get("no_rope_layer_interval")) or 4)
        counts = {FULL: layers - chunked, WINDOW: chunked}
        yield LayerKinds(layers, counts, source="no_rope_layers")


def _by_heads(config: Config, layers: int) -> Iterator[LayerKinds]:
    """Solar Open 2 lists or counts its full layers, Inkling those with a window."""
    full, interval = config.get("gqa_layers"), _count(config.get("gqa_interval"))
    if isinstance(full, list) and len(full) <= layers:
        counts = {FULL: len(full), LINEAR: layers - len(full)}
        yield LayerKinds(layers, counts, source="gqa_layers")
    elif interval:
        count = -(-layers // (interval + 1))
        yield LayerKinds(layers, {FULL: count, LINEAR: layers - count}, source="gqa_interval")
    windows = config.get("local_layer_ids")
    if isinstance(windows, list) and 0 < len(windows) <= layers:
        counts = {FULL: layers - len(windows), WINDOW: len(windows)}
        yield LayerKinds(layers, counts, source="local_layer_ids")


def _by_period(config: Config, layers: int, kind: str) -> Iterator[LayerKinds]:
    interval = _count(config.get("full_attention_interval"))
    if interval and config.get("linear_num_value_heads"):
        full = layers // interval
        yield LayerKinds(layers, {FULL: full, LINEAR: layers - full}, source="interval")
    if config.get("sliding_window") and config.get("use_sliding_window") is not False:
        every = _count(config.get("sliding_window_pattern")) or _WINDOW_EVERY.get(kind)
        if every:
            # The dense layers that Cohere's models begin with have a pattern of their own.
            first = _count(config.get("first_k_dense_replace")) if kind == "cohere2_moe" else 0
            first = min(first, layers)
            own = _count(config.get("prefix_dense_sliding_window_pattern")) or 1
            full = first // own + (layers - first) // every
            yield LayerKinds(layers, {FULL: full, WINDOW: layers - full}, source="pattern")
        elif kind == "mistral":
            yield LayerKinds(layers, {WINDOW: layers}, source="model_type")


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
