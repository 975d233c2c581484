"""Rules about nodes that differ from their bundle. Documented here, checked by `check --live`."""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG860")
def node_of_another_site() -> None:
    """A capture belongs to a node of the site.

    A capture is matched to its node by name: `sh capture.sh NODE` sets another name.
    """


@documented("SG861")
def lost_link() -> None:
    """Every half of a cabled port exists and has a link.

    A cable that is unplugged or loose takes down both halves. Without any cable, the system may
    remove the ConnectX-7 altogether.
    """


@documented("SG862")
def other_address() -> None:
    """Every half has the address and the MTU of the bundle, and no other.

    netplan merges the addresses of all its files. NVIDIA's assistant writes a file of its own, and
    NetworkManager keeps profiles.
    """


@documented("SG863")
def other_image() -> None:
    """The engine runs the bundle's image, with the locked digest.

    If a tag has moved, or a node pulled it later, a different image has the same name.
    """


@documented("SG864")
def other_model() -> None:
    """The Hugging Face cache has the model at the locked commit.

    Offline, an engine uses whatever commit `refs/main` currently names.
    """


@documented("SG865")
def other_variable() -> None:
    """The engine's environment and the lines of nccl.conf match the bundle.

    A container keeps the environment that it was started with.
    """


@documented("SG866")
def inactive_unit() -> None:
    """The bundle's units are active, and enabled at boot.

    A unit that has failed too often is not restarted, and a disabled one does not return after a
    reboot.
    """


@documented("SG867", Severity.WARNING)
def versions_that_differ() -> None:
    """All nodes have the same driver, kernel, firmware and release, and run the same engine.

    An image tag or a model revision is only a name: each node has what it meant at the time of the
    pull.

    An update that reached only one node is a common reason why a cluster that worked yesterday no
    longer does.
    """


@documented("SG868")
def other_command() -> None:
    """The engine runs with the bundle's command.

    A container keeps the command that it was started with until its unit is restarted.
    """


@documented("SG890")
def bundle_not_applied() -> None:
    """The files that were installed last are those of the bundle.

    A bundle that was built, reviewed or copied has no effect until install.sh has run on the node:
    the site file and the node say different things until then.
    """


@documented("SG891")
def edited_file() -> None:
    """Installed files and units are as install.sh left them.

    What somebody changes by hand is lost with the next install, and nobody else knows of it. A
    drop-in changes a unit whose own file is as it was.
    """


@documented("SG892")
def not_restarted() -> None:
    """An engine was started after the files that it reads were installed.

    install.sh restarts nothing: until the unit is restarted, the engine runs with what it read
    then.
    """


@documented("SG893")
def other_effect() -> None:
    """What the files set is in force: values of the kernel, names, routes and the firewall.

    Another program, or a person, may set other values later, without changing any file.
    """


@documented("SG894")
def other_owner() -> None:
    """Nothing else uses the GPU or configures the fabric's interfaces.

    Memory is the GPU's and the processors' alike: what else computes takes it from the engine.
    """
