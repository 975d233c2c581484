"""What one rank of a serving group holds: weights, KV cache, states and reserve, all in bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from generator.architecture import MAMBA, Experts, Recurrent, Shape
from generator.fit import formulas
from generator.fit.asked import Asked
from generator.fit.formulas import WIDE


@dataclass(frozen=True, slots=True)
class Weights:
    """A checkpoint's bytes: the text model's, a vision tower's, and a draft model's."""

    text: float
    vision: float
    form: str
    draft: float = 0.0
    draft_elements: float = 0.0
    predicts: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model is split; `shards` are the ranks that share the experts of a layer."""

    tensor: int
    stages: tuple[int, ...]
    data: int
    shards: int
    whole_experts: bool
    nccl: bool = True

    @property
    def pipeline(self) -> int:
        """Stages of the pipeline."""
        return len(self.stages)

    @property
    def communicators(self) -> int:
        """NCCL groups that a rank is in: of tensor ranks, of stages, of replicas."""
        sizes = (self.tensor, self.pipeline, self.data) if self.nccl else ()
        return sum(size > 1 for size in sizes)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a rank of one stage holds, in bytes; `active` is what it reads for one token.

    Of the KV cache `growing` is by token, `window` by token of a sliding window, `state` by
    sequence; `active` is None where it isn't known which experts a token needs.
    """

    stage: int
    layers: int
    weights: float
    draft: float
    activations: float
    graphs: float
    runtime: float
    nccl: float
    growing: float
    window: float
    window_tokens: int
    step: int
    state: float
    active: float | None

    @property
    def reserve(self) -> float:
        """What is neither weights nor KV cache."""
        return self.activations + self.graphs + self.runtime + self.nccl

    def sequence(self, tokens: int) -> float:
        """The KV cache of one sequence of so many tokens."""
        held = formulas.window_tokens(tokens, self.window_tokens, self.step) if self.window else 0
        return self.growing * tokens + self.window * held + self.state


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Parameters of a layer of each kind; attention's by how a rank holds them."""

    split: int
    keys_values: int
    whole: int
    recurrent: int
    dense: int
    shared: int
    router: int
    experts: int


@dataclass(frozen=True, slots=True)
class _Kinds:
    """How many layers of each kind there are in a stage, or in all."""

    attention: int
    sliding: int
    recurrent: int
    indexed: int
    dense: int
    experts: int


def lacking(shape: Shape) -> list[str]:
    """Sizes that must be known and aren't, by the names that a site file gives them."""
    needed = {
        "layers": shape.layers,
        "hidden_size": shape.hidden_size,
        "vocab_size": shape.vocab_size,
        "head_dim": shape.head_dim or shape.mla or shape.cache_elements or shape.cache_bytes,
        "kv_heads": shape.kv_heads,
    }
    return [name for name, value in needed.items() if not value] + list(shape.lacks)


def demands(shape: Shape, weights: Weights, layout: Layout, asked: Asked) -> list[Demand]:
    """What a rank holds in each stage; nothing that `lacking` names may be lacking."""
    assert shape.layers
    split = _Split(shape, weights, layout)
    found, first = [], 0
    for stage, size in enumerate(layout.stages):
        found.append(_demand(split, stage, (first, first + size), asked))
        first += size
    return found


class _Split:
    """A model's bytes by part, and what of each a rank holds."""

    def __init__(self, shape: Shape, weights: Weights, layout: Layout) -> None:
        self.shape, self.weights, self.layout = shape, weights, layout
        assert shape.vocab_size
        assert shape.hidden_size
        assert shape.layers
        self.table = WIDE * shape.vocab_size * shape.hidden_size
        self.tables = self.table * (1 if shape.tied_embeddings else 2)
        self.parameters = _parameters(shape)
        self.each = max(0.0, weights.text - self.tables) / shape.layers
        if part := self.parameters:
            kinds = _kinds(shape, 0, shape.layers)
            heads = part.split + part.keys_values + part.whole
            others = (
                (kinds.attention + kinds.sliding) * heads
                + kinds.recurrent * part.recurrent
                + kinds.dense * part.dense
                + kinds.experts * part.shared
            )
            wide = int(self.tables / WIDE) + kinds.experts * part.router
            self.linear, self.expert = formulas.packed_bytes(
                weights.text, wide, others, kinds.experts * part.experts, weights.form
            )

    def layers(self, first: int, last: int) -> float:
        """Bytes of layers on one rank."""
        part, tensor = self.parameters, self.layout.tensor
        if part is None:
            return (last - first) * self.each / tensor
        kinds = _kinds(self.shape, first, last)
        return (
            (kinds.attention + kinds.sliding) * self._attention(part) * self.linear
            + kinds.recurrent * part.recurrent / tensor * self.linear
            + kinds.dense * part.dense / tensor * self.linear
            + kinds.experts * part.shared / tensor * self.linear
            + kinds.experts * part.router * WIDE
            + kinds.experts * part.experts * self._experts_share() * self.expert
        )

    def active(self, first: int, last: int) -> float | None:
        """Bytes of layers that a rank reads for one token, whose experts are spread evenly."""
        part, moe = self.parameters, self.shape.moe
        if not self.shape.experts:
            return self.layers(first, last)
        if part is None or moe is None or not moe.chosen:
            return None
        kinds = _kinds(self.shape, first, last)
        experts = kinds.experts * part.experts * self.expert
        read = experts * moe.chosen / moe.count / self.layout.shards
        return self.layers(first, last) - experts * self._experts_share() + read

    def prediction(self) -> float:
        """Bytes of a layer that predicts further tokens, on one rank: a layer and a projection.

        Checkpoints packed to less than 8 bits have it in 16.
        """
        part, shape = self.parameters, self.shape
        assert shape.hidden_size
        form = formulas.PACKED.get(self.weights.form, WIDE)
        bytes_each = WIDE if form < 1 else form
        if part is None:
            return self.each * bytes_each / form / self.layout.tensor
        own = self._attention(part) + 2 * shape.hidden_size**2 / self.layout.tensor
        feed_forward = part.shared if shape.experts else part.dense
        own += feed_forward / self.layout.tensor + part.experts * self._experts_share()
        return own * bytes_each

    def _attention(self, part: _Parameters) -> float:
        assert self.shape.kv_heads
        tensor = self.layout.tensor
        copied = max(1 / tensor, 1 / self.shape.kv_heads)
        return part.split / tensor + part.keys_values * copied + part.whole

    def _experts_share(self) -> float:
        shards, moe = self.layout.shards, self.shape.moe
        if moe and self.layout.whole_experts:
            return ceil(moe.count / shards) / moe.count
        return 1 / shards


def _demand(split: _Split, stage: int, layers: tuple[int, int], asked: Asked) -> Demand:
    shape, layout, weights = split.shape, split.layout, split.weights
    first_stage, last_stage = stage == 0, stage == layout.pipeline - 1
    assert shape.hidden_size
    assert shape.vocab_size
    assert asked.cached is not None
    table = split.table / layout.tensor
    own = split.layers(*layers)
    active = split.active(*layers)
    if first_stage:
        own += table + (0 if asked.text_only else weights.vision)
    if last_stage:
        own += 0 if shape.tied_embeddings and first_stage else table
        active = None if active is None else active + table
    drafts = last_stage and bool(weights.draft or weights.predicts)
    draft = weights.draft / layout.tensor + (split.prediction() if weights.predicts else 0)
    kinds = _kinds(shape, *layers)
    element = _cache_bytes(shape, layout.tensor, asked.cached)
    growing = (kinds.attention + (1 if drafts else 0)) * element
    if shape.indexer:
        growing += kinds.indexed * formulas.indexer_cache_bytes(shape.indexer.head)
    if drafts:
        growing += weights.draft_elements * asked.cached / layout.tensor
    tensors = formulas.activation_bytes(asked.step, shape.hidden_size, _widest(shape, layout))
    if last_stage:
        tensors += formulas.logits_bytes(asked.running * (1 + asked.drafted), shape.vocab_size)
    return Demand(
        stage=stage,
        layers=layers[1] - layers[0],
        weights=own,
        draft=draft if drafts else 0,
        activations=tensors,
        graphs=0 if asked.eager else formulas.GRAPH_BYTES,
        runtime=formulas.CONTEXT_BYTES,
        nccl=formulas.nccl_bytes(layout.communicators),
        growing=growing,
        window=kinds.sliding * element,
        window_tokens=shape.sliding_window or 0,
        step=asked.step,
        state=_state(shape.recurrent, kinds.recurrent, layout.tensor, asked.drafted),
        active=active,
    )


def _parameters(shape: Shape) -> _Parameters | None:
    """Parameters of each kind of layer, if all their sizes are known."""
    attention, hidden, moe = _attention(shape), shape.hidden_size, shape.moe
    assert hidden
    dense = formulas.feed_forward_parameters(hidden, shape.intermediate_size or 0)
    if attention is None or (not dense and _needs_dense(shape)):
        return None
    if shape.experts and (moe is None or moe.size is None or moe.width is None):
        return None
    experts = shared = router = 0
    if moe and moe.size and moe.width:
        experts = moe.count * formulas.feed_forward_parameters(moe.width, moe.size, moe.matrices)
        shared = formulas.feed_forward_parameters(hidden, moe.shared, moe.matrices)
        shared += 2 * hidden * moe.width if moe.width != hidden else 0
        router = hidden * moe.count
    recurrent = _recurrent_parameters(hidden, shape.recurrent)
    return _Parameters(*attention, recurrent, dense, shared, router, experts)


def _attention(shape: Shape) -> tuple[int, int, int] | None:
    """Parameters of a layer's attention: split over ranks, of keys and values, kept whole."""
    hidden, heads, mla = shape.hidden_size, shape.heads, shape.mla
    assert hidden
    if mla:
        if not (heads and mla.q_rank and mla.nope is not None and mla.value):
            return None
        head = (mla.nope, mla.rope, mla.value)
        split, whole = formulas.latent_parameters(hidden, heads, (mla.q_rank, mla.kv_rank), head)
        if shape.indexer:
            index = shape.indexer
            whole += formulas.indexer_parameters(hidden, mla.q_rank, index.heads, index.head)
        return split, 0, whole
    if not (heads and shape.kv_heads and shape.head_dim):
        return None
    gated = shape.gated_attention
    split, kv = formulas.attention_parameters(hidden, heads, shape.kv_heads, shape.head_dim, gated)
    return split, kv, 0


def _recurrent_parameters(hidden: int, recurrent: Recurrent | None) -> int:
    if recurrent is None:
        return 0
    count = formulas.mamba_parameters if recurrent.kind == MAMBA else formulas.delta_parameters
    return count(hidden, recurrent.keys, recurrent.values)


def _kinds(shape: Shape, first: int, last: int) -> _Kinds:
    """Layers of each kind from `first` to before `last`."""
    layers, recurrent, moe = shape.layers, shape.recurrent, shape.moe
    assert layers

    def between(kind: int) -> int:
        return formulas.layers_between(kind, layers, first, last)

    attention = between(shape.attention_layers or 0)
    states = between(recurrent.layers) if recurrent else 0
    dense, experts = last - first, 0
    if recurrent and recurrent.kind == MAMBA:
        # A layer is attention, Mamba or feed-forward, and never two of them (Nemotron).
        dense = between(layers - (shape.attention_layers or 0) - recurrent.layers)
        dense, experts = (0, dense) if moe else (dense, 0)
    elif moe:
        dense = max(0, min(last, layers - moe.layers) - first)
        experts = last - first - dense
    indexed = between(shape.indexer.layers) if shape.indexer else 0
    return _Kinds(attention, between(shape.sliding_layers), states, indexed, dense, experts)


def _needs_dense(shape: Shape) -> bool:
    """Whether some layers have a feed-forward part that is no experts."""
    assert shape.layers
    return _kinds(shape, 0, shape.layers).dense > 0


def _cache_bytes(shape: Shape, tensor: int, each: float) -> float:
    """Bytes of KV cache a token and layer on one rank."""
    assert shape.layers
    assert shape.kv_heads
    layers = shape.attention_layers or shape.layers
    if shape.cache_bytes:
        return shape.cache_bytes / layers
    if shape.cache_elements:
        copies = 1.0 if shape.latent else max(1 / tensor, 1 / shape.kv_heads)
        return shape.cache_elements / layers * copies * each
    if shape.mla:
        elements = formulas.latent_cache_elements(shape.mla.kv_rank, shape.mla.rope)
        sparse = shape.indexer is not None and each == formulas.CACHED["fp8"]
        return elements * (formulas.CACHED["fp8_ds_mla"] if sparse else each)
    assert shape.head_dim
    return formulas.grouped_cache_elements(shape.kv_heads, shape.head_dim, tensor) * each


def _state(recurrent: Recurrent | None, layers: int, tensor: int, drafted: int) -> float:
    if recurrent is None:
        return 0.0
    sizes = (recurrent.state, recurrent.keys, recurrent.values)
    return layers * formulas.state_bytes(*sizes, tensor, drafted)


def _widest(shape: Shape, layout: Layout) -> int:
    """Width of the widest part of a layer on a rank, in elements a token."""
    return max(_widths(shape, layout))


def _widths(shape: Shape, layout: Layout) -> Iterator[int]:
    hidden, tensor = shape.hidden_size or 0, layout.tensor
    yield 2 * (shape.intermediate_size or 4 * hidden) // tensor
    if shape.heads and shape.kv_heads and shape.head_dim:
        yield (shape.heads + 2 * shape.kv_heads) * shape.head_dim // tensor
    if shape.mla and shape.heads:
        yield shape.heads * (shape.mla.kv_rank + shape.mla.rope) // tensor
    if shape.moe:
        yield _expert_width(shape.moe, layout)


def _expert_width(moe: Experts, layout: Layout) -> int:
    """What the chosen experts of a token are given and give, all at once on the worst rank."""
    inside = 2 * (moe.size or 0) // (1 if layout.whole_experts else layout.shards)
    return (moe.chosen or 1) * max(inside, moe.width or 0)
