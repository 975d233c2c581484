"""Rules about files without a counterpart in a site file. Documented here, checked by `audit`."""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG841", Severity.WARNING)
def bare_half() -> None:
    """Both halves of a cabled port have an address."""


@documented("SG842")
def untrimmed_line() -> None:
    """A line of nccl.conf is NAME=VALUE, without spaces, quotes or `export`."""


@documented("SG844", Severity.WARNING)
def two_owners() -> None:
    """Either Docker or a unit restarts a container, not both."""


@documented("SG845")
def exposed_key() -> None:
    """No key is written in a command or in a shared file."""


@documented("SG846", Severity.WARNING)
def bonded_halves() -> None:
    """Halves of QSFP ports are not part of a bond or a bridge."""


@documented("SG847", Severity.WARNING)
def interface_configured_twice() -> None:
    """Only one netplan file sets up an interface."""


@documented("SG881", Severity.WARNING)
def shared_subnet() -> None:
    """No two ports of a node are in one subnet."""


@documented("SG882", Severity.WARNING)
def endless_restart() -> None:
    """Restarts are bounded."""


@documented("SG883", Severity.WARNING)
def more_of_the_node() -> None:
    """An engine's container has no more of its node than it needs."""


@documented("SG884")
def unreadable_file() -> None:
    """Every file of a node can be read."""
