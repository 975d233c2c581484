"""Rules about what others can reach and read."""

from collections.abc import Iterator

from generator.declaration import DeclaredEngine
from generator.diagnostics import Severity, replacements
from generator.engines import ENGINES
from generator.rules.registry import Fault, documented, rule


@rule("SG701", Severity.WARNING, unless="SG702")
def open_api(engine: DeclaredEngine) -> Iterator[Fault]:
    """An API on all interfaces asks for a key.

    Without one it serves everyone who reaches the node.

    Bad:
        engine:
          bind: all

    Good:
        engine:
          bind: all
          secrets: [VLLM_API_KEY]
    """
    key = ENGINES[engine.name].API_KEY
    if engine.bind == "all" and key not in engine.secrets:
        instead = "write 'bind: management'"
        yield Fault(
            "the API listens on all interfaces and asks for no key",
            ("engine", "bind"),
            f"write 'secrets: [{key}]', or 'bind: management'" if key else instead,
        )


@rule("SG702", Severity.WARNING)
def open_dashboard(engine: DeclaredEngine) -> Iterator[Fault]:
    """Ray's dashboard does not listen on all interfaces.

    It runs what it is handed, and knows no key: whoever reaches it owns the node.

    Source: Ray, "Security" (the dashboard and job interface are for trusted networks only).

    Bad:
        engine:
          launcher: ray
          bind: all
          secrets: [VLLM_API_KEY]

    Good:
        engine:
          launcher: ray
          bind: management
          secrets: [VLLM_API_KEY]
    """
    if engine.bind == "all" and engine.launcher == "ray":
        yield Fault(
            "Ray's dashboard listens on all interfaces, and takes jobs from everybody",
            ("engine", "bind"),
            "write 'bind: management'",
            proposals=replacements(("engine", "bind"), ["management"]),
        )


@documented("SG713")
def privileged_container() -> None:
    """No container is privileged.

    RDMA asks for /dev/infiniband, an unlimited memlock and IPC_LOCK, and the bundle gives it those
    alone. A privileged container can do all that root can do on the node.

    Source: NVIDIA/dgx-spark-playbooks (device, ulimits); Docker, "Runtime privilege and Linux
    capabilities".

    Bad:
        engine:
          privileged: true

    Good:
        engine:
          bind: management
    """
