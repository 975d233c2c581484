"""Catalogs of images, made from what their engines say of themselves; see `sparkgen catalog`.

Each is a file in the folder `catalogs` beside the sites, in the format of `flags.py` for one
version, with one more line: `of`, the engine, its image and the image's digest, of which the last
two may be empty. Such a catalog wins over those in schemas/engines.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator.catalogs import flag_files
from generator.catalogs.engines import names
from generator.catalogs.flags import Flag, FlagCatalog, covered, parse
from generator.records import record, replace

_HEAD = "# What {what} accepts. Written by 'sparkgen catalog add'; not to be edited.\n"
_WORD = re.compile(r"[^\s@]+")
_TYPES = ("switch", "int", "float", "text", "json")
_KINDS = ("", "int", "float", "text", "switch")


class CatalogError(Exception):
    """A text is no catalog; the message says why, in one line."""


@record
class AddedCatalog:
    """A catalog of an image, or of a version if the image is empty."""

    engine: str
    version: str
    image: str
    digest: str
    text: str

    def is_of(self, engine: str, version: str, image: str) -> bool:
        """Whether it is that of an engine; `image` may be pinned to a digest."""
        name, _, digest = image.partition("@")
        if engine != self.engine:
            return False
        if not self.image:
            return version == self.version
        return digest == self.digest if digest and self.digest else name == self.image

    @property
    def file_name(self) -> str:
        """The name of its file."""
        place = re.sub(r"[^a-z0-9.]+", "-", (self.image or f"{self.engine}-{self.version}").lower())
        return f"{place.strip('-.')}.tsv"

    @property
    def key(self) -> str:
        """The version by which `flag_files` finds it from now on."""
        return flag_files.add(self.engine, self.version, self.text)


def read(text: str) -> AddedCatalog:
    """Read the text of a catalog; raises CatalogError."""
    found = re.search(r"(?m)^of\t(.+)\t(.*)\t(.*)$", text)
    try:
        (version,) = covered(found[1] if found else "", text)
        tuple(parse(found[1] if found else "", version, text).flags())
    except (LookupError, ValueError):
        raise CatalogError("it was written by another version of sparkgen") from None
    if not found or found[1] not in names():
        raise CatalogError("it does not say which engine it describes")
    return AddedCatalog(found[1], version, found[2], found[3], text)


def described(raw: bytes) -> AddedCatalog:
    """The catalog of an engine that has described itself, as JSON; raises CatalogError.

    What its parser does not say is taken from the nearest version that is known.
    """
    try:
        data = json.loads(raw)
        engine, version = str(data["engine"]), str(data["version"])
        image, digest = str(data.get("image", "")), str(data.get("digest", ""))
        given = [_flag(each, data["registries"]) for each in data["flags"]]
        kinds = {str(name): str(kind) for name, kind in data["variables"].items()}
        abbreviates = bool(data["abbreviations"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CatalogError("it is no description of an engine") from None
    words = [engine, version, *(image and [image]), *(digest and [digest]), *kinds]
    if engine not in names() or not given or not all(map(_WORD.fullmatch, words)):
        raise CatalogError("it is no description of an engine that sparkgen knows")
    if not set(kinds.values()) <= {*_KINDS}:
        raise CatalogError("it has variables of an unknown kind")
    earlier = flag_files.catalogs(engine, version)
    flags = [with_earlier(flag, earlier) for flag in given]
    traits = {*(earlier[0].traits if earlier else ())} - {"abbreviations"}
    traits |= {"abbreviations"} if abbreviates else set()
    prefix = earlier[0].prefix if earlier else ""
    extent = "all" if earlier and earlier[0].has_all_variables else "some"
    lines = [
        _HEAD.format(what=image or f"{engine} {version}") + f"versions\t{version}",
        "\t".join(["parser", *sorted(traits)]),
        *([f"variables\t{prefix}\t{extent}"] if prefix else []),
        f"of\t{engine}\t{image}\t{digest}",
        *sorted(map(line, flags)),
        *(f"{name}\t\t{kind}" if kind else name for name, kind in sorted(kinds.items())),
    ]
    return AddedCatalog(engine, version, image, digest, "\n".join(lines) + "\n")


def line(flag: Flag) -> str:
    """A flag as a catalog of one version lists it."""
    parts = (_attribute(name, getattr(flag, name)) for name in Flag.__match_args__[2:])
    return "\t".join([" ".join(flag.names), flag.type, *filter(None, parts)])


def _attribute(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"{name}={' '.join(value)}" if value else ""
    if isinstance(value, bool):
        return name if value else ""
    is_written = value is not None if name == "deprecated" else bool(value)
    return f"{name}={value}" if is_written else ""


def with_earlier(flag: Flag, others: Iterable[FlagCatalog]) -> Flag:
    """A flag with facts that its parser lacks, from the first other version that has the flag."""
    found = (other.find(flag.names[0].removeprefix("--")) for other in others)
    holding = (each.flag for each in found if each and each.flag.names[0] == flag.names[0])
    earlier, merged = next(holding, flag), flag
    is_same = merged.choices and merged.choices == earlier.choices
    if is_same or (merged.type == "text" and earlier.type == "json"):
        merged = replace(merged, type=earlier.type)
    if earlier.many == "comma" and not merged.many:
        merged = replace(merged, many=earlier.many)
    if merged.known and not merged.choices and earlier.choices:
        merged = replace(merged, choices=merged.known, known=())
    if not merged.choices and not merged.known:
        merged = replace(merged, choices=earlier.choices, known=earlier.known)
    also = tuple(dict.fromkeys((*merged.also, *earlier.also)))
    fields = merged.fields or earlier.fields
    merged = replace(merged, also=also, fields=fields, folded=earlier.folded, words=earlier.words)
    return replace(merged, deprecated=earlier.deprecated) if merged.deprecated == "" else merged


def _flag(each: Mapping[str, Any], registries: Mapping[str, Sequence[str]]) -> Flag:
    """A flag that a parser describes; what its value is one of may be in a registry."""
    found: dict[str, Any] = {
        str(name): tuple(_words(value)) if isinstance(value, list) else value
        for name, value in each.items()
        if name in Flag.__match_args__
    }
    plain = Flag((), "")
    if any(
        isinstance(found[name], tuple) != isinstance(getattr(plain, name), tuple) for name in found
    ):
        raise ValueError(found)
    flag = Flag(**found)
    if not flag.names or flag.type not in _TYPES or "\t" in f"{flag.many}{flag.deprecated}":
        raise ValueError(flag.names)
    known = tuple(_words(registries.get(flag.names[0], ())))
    return replace(flag, known=known) if known and not flag.choices else flag


def _words(values: Iterable[Any]) -> Iterator[str]:
    return (str(value) for value in values if _WORD.fullmatch(str(value)))
