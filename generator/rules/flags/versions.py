"""Rules about engine versions that no catalog covers."""

from collections.abc import Iterator

from generator.catalogs.versions import version
from generator.diagnostics import Related, Severity, listed
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule

# Errors that speak of flags which a version is known to have, and those of what it may have.
_OF_KNOWN_FLAGS = ("SG634", "SG635")
_OF_OTHERS = (
    *("SG632", "SG633", "SG636", "SG637", "SG639"),
    *("SG640", "SG641", "SG643", "SG644", "SG645"),
)
_WARNINGS = ("SG638", "SG646")


@rule("SG630", Severity.NOTE)
def settings_of_an_unknown_version(flags: CheckedFlags) -> Iterator[Fault]:
    """What only a custom build or a newer engine can have is reported once.

    The flags of each release of vLLM from 0.19 and of SGLang from 0.5.5 are known. A version newer
    than all of these, an older one, or one with a local part, as `0.33.0+own`, may have more: what
    the nearest known version lacks is taken for its own. What a build has is said under
    `engine.own`, and then no more spoken of.

    Bad:
        engine:
          version: 0.33.0+own
          env: {VLLM_DSPARK_TRACE: 1}

    Good:
        engine:
          version: 0.33.0+own
          env: {VLLM_DSPARK_TRACE: 1}
          own: {env: [VLLM_DSPARK_TRACE]}
    """
    if flags.is_covered or flags.is_between:
        return
    faults = [fault for number in (*_OF_OTHERS, *_WARNINGS) for fault in flags.of(number)]
    entries = sorted({fault.path[:3] for fault in faults}, key=str)
    if not entries:
        return
    names = [str(entry[-1]) for entry in entries]
    is_own = bool(version(flags.engine.version).local)
    instead = "list what the build has under engine.own, or " if is_own else ""
    yield Fault(
        f"{flags.parser.name} does not take {listed(names, 'and')} as written here: "
        f"{flags.engine.version} may",
        ("engine", "version"),
        f"{instead}compare with the engine's own '--help'",
        related=tuple(Related(str(entry[-1]), entry) for entry in entries),
    )


@rule("SG631", Severity.WARNING)
def fault_by_both_neighbours(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag or a variable of a version without a catalog is in the one before or after it.

    This is SG632 to SG645 for a version between two that have a catalog: what either of them takes
    is right. A flag that is shortened or given twice is so in every other version too.

    Bad:
        engine:
          version: 0.26.1
          image: example.org/vllm:0.26.1
          args:
            max-num-batched-token: 16384

    Good:
        engine:
          version: 0.26.1
          image: example.org/vllm:0.26.1
          args:
            max-num-batched-tokens: 16384
    """
    if not flags.is_covered:
        others = _OF_OTHERS if flags.is_between else ()
        for number in (*_OF_KNOWN_FLAGS, *others):
            yield from flags.of(number)
