"""Two replicas and another model on the nodes of a bundle, behind the gateway."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bundles import Bundle, links
from programs import require, require_root
from proxied import NGINX, entering, holding, is_up, require_nginx
from waiting import until

from cluster.bare import Running, ask, launch
from cluster.llama_cpp import llama_cpp
from cluster.sites import MODEL, groups_text
from cluster.stack import BLANK
from cluster.tiny_model import write
from generator.services.proxy import Proxy
from generator.verify.namespaces import PROGRAMS, VirtualFabric, fabric


@dataclass(frozen=True)
class Gateway:
    """Engines by group and node, and the address that clients use for all of them."""

    bundle: Bundle
    network: VirtualFabric
    engines: dict[tuple[str, str], Running]
    trees: dict[str, Path]
    work: Path
    env: dict[str, str]
    url: str
    key: str
    enter: Sequence[str]

    def script(self, *argv: str) -> None:
        """Run a script of the gateway's node."""
        _run(self.enter, *argv)

    def within(self, node: str) -> list[str]:
        return self.network.command(node)

    def launch(self, group: str, node: str) -> None:
        """Start the engine of a group on a node."""
        started = launch(node, self.trees[node], self.within(node), self.work, self.env, group)
        self.engines[group, node] = started

    def stop(self, group: str, node: str) -> None:
        """Stop the engine of a group on a node, as its unit would."""
        self.engines[group, node].end()

    def answers(self, group: str) -> bool:
        """Whether the API of a group's own engine is up."""
        head = next(part for part in self.bundle.site.parts if part.group == group).head
        health = head.container.health
        assert health
        return ask(self.within(head.name), f"{health.url}/health")[0] == 200

    def complete(self, name: str, client: str = "spark2") -> tuple[int, str]:
        """The status and the body that a client on a node gets."""
        question = [{"role": "user", "content": "Hello"}]
        body = {"model": name, "messages": question, "max_tokens": 8}
        return ask(self.within(client), f"{self.url}/v1/chat/completions", body, self.key)


@contextmanager
def serving(folder: Path) -> Iterator[Gateway]:
    """Start all engines and nginx, and create a client's key."""
    require_root()
    require_nginx()
    require(*PROGRAMS, "curl", "nsenter")
    file = folder / "tiny.yaml"
    file.write_text(groups_text())
    bundle = Bundle(folder.name, file)
    trees, site = bundle.copy(folder), bundle.site
    proxy = Proxy.of(site)
    assert proxy
    addresses = {node.name: str(node.management.address) for node in site.nodes if node.management}
    for tree in trees.values():
        if not (tree / "etc/netplan").exists():
            (tree / "etc/netplan").mkdir()
            (tree / "etc/netplan/blank.yaml").write_text(BLANK)
    with fabric(trees, links(site.cables), folder, addresses) as network, ExitStack() as stack:
        started = partial(_started, stack, folder)
        argv = holding(trees[proxy.node], network.command(proxy.node))
        holder = started("node", argv).pid
        until(lambda: is_up(holder))
        enter = entering(holder)
        key = _run(enter, "/opt/sparkgen/proxy.sh", "add", "alice").strip()
        _run(enter, "/opt/sparkgen/proxy.sh", "--prepare")
        env = {"PATH": f"{llama_cpp()}:{os.environ['PATH']}", "GGML_RPC_DEBUG": "1"}
        gateway = Gateway(bundle, network, {}, trees, folder, env, proxy.url, key, enter)
        stack.callback(lambda: [engine.end() for engine in gateway.engines.values()])
        for part in site.parts:
            write(trees[part.head.name] / MODEL.lstrip("/"))
            for node in part.start_order:
                gateway.launch(part.group, node.name)
        started("nginx", [*enter, *NGINX])
        yield gateway


def _run(enter: Sequence[str], *argv: str) -> str:
    done = subprocess.run([*enter, *argv], capture_output=True, text=True, check=True)
    return done.stdout


def _started(
    stack: ExitStack, work: Path, name: str, argv: Sequence[str], **env: str
) -> "subprocess.Popen[bytes]":
    log = stack.enter_context((work / name).open("wb"))
    process = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, **env})
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process
