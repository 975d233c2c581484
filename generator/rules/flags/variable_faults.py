"""The faults of a variable that begins with the engine's own prefix: of its name, or its value."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from generator import diagnostics
from generator.catalogs.replacements import replacement
from generator.diagnostics import KeyPath
from generator.rules.flags.parser import Parser, first_later, of_other_versions
from generator.rules.flags.value_faults import Judged
from generator.rules.registry import Fault
from generator.settings.environment import Variable


def faults(variables: Iterable[Variable], parser: Parser) -> Iterator[Judged]:
    """The variables that the engine does not read, or is not known to read."""
    known = parser.catalog
    for variable in variables if known.prefix else ():
        name, path = variable.name, variable.path
        if name.upper().startswith(known.prefix) and name not in known.variables:
            yield _fault(name, path, parser)
        elif not _is_read(variable.value, known.kinds.get(name, "")):
            kind = "a whole number" if known.kinds[name] == "int" else "a number"
            message = f"{name} must be {kind}: {parser.name} stops at {variable.value!r}"
            yield "SG649", Fault(message, path, _number_for(variable.value))


def _is_read(value: str, kind: str) -> bool:
    """Whether Python's own functions read a value; one that refers to another is not known."""
    if kind not in _READERS or "$" in value:
        return True
    try:
        _READERS[kind](value)
    except ValueError:
        return False
    return True


_READERS: Mapping[str, Callable[[str], float]] = {"int": int, "float": float}


def _number_for(value: str) -> str:
    """What to write in place of a word."""
    if value.lower() in ("true", "yes", "on"):
        return "write 1"
    return "write 0" if value.lower() in ("false", "no", "off") else "write a number, or remove it"


def _fault(name: str, path: KeyPath, parser: Parser) -> Judged:
    others = of_other_versions(parser.catalog)
    holding = [other.version for other in others if name in other.variables]
    gone = replacement(parser.engine, name)
    if first := first_later(parser, holding, gone):
        message = f"{parser.name} does not read {name} yet: {first} does"
        return _of("SG645", path, message, "remove it")
    if gone:
        since = "" if gone.gone == "earlier" else f": it was removed by {gone.gone}"
        message = f"{parser.name} no longer reads {name}{since}"
        renamed = diagnostics.renamings(path, [gone.word] if gone.word else [])
        proposals = diagnostics.removal(path) if gone.is_needless else renamed
        return _of("SG645", path, message, gone.instead, proposals)
    if holding:
        message = f"{parser.name} no longer reads {name}: {holding[-1]} did"
        return _of("SG645", path, message, "remove it", diagnostics.removal(path))
    near = _nearest(name, parser)
    help_text = f"did you mean '{near}'?" if near else "remove it"
    sure = diagnostics.misspelt(name, [near] if near else [])
    proposals = diagnostics.renamings(path, sure) if near else diagnostics.removal(path)
    if parser.catalog.has_all_variables:
        return _of("SG644", path, f"{parser.name} has no variable {name}", help_text, proposals)
    # Not known is not the same as not read: unless a similar name is known, a person decides.
    proposals = proposals if near else ()
    return _of("SG646", path, f"{parser.name} is not known to read {name}", help_text, proposals)


def _nearest(name: str, parser: Parser) -> str | None:
    prefix = parser.catalog.prefix
    stems = (known.removeprefix(prefix) for known in parser.catalog.variables)
    found = diagnostics.nearest(name.upper().removeprefix(prefix), sorted(stems))
    return f"{prefix}{found}" if found else None


def _of(
    rule: str,
    path: KeyPath,
    message: str,
    help_text: str,
    proposals: tuple[diagnostics.Proposal, ...] = (),
) -> Judged:
    return rule, Fault(message, path, help_text, at_key=True, proposals=proposals)
