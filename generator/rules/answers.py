"""Rules about what engines said of their own settings; `check-engine` checks them."""

from generator.diagnostics import Finding, KeyPath, Severity
from generator.rules.registry import DOCUMENTED, documented


@documented("SG870")
def refused_by_the_engine() -> None:
    """The engine accepts its settings."""


@documented("SG871")
def ranks_that_differ() -> None:
    """All ranks of an engine make the same of their settings, with the same packages."""


@documented("SG872", Severity.WARNING)
def weights_by_the_engine() -> None:
    """The weights of a rank are as large as computed."""


@documented("SG873", Severity.NOTE)
def asked_before() -> None:
    """What engines said is about the present settings."""


def found(rule: str, message: str, path: KeyPath, help_text: str = "") -> Finding:
    """A finding of one of these rules."""
    return Finding(rule, DOCUMENTED[rule][0], message, path, help=help_text)
