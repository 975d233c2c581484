"""Rules about engine versions that no catalog covers."""

from collections.abc import Iterator

from generator.catalogs.flags import versions
from generator.diagnostics import Severity, listed
from generator.rules.flags.judgment import Judgment
from generator.rules.registry import Fault, rule

# The rules that a version without a catalog breaks as warnings.
_ERRORS = (
    *("SG632", "SG633", "SG634", "SG635", "SG636", "SG637"),
    *("SG639", "SG640", "SG641", "SG643", "SG644", "SG645"),
)


@rule("SG630", Severity.WARNING, not_beside="SG605")
def version_without_a_catalog(flags: Judgment) -> Iterator[Fault]:
    """The engine's version is one whose flags are known.

    Flags and variables are checked against the nearest version that there is a catalog of, and what
    is wrong by that one is a warning.

    Bad:
        engine:
          version: 0.32.0
          image: example.org/vllm:0.32.0

    Good:
        engine:
          version: 0.33.0
    """
    if not flags.is_covered:
        known = flags.parser
        yield Fault(
            f"the flags of {known.title} {flags.version} are not known: "
            f"those of {known.catalog.version} are taken for them",
            ("engine", "version"),
            f"use {listed(versions(known.engine))}, or compare with the engine's own '--help'",
        )


@rule("SG631", Severity.WARNING)
def fault_by_another_version(flags: Judgment) -> Iterator[Fault]:
    """A flag or a variable is one of the nearest version whose flags are known.

    This is SG632 to SG645 where the version in the site file has no catalog: it may have the flag
    all the same. A build with flags of its own is such a version, as `0.33.0+own`.

    Bad:
        engine:
          version: 0.33.0+own
          args:
            max-num-batched-token: 16384
        waivers:
          - {rule: SG630, path: engine.version, reason: It is 0.33.0 with a patch}

    Good:
        engine:
          version: 0.33.0+own
          args:
            max-num-batched-tokens: 16384
        waivers:
          - {rule: SG630, path: engine.version, reason: It is 0.33.0 with a patch}
    """
    if not flags.is_covered:
        for number in _ERRORS:
            yield from flags.of(number)
