"""The interface of a service beside the engine.

Each module of `generator.services` has a subclass, which is also the record of the service in a
site, with every default filled in. The methods here are the defaults for services that have nothing
to add: their results are empty.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Self

from generator.activation import Activation
from generator.diagnostics import KeyPath
from generator.records import record, replace
from generator.site import Node, Site
from generator.site.control_plane import LOOPBACK
from generator.site.entry import Entry, OperatorEntry
from generator.site.panel import Panel
from generator.sitefile.declaration import Access, DeclaredNode, Settings
from generator.sitefile.defaults import default


@record
class Page:
    """A page that people open in a browser: the node that serves it, and where it listens."""

    node: str
    title: str
    listen: str
    port: int
    scheme: str = "http"


@record
class RequestedPort:
    """A port before a site is derived, the key that sets it, and whether that key is written."""

    number: int
    path: KeyPath
    is_written: bool


class Service:
    """A service that a site requests.

    `NAME` is its key under `services`. `ENTRIES` are its files on the nodes, `OPERATOR_ENTRIES`
    those on the operator's machine. `FORMER` are activations of files that only bundles of earlier
    releases have. `IS_ON_HEAD`:
    it runs only on the head, or where the gateway does. `IS_OF_GROUPS`: each of several engines has
    one of its own. `IS_BEFORE_ENGINES`: every request of a client passes through it. `IMAGES` are
    the fields with its container images. `KEPT` is what it stores on its node, if it is on one,
    that no bundle contains, and `PACKAGES` are what Ubuntu has to have installed for it.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    ENTRIES: ClassVar[tuple[Entry, ...]] = ()
    OPERATOR_ENTRIES: ClassVar[tuple[OperatorEntry, ...]] = ()
    FORMER: ClassVar[tuple[Activation, ...]] = ()
    KEPT: ClassVar[str] = ""
    PACKAGES: ClassVar[tuple[str, ...]] = ()
    IS_ON_HEAD: ClassVar[bool] = False
    IS_OF_GROUPS: ClassVar[bool] = False
    IS_BEFORE_ENGINES: ClassVar[bool] = False
    IMAGES: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def requested(cls, settings: Settings, host: DeclaredNode) -> Self:
        """The service with these settings and defaults; `host` is its node if it is on one."""
        return cls()

    @classmethod
    def requested_ports(cls, settings: Settings) -> Mapping[str, RequestedPort]:
        """The ports that it uses on the head, by the name that findings use for each."""
        return {}

    @classmethod
    def of(cls, site: Site) -> Self | None:
        """The site's record of this service, None if the site doesn't request it."""
        found = site.services.get(cls.NAME)
        return found if isinstance(found, cls) else None

    @property
    def named_images(self) -> tuple[str, ...]:
        """Its container images, on whichever nodes they run."""
        return tuple(getattr(self, field) for field in self.IMAGES)

    def pinned(self, pins: Mapping[str, str]) -> Self:
        """The service with the images that a lock has for their names."""
        return replace(self, **{f: pins.get(i, i) for f in self.IMAGES for i in [getattr(self, f)]})

    @property
    def address(self) -> str:
        """The address at which clients find all models, if the service combines several engines."""
        return ""

    def nccl(self) -> Mapping[str, str]:
        """NCCL variables that it sets if there is a fabric."""
        return {}

    def listeners(self, node: Node) -> Mapping[str, int]:
        """The ports that it occupies on a node, by name."""
        return {}

    def secrets(self, site: Site, node: Node) -> Iterable[str]:
        """The names of the values that it reads from the node's secrets.env."""
        return ()

    def images(self, node: Node) -> Iterable[str]:
        """The container images that it runs on a node."""
        return ()

    def opened(self, node: Node) -> Iterable[int]:
        """The ports of a node that people and other machines reach from the management network."""
        return ()

    def pages(self, site: Site) -> Iterable[Page]:
        """The pages that people open in a browser."""
        return ()

    def panels(self, site: Site) -> Iterable[Panel]:
        """Its panels on the dashboard."""
        return ()


class HostedService(Service):
    """A service that runs one image on one node, and listens on one port there."""

    __slots__ = ()

    IS_ON_HEAD = True
    IMAGES = ("image",)

    node: str
    image: str
    port: int

    @classmethod
    def requested_image(cls, settings: Settings) -> str:
        """The image that the site requests, or the default."""
        return str(settings.get("image", default(f"services.{cls.NAME}.image")))

    @classmethod
    def requested_port(cls, settings: Settings) -> int:
        """The port that the site requests, or the default."""
        return int(settings.get("port", default(f"services.{cls.NAME}.port")))

    @classmethod
    def requested_ports(cls, settings: Settings) -> Mapping[str, RequestedPort]:
        """Its own port."""
        path, number = ("services", cls.NAME, "port"), cls.requested_port(settings)
        return {cls.NAME: RequestedPort(number, path, "port" in settings)}

    def listeners(self, node: Node) -> Mapping[str, int]:
        """On its node alone."""
        return {self.NAME: self.port} if node.name == self.node else {}

    def images(self, node: Node) -> Iterable[str]:
        """On its node alone."""
        return (self.image,) if node.name == self.node else ()


class OpenService(HostedService):
    """A service that clients reach: on the management network, or on its node alone without one."""

    __slots__ = ()

    listen: str
    access: Access

    @staticmethod
    def requested_listen(host: DeclaredNode) -> str:
        """The address that clients reach."""
        return str(host.management.address.ip if host.management else LOOPBACK)

    @property
    def host(self) -> str:
        """The name or the address in URLs for clients."""
        return self.access.name or self.listen

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"{self.access.scheme}://{self.host}:{self.port}"

    @property
    def inner(self) -> str:
        """Where it is not encrypted: for its node alone, if clients get it encrypted."""
        return str(LOOPBACK) if self.access.certificate else self.listen

    @property
    def inner_url(self) -> str:
        """The base URL there."""
        return f"http://{self.inner}:{self.port}"


def on_its_node(name: str) -> Callable[[Site, Node], bool]:
    """Whether a node is the one that a service runs on; for services with a `node`."""

    def is_there(site: Site, node: Node) -> bool:
        return bool(getattr(site.services[name], "node", None) == node.name)

    return is_there
