"""Rules about files that a site file has no words for. Documented here, checked by `audit`."""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG841", Severity.WARNING)
def bare_half() -> None:
    """Both halves of a cabled port have an address.

    A QSFP port is two PCIe x4 halves of about 100 Gb/s, each with an interface and a RoCE device of
    its own. One without an address carries nothing.
    """


@documented("SG842")
def untrimmed_line() -> None:
    """A line of nccl.conf is NAME=VALUE, without spaces, quotes and `export`.

    NCCL takes all before the first `=` for the name and all behind it for the value.

    Source: NCCL, src/misc/param.cc, `setEnvFile`.
    """


@documented("SG844", Severity.WARNING)
def two_owners() -> None:
    """Either Docker or a unit restarts a container, not both.

    With `restart: always` beside a unit both do, one kills what the other has started, and after
    each reboot two start at once.
    """


@documented("SG845")
def key_in_the_open() -> None:
    """No key is written in a command or in a shared file.

    Whoever may list processes, or ask Docker, reads the one; whoever has the repository, the other.
    """


@documented("SG846", Severity.WARNING)
def bonded_halves() -> None:
    """Halves of QSFP ports are not part of a bond or a bridge.

    NCCL spreads over RoCE devices by itself, each with an address in a subnet of its own. Of a bond
    it sees one address, and what its second half could carry is lost.
    """


@documented("SG847", Severity.WARNING)
def set_up_twice() -> None:
    """Only one netplan file sets up an interface.

    netplan reads all its files by their names: lists, such as addresses, add up, and of all else
    the last file counts. NVIDIA's assistant writes a file of its own beside one that is there.

    Source: netplan-generate(8).
    """
