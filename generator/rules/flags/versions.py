"""Rules about engine versions that no catalog covers."""

from collections.abc import Iterator

from generator.catalogs import is_patched
from generator.catalogs.flag_files import versions
from generator.catalogs.versions import version
from generator.diagnostics import Related, Severity, listed
from generator.rules.flags.checking import CheckedFlags, entry_of
from generator.rules.registry import Fault, rule

# Errors about flags that a version is known to have, and errors about those that it may have.
_OF_KNOWN_FLAGS = ("SG634", "SG635")
_OF_OTHERS = (
    *("SG632", "SG633", "SG636", "SG637", "SG639"),
    *("SG640", "SG641", "SG643", "SG644", "SG645", "SG649"),
)
# NVIDIA's containers are numbered by year and month, whatever is in them.
_YEARS = range(20, 100)
_WARNINGS = ("SG638", "SG646")


@rule("SG630", Severity.NOTE, unless="SG247 SG605 SG613 SG616", suppressed_by="SG441")
def settings_of_an_unknown_version(flags: CheckedFlags) -> Iterator[Fault]:
    """Settings that only a custom build or a newer engine can have are reported once."""
    if flags.is_covered or flags.is_between:
        return
    faults = [fault for number in (*_OF_OTHERS, *_WARNINGS) for fault in flags.of(number)]
    entries = sorted(
        {entry_of(fault) for fault in faults}, key=lambda entry: ("env" in entry, entry[-1])
    )
    if not entries:
        if age := _age(flags):
            yield Fault(
                f"{flags.parser.title} {flags.engine.version} is {age} than sparkgen knows: its "
                f"settings are checked as for {flags.parser.catalog.version}",
                ("engine", "version"),
                "on a node, 'launch.sh --describe-engine' lists its own for 'sparkgen catalog add'",
            )
        return
    names = [str(entry[-1]) for entry in entries]
    is_own = is_patched(flags.engine.image, flags.engine.version)
    instead = "list what the build has under engine.own, or " if is_own else ""
    yield Fault(
        f"{flags.parser.name} does not accept {listed(names, 'and')} in this form, and sparkgen "
        f"does not know {flags.engine.version}",
        ("engine", "version"),
        f"{instead}compare with the engine's own '--help'",
        related=tuple(Related(str(entry[-1]), entry) for entry in entries),
    )


def _age(flags: CheckedFlags) -> str:
    """Whether it is a release before or after all that have a catalog, where each has one."""
    known, own = versions(flags.engine.name), version(flags.engine.version).public
    is_dated = len(own.release) == 2 and own.release[0] in _YEARS
    if len(known) < 2 or is_dated:
        return ""
    # What has no number at all, or one that is none of a release, sorts before every release.
    is_older = own.release > (0, 1) and own < version(known[0])
    return "newer" if own > version(known[-1]).public else "older" if is_older else ""


@rule("SG631", Severity.WARNING)
def fault_by_both_neighbours(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of a version without a catalog exists in the version before or after it."""
    if not flags.is_covered:
        others = _OF_OTHERS if flags.is_between else ()
        for number in (*_OF_KNOWN_FLAGS, *others):
            yield from flags.of(number)
