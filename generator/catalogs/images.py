"""What is publicly known about container images, by their references."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from generator import precompiled
from generator.catalogs.engines import names
from generator.catalogs.versions import version
from generator.grouping import grouped
from generator.records import record

_VERSION = r"(?P<version>\d+(?:\.\d+)+(?:rc\d+)?(?:\.post\d+)?)"
_VARIANT = r"[A-Za-z0-9_.-]+"
_REGISTRY = r"(?:[^/]*[.:][^/]*|localhost)/"
_REFERENCE = (
    rf"(?:{_REGISTRY})?"
    r"(?P<path>[^:@]+):(?P<tag>[^:@/]+)(?:@sha256:[0-9a-f]+)?"
)


@record
class Image:
    """The contents of a container image."""

    engine: str
    version: str | None
    nccl: str | None
    ray: bool | None


def image_names() -> tuple[str, ...]:
    """The individually known images, sorted."""
    rows = (row for _, row in _images_by_engine() if "{" not in row["tag"])
    return tuple(sorted(f"{row['image']}:{row['tag']}" for row in rows))


def tags(reference: str) -> tuple[str, ...]:
    """The individually known tags of an image's path."""
    wanted = re.fullmatch(_REFERENCE, reference)
    return tuple(
        row["tag"]
        for _, row in _images_by_engine()
        if wanted and row["image"].endswith(wanted["path"]) and "{" not in row["tag"]
    )


def image(reference: str) -> Image | None:
    """The contents of an image by its Docker reference; a mirror in another registry is equal."""
    wanted = re.fullmatch(_REFERENCE, reference)
    if not wanted:
        return None
    for tag, held, gone in _images().get(wanted["path"], ()):
        if match := re.fullmatch(tag, wanted["tag"]):
            text = match.groupdict().get("version", held.version)
            is_older = bool(gone) and version(text or "") < version(gone)
            return Image(held.engine, text, held.nccl, None if is_older else held.ray)
    return None


def is_patched(reference: str, text: str) -> bool:
    """Whether an image may differ from the release: a version of its own, by no known publisher."""
    return bool(version(text).local) and image(reference) is None


def is_of_ones_own(reference: str, text: str) -> bool:
    """Whether an image may have patches, and what only later releases have.

    A build of a commit, whose version ends with a number such as `+g7b9f2dad8`, has neither.
    """
    is_commit = re.search(r"\+g[0-9a-f]{7,40}(\.d[0-9]{8})?$", text)
    return is_patched(reference, text) and not is_commit


@cache
def _images() -> Mapping[str, list[tuple[str, Image, str]]]:
    """By the path without its registry: tags, their contents, and the first version without Ray."""
    return grouped(
        (re.sub(f"^{_REGISTRY}", "", row["image"]), (_tag_pattern(row["tag"]), held, gone))
        for engine, row in _images_by_engine()
        for held in [Image(engine, row["version"], row["nccl"], row["ray"])]
        for gone in [row.get("ray_gone", "")]
    )


def _images_by_engine() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of the catalogs of images, `schemas/images`, each with its engine."""
    for engine in names():
        for row in precompiled.schema(f"images/{engine}"):
            yield engine, row


def _tag_pattern(tag: str) -> str:
    """The pattern of the tags that a row covers."""
    pattern = re.escape(tag).replace(r"\{version\}", _VERSION)
    return pattern.replace(r"\{variant\}", _VARIANT)
