"""Catalogs: what is publicly known about models, images and engines."""

from generator.catalogs.checkpoints import COMPUTED as COMPUTED
from generator.catalogs.checkpoints import Architecture as Architecture
from generator.catalogs.checkpoints import Checkpoint as Checkpoint
from generator.catalogs.checkpoints import checkpoint as checkpoint
from generator.catalogs.checkpoints import checkpoint_names as checkpoint_names
from generator.catalogs.checkpoints import named_after as named_after
from generator.catalogs.checkpoints import near_checkpoints as near_checkpoints
from generator.catalogs.checkpoints import siblings as siblings
from generator.catalogs.draft_models import DraftCache as DraftCache
from generator.catalogs.draft_models import draft as draft
from generator.catalogs.draft_models import drafts as drafts
from generator.catalogs.images import Image as Image
from generator.catalogs.images import image as image
from generator.catalogs.images import image_names as image_names
from generator.catalogs.images import is_of_ones_own as is_of_ones_own
from generator.catalogs.images import is_patched as is_patched
from generator.catalogs.images import tags as tags
