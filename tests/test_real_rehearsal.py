"""A rehearsal with a real vLLM on the CPUs of two nodes: `pytest -n0 -m cluster`, by hand."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cluster import vllm_cpu
from cluster.ranks import running
from cluster.results import record
from cluster.sites import FOLDER, vllm_text
from waiting import until

pytestmark = pytest.mark.cluster

DOCKER = Path(__file__).parent / "cluster/process_docker.py"
SMALL = ("*.safetensors", "*.bin")


@contextmanager
def rehearsed(folder: Path, args: str = "{}") -> Iterator[dict[str, list[Any]]]:
    """What each node says, without weights anywhere."""
    programs = folder / "programs"
    programs.mkdir()
    for name, text in (("docker", DOCKER.read_text()), ("sync", ""), ("sysctl", "")):
        (programs / name).write_text(text or "#!/bin/sh\n")
        (programs / name).chmod(0o755)

    def write_model(tree: Path) -> None:
        model = tree / FOLDER.lstrip("/")
        vllm_cpu.write(model)
        for file in (file for kind in SMALL for file in model.glob(kind)):
            file.unlink()

    path = f"{programs}:{vllm_cpu.vllm_cpu()}"
    env = {"LAUNCH": "--rehearse", "SPARKGEN_REHEARSAL_SECONDS": "500"}
    site = vllm_text(2).replace("  args: {}\n", f"  args: {args}\n")
    with running(site, Path(path), write_model, folder, env) as cluster:
        engines = cluster.engines.values()
        until(lambda: all(engine.status is not None for engine in engines))
        for engine in engines:
            print(engine.output)
        yield {
            name: [json.loads(x) for x in engine.output.splitlines() if x.startswith("{")]
            for name, engine in cluster.engines.items()
        }


def test_served_without_weights(tmp_path: Path) -> None:
    with rehearsed(tmp_path) as said:
        _, rehearsal, end = said["spark1"]
        assert (rehearsal["status"], end["status"]) == ("accepted", "accepted")
        seen = "an answer with random weights, 2 nodes"
        record(f"vLLM {vllm_cpu.VERSION}", "none: a rehearsal", seen, rehearsal["seconds"])
        _, other = said["spark2"]
        assert other["why"].startswith("it ended with another rank: ")


def test_refused(tmp_path: Path) -> None:
    """By the rank that fails alone, in the engine's words."""
    with rehearsed(tmp_path, "{hf-overrides: {head_dim: 63}}") as said:
        _, rehearsal = said["spark1"]
        assert rehearsal["status"] == "refused"
        assert "rotary dimension" in rehearsal["message"]
