"""The number of layers of each kind in a part of a model."""

from generator.fit import formulas
from generator.models.architecture import Shape
from generator.records import record


@record
class Kinds:
    """The number of layers of each kind in a stage, or in all.

    Attention (`attention` over all tokens, `sliding` over a window), `recurrent` and `indexed`
    belong to one half of a layer, `dense` and `experts` to the other.
    """

    attention: int
    sliding: int
    recurrent: int
    indexed: int
    dense: int
    experts: int


def count_kinds(shape: Shape, first: int, last: int) -> Kinds:
    """Layers of each kind from `first` to before `last`."""
    layers, recurrent, moe = shape.layers, shape.recurrent, shape.moe

    def between(kind: int) -> int:
        return formulas.layers_between(kind, layers, first, last)

    attention = between(shape.attention_layers)
    states = between(recurrent.layers) if recurrent else 0
    dense, experts = last - first, 0
    if alone := shape.layers_alone:
        # A layer is either attention, Mamba or feed-forward, and never two of them (Nemotron).
        experts = between(moe.layers) if moe else 0
        dense = between(alone) - experts
    elif moe:
        dense = max(0, min(last, layers - moe.layers) - first)
        experts = last - first - dense
    indexed = between(shape.indexer.layers) if shape.indexer else 0
    return Kinds(attention, between(shape.sliding_layers), states, indexed, dense, experts)
