"""The flag catalogs by a program's name and version; they are read on first use."""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from generator.catalogs.flags import FlagCatalog, covered, parse
from generator.catalogs.versions import version as parsed
from generator.resources import SCHEMAS

FOLDER = SCHEMAS / "engines"


# Catalogs of images, by their programs and by versions that also name their texts.
_added: dict[tuple[str, str], str] = {}
_MARK = "#"


def add(program: str, version: str, text: str) -> str:
    """Take in a catalog of one version; returns the version under which it alone is found."""
    key = f"{version}{_MARK}{sha256(text.encode()).hexdigest()[:16]}"
    _added[program, key] = text
    return key


def versions(program: str) -> tuple[str, ...]:
    """The versions with a catalog, oldest first."""
    return _covered(program)


@cache
def neighbours(program: str, version: str) -> tuple[str, ...]:
    """The versions whose catalogs cover a version, the newest first.

    The version itself, or the one that a custom build was made from; if that has no catalog, the
    versions before and after it; beyond all of them, the oldest or the newest one; none if there
    are no catalogs.
    """
    if (program, version) in _added:
        return (version,)
    known = versions(program)
    public = parsed(version).public
    if exact := [other for other in known if parsed(other) == public]:
        return tuple(exact)
    older = [other for other in known if parsed(other) < public]
    newer = [other for other in known if parsed(other) > public]
    return (*newer[:1], *older[-1:])


@cache
def is_covered(program: str, version: str) -> bool:
    """Whether the version itself has a catalog."""
    if (program, version) in _added:
        return True
    return any(parsed(other) == parsed(version) for other in versions(program))


def is_between(program: str, version: str) -> bool:
    """Whether it is a release between two versions with catalogs, and not a custom build."""
    return (
        (program, version) not in _added
        and not parsed(version).local
        and len(neighbours(program, version)) > 1
    )


def catalogs(program: str, version: str) -> tuple[FlagCatalog, ...]:
    """The catalogs of a version's neighbours, the newest first."""
    return tuple(_read(program, other) for other in neighbours(program, version))


def catalog(program: str, version: str) -> FlagCatalog | None:
    """The first of these, or None."""
    return next(iter(catalogs(program, version)), None)


@cache
def _covered(program: str) -> tuple[str, ...]:
    # Any text may stand where an editor's site names its engine.
    is_name = re.fullmatch("[a-z.-]{1,40}", program) is not None
    return covered(program, _text(program)) if is_name and _path(program).is_file() else ()


@cache
def _read(program: str, version: str) -> FlagCatalog:
    added = _added.get((program, version))
    return parse(program, version.partition(_MARK)[0], added or _text(program))


@cache
def _text(program: str) -> str:
    return _path(program).read_text("utf-8")


def _path(program: str) -> Path:
    return FOLDER / f"{program}.tsv"
