"""What a DGX Spark is: its ports, their halves, and the names that DGX OS gives them.

A QSFP port is two PCIe x4 halves, each with an Ethernet interface and a RoCE device of its own.
Source: docs.nvidia.com/dgx/dgx-spark, "Spark clustering", table of the ConnectX-7 interfaces.
"""

from dataclasses import dataclass

PORTS = (0, 1)
HALVES = (0, 1)

# Memory that CUDA sees on a 128 GB Spark: 128,501,256,192 bytes, the lower of two published figures
# (the other is 121.7 GiB). The 64 GB model is taken in proportion.
VISIBLE_GIB = {128: 119.7, 64: 59.8}

# The management port, the same on every Spark.
RJ45 = "enP7s7"

DAC_REACH_M = 5.0


@dataclass(frozen=True, slots=True, order=True)
class Half:
    """One PCIe half of one QSFP port: port 0 is the left one, beside the RJ45."""

    port: int
    half: int

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
