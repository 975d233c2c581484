"""The Python part of demo.sh."""

import os
import shlex
import tempfile
import time
from pathlib import Path

from bundles import links

import generator
from cluster.bare import ask, completion, launch
from cluster.llama_cpp import llama_cpp
from cluster.sites import MODEL, llama_text
from cluster.tiny_model import write
from generator.verify.namespaces import fabric

SECONDS = 120


def main() -> None:
    """Build the bundle, install it on its nodes, start them, and ask a question."""
    programs = llama_cpp()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        file = work / "tiny.yaml"
        file.write_text(llama_text(3))
        print(file.read_text())
        _show("sparkgen", "build", str(file))
        site_file = generator.read(file)
        site = site_file.site
        assert site, site_file.report()
        for path, content in site_file.tree().items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(content.text)
        trees = {node.name: work / node.name for node in site.nodes}
        write(trees[site.head.name] / MODEL.lstrip("/"))
        addresses = {
            node.name: str(node.management.address) for node in site.nodes if node.management
        }
        env = {"PATH": f"{programs}:{os.environ['PATH']}", "GGML_RPC_DEBUG": "1"}
        with fabric(trees, links(site.cables), work, addresses) as network:
            engines = []
            try:
                for node in reversed(site.nodes):
                    _show(f"{node.name}$", "/opt/sparkgen/launch.sh", "--bare")
                    within = network.command(node.name)
                    engines.append(launch(node.name, trees[node.name], within, work, env))
                client, head = network.command(site.nodes[-1].name), site.head.container.health
                assert head
                deadline = time.monotonic() + SECONDS
                while ask(client, f"{head.url}/health")[0] != 200 and time.monotonic() < deadline:
                    time.sleep(1)
                _show(f"{site.nodes[-1].name}$", "curl", f"{head.url}/v1/chat/completions")
                print(completion(client, head.url, site.model.served_name))
                for engine in engines[:-1]:
                    print(f"{engine.node} has computed {engine.output.count('compute]')} graphs")
            finally:
                for engine in engines:
                    engine.end()


def _show(prompt: str, *words: str) -> None:
    print(f"\n{prompt} {shlex.join(words)}", flush=True)


if __name__ == "__main__":
    main()
