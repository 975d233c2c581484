"""Rules about entries of `engine.args` and `engine.env`, whose faults `check_flags` finds."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule
from generator.sitefile.source import Document

_ERRORS = {
    "SG632": "A flag of `args` is one that the engine has.",
    "SG633": "A flag of `args` is one of this version, not of an earlier or later one.",
    "SG634": "A flag of `args` is written out in full.",
    "SG635": "A flag is given only once.",
    "SG636": "The value of a flag is a number or JSON where the engine reads one.",
    "SG637": "The value of a flag is one of the engine's choices.",
    "SG639": "A switch is true or false, and a flag that takes a value has one.",
    "SG640": "A flag has a list if it takes several values, and a mapping if it takes JSON.",
    "SG641": "The keys of a JSON flag are those that the engine reads.",
    "SG643": "A parser for tool calls or reasoning has the name that this engine gives it.",
    "SG644": "The engine reads every variable with one of its own prefixes.",
    "SG649": "A variable that vLLM reads as a number is one.",
}
_WARNINGS = {
    "SG638": "The value of a flag is one that the engine is known to have.",
    "SG642": "A flag of `args` is not deprecated.",
    "SG645": "No variable is one that only an earlier or later version of the engine reads.",
    "SG646": "Variables of SGLang are ones that it is known to read.",
}


# No release decides which flags sparkgen sets.
@rule("SG604", of_version=False)
def flag_set_by_sparkgen(flags: CheckedFlags, document: Document) -> Iterator[Fault]:
    """A flag that sparkgen sets is not given in `args`."""
    for fault in flags.of("SG604"):
        from generator.rules.flags.name_faults import placed

        yield placed(fault, document)


def _register(number: str, severity: Severity, title: str) -> None:
    def check(flags: CheckedFlags) -> Iterator[Fault]:
        return flags.errors(number) if severity is Severity.ERROR else flags.warnings(number)

    check.__doc__ = title
    rule(number, severity)(check)


for _number, _title in _ERRORS.items():
    _register(_number, Severity.ERROR, _title)
for _number, _title in _WARNINGS.items():
    _register(_number, Severity.WARNING, _title)
