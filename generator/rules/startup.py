"""Rules about what an engine would refuse or die of at its start.

The conditions are in each engine's own module, `generator/engines/ENGINE/startup`, and the rule
that reports those that are certain in `generator/rules/ENGINE.py`.
"""

from collections.abc import Iterator, Sequence

from generator.diagnostics import Severity, renamings
from generator.engines.startup import Effect, Verdict
from generator.rules.registry import Fault, rule

# Without these a condition would be applied to sizes, a model or a flag that are wrong already.
FIRST = "SG501 SG503 SG510 SG511 SG512 SG551 SG602 SG603 SG647 SG648"
SAID = (
    "SG604 SG632 SG633 SG634 SG635 SG636 SG637 SG638 SG639 SG640 SG641 SG643 SG644 SG645 SG647 "
    "SG648 SG655 SG661 SG664 SG667"
)


@rule("SG674", Severity.WARNING, unless=FIRST, suppressed_by=SAID)
def refused_perhaps(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """No setting may make the engine fail at its start.

    This is SG670 to SG673 where it is not certain: the condition is not to be found at one place of
    the engine's code, or the engine is a custom build, which may have a patch.

    Bad:
        engine:
          args:
            ssl-keyfile: /etc/ssl/private/server.key

    Good:
        engine:
          args:
            ssl-keyfile: /etc/ssl/private/server.key
            ssl-certfile: /etc/ssl/certs/server.pem
    """
    for verdict in verdicts:
        if verdict.effect is Effect.FAILS and not verdict.is_certain:
            yield _fault(verdict)


@rule("SG675", Severity.WARNING, unless=FIRST, suppressed_by=SAID)
def without_effect(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """Every setting takes effect.

    The engine starts with it, and does something else than it was asked to, often without a word.

    Source: the lines in generator/engines.

    Bad:
        engine:
          args:
            kv-offloading-backend: native

    Good:
        engine:
          args:
            kv-offloading-backend: native
            kv-offloading-size: 8
    """
    for verdict in verdicts:
        if verdict.effect is Effect.DIFFERS:
            yield _fault(verdict)


def certain(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """What the engine would certainly refuse or die of."""
    for verdict in verdicts:
        if verdict.effect is Effect.FAILS and verdict.is_certain:
            yield _fault(verdict)


def _fault(verdict: Verdict) -> Fault:
    refusal = verdict.refusal
    return Fault(
        refusal.message,
        refusal.path,
        refusal.help,
        at_key=bool(refusal.renamed),
        proposals=renamings(refusal.path, filter(None, [refusal.renamed])),
    )
