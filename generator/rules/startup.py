"""Rules about settings with which an engine would fail at startup.

The conditions are in each engine's own module, `generator/engines/ENGINE/startup`; each engine has
a rule of its own for the certain ones.
"""

from collections.abc import Iterator, Sequence

from generator.diagnostics import Severity, renamings
from generator.engines.startup import Effect, Verdict
from generator.resources import rows
from generator.rules.registry import Fault, rule

# Otherwise a condition would be applied to sizes, a model or a flag that is already wrong.
PREREQUISITES = "SG501 SG503 SG510 SG511 SG512 SG551 SG602 SG603 SG647 SG648"
MORE_SPECIFIC = (
    "SG224 SG604 SG632 SG633 SG634 SG635 SG636 SG637 SG638 SG639 SG640 SG641 SG643 SG644 SG645 "
    "SG647 SG648 SG661 SG667 SG678"
)


@rule("SG674", Severity.WARNING, unless=PREREQUISITES, suppressed_by=MORE_SPECIFIC)
def possible_startup_failure(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """No setting could make the engine fail at startup."""
    for verdict in verdicts:
        if verdict.effect is Effect.FAILS and not verdict.is_certain:
            yield _fault(verdict)


@rule("SG675", Severity.WARNING, unless=PREREQUISITES, suppressed_by=MORE_SPECIFIC)
def without_effect(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """Every setting takes effect."""
    for verdict in verdicts:
        if verdict.effect is Effect.DIFFERS:
            yield _fault(verdict)


@rule("SG658", Severity.NOTE, unless=PREREQUISITES, suppressed_by=MORE_SPECIFIC)
def reported_failure(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """No setting is known to have stopped an engine on some Sparks, and not on others."""
    for verdict in verdicts:
        if verdict.effect is Effect.REPORTED:
            yield _fault(verdict)


def _register(number: str, engine: str, title: str) -> None:
    def check(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
        for verdict in verdicts:
            if verdict.effect is Effect.FAILS and verdict.is_certain:
                yield _fault(verdict)

    check.__doc__ = title
    rule(number, unless=PREREQUISITES, suppressed_by=MORE_SPECIFIC, engine=engine)(check)


for _number, _engine, _title in rows("rules-of-startup"):
    _register(_number, _engine, _title)


def _fault(verdict: Verdict) -> Fault:
    refusal = verdict.refusal
    return Fault(
        refusal.message,
        refusal.path,
        refusal.help,
        at_key=bool(refusal.renamed),
        proposals=renamings(refusal.path, filter(None, [refusal.renamed])),
    )
