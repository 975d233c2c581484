"""What the catalog of the engine's version says of `engine.args` and `engine.env`.

An entry breaks one rule at most: of the flag's name, else of the shape of its value, else of the
value itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from generator.catalogs.flags import replacement
from generator.declaration import Argument, DeclaredEngine
from generator.diagnostics import Related, replacements
from generator.rules.flags import name_faults, variable_faults
from generator.rules.flags.name_faults import Verdict
from generator.rules.flags.parser import Parser, parser
from generator.rules.flags.value_faults import value_fault
from generator.rules.registry import Fault


@dataclass(frozen=True, slots=True)
class Judgment:
    """The faults of flags and variables by the rule that they break.

    `version` is the engine's; the parser may be that of the nearest version with a catalog.
    """

    version: str
    parser: Parser
    faults: Mapping[str, list[Fault]]

    @property
    def is_covered(self) -> bool:
        """Whether the catalog is that of the engine's version."""
        return self.parser.catalog.version == self.version

    def of(self, rule: str) -> Iterator[Fault]:
        """The faults that break a rule."""
        return iter(self.faults.get(rule, ()))

    def errors(self, rule: str) -> Iterator[Fault]:
        """The same, where the catalog is sure of them."""
        return self.of(rule) if self.is_covered else iter(())


_FILES = {"tensorrt-llm": "config"}


def judgment(engine: DeclaredEngine) -> Judgment | None:
    """What is wrong with an engine's flags and variables; None where nothing is known of it."""
    known = parser(engine.name, engine.version)
    if known is None:
        return None
    faults: dict[str, list[Fault]] = defaultdict(list)
    verdicts = [*_flags(engine.args, known), *variable_faults.faults(engine.env, known)]
    for rule, fault in verdicts:
        faults[rule].append(fault)
    return Judgment(engine.version, known, faults)


def _flags(args: Mapping[str, Argument], known: Parser) -> Iterator[Verdict]:
    first: dict[tuple[str, str], str] = {}
    for name, value in args.items():
        # Settings of a file that the flag names, which sparkgen writes.
        if isinstance(value, dict) and name == _FILES.get(known.engine):
            continue
        found = known.catalog.find(name)
        own = (found.flag.name, found.key) if found else (name, "")
        verdict = _flag(name, value, known)
        if own in first and (verdict is None or verdict[0] == "SG642"):
            yield _twice(name, first[own])
        elif verdict:
            yield verdict
        first.setdefault(own, name)


def _flag(name: str, value: Argument, known: Parser) -> Verdict | None:
    found, key = known.catalog.find(name), known.owning_key(name)
    if key is not None:
        return _bad_value(name, value, known) or name_faults.owned(name, key, value)
    if found is None:
        return name_faults.unknown(name, known)
    if found.is_short:
        return name_faults.short(name, found)
    verdict = value_fault(name, value, found, known)
    if verdict is None and found.flag.deprecated is not None:
        return name_faults.deprecated(name, found, known)
    return verdict


def _bad_value(name: str, value: Argument, known: Parser) -> Verdict | None:
    """A flag that sparkgen sets, with a value that no engine takes: to move it is not enough."""
    found = known.catalog.find(name)
    instead = found and replacement(known.engine, f"{found.flag.names[0]}={value}")
    if not instead:
        return None
    message = f"{known.name} has no '{value}' for '{name}'"
    path = ("engine", "args", name)
    proposals = replacements(path, [instead.word] if instead.word else [])
    return "SG637", Fault(message, path, instead.instead, proposals=proposals)


def _twice(name: str, first: str) -> Verdict:
    return "SG635", Fault(
        f"'{name}' and '{first}' are the same flag",
        ("engine", "args", name),
        "keep one of the two",
        at_key=True,
        related=(Related(f"'{first}'", ("engine", "args", first)),),
    )
