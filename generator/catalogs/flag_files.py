"""The flag catalogs by a program's name and version; nothing is read before the first question."""

from functools import cache

from generator.catalogs.flags import FlagCatalog, covered, parse
from generator.catalogs.versions import version as parsed
from generator.resources import SCHEMAS

FOLDER = SCHEMAS / "engines"


def versions(program: str) -> tuple[str, ...]:
    """The versions with a catalog, oldest first."""
    return _covered(program)


def neighbours(program: str, version: str) -> tuple[str, ...]:
    """The versions whose catalogs say what a version takes, the newest first.

    The version itself, or that which a custom build was made from; those before and behind
    it where it has no catalog; the oldest or the newest one beyond these; none without any.
    """
    known = versions(program)
    public = parsed(version).public
    if exact := [other for other in known if parsed(other) == public]:
        return tuple(exact)
    older = [other for other in known if parsed(other) < public]
    newer = [other for other in known if parsed(other) > public]
    return (*newer[:1], *older[-1:])


def is_covered(program: str, version: str) -> bool:
    """Whether the version itself has a catalog."""
    return any(parsed(other) == parsed(version) for other in versions(program))


def is_between(program: str, version: str) -> bool:
    """Whether it is a release between two versions with catalogs, and no build of one's own."""
    return not parsed(version).local and len(neighbours(program, version)) > 1


def catalogs(program: str, version: str) -> tuple[FlagCatalog, ...]:
    """The catalogs of a version's neighbours, the newest first."""
    return tuple(_read(program, other) for other in neighbours(program, version))


def catalog(program: str, version: str) -> FlagCatalog | None:
    """The first of these, or None where there is none."""
    return next(iter(catalogs(program, version)), None)


@cache
def _covered(program: str) -> tuple[str, ...]:
    text = _text(program)
    return covered(text) if text else ()


@cache
def _read(program: str, version: str) -> FlagCatalog:
    return parse(program, version, _text(program))


@cache
def _text(program: str) -> str:
    path = FOLDER / f"{program}.tsv"
    return path.read_text("utf-8") if path.is_file() else ""
