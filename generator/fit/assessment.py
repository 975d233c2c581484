"""Whether a site's model fits its nodes, and how much they can serve if it does."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from generator import catalogs
from generator.catalogs import COMPUTED, DraftCache
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.speculation import has_no_weights
from generator.catalogs.versions import place
from generator.fit import formulas
from generator.fit.beside import Beside, beside
from generator.fit.caches import Cache, cache
from generator.fit.complete import CompleteShape, complete, lacking
from generator.fit.demand import Demand, Layout, Weights, demands
from generator.fit.doubt import Doubt, doubt, excess_gib, reserve_is_unknown
from generator.fit.formulas import GB, GIB, WIDE
from generator.fit.parts import parameters
from generator.fit.requested import (
    Requested,
    element_bytes,
    needed,
    requested,
    sequences,
    share_bytes,
    stages_of,
)
from generator.fit.speed import Speed, decode, prefill
from generator.hardware import NEWER_VISIBLE_GIB
from generator.models.architecture import Shape, known_checkpoint, shape
from generator.records import record, replace
from generator.sitefile.declaration import (
    DeclaredEngine,
    DeclaredModel,
    DeclaredNode,
    Parallel,
    Speculative,
)

# "fits newer": in the memory of a node that newer releases report, but not in that of early ones.
# "can't tell": within the interval in which published starts lie, or as near to the limit as two
# starts differ. "fits shorter": the engine starts, and rejects requests of the wanted length.
FitState = Literal["fits", "fits newer", "fits shorter", "can't tell", "does not fit", "unknown"]

# Estimates are off by a few percent, and an engine that runs out of memory takes the node down.
TIGHT = 0.05
# Figures are rounded to two decimals.
LEAST_GIB = formulas.LEAST_BYTES / GIB - 0.01


@record
class NodeMemory:
    """A node's memory in GiB, to two places.

    `kv_room` is what remains of the engine's share for KV cache, `kv_requested` what the requested
    sequences of the requested length take, `kv_one` what a single one takes, `headroom` what is
    left beside the sequences that must have room (negative if they don't). `beside` is what the
    engine takes at the start beside its share, `filled` what it may take while it serves, `other`
    what else runs there, `unused` what a limit in tokens leaves of the share, and `system` what is
    left to the system before that. The room may be smaller than computed by `less`, and larger by
    `doubt`.
    """

    node: str
    rank: int
    stage: int
    layers: int
    visible_gib: float
    share_gib: float
    weights_gib: float
    draft_gib: float
    activations_gib: float
    graphs_gib: float
    runtime_gib: float
    nccl_gib: float
    correction_gib: float
    kv_room_gib: float
    kv_requested_gib: float
    kv_one_gib: float
    headroom_gib: float
    system_gib: float
    doubt_gib: float
    beside_gib: float = 0.0
    filled_gib: float = 0.0
    less_gib: float = 0.0
    other_gib: float = 0.0
    unused_gib: float = 0.0

    @property
    def reserve_gib(self) -> float:
        """Activations, graphs, runtime and NCCL buffers, and the measured correction."""
        computed = self.activations_gib + self.graphs_gib + self.runtime_gib + self.nccl_gib
        return computed + self.correction_gib

    @property
    def for_system_gib(self) -> float:
        """What the system has, with what the engine takes besides its share."""
        return self.system_gib + self.beside_gib

    @property
    def left_gib(self) -> float:
        """What the room has beside all requested sequences; negative if they don't fit at once."""
        return round(self.kv_room_gib - self.kv_requested_gib, 2)


@record
class Fit:
    """Whether a model fits; lengths in tokens, None if not known.

    `needed` sequences of full length must have room from the start: one, or all with engines that
    divide the cache among them at once.

    `longest_context` is for the requested number of sequences at once, `most_sequences` for the
    requested context, both per replica; `one_context` is the longest of a single sequence, and
    `most_at_best` the number of sequences in the largest possible room. `states` are the blocks of
    a room in which some layers keep a state per sequence, and `most_states` those of the largest
    one; None without states. Weights on the nodes `by_the_engine` are its own count. `is_own_build`
    means that the reserve is that of a release, since nobody knows the build's; `excess_gib` is the
    part of the reserve that others' logs show but no formula explains, and `loading_gib` what the
    engine's log counts as weights besides them. `ceiling_tokens_s` is what
    memory bandwidth allows one sequence with an empty cache, and `ceiling_full_tokens_s` with a
    full one. `layouts` is what one sequence takes in a custom build, in GiB, as releases before and
    after a change of the layout hold it. `decode` is the speed of one sequence with an empty cache,
    `decode_full` with a full one, and `prefill` that of reading its prompt; None without evidence.
    `files_gb` is the size of files of the model and its draft, in units of 1e9 bytes. `missing`
    names what isn't known. A node whose memory was not measured is judged by both of its known
    counts, and all figures are for the lower one; it is `tight` by both. `found` has what was
    determined for 'auto'. `beside` is what the engine takes beside its share; `is_pinned`: the site
    gives the size of the KV cache, which decides, and not the share. `shares` says how the engine
    divides its room among pools, `pool_tokens` how many tokens that room holds if it is counted in
    tokens, `is_limited` whether the site's limit in tokens leaves some of its share unused.
    """

    state: FitState
    tight: bool
    missing: tuple[str, ...]
    parallel: Parallel
    kv_cache_dtype: str
    context: int | None
    sequences: int
    needed: int
    nodes: tuple[NodeMemory, ...] = ()
    longest_context: int | None = None
    one_context: int | None = None
    most_sequences: int | None = None
    ceiling_tokens_s: float | None = None
    ceiling_full_tokens_s: float | None = None
    files_gb: float | None = None
    found: tuple[str, ...] = ()
    beside: tuple[Beside, ...] = ()
    is_pinned: bool = False
    is_limited: bool = False
    shares: tuple[str, ...] = ()
    pool_tokens: int | None = None
    most_at_best: int | None = None
    states: int | None = None
    most_states: int | None = None
    is_own_build: bool = False
    excess_gib: float = 0.0
    loading_gib: float = 0.0
    by_the_engine: tuple[str, ...] = ()
    layouts: tuple[float, ...] = ()
    decode: Speed | None = None
    decode_full: Speed | None = None
    prefill: Speed | None = None

    @property
    def has_margin(self) -> bool:
        """Whether the result holds even if estimates are slightly off, whatever the release."""
        return self.state == "fits" and not any(map(_is_tight, self.nodes))

    @property
    def leaves_enough(self) -> bool:
        """Whether all systems have what they should."""
        # Figures are rounded to two decimals.
        least = formulas.SYSTEM_BYTES / GIB - 0.01
        return all(node.for_system_gib >= least for node in self.nodes)

    @property
    def worst(self) -> NodeMemory:
        """The node with the least headroom, or which leaves the system too little."""
        return self.crowded or min(self.nodes, key=lambda node: node.headroom_gib)

    @property
    def crowded(self) -> NodeMemory | None:
        """The node on which what the engine takes besides its share leaves too little, if any."""
        least = min(self.nodes, key=lambda node: node.system_gib, default=None)
        takes_more = self.is_pinned or any(each.taken != "filled" for each in self.beside)
        takes_more |= any(node.other_gib for node in self.nodes)
        has_room = self.is_pinned or all(node.headroom_gib >= 0 for node in self.nodes)
        is_crowded = least and takes_more and has_room and least.system_gib < LEAST_GIB
        return least if is_crowded else None


def _is_tight(node: NodeMemory) -> bool:
    return node.headroom_gib + node.unused_gib < TIGHT * node.share_gib


def assess(
    nodes: Sequence[DeclaredNode],
    model: DeclaredModel,
    engine: DeclaredEngine,
    counted: Mapping[str, int] = {},
) -> Fit | None:
    """How a model fits; None if it isn't known at all, or the split doesn't match these nodes.

    `counted` are bytes of weights on nodes by the engine's own count, which outweigh computed ones.
    """
    known = shape(model)
    if known is None or engine.parallel.ranks != len(nodes):
        return None
    context, cached = model.context_length or known.max_context, element_bytes(model)
    weights, missing = _weights(model, engine, known)
    missing += _lacking(model, engine, known, context, cached)
    whole, layout = complete(known), _layout(known, engine)
    if missing or not (whole and layout and context and cached):
        return _unknown(model, engine, context, missing)
    wanted = requested(model, engine, context, cached)
    excess = excess_gib(model, engine, known)
    found = demands(whole, weights, layout, wanted, (model.correction_gib or excess) * GIB)
    if weights.draft or weights.tables:
        counted = {}
    fit = _fit(nodes, model, engine, known, whole, wanted, weights, found, counted)
    if fit.has_margin or all(node.measured for node in nodes):
        return fit
    newer = [_with_newer_memory(node) for node in nodes]
    other = _fit(newer, model, engine, known, whole, wanted, weights, found, counted)
    if fit.state == "fits":
        return replace(fit, tight=other.tight)
    if other.state == "fits shorter" != fit.state:
        # With less memory it may not start at all.
        return replace(fit, state="can't tell")
    return replace(fit, state="fits newer" if other.state == "fits" else other.state)


def on_other_nodes(
    fit: Fit | None, before: Sequence[DeclaredNode], nodes: Sequence[DeclaredNode]
) -> Fit | None:
    """A fit of some nodes applied to others, if those have the same memory each."""
    if fit is None or list(map(_memory_of, before)) != list(map(_memory_of, nodes)):
        return None
    names = [node.name for node in nodes]
    return replace(fit, nodes=tuple(replace(each, node=names[each.rank]) for each in fit.nodes))


def _memory_of(node: DeclaredNode) -> tuple[float, ...]:
    return node.visible_gib, node.memory_gb, node.measured, node.other_gib


def _with_newer_memory(node: DeclaredNode) -> DeclaredNode:
    seen = node.visible_gib if node.measured else NEWER_VISIBLE_GIB[node.memory_gb]
    return replace(node, visible_gib=seen)


def _fit(
    nodes: Sequence[DeclaredNode],
    model: DeclaredModel,
    engine: DeclaredEngine,
    known: Shape,
    whole: CompleteShape,
    wanted: Requested,
    weights: Weights,
    found: list[Demand],
    counted: Mapping[str, int],
) -> Fit:
    doubts = [doubt(model, engine, demand) for demand in found]
    more = beside(model, engine)
    ranks = []
    for index, node in enumerate(nodes):
        own = counted.get(node.name)
        held = [replace(each, weights=float(own)) for each in found] if own else found
        ranks.append(_Rank(node, index, held, doubts, engine, wanted, more))
    memory = tuple(rank.memory(wanted) for rank in ranks)
    layouts = _layouts(found, whole, wanted, model, engine)
    largest = wanted.needed * max(layouts, default=0)
    within = wanted.most_tokens is None or wanted.most_tokens >= wanted.needed * wanted.context
    state = _state(ranks, all(node.kv_room_gib >= largest for node in memory), within)
    fits = state == "fits"
    most = min(rank.sequences(wanted.context) for rank in ranks)
    bound = max(known.max_context_yarn or known.max_context or 0, wanted.context)
    return replace(
        _unknown(model, engine, wanted.context, ()),
        state=state,
        tight=fits and any(map(_is_tight, memory)),
        nodes=memory,
        longest_context=_longest(ranks, wanted.sequences, bound),
        one_context=_longest(ranks, 1, bound),
        most_sequences=most,
        ceiling_tokens_s=_bandwidth(found, 0),
        ceiling_full_tokens_s=_bandwidth(found, wanted.context),
        files_gb=round((weights.text + weights.vision + weights.draft) / GB + known.tables_gb, 1),
        found=tuple(_found(model, engine)) if fits else (),
        beside=more,
        is_pinned=wanted.pool is not None,
        is_limited=not within or any(rank.room == rank.most for rank in ranks),
        shares=_shares(found[0].cache),
        pool_tokens=_pool_tokens(ranks),
        most_at_best=min(rank.sequences(wanted.context, rank.doubt.more) for rank in ranks),
        states=min(filter(None, (rank.blocks_of_states() for rank in ranks)), default=None),
        most_states=min(
            filter(None, (rank.blocks_of_states(rank.doubt.more) for rank in ranks)), default=None
        ),
        is_own_build=reserve_is_unknown(model, engine),
        excess_gib=(excess := excess_gib(model, engine, known)),
        loading_gib=excess + formulas.LOADING_BYTES / GIB
        if ENGINE_TRAITS[engine.name].shares_free
        else 0.0,
        by_the_engine=tuple(node.name for node in nodes if node.name in counted),
        layouts=layouts,
        **_speeds(found, wanted, model, engine, whole),
    )


def _state(ranks: Sequence["_Rank"], is_enough: bool, is_within: bool) -> FitState:
    """Whether what is needed, or the least that the engine starts with, has room on each rank.

    Beside the room a limit in tokens decides.
    """
    surely = all(rank.holds(rank.needed, -rank.doubt.between_starts) for rank in ranks)
    if surely and is_enough and is_within:
        return "fits"
    if is_within and all(rank.holds(rank.needed, rank.doubt.more) for rank in ranks):
        return "can't tell"
    if all(rank.holds(rank.least, -rank.doubt.between_starts) for rank in ranks):
        return "fits shorter"
    might = all(rank.holds(rank.least, rank.doubt.more) for rank in ranks)
    return "can't tell" if might else "does not fit"


def held_share(engine: str, utilization: float, fit: Fit | None, node: str) -> float:
    """The share of a node that an engine holds: its own, plus what it takes besides."""
    memory = [each for each in fit.nodes if each.node == node] if fit else []
    if not ENGINE_TRAITS[engine].reserves_outside:
        memory = [each for each in memory if fit and (fit.is_pinned or fit.beside)]
    taken = [1 - (each.system_gib + each.other_gib) / each.visible_gib for each in memory]
    return max([utilization, *taken])


def _pool_tokens(ranks: Sequence["_Rank"]) -> int | None:
    """Tokens in the room of each rank, the same on all; None if it isn't counted in tokens."""
    found = [(rank.room, rank.demand.cache) for rank in ranks if rank.demand.cache.holds_tokens]
    counts = (max(0, int(room / cache.token)) for room, cache in found if cache.token)
    return min(counts, default=None)


_POOLS = {"full": "full attention", "window": "windows", "state": "states"}


def _shares(cache: Cache) -> tuple[str, ...]:
    """How the room is divided, if there is more than one pool."""
    if len(cache.shares) < 2:
        return ()
    kinds = [pool.groups[0].pages[0].kind for pool in cache.pools]
    shares = zip(cache.shares, kinds, strict=True)
    return tuple(f"{share:.0%} for {_POOLS[kind]}" for share, kind in shares)


def _found(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[str]:
    """What was determined for 'auto', and the margin that it leaves."""
    traits = ENGINE_TRAITS[engine.name]
    settled = traits.settles(engine.version)
    for key in model.automatic:
        if number := getattr(model, key):
            own = f" is for {traits.title} to settle; here it" if key in settled else ""
            yield f"'{key}: auto'{own} is {number}, with {TIGHT:.0%} of the engine's share to spare"


class _Rank:
    """A node and what its rank holds."""

    def __init__(
        self,
        node: DeclaredNode,
        index: int,
        found: list[Demand],
        doubts: list[Doubt],
        engine: DeclaredEngine,
        wanted: Requested,
        more: Sequence[Beside],
    ) -> None:
        sizes = engine.parallel
        stage = index // sizes.tensor % sizes.pipeline
        self.node, self.index = node, index
        self.running = wanted.running
        self.demand, self.doubt = found[stage], doubts[stage]
        self.visible, self.other = node.visible_gib * GIB, node.other_gib * GIB
        self.engine = engine.name
        traits = ENGINE_TRAITS[engine.name]
        self.share = share_bytes(self.visible, engine.memory_utilization, traits.shares_free)
        self.outside = traits.reserves_outside
        self.needed = wanted.needed * self.demand.sequence(wanted.context)
        self.least = self.demand.sequence(1) if traits.starts_short else self.needed
        self.processes = formulas.PROCESS_BYTES if traits.shares_free else 0
        self.pool = wanted.pool
        self.tokens = math.inf if wanted.most_tokens is None else wanted.most_tokens
        # States are not limited. Each sequence is rounded up to bytes.
        each = (self.demand.cache.holds_tokens and self.demand.cache.token) or math.inf
        self.most = self.running + self.tokens * each
        self.moved = min(self._beside(more, "moved", 0.0), self.demand.weights)
        self.room = self._room()
        self.pinned = self._beside(more, "pinned", self.room)
        self.filled = self._beside(more, "filled", self.room)
        self.taken = self._taken()

    def holds(self, needed: float, spared: float = 0.0) -> bool:
        """Whether `needed` bytes of cache have room, if it is `spared` larger than computed."""
        # A cache of fixed size ignores the share. Then, and with what is taken besides the share,
        # what the system needs is the limit.
        takes_more = self.pool is not None or self.pinned or self.moved or self.other
        most = self.visible - self.other - (formulas.LEAST_BYTES if takes_more else 0)
        is_within = self.pool is not None or self._left(spared) >= 0
        return is_within and self._taken(spared) <= most and self._room(spared) >= needed

    def sequences(self, context: int, spared: float = 0.0) -> int:
        """How many sequences of that length the cache holds; all running ones if it has none."""
        each = self.demand.sequence(context)
        if not each:
            return self.running
        return max(0, int(min(self._room(spared) / each, self.tokens / context)))

    def blocks_of_states(self, spared: float = 0.0) -> int | None:
        """The blocks in the room, if layers share them and some keep states."""
        pool = self.demand.cache.pools[0] if len(self.demand.cache.pools) == 1 else None
        has_states = any(pages.kind == "state" for pages in self.demand.cache.pages)
        if pool is None or not has_states or ENGINE_TRAITS[self.engine].paging is None:
            return None
        return max(1, int(self._room(spared) / pool.block_bytes))

    def _left(self, spared: float = 0.0) -> float:
        """What remains of the engine's share after everything but the sequences' KV cache."""
        demand = self.demand
        fixed = demand.cache.fixed + demand.correction
        inside = fixed if self.outside else demand.reserve_inside
        return self.share - (demand.weights - self.moved) - demand.draft - inside + spared

    def _room(self, spared: float = 0.0) -> float:
        return min(self._left(spared), self.most) if self.pool is None else float(self.pool)

    def _taken(self, spared: float = 0.0) -> float:
        demand = self.demand
        held = demand.weights + demand.draft + demand.reserve + self.processes + self.pinned
        return held - spared + max(0.0, self._room(spared))

    def _beside(self, more: Sequence[Beside], taken: str, room: float) -> float:
        return sum(each.bytes(self.index == 0, room) for each in more if each.taken == taken)

    def memory(self, wanted: Requested) -> NodeMemory:
        """The node's memory in GiB."""
        demand, one = self.demand, self.demand.sequence(wanted.context)
        return NodeMemory(
            node=self.node.name,
            rank=self.index,
            stage=demand.stage,
            layers=demand.layers,
            visible_gib=_gib(self.visible),
            share_gib=_gib(self.share),
            weights_gib=_gib(demand.weights),
            draft_gib=_gib(demand.draft),
            activations_gib=_gib(demand.activations),
            graphs_gib=_gib(demand.graphs),
            runtime_gib=_gib(demand.runtime + demand.cache.fixed + self.processes),
            nccl_gib=_gib(demand.nccl),
            correction_gib=_gib(demand.correction),
            kv_room_gib=_gib(max(0.0, self.room)),
            kv_requested_gib=_gib(one * wanted.sequences),
            kv_one_gib=_gib(one),
            headroom_gib=_gib(self.room - one * wanted.needed),
            system_gib=_gib(self.visible - self.taken - self.other),
            doubt_gib=_gib(min(self.doubt.more, self.most - self.room)),
            beside_gib=_gib(self.pinned),
            filled_gib=_gib(self.filled),
            less_gib=_gib(self.room - self._room(-self.doubt.less)),
            other_gib=_gib(self.other),
            unused_gib=_gib(self._left() - self.room) if self.room == self.most else 0.0,
        )


def _longest(ranks: Sequence[_Rank], sequences: int, bound: int) -> int:
    """The longest context of this many sequences at once, by bisection."""
    room: dict[int, tuple[Demand, float]] = {}
    for rank in ranks:
        _, least = room.get(rank.demand.stage, (rank.demand, math.inf))
        room[rank.demand.stage] = rank.demand, min(least, rank.room)

    def exceeds(tokens: int) -> bool:
        return any(
            each.sequence(tokens) * sequences + each.beyond(tokens) > least
            for each, least in room.values()
        )

    lengths = range(1, int(min(bound, ranks[0].tokens // sequences)) + 1)
    return bisect_left(lengths, True, key=exceeds)


def _bandwidth(found: Sequence[Demand], tokens: int) -> float | None:
    """Tokens per second of one sequence without drafts, if memory bandwidth alone decided."""
    read = [size for demand in found if (size := demand.read(tokens)) is not None]
    if len(read) < len(found):
        return None
    return round(formulas.bandwidth_tokens_s(read), 1)


def _layouts(
    found: Sequence[Demand],
    whole: CompleteShape,
    wanted: Requested,
    model: DeclaredModel,
    engine: DeclaredEngine,
) -> tuple[float, ...]:
    """What one sequence takes as releases before and since a change lay out packed caches."""
    paging = ENGINE_TRAITS[engine.name].paging
    if paging is None or not whole.shape.compressed or not reserve_is_unknown(model, engine):
        return ()
    major, minor = paging.packs[:2]
    sizes = []
    for version in (min(wanted.version, (major, minor - 1)), max(wanted.version, paging.packs)):
        other = replace(wanted, version=version)
        held = (cache(whole, each.split, other, paging).sequence(wanted.context) for each in found)
        sizes.append(_gib(max(held)))
    return tuple(sizes)


def _speeds(
    found: Sequence[Demand],
    wanted: Requested,
    model: DeclaredModel,
    engine: DeclaredEngine,
    whole: CompleteShape,
) -> Mapping[str, Speed | None]:
    drafts = model.speculative.method if model.speculative else ""
    ranks = engine.parallel.tensor * engine.parallel.pipeline
    active = parameters(whole)
    return {
        "decode": decode(_bandwidth(found, 0), engine.name, ranks, drafts),
        "decode_full": decode(_bandwidth(found, wanted.context), engine.name, ranks, drafts),
        "prefill": prefill(active[1] if active else None, engine.name, ranks),
    }


def _layout(known: Shape, engine: DeclaredEngine) -> Layout | None:
    """The split, or None if the given stages don't match the model."""
    sizes, layers = engine.parallel, known.layers
    traits = ENGINE_TRAITS[engine.name]
    given = stages_of(engine.environment.first(traits.stage_variable)) or ()
    if given and (len(given) != sizes.pipeline or sum(given) != layers):
        return None
    if traits.larger_first:
        stages = formulas.first_stages_larger(layers, sizes.pipeline)
    else:
        stages = formulas.stage_sizes(layers, sizes.pipeline, given)
    shards = sizes.tensor * (sizes.data if traits.shares_experts else 1)
    return Layout(
        sizes.tensor,
        stages,
        sizes.data,
        shards,
        sizes.expert,
        traits.uses_nccl,
        traits.paging,
        traits.tile,
    )


def _weights(
    model: DeclaredModel, engine: DeclaredEngine, known: Shape
) -> tuple[Weights, list[str]]:
    """The bytes of the model and its draft, and what isn't known of them."""
    missing = []
    text = vision = 0.0
    form = "bf16"
    checkpoint = known_checkpoint(model)
    whole = model.architecture is not None or bool(checkpoint and checkpoint.basis != COMPUTED)
    if model.architecture is not None:
        text = model.architecture.get("weight_gb", 0) * GB
        form = model.architecture.get("format", form)
    elif checkpoint:
        form = checkpoint.format
        text = (checkpoint.weight_gb or 0) * GB
        vision = checkpoint.vision_gb * GB
    if ENGINE_TRAITS[engine.name].reads_gguf and model.file and model.name:
        missing.append("the size of the GGUF ('source' and 'architecture' with 'weight_gb')")
    elif not text and model.like:
        missing.append("model.weight_gb")
    elif not text and checkpoint and model.architecture is None:
        missing.append("model.weight_gb, the size of the checkpoint, which is in no catalog")
    elif not text:
        missing.append("model.architecture.weight_gb")
    if known.tables_gb and model.tables is None:
        missing.append("model.tables, in memory or on disk")
    tables = known.tables_gb * GB if model.tables == "memory" else 0.0
    text = max(0.0, text - known.tables_gb * GB)
    predicts = model.speculative is not None and _is_own(model.speculative)
    if checkpoint and whole and not predicts:
        text -= checkpoint.mtp_gb * GB
    draft, cached, unknown = _draft(model)
    missing += unknown
    return Weights(text, vision, form, draft, cached, predicts, whole, tables), missing


# Methods whose draft is a layer like the model's own, by the ends of their names.
_HEADS = ("eagle", "eagle3", "mtp")


def _is_own(drafts: Speculative) -> bool:
    """Whether the model makes drafts with layers of its own."""
    return drafts.method.endswith(("mtp", "eagle", "dspark")) and not drafts.source


def _draft(model: DeclaredModel) -> tuple[float, DraftCache | None, list[str]]:
    """Bytes of a draft model, what it caches, and what isn't known of it.

    An EAGLE head is a layer of the model's own kind (vLLM 0.33.0, models/llama_eagle3.py); other
    drafts are models of any shape.
    """
    drafts = model.speculative
    if drafts is None or has_no_weights(drafts.method) or _is_own(drafts):
        return 0.0, None, []
    known = catalogs.checkpoint(drafts.source) if drafts.source else None
    own = catalogs.draft(drafts.source)
    sizes = [each.weight_gb for each in (drafts, own, known) if each and each.weight_gb]
    given = sizes[0] if sizes else None
    facts = known.architecture.facts if known else {}
    elements = drafts.kv_elements_per_token or facts.get("kv_elements_per_token")
    cached = DraftCache(elements) if elements else own.cache if own else None
    missing = []
    if not given:
        missing.append("model.speculative.weight_gb")
    if not cached and not drafts.method.endswith(_HEADS):
        missing.append("model.speculative.kv_elements_per_token")
    return (given or 0.0) * GB, cached, missing


def _lacking(
    model: DeclaredModel,
    engine: DeclaredEngine,
    known: Shape,
    context: int | None,
    cached: float | None,
) -> list[str]:
    checkpoint = known_checkpoint(model)
    where = f"the catalog's {checkpoint.name}: " if checkpoint else "model.architecture."
    names = [f"{where}{name}" for name in lacking(known)]
    if known.unlike:
        names.append(f"how much memory it takes: {known.unlike} is not modelled")
    if not context:
        names.append("model.context_length")
    if cached is None:
        names.append(f"what an element of KV cache type '{model.kv_cache_dtype}' takes")
    return [*names, *_beyond(model, engine, known, cached)]


def _beyond(
    model: DeclaredModel, engine: DeclaredEngine, known: Shape, cached: float | None
) -> Iterator[str]:
    """What only custom builds have, whose memory follows no release.

    Source: vLLM 0.19.1 has no deepseek_v4, and 0.29.0 no deepseek_v41; 0.30.0 rejects 8 bits in
    vllm/models/qwen4_exp/nvidia/qsa.py, line 189, and 0.31.0 has them (pull request 55557).
    """
    paging = ENGINE_TRAITS[engine.name].paging
    name, version = f"{ENGINE_TRAITS[engine.name].title} {engine.version}", place(engine.version)
    if paging is None:
        if known.compressed and known.compressed.sources:
            yield f"how {name} divides its room among windows and entries for several layers"
        return
    shares = known.compressed is not None and known.compressed.sources > 0
    if known.compressed and version < (paging.shares_entries if shares else paging.compresses):
        yield f"how a build of {name} holds compressed attention, which that release does not have"
    least = 1 if version >= paging.caches_pooled else WIDE
    if known.indexes_pools and cached is not None and cached < least:
        what = f"a KV cache in {model.kv_cache_dtype}"
        yield f"how a build of {name} holds {what}, which that release does not have for this model"


def _unknown(
    model: DeclaredModel, engine: DeclaredEngine, context: int | None, missing: Sequence[str]
) -> Fit:
    return Fit(
        state="unknown",
        tight=False,
        missing=tuple(missing),
        parallel=engine.parallel,
        kv_cache_dtype=model.kv_cache_dtype or "auto",
        context=context,
        sequences=sequences(model),
        needed=needed(model, engine),
    )


def _gib(count: float) -> float:
    return round(count / GIB, 2)
