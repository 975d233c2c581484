"""The derived site: every decision made and every number computed, so that templates only print."""

from generator.site.container import (
    ENGINE_ENV,
    GIVEN_SECRETS,
    RAW_ENV,
    SECRETS_ENV,
    SECRETS_SCRIPT,
    CarriedFile,
    Container,
    Health,
    ImageBuild,
    Mount,
    PlacedFile,
    Times,
    Words,
)
from generator.site.node import ControlPlane, HostEntry, Link, Member, Node, Rank, Variables
from generator.site.serving import MODEL_PART, Api, Engine, Model
from generator.site.site import PORTS_OF_WORKERS, Bandwidth, Part, Site
from generator.sitefile.declaration import FILES

__all__ = (
    "ENGINE_ENV",
    "FILES",
    "GIVEN_SECRETS",
    "MODEL_PART",
    "PORTS_OF_WORKERS",
    "RAW_ENV",
    "SECRETS_ENV",
    "SECRETS_SCRIPT",
    "Api",
    "Bandwidth",
    "CarriedFile",
    "Container",
    "ControlPlane",
    "Engine",
    "Health",
    "HostEntry",
    "ImageBuild",
    "Link",
    "Member",
    "Model",
    "Mount",
    "Node",
    "Part",
    "PlacedFile",
    "Rank",
    "Site",
    "Times",
    "Variables",
    "Words",
)
