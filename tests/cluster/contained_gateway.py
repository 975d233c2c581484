"""Complete nodes behind the gateway in its containers: two serve one model, the third another."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundles import Bundle
from programs import require, require_root
from proxied import require_nginx
from waiting import until

from cluster import docker, nodes, stack
from cluster.bare import ask
from cluster.llama_cpp import PROGRAMS, llama_cpp
from cluster.machines import Machine
from cluster.sites import MODEL, replicas_text
from cluster.tiny_model import write
from generator.services.proxy import Proxy
from generator.verify import namespaces

GATEWAY, REPLICA = "spark3", "spark2"
UNIT = "sparkgen-proxy"


@dataclass(frozen=True)
class Site:
    """Nodes that serve, their shared address, and a client's key.

    `file` is the site file, and `engine` the layer of the engine's image.
    """

    rack: stack.Rack
    url: str
    key: str
    patience: float
    file: Path
    engine: Path

    @property
    def machines(self) -> dict[str, Machine]:
        return self.rack.machines

    def wait(self, holds: Callable[[], bool]) -> None:
        until(holds, self.patience)

    def complete(self, name: str, client: str = REPLICA, key: str = "") -> tuple[int, str]:
        """The status and the body that a client on a node gets."""
        question = [{"role": "user", "content": "Hello"}]
        body = {"model": name, "messages": question, "max_tokens": 8, "temperature": 0}
        within = self.rack.network.command(client)
        return ask(within, f"{self.url}/v1/chat/completions", body, key or self.key)

    def answers(self, name: str) -> bool:
        return self.complete(name)[0] == 200


@contextmanager
def serving(folder: Path, patience: float) -> Iterator[Site]:
    """Install a bundle on all nodes and start it as the runbook says, with locally built images."""
    require_root()
    require_nginx()
    require(*namespaces.PROGRAMS, *nodes.PROGRAMS, "curl", "journalctl", "ps")
    file = folder / "tiny.yaml"
    file.write_text(replicas_text())
    bundle = Bundle(folder.name, file)
    site = bundle.site
    proxy = Proxy.of(site)
    assert proxy
    programs = {name: llama_cpp() / name for name in PROGRAMS}
    engine = docker.image(folder, programs)
    trees = {node.name: stack.prepared(bundle, node, folder) for node in site.nodes}
    for tree in trees.values():
        write(tree / MODEL.lstrip("/"))
    with stack.cabled(bundle, folder) as network, stack.Rack(trees, network) as rack:
        machine = rack.machines[GATEWAY]
        archive = docker.nginx_image(folder / "nginx")
        stack.load(machine, proxy.image, archive)
        archive.unlink()
        with ThreadPoolExecutor() as pool:
            loads = [
                pool.submit(stack.load, rack.machines[part.head.name], part.engine.image, engine)
                for part in site.parts
            ]
            for load in loads:
                load.result()
            list(pool.map(stack.install, rack.machines.values()))
        for part in site.parts:
            unit = f"sparkgen-engine-{part.group}"
            rack.machines[part.head.name].systemctl("start", "--no-block", unit)
        machine.systemctl("start", UNIT)
        key = machine.run("/opt/sparkgen/proxy.sh", "add", "alice").stdout.strip()
        yield Site(rack, proxy.url, key, patience, file, engine)
