"""How the operator's machine reaches a site: logins to its nodes, and tunnels to their services.

Everything goes over ssh, so that nothing has to listen on more than its own address.
"""

from collections.abc import Iterator
from itertools import chain

from generator.records import record
from generator.services import GATEWAY
from generator.services.proxy import Proxy
from generator.site import Node, Part, Site
from generator.site.control_plane import LOOPBACK

# DGX OS serves its dashboard only to the node itself.
DGX_DASHBOARD = 11000

_FIRST_PORT_FOR_ALL = 1024
_LAST_PORT = 65535


@record
class Login:
    """What ssh needs for a node; `jump` is the node through which it is reached, if any."""

    node: Node
    host: str
    jump: str | None


@record
class Forward:
    """A port on the operator's machine, `local`, that is forwarded to one of a node."""

    node: str
    title: str
    local: int
    address: str
    port: int
    scheme: str = "http"


def logins(site: Site) -> tuple[Login, ...]:
    """A login for each node, by rank.

    A node without a management network is reached through the head, if that has one and they share
    a subnet of the fabric; otherwise its name must resolve on the operator's machine.
    """
    return tuple(_login(site, node) for node in site.nodes)


def _login(site: Site, node: Node) -> Login:
    if node.management:
        return Login(node, str(node.management.address.ip), None)
    if site.head.management:
        behind = {name: address for address, name in reversed(site.head.hosts)}
        if node.name in behind:
            return Login(node, behind[node.name], site.head.name)
    return Login(node, node.name, None)


def forwards(site: Site) -> tuple[Forward, ...]:
    """What the nodes serve to people, each on a local port of its own."""
    free: dict[int, Iterator[int]] = {}
    taken: set[int] = set()
    made = []
    for node, title, address, port, scheme in _served(site):
        # All nodes have the dashboard: the search goes on after the ports that are taken.
        ports = free.setdefault(port, _local(port))
        local = next(candidate for candidate in ports if candidate not in taken)
        taken.add(local)
        made.append(Forward(node, title, local, address, port, scheme))
    return tuple(made)


def images(site: Site) -> tuple[str, ...]:
    """All container images that any node runs."""
    of_services = (
        image
        for node in site.nodes
        for service in site.services.values()
        for image in service.images(node)
    )
    of_engines = (part.engine.image for part in site.parts if part.engine.image)
    of_jobs = (job.image for job in site.jobs if job.image)
    return tuple(dict.fromkeys([*of_engines, *of_services, *of_jobs]))


def fetched(site: Site) -> tuple[str, ...]:
    """What nodes download, as lines of facts: models, revisions, vocabularies, their folders."""
    return tuple(dict.fromkeys(fact for part in site.parts for fact in _fetched(part)))


def _fetched(part: Part) -> Iterator[str]:
    model = part.model
    for source in model.downloads:
        commit = f" {model.commits[source]}" if source in model.commits else ""
        yield f"MODEL={source} {model.revision_of(source)}{commit}"
    for each in model.vocabularies:
        yield f"VOCABULARY={each.sha256} {each.file} {each.url}"
    for node in part.start_order if model.downloads else ():
        yield f"HUB={node.name} {node.env['HF_HUB_CACHE']}"
        if model.vocabularies:
            yield f"VOCABULARIES={node.name} {node.env['TIKTOKEN_ENCODINGS_BASE']}"


_Served = tuple[str, str, str, int, str]


def _served(site: Site) -> Iterator[_Served]:
    """Node, title, address, port and scheme of all that is served, the most important first."""
    proxy = Proxy.of(site) if GATEWAY in site.services else None
    if proxy:
        yield proxy.node, "API", proxy.listen, proxy.port, proxy.access.scheme
    yield from dict.fromkeys(_of_engines(site, with_api=proxy is None))
    for service in site.services.values():
        for page in service.pages(site):
            yield page.node, page.title, _reached(page.listen), page.port, page.scheme
    for node in site.nodes:
        yield node.name, "DGX Dashboard", str(LOOPBACK), DGX_DASHBOARD, "http"


def _of_engines(site: Site, with_api: bool) -> Iterator[_Served]:
    """The same for engines; those that take turns on a port are listed once."""
    for part in site.parts:
        head, api, of = part.head.name, part.engine.api, f" of {part.slot}" if part.group else ""
        if with_api:
            yield head, f"API{of}", _reached(api.listen), api.port, api.scheme
        if "dashboard" in part.engine.ports:
            yield head, f"Ray dashboard{of}", str(LOOPBACK), part.engine.ports["dashboard"], "http"


def _reached(listen: str) -> str:
    """The address at which a node itself reaches what listens on `listen`."""
    return str(LOOPBACK) if listen == "0.0.0.0" else listen


def _local(port: int) -> Iterator[int]:
    """The same port, then the following ones, among those that an unprivileged user may open."""
    wanted = port if port >= _FIRST_PORT_FOR_ALL else port + 10000
    return chain(range(wanted, _LAST_PORT + 1), range(_FIRST_PORT_FOR_ALL, wanted))
