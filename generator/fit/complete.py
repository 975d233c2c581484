"""A model's shape with all the sizes from which its memory is computed."""

from generator.models.architecture import Latent, Shape
from generator.records import record


@record
class CacheBytes:
    """Bytes that all layers cache per token, in a cache of any type."""

    count: int


@record
class CacheElements:
    """Elements that all layers cache per token."""

    count: int


@record
class KeyValueHeads:
    """The number of key and value heads in a layer, and the size of each."""

    count: int
    size: int


Cached = CacheBytes | CacheElements | Latent | KeyValueHeads


@record
class CompleteShape:
    """A shape with all its sizes; `cached` is what layers keep per token that they attend to."""

    shape: Shape
    hidden_size: int
    vocab_size: int
    cached: Cached


def complete(shape: Shape) -> CompleteShape | None:
    """The shape with its sizes, or None if one of them is not known."""
    hidden, vocabulary, cached = shape.hidden_size, shape.vocab_size, _cached(shape)
    if shape.lacks or not shape.adds_up or not (hidden and vocabulary and cached):
        return None
    return CompleteShape(shape, hidden, vocabulary, cached)


def lacking(shape: Shape) -> list[str]:
    """The required sizes that are missing, by their keys in a site file."""
    needed = {
        "hidden_size": shape.hidden_size,
        "vocab_size": shape.vocab_size,
        "head_dim": _cached(shape),
    }
    names = [name for name, value in needed.items() if not value] + list(shape.lacks)
    if not shape.lacks and not shape.adds_up:
        names.append("kinds of layers that add up to 'layers'")
    return names


def _cached(shape: Shape) -> Cached | None:
    if shape.cache_bytes:
        return CacheBytes(shape.cache_bytes)
    if shape.cache_elements:
        return CacheElements(shape.cache_elements)
    if shape.mla or not shape.head_dim:
        return shape.mla
    return KeyValueHeads(
        shape.global_kv_heads or shape.kv_heads, shape.global_head_dim or shape.head_dim
    )
