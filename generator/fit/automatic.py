"""What a site leaves to be determined: the longest context, and how many sequences of it."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from generator.fit.alternatives import Deployment, holds
from generator.fit.assessment import TIGHT
from generator.fit.requested import defaults
from generator.models.architecture import shape
from generator.records import replace
from generator.sitefile.declaration import Declaration, DeclaredEngine, DeclaredModel, DeclaredNode

# A finer result would change with every figure that becomes slightly better known.
_STEP = 1024
_LEAST_CONTEXT = 4096


def settled(declaration: Declaration) -> Declaration:
    """The declaration with numbers for what its model leaves to be determined."""
    nodes, model, engine = declaration.nodes, declaration.model, declaration.engine
    if nodes is None or model is None or engine is None or not model.automatic:
        return declaration
    return replace(declaration, model=found(nodes, model, engine))


def found(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine
) -> DeclaredModel:
    """The model with numbers, or unchanged if too little is known of it.

    The context comes first, for a single sequence, unless their number is given to an engine that
    gives each its part at startup. If nothing fits, the result is the minimum, so that a rule can
    report it.
    """
    group = Deployment(tuple(nodes), model, engine)
    if "context_length" in model.automatic:
        longest = _longest(group)
        group = replace(group, model=replace(group.model, context_length=longest))
    if "max_sequences" in model.automatic:
        group = replace(group, model=replace(group.model, max_sequences=_most(group)))
    return group.model


def _longest(group: Deployment) -> int | None:
    """The longest context that the model has ample room for, up to its own maximum."""
    known = shape(group.model)
    if known is None or not known.max_context:
        return None

    def at(context: int) -> Deployment:
        return replace(group, model=replace(group.model, context_length=context))

    least = min(_LEAST_CONTEXT, known.max_context)
    fit = at(least).assess()
    if fit is None or fit.state == "unknown":
        return None
    if holds(at(known.max_context)):
        return known.max_context
    steps = _highest(least // _STEP, known.max_context // _STEP, lambda n: holds(at(n * _STEP)))
    return max(least, steps * _STEP)


def _most(group: Deployment) -> int | None:
    """How many sequences of full length fit, up to the engine's own limit."""

    def has_room(count: int) -> bool:
        fit = replace(group, model=replace(group.model, max_sequences=count)).assess()
        return fit is not None and all(
            node.kv_room_gib - count * node.kv_one_gib >= TIGHT * node.share_gib
            for node in fit.nodes
        )

    fit = group.assess()
    if fit is None or fit.state == "unknown":
        return None
    limit = defaults(group.engine).sequences
    return _highest(1, max(1, limit), has_room)


def _highest(low: int, high: int, is_right: Callable[[int], bool]) -> int:
    """The largest number for which a condition holds that holds for all smaller ones."""
    return low + bisect_left(range(low + 1, high + 1), True, key=lambda n: not is_right(n))
