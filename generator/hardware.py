"""What a DGX Spark is: its ports, their halves, and the names that DGX OS gives them.

A QSFP port is two PCIe x4 halves, each with an Ethernet interface and a RoCE device of its own.
Source: docs.nvidia.com/dgx/dgx-spark, "Spark clustering", table of the ConnectX-7 interfaces.
"""

from collections.abc import Mapping

from generator.records import record

PORTS = (0, 1)
PORT_NAMES = tuple(f"p{port}" for port in PORTS)
HALVES = (0, 1)

# Memory that CUDA sees on a 128 GB Spark, which is MemTotal of /proc/meminfo to the byte. There are
# two counts. The lower one, 125,513,944 kB, is that of the first releases (leptonai/gpud pull
# request 1170, December 2025); the higher one, 127,506,432 to 127,600,748 kB, that of releases of
# 2026 (XuehaiPan/nvitop pull request 208; unslothai/unsloth pull request 10486: no carve-out of
# firmware determines it). What does determine it isn't known. They differ by 2 GiB, as much as
# Ubuntu reserves for a crash kernel, but that is not the cause: DGX OS has crashkernel=1G-:0M, and
# a Dell with it had the lower count in November 2025 (its sbc-bench). The lower one was still seen
# in September 2026. The 64 GB model is assumed to be in proportion.
VISIBLE_GIB = {128: 119.7, 64: 59.8}
NEWER_VISIBLE_GIB = {128: 121.6, 64: 60.8}

# The management port and the Wi-Fi, the same on every Spark.
RJ45 = "enP7s7"
WIFI = "wlP9s9"

DAC_REACH_M = 5.0


@record
class Half:
    """One PCIe half of one QSFP port: port 0 is the left one, beside the RJ45."""

    port: int
    half: int

    def __lt__(self, other: "Half") -> bool:
        return (self.port, self.half) < (other.port, other.half)

    @property
    def interface(self) -> str:
        """The Ethernet interface: `enp1s0f0np0`, `enP2p1s0f0np0` (the names are case sensitive)."""
        return f"en{self._function}np{self.port}"

    @property
    def hca(self) -> str:
        """The RoCE device: `rocep1s0f0`, `roceP2p1s0f0`."""
        return f"roce{self._function}"

    def __str__(self) -> str:
        return f"p{self.port}.h{self.half}"

    @property
    def _function(self) -> str:
        domain = "p1s0" if self.half == 0 else "P2p1s0"
        return f"{domain}f{self.port}"


# By the names of their interfaces.
FABRIC_HALVES: Mapping[str, Half] = {
    half.interface: half for half in (Half(port, half) for port in PORTS for half in HALVES)
}
