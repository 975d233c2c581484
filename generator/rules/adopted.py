"""Rules about files without a counterpart in a site file. Documented here, checked by `audit`."""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG841", Severity.WARNING)
def bare_half() -> None:
    """Both halves of a cabled port have an address.

    A QSFP port consists of two PCIe x4 halves of about 100 Gb/s, each with its own interface and
    RoCE device. A half without an address carries no traffic.
    """


@documented("SG842")
def untrimmed_line() -> None:
    """A line of nccl.conf is NAME=VALUE, without spaces, quotes or `export`.

    NCCL takes everything before the first `=` as the name and everything after it as the value.

    Source: NCCL, src/misc/param.cc, `setEnvFile`.
    """


@documented("SG844", Severity.WARNING)
def two_owners() -> None:
    """Either Docker or a unit restarts a container, not both.

    With `restart: always` in addition to a unit, both do: one kills what the other has started, and
    after each reboot two containers start at once.
    """


@documented("SG845")
def exposed_key() -> None:
    """No key is written in a command or in a shared file.

    Anyone who can list processes or query Docker can read the former; anyone with access to the
    repository, the latter.
    """


@documented("SG846", Severity.WARNING)
def bonded_halves() -> None:
    """Halves of QSFP ports are not part of a bond or a bridge.

    NCCL spreads traffic over RoCE devices by itself, each with an address in its own subnet. On a
    bond it sees only one address, and the bandwidth of the second half is lost.
    """


@documented("SG847", Severity.WARNING)
def interface_configured_twice() -> None:
    """Only one netplan file sets up an interface.

    netplan reads all of its files in order of their names: lists, such as addresses, are merged,
    and for all other keys the last file wins. NVIDIA's assistant writes a file of its own in
    addition to existing ones.

    Source: netplan-generate(8).
    """


@documented("SG881", Severity.WARNING)
def shared_subnet() -> None:
    """No two ports of a node are in one subnet.

    The kernel sends to such a subnet from one of them, whatever a program chose, and answers for
    both on either. Two ports then carry what one does.
    """


@documented("SG882", Severity.WARNING)
def endless_restart() -> None:
    """Restarts are bounded.

    An engine that fails while it loads leaves less memory each time; restarted without end, it
    takes the node with it. A unit gives up after StartLimitBurst starts, Docker after
    `on-failure:N`.
    """


@documented("SG883", Severity.WARNING)
def more_of_the_node() -> None:
    """An engine's container has no more of its node than it needs.

    An engine needs the GPU, /dev/infiniband and locked memory. The node's process ids, or root, add
    nothing but what a fault in it can reach.
    """


@documented("SG884")
def unreadable_file() -> None:
    """Every file of a node can be read.

    What can't be read is not checked. A file of netplan that is not YAML also stops
    `netplan apply` on the node.
    """
