"""Alternatives for a model: other splits, other nodes, another KV cache type, other weights."""

from collections.abc import Iterator, Mapping, Sequence

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import KeyPath
from generator.fit.assessment import Fit, assess
from generator.fit.formulas import WIDE
from generator.fit.requested import element_bytes
from generator.models.architecture import Shape, shape, tensor_sizes
from generator.records import record, replace
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, DeclaredNode

# A context below this is of no use to anybody.
_LEAST_CONTEXT = 4096
_CONTEXT_STEP = 1024
_MOST_NODES = 8
# A node has two ports: cables can't connect each of more nodes to all others.
_MOST_ON_CABLES = 3


@record
class Deployment:
    """Nodes, a model and an engine: the subject of a fit."""

    nodes: tuple[DeclaredNode, ...]
    model: DeclaredModel
    engine: DeclaredEngine

    def assess(self, weights: Mapping[str, int] = {}) -> Fit | None:
        """How the model fits; `weights` are bytes on nodes by the engine's own count."""
        return assess(self.nodes, self.model, self.engine, weights)

    def split(self, tensor: int, pipeline: int) -> "Deployment":
        """The group on as many nodes as a split needs; additional nodes are like the last."""
        count = tensor * pipeline
        nodes = (*self.nodes, *[self.nodes[-1]] * (count - len(self.nodes)))[:count]
        parallel = replace(self.engine.parallel, tensor=tensor, pipeline=pipeline, data=1)
        variable = ENGINE_TRAITS[self.engine.name].stage_variable
        others = self.engine.environment.without(variable)
        engine = replace(self.engine, parallel=parallel, environment=others)
        return replace(self, nodes=nodes, engine=engine)

    def named(self, name: str) -> "Deployment":
        """The group with a model of the catalog, without the settings of its own files."""
        own = replace(self.model, name=name, source=None, architecture=None, file=None)
        own = replace(own, like=None, weight_gb=None, format=None, correction_gib=None)
        return replace(self, model=own)

    def cached(self, dtype: str) -> "Deployment":
        """The group with another KV cache type."""
        return replace(self, model=replace(self.model, kv_cache_dtype=dtype))


@record
class Adjustment:
    """What to write, in words, and as a `value` at a `path` unless it is more than one value."""

    words: str
    path: KeyPath = ()
    value: str | int | float = ""


@record
class Alternative:
    """Another way to run the model, and how it fits; one is the site's own.

    `on_switch` means that cables alone can't connect that many nodes.
    """

    nodes: int
    on_switch: bool
    own: bool
    fit: Fit


def alternatives(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine
) -> list[Alternative]:
    """The site's own layout and all others on as many nodes, one fewer or more, also in fp8."""
    own = Deployment(tuple(nodes), model, engine)
    known = shape(model)
    groups = [own]
    if known:
        for count in (len(nodes), len(nodes) - 1, len(nodes) + 1):
            groups += [own.split(*sizes) for sizes in splits(known, own, count)]
    fp8 = ENGINE_TRAITS[engine.name].eight_bit_cache
    if _is_wide(model):
        groups = [form for group in groups for form in (group, group.cached(fp8))]
    found: dict[tuple[object, ...], Alternative] = {}
    for group in groups:
        count = len(group.nodes)
        sizes = group.engine.parallel
        key = (sizes.tensor, sizes.pipeline, sizes.data, group.model.kv_cache_dtype)
        if key not in found and (fit := group.assess()):
            found[key] = Alternative(count, count > _MOST_ON_CABLES, group is own, fit)
    return list(found.values())


def nearest_changes(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fit: Fit
) -> list[Adjustment]:
    """What to write to make the model fit: one other setting, or else another model or nodes."""
    own = Deployment(tuple(nodes), model, engine)
    if change := next(_settings(own, fit), None):
        return [change]
    changes = (next(_checkpoints(own), None), next(_more_nodes(own), None))
    return [change for change in changes if change]


def _settings(own: Deployment, fit: Fit) -> Iterator[Adjustment]:
    fp8 = ENGINE_TRAITS[own.engine.name].eight_bit_cache
    if _is_wide(own.model) and holds(own.cached(fp8)):
        yield _setting(("model", "kv_cache_dtype"), fp8)
    if fit.is_limited and (change := _more_tokens(own, fit)):
        yield change
    for hundredths in range(int(own.engine.memory_utilization * 100) + 1, 86):
        share = hundredths / 100
        found = replace(own, engine=replace(own.engine, memory_utilization=share)).assess()
        if found and found.has_margin:
            if found.leaves_enough:
                yield _setting(("engine", "memory_utilization"), share)
            break
    longest = (fit.one_context if fit.needed == 1 else fit.longest_context) or 0
    for tenths in (10, 9, 8, 7, 6, 5):
        context = longest * tenths // 10 // _CONTEXT_STEP * _CONTEXT_STEP
        model = replace(own.model, context_length=context)
        if context >= _LEAST_CONTEXT and holds(replace(own, model=model)):
            yield _setting(("model", "context_length"), context)
            break


def _more_tokens(own: Deployment, fit: Fit) -> Adjustment | None:
    """A limit in tokens that lets a sequence of full length in."""
    flag, context = ENGINE_TRAITS[own.engine.name].tokens_flag, fit.context or 0
    settings = own.engine.settings
    engine = replace(own.engine, settings=settings.changed(flag, str(context)))
    change = _setting(settings.path(flag), context)
    return change if holds(replace(own, engine=engine)) else None


def _checkpoints(own: Deployment) -> Iterator[Adjustment]:
    """Smaller checkpoints of the same model, the largest first."""
    known = catalogs.checkpoint(own.model.name) if own.model.name else None
    if known is None or not known.weight_gb:
        return
    smaller = [c for c in catalogs.siblings(known) if c.weight_gb and c.weight_gb < known.weight_gb]
    for other in sorted(smaller, key=lambda c: (-(c.weight_gb or 0), c.name)):
        if holds(own.named(other.name)):
            yield _setting(("model", "name"), other.name)


def _more_nodes(own: Deployment) -> Iterator[Adjustment]:
    """The smallest number of nodes on which the model fits, in pipeline stages or tensor ranks."""
    known = shape(own.model)
    for count in range(len(own.nodes) + 1, _MOST_NODES + 1):
        for tensor, pipeline in splits(known, own, count) if known else ():
            if holds(own.split(tensor, pipeline)):
                sizes = {"tensor": tensor, "pipeline": pipeline}
                words = ", ".join(f"{name}: {size}" for name, size in sizes.items() if size > 1)
                joined = " on a switch" if count > _MOST_ON_CABLES else ""
                yield Adjustment(f"{count} nodes{joined} with 'parallel: {{{words}}}'")


def holding(own: Deployment, count: int) -> Fit | None:
    """How the model fits on `count` nodes with the first split that holds it, if any does."""
    known = shape(own.model)
    fits = (own.split(*sizes).assess() for sizes in splits(known, own, count)) if known else ()
    return next((fit for fit in fits if fit and fit.has_margin), None)


def splits(known: Shape, own: Deployment, count: int) -> Iterator[tuple[int, int]]:
    """The tensor and pipeline sizes for `count` nodes that the engine accepts, pipeline first."""
    traits, drafts = ENGINE_TRAITS[own.engine.name], own.model.speculative
    stages = known.layers
    if drafts and drafts.method not in traits.drafts_over_stages:
        stages = 1
    for tensor in tensor_sizes(known, count) if traits.splits_tensors else (1,):
        pipeline = count // tensor
        if tensor * pipeline == count and 0 < pipeline <= stages:
            yield tensor, pipeline


def _setting(path: KeyPath, value: str | int | float) -> Adjustment:
    return Adjustment(f"'{path[-1]}: {value}'", path, value)


def holds(group: Deployment) -> bool:
    """Whether the model fits, with room to spare."""
    fit = group.assess()
    return fit is not None and fit.has_margin


def _is_wide(model: DeclaredModel) -> bool:
    return element_bytes(model) == WIDE
