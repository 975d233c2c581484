"""Rules about which flags the engine has."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule
from generator.sitefile.source import Document


# No release decides which flags sparkgen sets.
@rule("SG604", depends_on="")
def flag_set_by_sparkgen(flags: CheckedFlags, document: Document) -> Iterator[Fault]:
    """A flag that sparkgen sets is not given in `args`.

    A setting that has a key in the site file, or that follows from the nodes, is stated only once.
    This includes other names of the same flag, and prefixes that the engine would complete.

    Bad:
        engine:
          args:
            gpu-memory-utilization: 0.8

    Good:
        engine:
          memory_utilization: 0.8
    """
    for fault in flags.of("SG604"):
        from generator.rules.flags.name_faults import placed

        yield placed(fault, document)


@rule("SG632")
def unknown_flag(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is one that the engine has.

    An engine exits immediately on an unknown flag.

    Source: the engine's own parser (schemas/engines).

    Bad:
        engine:
          args:
            max-num-batch-tokens: 16384

    Good:
        engine:
          args:
            max-num-batched-tokens: 16384
    """
    yield from flags.errors("SG632")


@rule("SG633")
def flag_of_another_version(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is one of this version of the engine, not of an earlier or later one.

    Guides still list flags that engines have removed; if the replacement is known, the finding
    names it.

    Source: the engine's own parser (schemas/engines, schemas/replaced.tsv).

    Bad:
        engine:
          args:
            guided-decoding-backend: xgrammar

    Good:
        engine:
          args:
            structured-outputs-config: {backend: xgrammar}
    """
    yield from flags.errors("SG633")


@rule("SG634")
def abbreviated_flag(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is written out in full.

    A prefix that a parser completes today is ambiguous once a new flag begins with it, and short
    names tell a reader nothing.

    Source: Python, argparse, `allow_abbrev`.

    Bad:
        engine:
          args:
            max-num-batched: 16384

    Good:
        engine:
          args:
            max-num-batched-tokens: 16384
    """
    yield from flags.errors("SG634")


@rule("SG635")
def flag_under_two_names(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag is given only once.

    If a flag is given twice, the engine silently takes the last value.

    Bad:
        engine:
          args:
            enable-prefix-caching: true
            enable_prefix_caching: false

    Good:
        engine:
          args:
            enable-prefix-caching: true
    """
    yield from flags.errors("SG635")


@rule("SG642", Severity.WARNING)
def deprecated_flag(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag of `args` is not deprecated.

    It still works, but the engine will fail to start after an update.

    Source: the engine's own parser (schemas/engines, schemas/replaced.tsv).

    Bad:
        engine:
          args:
            log-config-file: /srv/logging.json
          files:
            - path: /srv/logging.json

    Good:
        engine:
          args:
            logging-config.pylogging_config_file: /srv/logging.json
          files:
            - path: /srv/logging.json
    """
    yield from flags.warnings("SG642")
