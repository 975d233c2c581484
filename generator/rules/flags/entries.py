"""Rules about entries of `engine.args` and `engine.env`, whose faults `check_flags` finds."""

from generator.diagnostics import Severity
from generator.resources import rows
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Faults, rule
from generator.sitefile.source import Document


# No release decides which flags sparkgen sets.
@rule("SG604", of_version=False)
def flag_set_by_sparkgen(flags: CheckedFlags, document: Document) -> Faults:
    """A flag that sparkgen sets is not given in `args`."""
    for fault in flags.of("SG604"):
        from generator.rules.flags.name_faults import placed

        yield placed(fault, document)


def _register(number: str, severity: Severity, title: str) -> None:
    def check(flags: CheckedFlags) -> Faults:
        return flags.errors(number) if severity is Severity.ERROR else flags.warnings(number)

    check.__doc__ = title
    rule(number, severity)(check)


for _number, _severity, _title in rows("rules-of-flags"):
    _register(_number, Severity(_severity), _title)
