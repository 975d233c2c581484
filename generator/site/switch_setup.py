"""The setup of a switch for the cables that connect to it."""

from generator.records import record


@record
class SwitchLine:
    """A port of a switch, its cable, and the node's port at the other end."""

    port: str
    cable: int
    node: str
    mode: str


@record
class LosslessQueue:
    """The mark of RoCE packets, their priority, and whether marks are mapped to it."""

    dscp: int
    priority: int
    is_mapped: bool


@record
class SwitchSetup:
    """A described switch. `model` is as written, `title` None if its commands are not known.

    `mtu` in bytes is None if every port carries it by default, and `l2mtu` is that of a frame
    without its header.
    """

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
