"""Priority flow control on a switch."""

from collections.abc import Mapping

from generator.activation import service_restart
from generator.records import record
from generator.site.entry import Entry
from generator.site.service import Service

# Switches treat DSCP 26 as priority 3, which may be paused. NCCL's traffic class also has the two
# ECN bits below it, here "capable" (RFC 3168).
DSCP = 26
PRIORITY = 3
ECT_0 = 2


@record
class Qos(Service):
    """Lossless RoCE: the nodes mark its packets, and let the switch pause them."""

    NAME = "qos"
    ENTRIES = (
        Entry(
            "etc/systemd/system/sparkgen-qos.service",
            service_restart("sparkgen-qos", "priority flow control"),
            wanted=lambda site, node: bool(node.interfaces),
            values=lambda site, node: {"dscp": DSCP, "priority": PRIORITY},
        ),
    )

    def nccl(self) -> Mapping[str, str]:
        """The traffic class of NCCL's packets."""
        return {"NCCL_IB_TC": str(DSCP << 2 | ECT_0)}


SERVICE: type[Service] = Qos
