"""The engines of a bundle, started by `launch.sh --bare` on nodes joined by its cables."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundles import Bundle, links
from programs import require, require_root

from cluster.bare import Running, ask, completion, launch, launched
from generator.verify.namespaces import PROGRAMS, VirtualFabric, fabric


@dataclass(frozen=True)
class Cluster:
    """Nodes with one engine each."""

    bundle: Bundle
    trees: dict[str, Path]
    network: VirtualFabric
    engines: dict[str, Running]
    work: Path
    env: dict[str, str]

    @property
    def head(self) -> Running:
        return self.engines[self.bundle.site.head.name]

    @property
    def url(self) -> str:
        health = self.bundle.site.head.container.health
        assert health
        return health.url

    def within(self, node: str) -> list[str]:
        return self.network.command(node)

    def answers(self) -> bool:
        """Whether the API is up."""
        return ask(self.within(self.head.node), f"{self.url}/health")[0] == 200

    def complete(self, client: str = "spark2") -> str:
        """Request a chat completion from another node."""
        return completion(self.within(client), self.url, self.bundle.part.model.served_name)

    def launch(self, node: str) -> None:
        """Restart the engine of a node."""
        within = self.within(node)
        self.engines[node] = launch(node, self.trees[node], within, self.work, self.env)

    def is_healthy(self) -> bool:
        """Whether Docker would report the head's container as healthy."""
        health = self.bundle.site.head.container.health
        assert health
        return self.head.run(*health.test[1:]).returncode == 0


@contextmanager
def running(
    text: str,
    programs: Path,
    write_model: Callable[[Path], None],
    folder: Path,
    env: Mapping[str, str],
) -> Iterator[Cluster]:
    """Build a site, install it and its model on its nodes, and start every engine."""
    require_root()
    require(*PROGRAMS, "curl", "nsenter")
    file = folder / "tiny.yaml"
    file.write_text(text)
    bundle = Bundle(folder.name, file)
    trees = bundle.copy(folder)
    for tree in trees.values():
        write_model(tree)
    addresses = {
        node.name: str(node.management.address) for node in bundle.site.nodes if node.management
    }
    with fabric(trees, links(bundle.site.cables), folder, addresses) as network:
        within = {node: network.command(node) for node in trees}
        variables = {"PATH": f"{programs}:{os.environ['PATH']}", **env}
        with launched(trees, within, folder, variables) as engines:
            yield Cluster(bundle, trees, network, engines, folder, variables)
