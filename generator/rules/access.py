"""Rules about how clients reach a site, and what can be read on the way."""

from collections.abc import Mapping

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Severity
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.services import GATEWAY, PROXY
from generator.sitefile.declaration import Access, DeclaredEngine, Settings

Services = Mapping[str, Settings]
_OWN = "access: {tls: {authority: site}}"


@rule("SG270")
def access_without_a_proxy(access: Access, services: Services, takes_proxy: bool) -> Faults:
    """The proxy is what encrypts, so a site with certificates has one."""
    if access != Access() and PROXY not in services:
        name = PROXY if takes_proxy else GATEWAY
        yield Fault(
            "'access' encrypts nothing here: clients connect to the engine directly",
            ("access",),
            f"write '{name}: true' in services, or remove 'access'",
            at_key=True,
        )


@rule("SG271", Severity.NOTE, unless="SG270 SG273 SG682")
def keys_in_clear_text(access: Access, services: Services) -> Faults:
    """Clients' keys cross a network encrypted."""
    if PROXY in services and not access.certificate:
        yield Fault(
            "clients' keys cross the management network in clear text",
            ("services", GATEWAY if GATEWAY in services else PROXY),
            f"write '{_OWN}', or use it on a network that you trust",
            at_key=True,
        )


@rule("SG272", Severity.NOTE, unless="SG270 SG271", suppressed_by="SG704")
def engines_key_in_clear_text(
    engine: DeclaredEngine, nodes: Nodes, is_behind_proxy: bool, takes_proxy: bool
) -> Faults:
    """The key of an engine crosses a network encrypted."""
    traits = ENGINE_TRAITS[engine.name]
    is_reached = engine.bind in ("all", "management") or (not engine.bind and nodes[0].management)
    if not is_reached or is_behind_proxy or traits.api_key not in engine.secrets:
        return
    if not engine.has_all(traits.tls_flags):
        instead = f", or write 'proxy: true' in services and '{_OWN}'" if takes_proxy else ""
        yield Fault(
            "the engine's key crosses the management network in clear text",
            ("engine", "secrets", engine.secrets.index(traits.api_key)),
            f"give the engine a certificate in 'args'{instead}",
        )
