"""The watch over each node's memory, which stops the engine before the node freezes."""

from typing import Self

from generator.activation import DROP_IN, service_restart
from generator.records import record
from generator.site import Node, Site, Words
from generator.site.entry import Entry
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings

# Enough for Docker, systemd and a login to work; an engine has nothing to gain below it.
FLOOR_GIB = 2

_RESTART = service_restart("sparkgen-guard", "the guard")


@record
class Guard(Service):
    """How much of a node's memory must stay free: below that the engine is killed."""

    NAME = "guard"
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-guard.service", _RESTART),
        Entry("etc/systemd/system/ssh.service.d/sparkgen.conf", DROP_IN),
        Entry("etc/systemd/system/system.slice.d/sparkgen.conf", DROP_IN),
        Entry("opt/sparkgen/guard.py", _RESTART, payload=True),
    )

    floor_gib: int
    order: Words

    @property
    def floor_kib(self) -> int:
        """The floor in KiB, the unit of /proc/meminfo."""
        return self.floor_gib << 20

    def killed(self, site: Site, node: Node) -> Words:
        """The containers to kill, in the site's order, otherwise the last one started first.

        Empty if there is only one engine.
        """
        if not site.groups:
            return ()
        units = {part.group: part.unit for part, _ in reversed(site.parts_of(node.name))}
        return tuple(units[name] for name in dict.fromkeys((*self.order, *units)) if name in units)

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """The same floor everywhere."""
        return cls(FLOOR_GIB, tuple(settings.get("order", ())))


SERVICE: type[Service] = Guard
