"""Writes the catalogs of several versions as one file, which generator/catalogs/flags.py reads.

What versions have in common is written once. A flag that changed its kind has one line per kind; a
word that only some versions have is followed by the ranges of those versions.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from generator.catalogs.flags import Flag, FlagCatalog
from generator.records import record

HEAD = """\
# What `{command}` takes, by version; generator/catalogs/flags.py says how to read this file.
# Source: {source}
"""

# The attributes whose words differ between versions.
_LISTS = ("off", "choices", "known", "also", "fields")


@record
class VersionCatalog:
    """The flags of one version, and its variables with their kinds."""

    version: str
    flags: tuple[Flag, ...]
    variables: Mapping[str, str]


def version_catalog(known: FlagCatalog) -> VersionCatalog:
    """One version as the file lists it; variables that flags name are listed with their flags."""
    flags = tuple(known.flags())
    of_flags = {flag.variable for flag in flags}
    variables = {name: known.kinds.get(name, "") for name in known.variables - of_flags}
    return VersionCatalog(known.version, flags, variables)


def catalog_text(
    head: str,
    traits: Iterable[str],
    versions: Sequence[VersionCatalog],
    prefix: str = "",
    has_all_variables: bool = False,
) -> str:
    """The whole file; versions are passed oldest first."""
    order = tuple(each.version for each in versions)
    lines = ["\t".join(["versions", " ".join(order)]), "\t".join(["parser", *traits])]
    if prefix:
        lines.append(f"variables\t{prefix}\t{'all' if has_all_variables else 'some'}")
    lines += sorted(_flag_lines(versions, order))
    lines += sorted(_variable_lines(versions, order))
    return head + "".join(f"{line}\n" for line in lines)


def _flag_lines(versions: Sequence[VersionCatalog], order: Sequence[str]) -> Iterator[str]:
    groups: dict[Hashable, dict[str, Flag]] = defaultdict(dict)
    for each in versions:
        for flag in each.flags:
            groups[_kind(flag)][each.version] = flag
    for group in groups.values():
        yield _line(group, order)


def _kind(flag: Flag) -> Hashable:
    """The attributes that flags must share to be written as one."""
    shared = (name for name in Flag.__match_args__ if name not in (*_LISTS, "names"))
    return (flag.names[0], bool(flag.choices), *(getattr(flag, name) for name in shared))


def _line(group: Mapping[str, Flag], order: Sequence[str]) -> str:
    last = [*group.values()][-1]
    held = tuple(group)
    names = _words(group, order, lambda flag: flag.names)
    parts = [_attribute(name, group, last, order) for name in Flag.__match_args__[2:]]
    ranges = _ranges(held, order)
    parts.append(f"versions={ranges}" if ranges else "")
    return "\t".join([names, last.type, *filter(None, parts)])


def _attribute(name: str, group: Mapping[str, Flag], last: Flag, order: Sequence[str]) -> str:
    value = getattr(last, name)
    if name in _LISTS:
        words = _words(group, order, lambda flag: getattr(flag, name))
        return f"{name}={words}" if words else ""
    if isinstance(value, tuple):
        return f"{name}={' '.join(value)}" if value else ""
    if isinstance(value, bool):
        return name if value else ""
    is_written = value is not None if name == "deprecated" else bool(value)
    return f"{name}={value}" if is_written else ""


def _words(
    group: Mapping[str, Flag], order: Sequence[str], words: Callable[[Flag], tuple[str, ...]]
) -> str:
    """The words of all versions: those of the newest in its order, then those only in others."""
    holders: dict[str, list[str]] = {}
    for version in reversed(group):
        for word in words(group[version]):
            holders.setdefault(word, []).insert(0, version)
    # Ranges of words need not exclude the versions that lack the flag itself.
    versions = tuple(group)
    marked = ((word, _ranges(held, order, versions)) for word, held in holders.items())
    return " ".join(f"{word}@{ranges}" if ranges else word for word, ranges in marked)


def _variable_lines(versions: Sequence[VersionCatalog], order: Sequence[str]) -> Iterator[str]:
    holders: dict[str, list[str]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for each in versions:
        for name, kind in each.variables.items():
            holders[name].append(each.version)
            kinds[name] = kind or kinds.get(name, "")
    for name, held in holders.items():
        yield "\t".join((name, _ranges(held, order), kinds[name])).rstrip("\t")


def _ranges(held: Sequence[str], order: Sequence[str], of: Sequence[str] = ()) -> str:
    """The ranges of versions that have a word; empty if all have it, or all that have the flag."""
    if len(held) == len(of or order):
        return ""
    places = [order.index(version) for version in held]
    runs = groupby(enumerate(places), lambda pair: pair[1] - pair[0])
    return ",".join(_range([place for _, place in run], order) for _, run in runs)


def _range(places: Sequence[int], order: Sequence[str]) -> str:
    first, last = places[0], places[-1]
    start = order[first] if first else ""
    end = order[last] if last < len(order) - 1 else ""
    return start if first == last and start and end else f"{start}..{end}"
