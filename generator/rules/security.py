"""Rules about what others can reach or read."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Severity
from generator.engines import ENGINES
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine


@rule("SG701", Severity.WARNING, unless="SG683")
def open_api(engine: DeclaredEngine, takes_proxy: bool) -> Faults:
    """An API on all interfaces requires a key."""
    key = ENGINE_TRAITS[engine.name].api_key
    if engine.bind == "all" and key not in engine.secrets:
        proxy = "write 'proxy: true' in services in its place, or 'bind: management'"
        instead = proxy if takes_proxy else "write 'bind: management'"
        yield Fault(
            "the API listens on all interfaces and asks for no key",
            ("engine", "bind"),
            f"write 'secrets: [{key}]', or 'bind: management'" if key else instead,
        )


@rule("SG703", Severity.WARNING)
def public_api(
    engine: DeclaredEngine, nodes: Nodes, is_behind_proxy: bool, takes_proxy: bool
) -> Faults:
    """An API on a public management network requires a key."""
    management, key = nodes[0].management, ENGINE_TRAITS[engine.name].api_key
    if engine.bind not in (None, "management") or not management or key in engine.secrets:
        return
    if is_behind_proxy:
        return
    if management.address.ip.is_global:
        proxy = "write 'proxy: true' in services, or 'bind: local' in engine"
        instead = proxy if takes_proxy else "write 'bind: local' in engine"
        yield Fault(
            f"the API listens on the public address {management.address.ip} and asks for no key",
            (*nodes[0].path, "management", "address"),
            f"write 'secrets: [{key}]' in engine, or 'bind: local'" if key else instead,
        )


@rule("SG704", Severity.NOTE, unless="SG683")
def key_of_some_paths(
    engine: DeclaredEngine, nodes: Nodes, is_behind_proxy: bool, takes_proxy: bool
) -> Faults:
    """A key of vLLM protects only some of its paths; the proxy protects all of them."""
    module, key = ENGINES[engine.name], ENGINE_TRAITS[engine.name].api_key
    is_local = engine.bind == "local" or not (engine.bind or nodes[0].management)
    if is_local or is_behind_proxy or key not in engine.secrets:
        return
    proxy = "write 'proxy: true' in services, or " if takes_proxy else ""
    if paths := module.open_paths(engine.version, engine.environment, engine.settings):
        yield Fault(
            f"the key does not protect {', '.join(paths)}",
            ("engine", "secrets", engine.secrets.index(key)),
            f"{proxy}allow only clients that you trust",
        )


@rule("SG705", unless="SG602")
def hardened_login(engine: DeclaredEngine) -> Faults:
    """A hardened container is run by Docker, and nobody logs in to it."""
    launcher = engine.launcher or ENGINE_TRAITS[engine.name].launchers[0]
    if engine.container.hardened and ENGINE_TRAITS[engine.name].needs_pmix:
        why = "sshd needs capabilities" if launcher == "mpi" else "pyxis starts the containers"
        yield Fault(
            f"'hardened' can't be combined with the launcher '{launcher}': {why}",
            ("engine", "container", "hardened"),
            "remove 'hardened'",
            at_key=True,
        )
