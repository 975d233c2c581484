"""Catalogs: what is publicly known about models, images and engines."""

from generator.catalogs.checkpoints import (
    COMPUTED,
    Architecture,
    Checkpoint,
    checkpoint,
    checkpoint_names,
    named_after,
    near_checkpoints,
    siblings,
)
from generator.catalogs.draft_models import DraftCache, draft, drafts
from generator.catalogs.images import Image, image, image_names, tags

__all__ = (
    "COMPUTED",
    "Architecture",
    "Checkpoint",
    "DraftCache",
    "Image",
    "checkpoint",
    "checkpoint_names",
    "draft",
    "drafts",
    "image",
    "image_names",
    "named_after",
    "near_checkpoints",
    "siblings",
    "tags",
)
