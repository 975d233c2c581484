"""Rules about nodes that differ from their bundle. Documented here, checked by `check --live`."""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG860")
def node_of_another_site() -> None:
    """A capture belongs to a node of the site."""


@documented("SG861")
def lost_link() -> None:
    """Every half of a cabled port exists and has a link."""


@documented("SG862")
def other_address() -> None:
    """Every half has the address and the MTU of the bundle, and no other."""


@documented("SG863")
def other_image() -> None:
    """The engine runs the bundle's image, with the locked digest."""


@documented("SG864")
def other_model() -> None:
    """The Hugging Face cache has the model at the locked commit."""


@documented("SG865")
def other_variable() -> None:
    """The engine's environment and the lines of nccl.conf match the bundle."""


@documented("SG866")
def inactive_unit() -> None:
    """The bundle's units are active, and enabled at boot."""


@documented("SG867", Severity.WARNING)
def versions_that_differ() -> None:
    """All nodes have the same driver, kernel, firmware and release, and run the same engine."""


@documented("SG868")
def other_command() -> None:
    """The engine runs with the bundle's command."""


@documented("SG890")
def bundle_not_applied() -> None:
    """The files that were installed last are those of the bundle."""


@documented("SG891")
def edited_file() -> None:
    """Installed files and units are as install.sh left them."""


@documented("SG892")
def not_restarted() -> None:
    """An engine was started after the files that it reads were installed."""


@documented("SG893")
def other_effect() -> None:
    """What the files set is in force: values of the kernel, names, routes and the firewall."""


@documented("SG894")
def other_owner() -> None:
    """Nothing else uses the GPU or configures the fabric's interfaces."""
