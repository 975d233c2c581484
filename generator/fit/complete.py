"""A model's shape with all the sizes from which its memory is computed."""

from generator.models.architecture import Shape
from generator.records import record


@record
class CompleteShape:
    """A shape with all its sizes."""

    shape: Shape
    hidden_size: int
    vocab_size: int


def complete(shape: Shape) -> CompleteShape | None:
    """The shape with its sizes, or None if one of them is not known."""
    hidden, vocabulary = shape.hidden_size, shape.vocab_size
    if shape.lacks or not shape.adds_up or not (hidden and vocabulary and _is_cached(shape)):
        return None
    return CompleteShape(shape, hidden, vocabulary)


def lacking(shape: Shape) -> list[str]:
    """The required sizes that are missing, by their keys in a site file."""
    needed = {
        "hidden_size": shape.hidden_size,
        "vocab_size": shape.vocab_size,
        "head_dim": _is_cached(shape),
    }
    names = [name for name, value in needed.items() if not value] + list(shape.lacks)
    if not shape.lacks and not shape.adds_up:
        names.append("kinds of layers that add up to 'layers'")
    return names


def _is_cached(shape: Shape) -> bool:
    """Whether it is known what a layer keeps of a token that it attends to."""
    return bool(shape.cache_bytes or shape.cache_elements or shape.mla or shape.head_dim)
