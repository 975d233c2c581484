"""llama.cpp with CUDA over RPC, started by a bundle's launch.sh on each node of a ring of three.

    PYTHONPATH=.:tests python -m gpu.llama FOLDER

FOLDER contains llama-server and ggml-rpc-server, built with CUDA and RPC. Needs root, one NVIDIA
GPU, curl, and a free API port: all nodes share the GPU.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from cluster.bare import ask, completion, launched
from cluster.sites import MODEL, llama_text
from cluster.tiny_model import write

import generator
from gpu.cables import cabled

SECONDS = 120


def main() -> int:
    """Serve a completion over all ranks."""
    site_file = generator.parse(llama_text(3))
    site = site_file.site
    assert site, site_file.report()
    tree = site_file.tree()
    with tempfile.TemporaryDirectory() as folder, cabled(site) as names:
        work = Path(folder)
        for path in tree:
            target = work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(tree[path].text)
        write(work / site.head.name / MODEL.lstrip("/"))
        trees = {node.name: work / node.name for node in site.nodes}
        within = {node: ("ip", "netns", "exec", name) for node, name in names.items()}
        env = {"PATH": f"{sys.argv[1]}:{os.environ['PATH']}", "GGML_RPC_DEBUG": "1"}
        health = site.head.container.health
        assert health
        url = health.url
        with launched(trees, within, work, env) as engines:
            deadline = time.monotonic() + SECONDS
            while ask(within[site.head.name], f"{url}/health")[0] != 200:
                ended = [engine for engine in engines.values() if engine.status is not None]
                if ended or time.monotonic() > deadline:
                    break
                time.sleep(0.5)
            print(completion(within[site.head.name], url, site.model.served_name))
            computed = {name: engines[name].output.count("compute]") for name in engines}
            print("graphs computed:", *(f"{name} {computed[name]}" for name in computed))
    return int(not all(computed[node.name] for node in site.workers))


if __name__ == "__main__":
    sys.exit(main())
