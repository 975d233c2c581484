"""What one rank of a serving group holds: weights, KV cache, states and reserve, all in bytes."""

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil

from generator.catalogs import DraftCache
from generator.catalogs.engines.traits import Paging
from generator.fit import formulas
from generator.fit.caches import Cache, Split, cache
from generator.fit.complete import CompleteShape
from generator.fit.formulas import WIDE
from generator.fit.kinds import count_kinds
from generator.fit.parts import parts
from generator.fit.requested import Requested
from generator.models.architecture import Experts, Shape
from generator.records import record

# Residual streams of DeepSeek-V4. Source: hc_mult of its config.json.
_STREAMS = 4


@record
class Weights:
    """A checkpoint's bytes: the text model's, a vision tower's, and a draft model's.

    `whole`: `text` covers all files, including the layers that predict further tokens. `tables` are
    tables beside the layers that are kept in memory, and are not part of `text`. A draft model is
    known by what it caches, or else to be a layer like the model's own.
    """

    text: float
    vision: float
    form: str
    draft: float = 0.0
    draft_cache: DraftCache | None = None
    predicts: bool = False
    whole: bool = False
    tables: float = 0.0


@record
class Layout:
    """How a model is split; `shards` are the ranks that share the experts of a layer.

    Kernels for packed experts pad their input and inner widths to multiples of `tile`.
    """

    tensor: int
    stages: tuple[int, ...]
    data: int
    shards: int
    whole_experts: bool
    nccl: bool = True
    paging: Paging | None = None
    tile: tuple[int, int] = (1, 1)

    @property
    def pipeline(self) -> int:
        """The number of pipeline stages."""
        return len(self.stages)

    @property
    def communicators(self) -> int:
        """The number of NCCL groups that a rank is in: tensor ranks, stages, replicas."""
        sizes = (self.tensor, self.pipeline, self.data) if self.nccl else ()
        return sum(size > 1 for size in sizes)


@record
class Demand:
    """What a rank of one stage holds, in bytes; `active` is what it reads for one token.

    `active` is None if it isn't known which experts a token needs. `graphs_outside`: graphs are
    captured in what the engine's share leaves free. `gathered` is the size of the buffer that
    gathers a sparse attention's index for a context.
    """

    stage: int
    layers: int
    weights: float
    draft: float
    activations: float
    graphs: float
    runtime: float
    nccl: float
    correction: float
    graphs_outside: bool
    cache: Cache
    active: float | None
    context: int
    split: Split
    gathered: Callable[[int], int] | None = None

    @property
    def reserve(self) -> float:
        """Everything but weights and the KV cache that sequences share."""
        own = self.activations + self.graphs + self.runtime + self.nccl + self.correction
        return own + self.cache.fixed

    @property
    def reserve_inside(self) -> float:
        """The part of the reserve that is taken from the engine's share."""
        return self.reserve - (self.graphs if self.graphs_outside else 0)

    def sequence(self, tokens: int) -> float:
        """The KV cache of one sequence of this many tokens."""
        return self.cache.sequence(tokens)

    def beyond(self, tokens: int) -> float:
        """How much larger the reserve is for a context of this many tokens than as requested."""
        if self.gathered is None:
            return 0.0
        return self.gathered(tokens) - self.gathered(self.context)

    def read(self, tokens: int) -> float | None:
        """Bytes read for one more token of a sequence of this many."""
        return None if self.active is None else self.active + self.cache.read(tokens)


def demands(
    model: CompleteShape,
    weights: Weights,
    layout: Layout,
    requested: Requested,
    correction: float = 0.0,
) -> list[Demand]:
    """What a rank holds in each stage.

    `correction` is by how much the measured reserve exceeds the computed one.
    """
    split = _Split(model, weights, layout)
    found, first = [], 0
    for stage, size in enumerate(layout.stages):
        found.append(_demand(split, stage, (first, first + size), requested, correction))
        first += size
    return found


class _Split:
    """A model's bytes by part, and how much of each a rank holds."""

    def __init__(self, model: CompleteShape, weights: Weights, layout: Layout) -> None:
        self.model, self.weights, self.layout = model, weights, layout
        self.shape = shape = model.shape
        self.table = WIDE * model.vocab_size * model.hidden_size
        self.tables = self.table * (1 if shape.tied_embeddings else 2)
        self.parts = parts(model)
        self.each = max(0.0, weights.text - self.tables) / shape.layers
        if part := self.parts:
            kinds = count_kinds(shape, 0, shape.layers)
            others = (
                kinds.attention * part.attention.all
                + kinds.sliding * part.window.all
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
        part, tensor = self.parts, self.layout.tensor
        if part is None:
            return (last - first) * self.each / tensor
        kinds = count_kinds(self.shape, first, last)
        return (
            kinds.attention * part.attention.on_rank(tensor) * self.linear
            + kinds.sliding * part.window.on_rank(tensor) * self.linear
            + kinds.recurrent * part.recurrent / tensor * self.linear
            + kinds.dense * part.dense / tensor * self.linear
            + kinds.experts * part.shared / tensor * self.linear
            + kinds.experts * part.router * WIDE
            + kinds.experts * part.experts * self._experts_share() * self.expert
        )

    def active(self, first: int, last: int) -> float | None:
        """Bytes of layers that a rank reads for one token, with experts spread evenly."""
        part, moe = self.parts, self.shape.moe
        if not self.shape.experts:
            return self.layers(first, last)
        if part is None or moe is None or not moe.chosen:
            return None
        kinds = count_kinds(self.shape, first, last)
        experts = kinds.experts * part.experts * self.expert
        read = experts * moe.chosen / moe.count / self.layout.shards
        return self.layers(first, last) - experts * self._experts_share() + read

    def prediction(self) -> float:
        """Bytes of a layer that predicts further tokens, on one rank: a layer and a projection.

        Checkpoints packed to less than 8 bits store it in 16.
        """
        part = self.parts
        form = formulas.PACKED.get(self.weights.form, WIDE)
        bytes_each = WIDE if form < 1 else form
        if part is None:
            return self.each * bytes_each / form / self.layout.tensor
        own = (
            part.attention.on_rank(self.layout.tensor)
            + 2 * self.model.hidden_size**2 / self.layout.tensor
        )
        feed_forward = part.shared if self.shape.experts else part.dense
        own += feed_forward / self.layout.tensor + part.experts * self._experts_share()
        return own * bytes_each

    def _experts_share(self) -> float:
        """The part of a layer's experts that a rank holds, padded to the tiles of their kernels."""
        shards, moe = self.layout.shards, self.shape.moe
        if moe is None or moe.size is None or moe.width is None:
            return 1 / shards
        sliced = 1 if self.layout.whole_experts else shards
        count = ceil(moe.count / shards) if self.layout.whole_experts else moe.count
        width, inside = self.layout.tile if self.weights.form in formulas.TILED else (1, 1)
        padded = formulas.padded(moe.width, width) * formulas.padded(moe.size / sliced, inside)
        return count / moe.count * padded / (moe.width * moe.size)


def _demand(
    split: _Split, stage: int, layers: tuple[int, int], requested: Requested, correction: float
) -> Demand:
    shape, layout, weights = split.shape, split.layout, split.weights
    last_stage = stage == layout.pipeline - 1
    own, active = _stage_weights(split, stage, layers, requested.text_only)
    drafts = last_stage and bool(weights.draft or weights.predicts)
    like_own = drafts and not weights.draft_cache
    gathered = _gathered(shape, layout, requested)
    shares = Split(
        here=count_kinds(shape, *layers),
        all=count_kinds(shape, 0, shape.layers),
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        drafts=1 if like_own else 0,
        draft=weights.draft_cache if drafts else None,
    )
    return Demand(
        stage=stage,
        layers=layers[1] - layers[0],
        weights=own,
        draft=_draft_weights(split) if drafts else 0,
        activations=_activations(split, requested, stage, gathered),
        graphs=_graph_bytes(shape, layout, requested),
        graphs_outside=not requested.reserves_graphs,
        runtime=formulas.system_context_bytes(own) if layout.paging else formulas.CONTEXT_BYTES,
        nccl=formulas.nccl_bytes(layout.communicators),
        correction=correction,
        cache=cache(split.model, shares, requested, layout.paging),
        active=active,
        context=requested.context,
        split=shares,
        gathered=gathered,
    )


def _stage_weights(
    split: _Split, stage: int, layers: tuple[int, int], text_only: bool
) -> tuple[float, float | None]:
    """The bytes of a stage's weights on a rank, and of those that one token reads, if known."""
    layout, weights = split.layout, split.weights
    first_stage, last_stage = stage == 0, stage == layout.pipeline - 1
    table = split.table / layout.tensor
    own = split.layers(*layers)
    active = split.active(*layers)
    if first_stage:
        own += table + (0 if text_only else weights.vision / layout.tensor)
        # Each rank has a slice of them: 23.8 GiB of 47.7 at tensor 2 (1Cat-vLLM pull request 646).
        own += weights.tables / layout.tensor
    if last_stage:
        own += 0 if split.shape.tied_embeddings and first_stage else table
        active = None if active is None else active + table
    return own, active


def _draft_weights(split: _Split) -> float:
    """The bytes of a draft model and of layers that predict tokens, on a rank."""
    weights = split.weights
    predicts = weights.predicts and not weights.whole
    return weights.draft / split.layout.tensor + (split.prediction() if predicts else 0)


def _activations(
    split: _Split, requested: Requested, stage: int, gathered: Callable[[int], int] | None
) -> float:
    """The peak of a step on a rank; the first stage has images, and the last one the logits."""
    step_bytes = _step_bytes(split.model, split.layout, requested)
    if stage == 0 and split.layout.paging and requested.profiles_images:
        step_bytes += _encoding_bytes(split.model, split.layout.tensor, requested)
    if stage == split.layout.pipeline - 1:
        rows = requested.running * (2 if requested.drafted else 1)
        logits = formulas.logits_bytes(rows, split.model.vocab_size, requested.sorts)
        step_bytes = max(step_bytes, logits)
    if gathered:
        step_bytes += gathered(requested.context)
        step_bytes += formulas.SPARSE_WORKSPACE_BYTES if split.shape.compressed else 0
    return step_bytes


def _encoding_bytes(model: CompleteShape, tensor: int, requested: Requested) -> float:
    """Of as many images of the largest size as a step, or all sequences, may have."""
    width, largest = model.shape.tower or (0, 1)
    of_all = requested.running * max(1, requested.context // largest)
    tokens = largest * max(1, min(requested.measured // largest, of_all)) if width else 0
    return formulas.encoding_bytes(tokens, width, tensor) + tokens * WIDE * model.hidden_size


def _step_bytes(model: CompleteShape, layout: Layout, requested: Requested) -> float:
    shape = model.shape
    hidden = model.hidden_size * (_STREAMS if shape.compressed else 1)
    inside = shape.intermediate_size or (0 if shape.moe else 4 * model.hidden_size)
    step = max(
        formulas.activation_bytes(
            requested.measured, hidden, max(_widths(model, layout), default=0)
        ),
        formulas.feed_forward_bytes(requested.measured, hidden, inside // layout.tensor),
    )
    if layout.paging is None or not (shape.compressed or shape.latent_index):
        return step
    # Scores are computed while queries and their output are in memory.
    queries = _queries(shape, layout)
    scoring = formulas.activation_bytes(requested.measured, hidden, queries) + requested.scored
    return max(step, scoring)


def _gathered(shape: Shape, layout: Layout, requested: Requested) -> Callable[[int], int] | None:
    head, wide, every = 0, False, 0
    if shape.compressed:
        head, every = shape.compressed.index_head, shape.compressed.indexed_every
    elif index := shape.latent_index:
        head, wide, every = index.head, index.wide, index.pooled
    if layout.paging is None or not every:
        return None
    entry, sized = formulas.indexer_cache_bytes(head, wide), requested.sized_gathers
    return partial(formulas.gathered_bytes, entry=entry, every=every, sized=sized)


def _graph_bytes(shape: Shape, layout: Layout, requested: Requested) -> float:
    if requested.eager:
        return 0.0
    if requested.graphs is None:
        return formulas.GRAPH_BYTES
    # Logs of DeepSeek-V4 on two Sparks have 0.2 and 0.7 GiB (0731 with dspark, August 2026).
    exchanges = bool(shape.experts and layout.communicators and not shape.compressed)
    return formulas.graph_bytes(*requested.graphs, exchanges)


def _queries(shape: Shape, layout: Layout) -> int:
    """Width of the queries of latent or compressed attention on a rank, in elements per token."""
    heads, latent = shape.heads // layout.tensor, shape.mla
    if shape.compressed:
        return heads * shape.compressed.head
    return heads * (latent.kv_rank + latent.rope) if latent else 0


def _widths(model: CompleteShape, layout: Layout) -> Iterator[int]:
    """Widths of the parts of a layer on a rank, in elements per token."""
    shape, tensor = model.shape, layout.tensor
    if shape.head_dim:
        yield (shape.heads + 2 * shape.kv_heads) * shape.head_dim // tensor
    if shape.compressed:
        # Queries, output and entries, some in 32 bits: about what builds for a GB10 with their own
        # kernels took, 0.68 MB per token on one node, and more than the engine's own code suggests
        # (MiaAI-Lab/DeepSeek-v4-Flash-One-DGX-Spark issue 4).
        yield 4 * _queries(shape, layout)
    if shape.mla:
        yield _queries(shape, layout)
    if shape.moe:
        yield _expert_width(shape.moe, layout)


def _expert_width(moe: Experts, layout: Layout) -> int:
    """The width of a token's chosen experts, input and output, all at once on the worst rank."""
    inside = 2 * (moe.size or 0) // (1 if layout.whole_experts else layout.shards)
    return (moe.chosen or 1) * max(inside, moe.width or 0)
