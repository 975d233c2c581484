"""Rules about which flags the engine has."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule
from generator.sitefile.source import Document


# No release decides which flags sparkgen sets.
@rule("SG604", depends_on="")
def flag_set_by_sparkgen(flags: CheckedFlags, document: Document) -> Iterator[Fault]:
    """A flag that sparkgen sets is not given in `args`."""
    for fault in flags.of("SG604"):
        from generator.rules.flags.name_faults import placed

        yield placed(fault, document)


@rule("SG632")
def unknown_flag(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is one that the engine has."""
    yield from flags.errors("SG632")


@rule("SG633")
def flag_of_another_version(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is one of this version of the engine, not of an earlier or later one."""
    yield from flags.errors("SG633")


@rule("SG634")
def abbreviated_flag(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is written out in full."""
    yield from flags.errors("SG634")


@rule("SG635")
def flag_under_two_names(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag is given only once."""
    yield from flags.errors("SG635")


@rule("SG642", Severity.WARNING)
def deprecated_flag(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is not deprecated."""
    yield from flags.warnings("SG642")
