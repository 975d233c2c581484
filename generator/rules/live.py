"""How nodes differ from their bundle. Documented here, found by `check --live`."""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG860")
def node_of_another_site() -> None:
    """A capture is of a node of the site.

    Captures are told apart by the name of the node: sh capture.sh NODE gives it another.
    """


@documented("SG861")
def lost_link() -> None:
    """Every half of a cabled port exists and has a link.

    A cable that was pulled, or one that has come loose, takes both halves with it. Without any
    cable the system may take the ConnectX-7 away altogether.
    """


@documented("SG862")
def other_address() -> None:
    """Every half has the address and the MTU of the bundle, and no other.

    netplan adds the addresses of all its files up. NVIDIA's assistant writes one of its own, and
    NetworkManager keeps profiles.
    """


@documented("SG863")
def other_image() -> None:
    """The engine runs the bundle's image, with the locked digest.

    A tag that moved, or a node that pulled later, has another image under the same name.
    """


@documented("SG864")
def other_model() -> None:
    """The Hugging Face cache has the model at the locked commit.

    Offline an engine takes what `refs/main` names, whatever that has come to be.
    """


@documented("SG865")
def other_variable() -> None:
    """The running engine's variables and the lines of nccl.conf are those of the bundle.

    A container keeps the environment that it was started with.
    """


@documented("SG866")
def unit_that_is_down() -> None:
    """Units of the bundle are active, and start at boot.

    One that failed too often is not started again, and one that is disabled is gone after a reboot.
    """


@documented("SG867", Severity.WARNING)
def versions_that_differ() -> None:
    """All nodes have the same driver, kernel, firmware and release, and run the same engine.

    An image's tag and a model's revision are names: each node has what they meant when it pulled.

    An update that reached one node is a common reason for a cluster that worked yesterday.
    """


@documented("SG868")
def other_command() -> None:
    """The engine runs the command of the bundle.

    A container keeps the command that it was started with, until its unit is started anew.
    """
