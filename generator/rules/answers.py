"""Rules about what engines said of their own settings; `check-engine` checks them."""

from generator.diagnostics import Finding, KeyPath, Severity
from generator.rules.registry import DOCUMENTED, documented


@documented("SG870")
def refused_by_the_engine() -> None:
    """The engine accepts its settings.

    The message is the engine's own: in its image and on its node, it refuses to start with these
    settings. `launch.sh --check-engine` asks it, before any weights are loaded.
    """


@documented("SG871")
def ranks_that_differ() -> None:
    """All ranks of an engine make the same of their settings, with the same packages.

    They exchange tensors whose shapes follow from that: with different lengths, KV caches or
    versions they hang, or compute something else. Bring the same image to all nodes.
    """


@documented("SG872", Severity.WARNING)
def weights_by_the_engine() -> None:
    """The weights of a rank are as large as computed.

    The engine knows the sizes of its own layers, so believe it: `fit` may be wrong by the
    difference, and `fit: {calibration: FILE}` corrects it.
    """


@documented("SG873", Severity.NOTE)
def asked_before() -> None:
    """What engines said is about the present settings.

    The lock keeps what they said for as long as settings and image stay the same. After a change
    to either, a warning that they would start is not known to be wrong, so it is shown again.
    """


def found(rule: str, message: str, path: KeyPath, help_text: str = "") -> Finding:
    """A finding of one of these rules."""
    return Finding(rule, DOCUMENTED[rule][0], message, path, help=help_text)
