"""The services beside the engine: one module has everything about one service."""

from collections.abc import Mapping

from generator.services.ansible import Ansible
from generator.services.firewall import Firewall
from generator.services.guard import Guard
from generator.services.models import Models
from generator.services.monitoring import Monitoring
from generator.services.power import Power
from generator.services.proxy import Proxy
from generator.services.qos import Qos
from generator.services.ssh import Ssh
from generator.services.web_ui import WebUi
from generator.site.service import Service
from generator.sitefile.declaration import DeclaredNode, Settings

# What is left to do on a node after an installation is done in this order.
SERVICES: Mapping[str, type[Service]] = {
    service.NAME: service
    for service in (Power, Proxy, WebUi, Guard, Qos, Monitoring, Firewall, Ssh, Models, Ansible)
}


def requested(services: Mapping[str, Settings], head: DeclaredNode) -> dict[str, Service]:
    """The services that a site asks for, by name."""
    return {name: SERVICES[name].requested(services[name], head) for name in sorted(services)}
