"""Rules about the values of flags."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule


@rule("SG636")
def value_of_another_type(flags: CheckedFlags) -> Iterator[Fault]:
    """The value of a flag is a number or JSON where the engine reads one."""
    yield from flags.errors("SG636")


@rule("SG637")
def value_that_is_not_taken(flags: CheckedFlags) -> Iterator[Fault]:
    """The value of a flag is one of the engine's choices."""
    yield from flags.errors("SG637")


@rule("SG638", Severity.WARNING)
def value_that_is_not_known(flags: CheckedFlags) -> Iterator[Fault]:
    """The value of a flag is one that the engine is known to have."""
    yield from flags.warnings("SG638")


@rule("SG639")
def switch_with_a_value(flags: CheckedFlags) -> Iterator[Fault]:
    """A switch is true or false, and a flag that takes a value has one."""
    yield from flags.errors("SG639")


@rule("SG640")
def value_of_another_shape(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag has a list if it takes several values, and a mapping if it takes JSON."""
    yield from flags.errors("SG640")


@rule("SG641")
def unknown_json_key(flags: CheckedFlags) -> Iterator[Fault]:
    """The keys of a JSON flag are those that the engine reads."""
    yield from flags.errors("SG641")


@rule("SG643")
def parser_of_another_engine(flags: CheckedFlags) -> Iterator[Fault]:
    """A parser for tool calls or reasoning has the name that this engine gives it."""
    yield from flags.errors("SG643")
