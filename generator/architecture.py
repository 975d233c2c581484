"""The shape of a site's model, from the catalog or as the site file gives it."""

from dataclasses import dataclass

from generator import catalogs
from generator.declaration import DeclaredModel


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how a model can be split; None is unknown, no experts is a dense model.

    A latent KV cache (MLA) is kept whole on every tensor rank, so its heads need not divide.
    """

    layers: int | None
    heads: int | None
    kv_heads: int | None
    max_context: int | None
    experts: int | None
    latent: bool


def shape(model: DeclaredModel) -> Shape | None:
    """The shape of a model of the catalog, or the one given inline; None if neither is there."""
    if model.architecture is not None:
        own = model.architecture
        return Shape(
            own["layers"],
            own["heads"],
            own["kv_heads"],
            own.get("max_context"),
            own.get("experts", 0),
            latent=False,
        )
    checkpoint = catalogs.checkpoint(model.name) if model.name else None
    if checkpoint is None:
        return None
    known = checkpoint.architecture
    return Shape(
        known.layers,
        known.heads,
        known.kv_heads,
        checkpoint.max_context,
        known.experts or (0 if known.layers else None),
        latent=known.facts.get("attention", {}).get("kv_replicated", False),
    )
