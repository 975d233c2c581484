"""Entries of `engine.args` as words of a command line, as the engine's own parser accepts them."""

import json
from collections.abc import Iterator, Mapping

from generator.catalogs.flag_files import catalogs
from generator.catalogs.flags import FlagCatalog, Found
from generator.site import Words
from generator.sitefile.declaration import Argument, Speculative


def arguments(program: str, version: str, args: Mapping[str, Argument]) -> Iterator[Words]:
    """The words of all entries, by name; the catalog is read only if there are any."""
    known = catalogs(program, version) if args else ()
    for name in sorted(args):
        having = (each for each in known if each.find(name))
        yield from words(name, args[name], next(having, known[0] if known else None))


def settings(prefix: str, drafts: Speculative) -> dict[str, Argument]:
    """The flags of speculative decoding, which a site file names without their prefix."""
    named = ((name.replace("_", "-"), value) for name, value in drafts.config.items())
    return {
        name if name.startswith(prefix) else f"{prefix}{name}": value
        if isinstance(value, bool | list | dict)
        else str(value)
        for name, value in named
    }


def words(name: str, value: Argument, known: FlagCatalog | None = None) -> Iterator[Words]:
    """One entry: a flag and its values, repeated if the flag is.

    A flag that no catalog has is treated like most: `--no-` turns a switch off, and a list becomes
    separate words.
    """
    found = known.find(name) if known else None
    option = f"--{name}"
    for item in _values(value, found):
        if item is None:
            yield (_negation(option, found),) if value is False else (option,)
        elif isinstance(item, list):
            yield (option, *item)
        elif known and "equals" not in known.traits:
            yield (option, item)
        else:
            yield (f"{option}={item}",)


def _values(value: Argument, found: Found | None) -> Iterator[str | list[str] | None]:
    """What follows each occurrence of the flag: nothing, one word or several."""
    if found and (found.key or found.flag.type == "json") and not isinstance(value, str):
        yield _json(value)
    elif isinstance(value, bool):
        yield found.flag.words[not value] if found and found.flag.words else None
    elif isinstance(value, dict):
        yield _json(value)
    elif isinstance(value, list):
        yield from _listed([_text(item) for item in value], found.flag.many if found else "")
    else:
        yield value


def _listed(items: list[str], many: str) -> Iterator[str | list[str]]:
    if many == "append":
        yield from items
    elif many == "comma":
        yield ",".join(items)
    else:
        yield items


def _negation(option: str, found: Found | None) -> str:
    """The flag's own negation; the usual one keeps the name as written."""
    common = f"--no-{option.removeprefix('--')}"
    negations = found.flag.off if found else ()
    return common if not negations or common.replace("_", "-") in negations else negations[0]


def _json(value: Argument) -> str:
    return json.dumps(value, sort_keys=True)


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
