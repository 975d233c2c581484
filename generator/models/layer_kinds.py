"""The kind of each layer of a model, which a config.json gives as names, letters or numbers.

Key names are those of transformers' `configuration_*.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.records import record, replace
from generator.resources import rows

Config = Mapping[str, Any]

FULL, WINDOW, LINEAR = "full", "window", "linear"
MAMBA, EXPERTS, DENSE = "mamba", "experts", "dense"
_NAMES: Mapping[str, str] = {row[0]: row[1] for row in rows("layer-kinds")}
# Inkling's names; in other families, "hybrid" is something else.
_OF_INKLING: Mapping[str, str] = {"hybrid": FULL, "hybrid_sliding": WINDOW}
# Nemotron's letters. Source: transformers, `NemotronHConfig.hybrid_override_pattern`.
_LETTERS: Mapping[str, str] = {"M": MAMBA, "*": FULL, "E": EXPERTS, "-": DENSE}
# Lists with the name or number of each layer's kind, and the meaning of the numbers.
_LISTS: Mapping[str, Mapping[Any, str]] = {
    "layers_block_type": _NAMES,
    "layer_types": _NAMES,
    "attention_types": _NAMES,
    "hybrid_layer_pattern": {0: FULL, 1: WINDOW},
    "sliding_window_layout": {0: FULL, 1: WINDOW},
    "attn_type_list": {1: FULL},
}
# Families with windows whose config.json doesn't say which layers have one.
_WINDOW_EVERY: Mapping[str, int] = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2_moe": 4}
# Families in which every layer is both attention and Mamba.
_BOTH = ("falcon_h1",)


@record
class LayerKinds:
    """The number of layers of each kind; `unknown` are names and numbers of no known kind.

    `count` is how many layers are covered: 0 if nothing is stated and all are full attention.
    """

    count: int
    of: Mapping[str, int]
    unknown: tuple[str, ...] = ()
    source: str = ""

    def __getitem__(self, kind: str) -> int:
        return self.of.get(kind, 0)


def layer_kinds(config: Config, layers: int) -> LayerKinds:
    """The kinds of layers of a model with this many layers."""
    for found in _sources(config, layers):
        if not _has_mamba(config):
            return found
        of = {MAMBA if kind == LINEAR else kind: count for kind, count in found.of.items()}
        return replace(found, of=of)
    return LayerKinds(0, {})


def _has_mamba(config: Config) -> bool:
    """Whether linear layers are Mamba's: transformers 5 has the same name for both."""
    is_linear = "linear_num_value_heads" in config or "linear_attn_config" in config
    return not is_linear and any(name in config for name in ("mamba_num_heads", "mamba_n_heads"))


def pattern_length(config: Config) -> int:
    """Length of Nemotron's pattern or list, which may be all that shows the number of layers."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return len(pattern)
    blocks = config.get("layers_block_type")
    return len(blocks) if isinstance(blocks, list) else 0


def _sources(config: Config, layers: int) -> Iterator[LayerKinds]:
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
    """From lists of the layers of one kind."""
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
        # Llama 4: layers with positions see a chunk, those without see everything.
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
            # The dense layers at the beginning of Cohere's models have a pattern of their own.
            first = _count(config.get("first_k_dense_replace")) if kind == "cohere2_moe" else 0
            first = min(first, layers)
            own = _count(config.get("prefix_dense_sliding_window_pattern")) or 1
            full = first // own + (layers - first) // every
            yield LayerKinds(layers, {FULL: full, WINDOW: layers - full}, source="pattern")
        elif kind == "mistral":
            yield LayerKinds(layers, {WINDOW: layers}, source="model_type")


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
