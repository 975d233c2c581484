"""The watch over each node's memory, which ends the engine before the node freezes."""

from typing import Self

from generator.activation import DROP_IN, service_restart
from generator.origin import Origin
from generator.records import record
from generator.site import Node, Site, Words
from generator.site.entry import Entry
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings

# Enough for Docker, systemd and a login to act in; an engine below it has nothing to gain.
FLOOR_GIB = 2

_RESTART = service_restart("sparkgen-guard", "the guard")


@record
class Guard(Service):
    """What of a node's memory must be left: below it the engine is killed."""

    ORIGIN = Origin("services.guard", "when memory counts as short, generator/services/")

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
        """The floor in the unit of /proc/meminfo."""
        return self.floor_gib << 20

    def killed(self, site: Site, node: Node) -> Words:
        """The containers that are killed, in the site's order, else what started last first.

        None are named where there is one engine.
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
