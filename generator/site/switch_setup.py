"""The setup of a switch for the cables that connect to it."""

from generator.origin import Origin, origins
from generator.records import record


@record
class SwitchLine:
    """A port of a switch, its cable, and the node's port at the other end."""

    ORIGIN = Origin("{cable}.endpoints", "each cable to a switch ends at one of its ports")
    ORIGINS = origins(
        mode=Origin("{cable}.kind", "copper unless the cable is optical: switches don't detect it")
    )

    port: str
    cable: int
    node: str
    mode: str


@record
class LosslessQueue:
    """The mark of RoCE packets, their priority, and whether marks are mapped to it."""

    ORIGIN = Origin("services.qos topology.switches", "as the nodes mark and pause it")

    dscp: int
    priority: int
    is_mapped: bool


@record
class SwitchSetup:
    """A described switch. `model` is as written, `title` None if its commands are not known.

    `mtu` in bytes is None if every port carries it by default, and `l2mtu` is that of a frame
    without its header.
    """

    ORIGIN = Origin("topology.switches cabling")
    ORIGINS = origins(
        model=Origin("topology.switches"),
        title=Origin("topology.switches"),
        os=Origin("topology.switches"),
        mtu=Origin("topology.mtu"),
        l2mtu=Origin("topology.switches topology.mtu"),
    )

    name: str
    model: str
    title: str | None
    os: str | None
    lines: tuple[SwitchLine, ...]
    mtu: int | None
    l2mtu: int
    queue: LosslessQueue | None

    @property
    def path(self) -> str:
        """The file that sets it up, or describes the settings in words."""
        return f"switches/{self.name}.{'rsc' if self.title else 'md'}"
