"""An engine's parser as the rules see it: its catalog, name, and the flags that sparkgen sets."""

from collections.abc import Mapping, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog, catalogs, versions
from generator.catalogs.flags import FlagCatalog, ResolvedFlag
from generator.catalogs.replacements import Replacement
from generator.catalogs.versions import is_prerelease, version
from generator.engines import ENGINES, handed_on
from generator.records import record


@record
class Parser:
    """The parser of a version; `owned` maps each flag that sparkgen sets to its key."""

    engine: str
    title: str
    catalog: FlagCatalog
    owned: Mapping[str, str]

    @property
    def name(self) -> str:
        """The engine and version, as findings name them."""
        return f"{self.title} {self.catalog.version}"

    def owning_key(self, name: str) -> str | None:
        """The key that sets a flag, empty if it follows from the nodes; None if no key does.

        `name` may be any name of the flag, or a prefix that the parser completes to flags of a
        single key.
        """
        found = self.catalog.find(name)
        if found:
            return self.owned.get(found.flag.name)
        plain = name.replace("_", "-").removeprefix("no-")
        if plain in self.owned:
            return self.owned[plain]
        if "abbreviations" not in self.catalog.traits:
            return None
        keys = {self.owned.get(full) for full in self.catalog.completions(name)}
        return keys.pop() if len(keys) == 1 else None


def parsers(engine: str, version: str) -> tuple[Parser, ...]:
    """The parsers of an engine's version, or of the nearest ones with a catalog, newest first."""
    if engine not in ENGINES:
        return ()
    return tuple(_parser(engine, known) for known in catalogs(engine, version))


def _parser(engine: str, known: FlagCatalog) -> Parser:
    owned = _canonical(handed_on.owned(engine), known)
    return Parser(engine, ENGINE_TRAITS[engine].title, known, owned)


def others(engine: str) -> list[Parser]:
    """The parsers of the newest versions of all other engines."""
    newest = {other: catalog(other, versions(other)[-1]) for other in ENGINE_TRAITS}
    return [_parser(other, known) for other, known in newest.items() if known and other != engine]


def of_other_versions(known: FlagCatalog) -> list[FlagCatalog]:
    """The catalogs of the program's other versions, oldest first."""
    others = (version for version in versions(known.program) if version != known.version)
    return [other for version in others if (other := catalog(known.program, version))]


def _canonical(owned: Mapping[str, str], known: FlagCatalog) -> Mapping[str, str]:
    """The full names of the flags; a flag that this version lacks keeps its name, with dashes."""
    names: dict[str, str] = {}
    for name, key in owned.items():
        found: ResolvedFlag | None = known.find(name)
        names[found.flag.name if found else name.replace("_", "-")] = key
    return names


def first_later(parser: Parser, holding: Sequence[str], gone: Replacement | None) -> str:
    """The first later version with a name; empty if the name is gone from this one instead."""
    text = parser.catalog.version
    own = version(text)
    was_there = any(version(each) < own for each in holding)
    # 0.5.0-dev of llama.cpp may be any build.
    if gone and (was_there or gone.gone == "earlier" or is_prerelease(text)):
        return ""
    return next((each for each in holding if version(each) > own), "")
