"""Exporters on each node, and configuration for a Prometheus and a Grafana elsewhere."""

from collections.abc import Iterator, Mapping
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.origin import Origin
from generator.records import record
from generator.services.dashboard import dashboard
from generator.site import Node, Site
from generator.site.entry import Entry, OperatorEntry
from generator.site.panel import Panel
from generator.site.service import RequestedPort, Service
from generator.sitefile.declaration import DeclaredNode, Settings

NODE_IMAGE = "quay.io/prometheus/node-exporter:v1.9.1"
GPU_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"

# The exporters' well-known ports.
NODE_PORT = 9100
GPU_PORT = 9400

_RESTART = service_restart("sparkgen-monitoring", "the exporters")

_NODES = (
    Panel("Memory available", "bytes", (("node_memory_MemAvailable_bytes", "{{node}}"),)),
    Panel("GPU", "percent", (("DCGM_FI_DEV_GPU_UTIL", "{{node}}"),)),
    Panel("GPU power", "watt", (("DCGM_FI_DEV_POWER_USAGE", "{{node}}"),)),
    Panel("GPU temperature", "celsius", (("DCGM_FI_DEV_GPU_TEMP", "{{node}}"),)),
    Panel(
        "Free disk space",
        "bytes",
        (('node_filesystem_avail_bytes{mountpoint="/"}', "{{node}}"),),
    ),
)
_CHECKS = Panel(
    "Checks that fail", "short", (("sum by (node) (sparkgen_check_failed)", "{{node}}"),)
)
_TARGETS = Panel("Targets", "short", (("up", "{{job}} {{node}}"),))
# Of groups that take turns on ports of their own, all but one are down.
_TARGETS_OF_GROUPS = Panel(
    "Targets", "short", (("max by (job, node, group) (up)", "{{job}} {{node}} {{group}}"),)
)

# RDMA bypasses the kernel: interfaces do not count it, but HCAs do.
_FABRIC = (
    Panel(
        "RoCE received",
        "Bps",
        (("rate(node_infiniband_port_data_received_bytes_total[1m])", "{{node}} {{device}}"),),
    ),
    Panel(
        "RoCE sent",
        "Bps",
        (("rate(node_infiniband_port_data_transmitted_bytes_total[1m])", "{{node}} {{device}}"),),
    ),
    Panel(
        "Fabric errors",
        "short",
        (
            (
                'rate(node_network_receive_errs_total{device=~"en.*p1s0f.*"}[5m])',
                "{{node}} {{device}}",
            ),
        ),
    ),
)


@record
class Monitoring(Service):
    """The exporters of each node: their images, and the ports that they listen on."""

    ORIGIN = Origin("services.monitoring", "the exporters' own, generator/services/")

    NAME = "monitoring"
    IMAGES = ("node_image", "gpu_image")
    ENTRIES = (
        Entry("etc/systemd/system/sparkgen-monitoring.service", _RESTART),
        Entry("etc/systemd/system/sparkgen-verify.service", _RESTART),
        Entry("etc/systemd/system/sparkgen-verify.timer", _RESTART),
        Entry("opt/sparkgen/monitoring.yaml", _RESTART),
        Entry("opt/sparkgen/verify.py", NOTHING, 0o755, payload=True),
    )
    OPERATOR_ENTRIES = (
        OperatorEntry("operator/alerts.yml"),
        OperatorEntry("operator/prometheus.yml"),
        OperatorEntry("operator/dashboard.json", made=dashboard),
    )

    node_image: str
    node_port: int
    gpu_image: str
    gpu_port: int

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """The same exporters everywhere."""
        return cls(NODE_IMAGE, NODE_PORT, GPU_IMAGE, GPU_PORT)

    @classmethod
    def requested_ports(cls, settings: Settings) -> Mapping[str, RequestedPort]:
        """The exporters' ports, which no key sets."""
        path = ("services", cls.NAME)
        return {
            "node exporter": RequestedPort(NODE_PORT, path, is_written=False),
            "GPU exporter": RequestedPort(GPU_PORT, path, is_written=False),
        }

    def images(self, node: Node) -> Iterator[str]:
        """Both exporters."""
        yield from (self.node_image, self.gpu_image)

    def opened(self, node: Node) -> Iterator[int]:
        """Prometheus scrapes both over the management network."""
        yield from (self.node_port, self.gpu_port)

    def panels(self, site: Site) -> Iterator[Panel]:
        """The nodes, and their fabric if they have one."""
        yield from _NODES
        yield _TARGETS_OF_GROUPS if site.groups else _TARGETS
        yield _CHECKS
        if site.has_fabric:
            yield from _FABRIC


SERVICE: type[Service] = Monitoring
