"""A limit on the GPU's clock, and so on its power draw."""

from typing import Self

from generator.activation import service_restart
from generator.records import record
from generator.site.entry import Entry
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings


@record
class Power(Service):
    """The highest clock of the GPU, in MHz, set at each boot: the driver forgets it."""

    NAME = "power"
    ENTRIES = (
        Entry(
            "etc/systemd/system/sparkgen-power.service",
            service_restart("sparkgen-power", "the bound on the GPU's clock"),
        ),
    )

    clock_mhz: int

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """The same limit everywhere: the slowest node determines the speed of all."""
        return cls(settings["clock_mhz"])


SERVICE: type[Service] = Power
