"""Exporters on each node, and configuration for a Prometheus and a Grafana elsewhere."""

from collections.abc import Iterator, Mapping
from typing import Self

from generator.activation import NOTHING, service_restart
from generator.records import record
from generator.services.dashboard import dashboard
from generator.site import Node, Site
from generator.site.entry import Entry, OperatorEntry
from generator.site.panel import Panel, panels_of
from generator.site.service import RequestedPort, Service
from generator.sitefile.declaration import DeclaredNode, Settings

NODE_IMAGE = "quay.io/prometheus/node-exporter:v1.9.1"
GPU_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"

# The exporters' well-known ports.
NODE_PORT = 9100
GPU_PORT = 9400

_RESTART = service_restart("sparkgen-monitoring", "the exporters")


@record
class Monitoring(Service):
    """The exporters of each node: their images, and the ports that they listen on."""

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
        shown = ("nodes", "groups" if site.groups else "targets", "checks")
        for what in (*shown, "fabric") if site.has_fabric else shown:
            yield from panels_of(what)


SERVICE: type[Service] = Monitoring
