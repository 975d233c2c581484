"""Rules about the engine's own variables in `engine.env`."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule


@rule("SG644")
def unknown_variable(flags: CheckedFlags) -> Iterator[Fault]:
    """The engine reads every variable with one of its own prefixes."""
    yield from flags.errors("SG644")


@rule("SG645", Severity.WARNING)
def variable_of_another_version(flags: CheckedFlags) -> Iterator[Fault]:
    """No variable is one that only an earlier or later version of the engine reads."""
    yield from flags.warnings("SG645")


@rule("SG646", Severity.WARNING)
def variable_that_is_not_known(flags: CheckedFlags) -> Iterator[Fault]:
    """Variables of SGLang are ones that it is known to read."""
    yield from flags.warnings("SG646")


@rule("SG649")
def variable_that_is_no_number(flags: CheckedFlags) -> Iterator[Fault]:
    """A variable that vLLM reads as a number is one."""
    yield from flags.errors("SG649")
