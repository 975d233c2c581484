"""Checks `engine.args` and `engine.env` against the catalogs of the engine's version.

An entry breaks one rule at most: about the flag's name, else about the shape of its value, else
about the value itself. For a version between two with catalogs, it breaks a rule only if it does so
according to both.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import is_between, is_covered, versions
from generator.catalogs.flags import ResolvedFlag
from generator.catalogs.replacements import replacement
from generator.catalogs.versions import Version, version
from generator.diagnostics import KeyPath, Related, replacements
from generator.records import record
from generator.rules.flags.parser import Parser, parsers
from generator.rules.flags.value_faults import Judged, value_fault
from generator.rules.registry import Fault, Faults
from generator.settings.values import Argument, parsed
from generator.sitefile.declaration import DeclaredEngine


@record
class CheckedFlags:
    """The faults of flags and variables, by the rule that they break.

    `parsers` are those of the engine's version, or of the nearest versions with a catalog, newest
    first.
    """

    engine: DeclaredEngine
    parsers: tuple[Parser, ...]
    faults: Mapping[str, list[Fault]]

    @property
    def parser(self) -> Parser:
        """The parser that findings name."""
        return self.parsers[0]

    @property
    def is_covered(self) -> bool:
        """Whether the engine's version itself has a catalog."""
        return is_covered(self.engine.name, self.engine.settings.version)

    @property
    def is_between(self) -> bool:
        """Whether it is a release between two versions with catalogs."""
        return is_between(self.engine.name, self.engine.settings.version)

    def of(self, rule: str) -> Faults:
        """The faults that break a rule."""
        return iter(self.faults.get(rule, ()))

    def errors(self, rule: str) -> Faults:
        """The faults that break a rule, if the catalog covers the version."""
        return self.of(rule) if self.is_covered else iter(())

    def warnings(self, rule: str) -> Faults:
        """The faults that break a rule, if the catalogs are close enough to the version."""
        return self.of(rule) if self.is_covered or self.is_between else iter(())


def check_flags(engine: DeclaredEngine) -> CheckedFlags | None:
    """The faults of an engine's flags and variables; None if the engine has no catalog."""
    known = parsers(engine.name, engine.settings.version)
    if not known:
        return None
    faults: dict[str, list[Fault]] = defaultdict(list)
    verdicts = (
        *agreed([_flags(engine, each) for each in known]),
        *agreed([_variable_faults(engine, each) for each in known]),
    )
    for rule, fault in verdicts:
        faults[rule].append(fault)
    return CheckedFlags(engine, known, faults)


def agreed(by_catalog: Sequence[Iterable[Judged]]) -> Iterator[Judged]:
    """Verdicts of the first catalog that all others share; deprecated entries count as accepted."""
    first, *others = ({entry_of(v[1]): v for v in verdicts} for verdicts in by_catalog)
    for entry, verdict in first.items():
        rules = [other[entry][0] if entry in other else "" for other in others]
        if all(rules) and (verdict[0] == "SG642" or "SG642" not in rules):
            yield verdict


def entry_of(fault: Fault) -> KeyPath:
    """The entry of `engine.args` or of variables, also of those of a node, that has a fault."""
    return fault.path[: 4 if fault.path[:1] == ("nodes",) else 3]


def _variable_faults(engine: DeclaredEngine, known: Parser) -> Iterable[Judged]:
    """The faults of the variables, except for those that the build is declared to have."""
    own = [each for each in engine.environment if each.name not in engine.own.env]
    if not own:
        return ()
    from generator.rules.flags import variable_faults

    return variable_faults.faults(own, known)


def _flags(engine: DeclaredEngine, known: Parser) -> Iterator[Judged]:
    first: dict[tuple[str, ...], str] = {}
    for name, value in engine.settings.as_written.items():
        # The flag names an options file, which sparkgen writes from these settings.
        if isinstance(value, dict) and name == ENGINE_TRAITS[known.engine].settings_flag:
            continue
        found = known.catalog.find(name)
        own = list(_parts(found, value)) if found else [(name,)]
        verdict = _flag(name, value, known, engine)
        twice = next((part for part in own if part in first), ())
        if twice and (verdict is None or verdict[0] == "SG642"):
            yield _twice(name, first[twice], ".".join(twice[1:]))
        elif verdict and not (verdict[0] == "SG633" and _may_be_there(name, known, engine)):
            yield verdict
        for part in own:
            first.setdefault(part, name)


def _may_be_there(name: str, known: Parser, engine: DeclaredEngine) -> bool:
    """Whether a release before all that have a catalog may have a flag that they lack."""
    gone, own = replacement(known.engine, f"--{name}"), version(engine.version)
    # Builds have numbers of their own.
    others = [
        one for one in map(version, versions(known.engine)) if _is_build(one) == _is_build(own)
    ]
    return gone is not None and gone.gone == "earlier" and own < min(others, default=own)


def _is_build(own: Version) -> bool:
    return len(own.release) == 1


def _parts(found: ResolvedFlag, value: Any) -> Iterator[tuple[str, ...]]:
    """What an entry gives a value: a flag, and each key of its JSON."""
    if found.key:
        yield from _keys(value, (found.flag.name, *found.key.split(".")))
        return
    yield (found.flag.name,)
    is_text = found.flag.type == "json" and isinstance(value, str)
    yield from _keys(parsed(value) if is_text else value, (found.flag.name,))


def _keys(value: Any, name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(value, dict) or not value:
        yield name
        return
    for key, inner in value.items():
        yield from _keys(inner, (*name, str(key)))


def _flag(name: str, value: Argument, known: Parser, engine: DeclaredEngine) -> Judged | None:
    found, key = known.catalog.find(name), known.owning_key(name)
    if key == _SPECULATION and _speculates_otherwise(engine):
        key = None
    if key is not None:
        return _bad_value(name, value, known) or _name_fault(name, value, known, key)
    if engine.own.has_flag(name):
        return None
    if found is None or found.is_short:
        return _name_fault(name, value, known)
    verdict = value_fault(name, value, found, known, _is_own_parser(name, value, engine))
    if verdict is None and found.flag.deprecated is not None:
        return _name_fault(name, value, known)
    return verdict


def _name_fault(name: str, value: Argument, known: Parser, key: str | None = None) -> Judged:
    """The fault of a name: it is set by `key`, unknown, short or deprecated."""
    # Most names are right, and the code for the others takes long to import.
    from generator.rules.flags import name_faults

    if key is not None:
        return name_faults.owned(name, key, value)
    found = known.catalog.find(name)
    if found is None:
        return name_faults.unknown(name, known)
    return (
        name_faults.short(name, found)
        if found.is_short
        else name_faults.deprecated(name, found, known)
    )


_SPECULATION = "model.speculative"
# Flags that name the method, and the methods that the key in the site file supports.
_METHODS = (("spec-method",), ("speculative-algorithm",), ("speculative-config", "method"))
_SAYABLE = r"(?i)eagle3|draft_model|standalone|nextn|(\w+_)?mtp"


def _speculates_otherwise(engine: DeclaredEngine) -> bool:
    """Whether flags ask for a method of speculation that the key does not support."""
    named = [engine.settings.word(*keys) for keys in _METHODS]
    return any(method and not re.fullmatch(_SAYABLE, method) for method in named)


def _is_own_parser(name: str, value: Argument, engine: DeclaredEngine) -> bool:
    """Whether a value names a parser that the build, or a plugin next to it, provides."""
    kind = name.replace("_", "-").partition("-")[0]
    plugins = (f"{kind}-parser-plugin", f"{kind}_parser_plugin")
    return value in engine.own.parsers or any(plugin in engine.settings for plugin in plugins)


def _bad_value(name: str, value: Argument, known: Parser) -> Judged | None:
    """A flag that sparkgen sets, with a value that no engine accepts: moving it is not enough."""
    found = known.catalog.find(name)
    instead = found and replacement(known.engine, f"{found.flag.names[0]}={value}")
    if not instead:
        return None
    message = f"{known.name} has no '{value}' for '{name}'"
    path = ("engine", "args", name)
    proposals = replacements(path, [instead.word] if instead.word else [])
    return "SG637", Fault(message, path, instead.instead, proposals=proposals)


def _twice(name: str, first: str, key: str) -> Judged:
    message = f"'{name}' and '{first}' "
    return "SG635", Fault(
        message + (f"both set '{key}'" if key else "are the same flag"),
        ("engine", "args", name),
        "keep one of the two",
        at_key=True,
        related=(Related(f"'{first}'", ("engine", "args", first)),),
    )
