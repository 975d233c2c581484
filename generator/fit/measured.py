"""What an engine logged about its memory at startup, compared with the prediction."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit.assessment import Fit
from generator.fit.calibration import Correction
from generator.records import record
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

Row = tuple[str, str, str, str]

HEAD: Row = ("", "PREDICTED", "MEASURED", "DIFFERENCE")
# How far a figure may be off before it needs attention.
OFF = 0.1


@record
class Logged:
    """What lines in an engine's own words say, in GiB: a figure for each rank, start or line.

    `concurrency` is a number of tokens, and how many sequences of it the cache holds. The rest is
    as in `Measured`.
    """

    weights: Sequence[float] = ()
    caches: Sequence[float] = ()
    graphs: Sequence[float] = ()
    activations: Sequence[float] = ()
    visible: Sequence[float] = ()
    states: Sequence[float] = ()
    allocated: Sequence[float] = ()
    concurrency: tuple[int, float] | None = None


@record
class Measured:
    """What the fullest rank logged, in GiB; None if no line has it.

    `sequences` of `context` tokens fit in the cache at once. `visible` is all of the node's memory.
    `states` are pools of recurrent states beside the cache. `allocated` is the cache of an engine
    that allocates what its sequences take, whatever room there is.
    """

    weights: float | None
    cache: float | None
    graphs: float | None
    context: int | None
    sequences: float | None
    activations: float | None = None
    visible: float | None = None
    states: float | None = None
    allocated: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the log has nothing about memory."""
        return self.weights is None and self.cache is None and self.allocated is None


def measured(found: Iterable[Logged]) -> Measured:
    """What a log says; from several ranks and starts, the most weights and the least room."""
    logged = list(found)

    def all_of(name: str) -> Iterator[float]:
        return chain.from_iterable(getattr(one, name) for one in logged)

    context, sequences = next((one.concurrency for one in logged if one.concurrency), (None, None))
    return Measured(
        weights=max(all_of("weights"), default=None),
        cache=min(all_of("caches"), default=None),
        graphs=max(all_of("graphs"), default=None),
        context=context,
        sequences=sequences,
        activations=max(all_of("activations"), default=None),
        visible=min(all_of("visible"), default=None),
        states=min(all_of("states"), default=None),
        allocated=max(all_of("allocated"), default=None),
    )


def rows(fit: Fit, seen: Measured) -> list[Row]:
    """One row for each figure that both have."""
    return [
        (what, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs - 1:+.1%}" if theirs else "?")
        for what, ours, theirs in _pairs(fit, seen)
    ]


def correction(
    fit: Fit, seen: Measured, model: DeclaredModel, engine: DeclaredEngine
) -> Correction | None:
    """The correction of the reserve that the room implies, including the present correction.

    For an engine whose share is of free memory, it corrects what isn't free. None if the cache has
    a fixed size, whose room implies nothing.
    """
    traits = ENGINE_TRAITS[engine.name]
    flags = (traits.pool_flag, traits.tokens_flag)
    fixed = model.kv_cache_gib or any(flag in engine.settings for flag in flags)
    if seen.cache is None or fixed or not fit.nodes:
        return None
    least = min(fit.nodes, key=lambda node: node.headroom_gib)
    room = least.headroom_gib + least.kv_one_gib * fit.needed
    name = model.name or model.source or ""
    more = round(least.correction_gib + room - _room(fit, seen), 2)
    return Correction(name, engine.name, engine.version, more)


def is_off(fit: Fit, seen: Measured) -> bool:
    """Whether a decisive figure differs by more than a tenth."""
    return any(abs(ours - theirs) > OFF * abs(theirs) for _, ours, theirs in _deciding(fit, seen))


def _pairs(fit: Fit, seen: Measured) -> Iterator[tuple[str, float, float]]:
    if not fit.nodes:
        return
    least = min(fit.nodes, key=lambda node: node.kv_room_gib)
    if seen.visible is not None:
        yield "memory of a node, GiB", least.visible_gib, seen.visible
    if seen.activations is not None:
        most = max(node.activations_gib for node in fit.nodes)
        yield "activations of a step, GiB", most, seen.activations
    if seen.graphs is not None:
        yield "graphs of a rank, GiB", least.graphs_gib, seen.graphs
    yield from _deciding(fit, seen)


def _deciding(fit: Fit, seen: Measured) -> Iterator[tuple[str, float, float]]:
    if not fit.nodes:
        return
    fullest = max(fit.nodes, key=lambda node: node.weights_gib + node.draft_gib)
    least = min(fit.nodes, key=lambda node: node.kv_room_gib)
    weights = fullest.weights_gib + fullest.draft_gib + fit.loading_gib
    if seen.weights is not None:
        yield "weights of a rank, GiB", weights, seen.weights
    if seen.allocated is not None:
        most = max(node.kv_requested_gib for node in fit.nodes)
        yield "KV cache of all sequences, GiB", most, seen.allocated
    if seen.cache is not None:
        yield "KV cache memory, GiB", least.kv_room_gib, _room(fit, seen)
    if seen.cache is not None and seen.sequences and seen.context == fit.context:
        yield f"one of {fit.context} tokens, GiB", least.kv_one_gib, seen.cache / seen.sequences


def _room(fit: Fit, seen: Measured) -> float:
    """The cache, plus the states if they have a part of its room."""
    shares_states = any("states" in share for share in fit.shares)
    return (seen.cache or 0.0) + ((seen.states or 0.0) if shares_states else 0.0)
