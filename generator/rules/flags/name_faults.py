"""What can be wrong with the name of a flag: each with the rule that says so."""

from generator.diagnostics import listed
from generator.flag_catalog import Found, Replacement, replacement, versions
from generator.rules.flags.parser import Parser, of_other_versions, others
from generator.rules.registry import Fault

Verdict = tuple[str, Fault]


def owned(name: str, key: str) -> Verdict:
    """The flag is one that sparkgen sets."""
    return "SG604", _fault(name, f"'{name}' is set by sparkgen", _key(key))


def short(name: str, found: Found) -> Verdict:
    """The name is a short one, with a single dash on a command line."""
    message = f"'{name}' is short for '{found.flag.name}'"
    return "SG634", _fault(name, message, f"write '{found.flag.name}'")


def deprecated(name: str, found: Found, parser: Parser) -> Verdict:
    """The flag is still there, and will not be for long."""
    known = replacement(parser.engine, found.flag.names[0])
    reason = found.flag.deprecated or "the engine will drop it"
    message = f"'{name}' is deprecated in {parser.name}"
    return "SG642", _fault(name, message, known.instead if known else f"take it out: {reason}")


def unknown(name: str, parser: Parser) -> Verdict:
    """The parser has no flag of that name: it has another one, had one, or never had."""
    exact = parser.catalog.nearest(name)
    if exact and _folded(exact) == _folded(name):
        return _unknown(name, parser, f"did you mean '{exact}'?")
    gone = replacement(parser.engine, f"--{name}")
    if gone:
        return _replaced(name, gone, parser)
    holding = [other for other in of_other_versions(parser.catalog) if other.find(name)]
    if holding:
        return _of_versions(name, parser, [other.version for other in holding])
    if "abbreviations" in parser.catalog.traits and parser.catalog.completions(name):
        return _abbreviated(name, parser.catalog.completions(name))
    for other in others(parser.engine):
        if other.catalog.find(name):
            return _of_another_engine(name, parser, other)
    help_text = f"did you mean '{exact}'?" if exact else "take it out, or see the engine's '--help'"
    return _unknown(name, parser, help_text)


def _unknown(name: str, parser: Parser, help_text: str) -> Verdict:
    return "SG632", _fault(name, f"{parser.name} has no flag '{name}'", help_text)


def _replaced(name: str, gone: Replacement, parser: Parser) -> Verdict:
    if gone.gone == "-":
        return _unknown(name, parser, gone.instead)
    since = "" if gone.gone == "earlier" else f": it was removed by {gone.gone}"
    message = f"{parser.name} has no flag '{name}' any more{since}"
    return "SG633", _fault(name, message, gone.instead)


def _of_versions(name: str, parser: Parser, holding: list[str]) -> Verdict:
    """Versions with a catalog that have the flag: one before this one, or else one after it."""
    order = versions(parser.engine)
    earlier = [v for v in holding if order.index(v) < order.index(parser.catalog.version)]
    if not earlier:
        message = f"{parser.name} has no flag '{name}' yet: {holding[0]} has it"
        return "SG633", _fault(name, message, "take it out, or use an image with that version")
    near = parser.catalog.nearest(name)
    message = f"{parser.name} has no flag '{name}' any more: {earlier[-1]} had it"
    return "SG633", _fault(name, message, f"did you mean '{near}'?" if near else "take it out")


def _abbreviated(name: str, full: list[str]) -> Verdict:
    if len(full) == 1:
        return "SG634", _fault(name, f"'{name}' is short for '{full[0]}'", f"write '{full[0]}'")
    message = f"'{name}' is the beginning of several flags"
    return "SG634", _fault(name, message, f"write {listed(map(repr, full))}")


def _of_another_engine(name: str, parser: Parser, other: Parser) -> Verdict:
    message = f"'{name}' is a flag of {other.title}, and {parser.name} has none of that name"
    key = other.owning_key(name)
    return "SG632", _fault(name, message, "take it out" if key is None else _key(key))


def _key(key: str) -> str:
    return f"use the key {key}" if key else "it follows from the nodes; take it out"


def _fault(name: str, message: str, help_text: str) -> Fault:
    return Fault(message, ("engine", "args", name), help_text, at_key=True)


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
