"""Which ports engines and services use, and on which nodes."""

from collections.abc import Iterator, Mapping, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.engines import ENGINES
from generator.services import SERVICES
from generator.site import PORTS_OF_WORKERS
from generator.site.service import RequestedPort
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode, Settings

# By node, then by the name of the port in findings.
PortsOfNodes = Mapping[str, Mapping[str, RequestedPort]]

# Source: Ray, ray/scripts/scripts.py, `--min-worker-port` and `--max-worker-port`.
RAY_WORKERS = range(10002, 20000)


def ports_of_engine(engine: DeclaredEngine, nodes: Sequence[str]) -> PortsOfNodes:
    """The ports that an engine uses on the nodes of its ranks."""
    api = engine.port or ENGINE_TRAITS[engine.name].api_port
    head, *workers = nodes
    found = {node: dict[str, RequestedPort]() for node in nodes}
    defaults = ENGINES[engine.name].default_ports(launcher(engine), engine.parallel)
    for name, number in defaults.items():
        port = RequestedPort(
            engine.ports.get(name, number), ("engine", "ports", name), name in engine.ports
        )
        for node in workers if name in PORTS_OF_WORKERS else (head,):
            found[node][name] = port
    found[head]["api"] = RequestedPort(api, ("engine", "port"), engine.port is not None)
    return found


def launcher(engine: DeclaredEngine) -> str:
    """The launcher that the site names, or else the engine's default."""
    return engine.launcher or ENGINE_TRAITS[engine.name].launchers[0]


def has_ray_workers(engine: DeclaredEngine, number: int) -> bool:
    """Whether Ray's workers, if the engine uses Ray, take the port on every node."""
    return launcher(engine) == "ray" and number in RAY_WORKERS


def ports_of_services(
    services: Mapping[str, Settings], nodes: Sequence[DeclaredNode], front: DeclaredNode
) -> PortsOfNodes:
    """The ports that services use on each node; services that exist only once are on `front`."""
    return {node.name: dict(_on_node(services, node is front)) for node in nodes}


def _on_node(
    services: Mapping[str, Settings], is_front: bool
) -> Iterator[tuple[str, RequestedPort]]:
    for name, settings in services.items():
        if is_front or not SERVICES[name].IS_ON_HEAD:
            yield from SERVICES[name].requested_ports(settings).items()
