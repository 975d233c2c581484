"""Engines that share a node: how much memory each is told to use, whichever starts first."""

import random
from itertools import permutations
from typing import Any

import pytest
import yaml

from generator.bundle.render import render
from generator.fit.formulas import GIB
from generator.fit.together import GroupFit, shared_nodes, table
from generator.pipeline import Reading, read_site
from generator.services.guard import Guard
from generator.site import Site
from generator.site.complete import CompleteDeclaration
from generator.sitefile.declaration import DeclaredNode

VISIBLE, SYSTEM, NOT_FREE = 119.7, 16.0, 11.7
# Llama 3.1 8B: 32 layers, 8 KV heads of 128, keys and values in 16 bits.
TOKEN_BYTES = 32 * 8 * 128 * 2 * 2
CHAT = {
    "name": "chat",
    "nodes": ["spark1"],
    "model": {"name": "gpt-oss-20b", "context_length": 32768},
    "engine": {
        "name": "vllm",
        "version": "0.33.0",
        "image": "vllm/vllm-openai:v0.33.0",
        "memory_utilization": 0.45,
    },
}
SMALL = {
    "name": "small",
    "nodes": ["spark1"],
    "model": {"name": "llama-3.1-8b-instruct-fp8", "context_length": 8192},
    "engine": {
        "name": "sglang",
        "version": "0.5.23",
        "image": "lmsysorg/sglang:v0.5.23-cu130",
        "port": 8001,
        "memory_utilization": 0.3,
    },
}

TENSORRT = SMALL | {
    "engine": {
        "name": "tensorrt-llm",
        "version": "1.3.0rc29",
        "image": "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc29",
        "port": 8001,
        "memory_utilization": 0.3,
    },
}


def read(*groups: dict[str, Any]) -> Reading:
    text = yaml.safe_dump(
        {
            "version": 1,
            "name": "lab",
            "nodes": [{"name": "spark1", "management": {"address": "10.0.0.11/24"}}],
            "topology": {"kind": "single"},
            "groups": list(groups),
        }
    )
    return read_site("lab.yaml", text.encode())


def declaration_of(*groups: dict[str, Any]) -> CompleteDeclaration:
    declaration = read(*groups).declaration
    assert declaration
    return declaration


def site_of(*groups: dict[str, Any]) -> Site:
    reading = read(*groups)
    assert reading.site, [finding.message for finding in reading.findings]
    return reading.site


def flags_of(site: Site, group: str) -> dict[str, str]:
    """The flags of the only rank of a group."""
    node = next(each for each in site.groups if each.group == group).nodes[0]
    words = [word.partition("=") for words in node.container.command for word in words]
    return {name: value for name, _, value in words}


def pool_gib(flags: dict[str, str], free: float, held: float) -> float:
    """The size of SGLang's KV cache, as `_profile_available_bytes` measures it.

    `free` is what it finds at its start, `held` the part of it that its weights take.
    """
    room = free - held - free * (1 - float(flags["--mem-fraction-static"]))
    return min(room, int(flags["--max-total-tokens"]) * TOKEN_BYTES / GIB)


@pytest.mark.parametrize("groups", list(permutations([CHAT, SMALL])))
def test_sglang_takes_the_same_whichever_is_started_first(groups: Any) -> None:
    site = site_of(*groups)
    flags = flags_of(site, "small")
    memory = next(group.memory for group in site.groups if group.group == "small")
    assert memory
    [node] = memory.nodes
    weights = node.weights_gib
    share = 0.3 * (VISIBLE - NOT_FREE)
    others = 0.45 * VISIBLE
    assert float(flags["--mem-fraction-static"]) == pytest.approx(
        0.3 * VISIBLE / (VISIBLE - SYSTEM - others), abs=0.001
    )
    assert int(flags["--max-total-tokens"]) * TOKEN_BYTES / GIB == pytest.approx(
        share - weights, abs=0.02
    )
    # Alone, beside vLLM, and beside vLLM and all that the system may use.
    for used in (0.0, 4.0, others, others + 4.0, others + SYSTEM):
        assert pool_gib(flags, VISIBLE - used, weights) == pytest.approx(share - weights, abs=0.1)


@pytest.mark.parametrize("groups", list(permutations([CHAT, TENSORRT])))
def test_tensorrt_llm_takes_its_share_whichever_is_started_first(groups: Any) -> None:
    site = site_of(*groups)
    part = next(part for part in site.groups if part.group == "small")
    cache = part.nodes[0].container.options["kv_cache_config"]
    assert part.memory
    [node] = part.memory.nodes
    held = node.weights_gib + node.reserve_gib
    bound = min(cache["max_tokens"] * TOKEN_BYTES, cache["max_gpu_total_bytes"]) / GIB
    assert bound == pytest.approx(0.3 * VISIBLE - held, abs=0.02)
    # Alone, beside vLLM, and beside vLLM and all that the system may use: `_cal_max_memory`.
    for others in (0.0, 0.45 * VISIBLE, 0.45 * VISIBLE + SYSTEM):
        room = (VISIBLE - others - held) * cache["free_gpu_memory_fraction"]
        assert min(room, bound) == pytest.approx(0.3 * VISIBLE - held, abs=0.02)


def test_tensorrt_llm_alone_on_its_node_has_no_bound() -> None:
    cache = site_of(TENSORRT).groups[0].nodes[0].container.options["kv_cache_config"]
    assert cache.keys() == {"free_gpu_memory_fraction"}


@pytest.mark.parametrize("seed", range(12))
def test_engines_start_in_any_order_and_leave_the_system_its_part(seed: int) -> None:
    """VLLM needs its share of the total to be free; SGLang gets the cache that `fit` promises."""
    rng = random.Random(seed)
    groups = []
    for index in range(rng.randint(2, 3)):
        like = rng.choice((CHAT, SMALL)) if index else SMALL
        share = round(rng.uniform(0.2, 0.25), 2)
        engine = like["engine"] | {"port": 8000 + index, "memory_utilization": share}  # type: ignore[operator]
        groups.append(like | {"name": f"g{index}", "engine": engine})
    site = site_of(*groups)
    for order in permutations(site.groups):
        used = rng.uniform(0, SYSTEM)
        held = 0.0
        for part in order:
            assert part.memory
            [node] = part.memory.nodes
            share, free = part.engine.memory_utilization * VISIBLE, VISIBLE - used - held
            if part.engine.name == "vllm":
                assert share <= free
                held += share
                continue
            pool = pool_gib(flags_of(site, part.group), free, node.weights_gib)
            assert pool == pytest.approx(node.kv_room_gib, abs=0.1)
            held += node.weights_gib + node.reserve_gib + pool
        assert held <= VISIBLE - SYSTEM


def test_fit_adds_up_what_the_engines_of_a_node_hold() -> None:
    turn = {"name": "coder", "model": CHAT["model"]}
    engine = CHAT["engine"] | {"memory_utilization": 0.5}  # type: ignore[operator]
    chat = CHAT | {"alternatives": [turn | {"engine": engine}]}
    site = site_of(chat, SMALL)
    parts = [
        GroupFit(part.group, part.slot, declared.nodes, declared.engine, part.memory)
        for part, declared in zip(site.groups, declaration_of(chat, SMALL).groups, strict=True)
    ]
    [found] = shared_nodes(parts)
    small = site.groups[2].memory
    assert small
    reserve = small.nodes[0].reserve_gib
    assert [engine.group for engine in found.engines] == ["coder", "small"]
    assert [engine.gib for engine in found.engines] == pytest.approx(
        [0.5 * VISIBLE, 0.3 * (VISIBLE - NOT_FREE) + reserve], abs=0.05
    )
    assert found.together_gib + found.system_gib == pytest.approx(VISIBLE, abs=0.01)
    assert "coder 59.9, small 41.1" in table([found], None)
    assert shared_nodes(parts[2:]) == []


def test_other_programs_count_once() -> None:
    """The system has less by what they hold, whether one engine or several share the node."""
    read_alike = [
        read_with(other, CHAT, SMALL) for other in ([], [{"name": "comfyui", "gib": 6.5}])
    ]
    found = []
    for declared in read_alike:
        parts = [GroupFit(g.group, g.slot, g.nodes, g.engine, g.memory) for g in declared.groups]
        [shared] = shared_nodes(parts)
        memory = declared.groups[0].memory
        assert memory
        found.append((shared.system_gib, shared.together_gib, memory.nodes[0].system_gib))
    (before, held, alone), (after, still, left) = found
    assert (before - after, alone - left) == pytest.approx((6.5, 6.5), abs=0.02)
    assert held == still


def read_with(other: list[dict[str, Any]], *groups: dict[str, Any]) -> CompleteDeclaration:
    node: dict[str, Any] = {"name": "spark1", "management": {"address": "10.0.0.11/24"}}
    node |= {"other": other} if other else {}
    text = yaml.safe_dump({"version": 1, "name": "lab", "nodes": [node], "groups": list(groups)})
    declaration = read_site("lab.yaml", text.encode()).declaration
    assert declaration
    return declaration


@pytest.mark.parametrize(
    ("order", "killed"),
    [
        ([], ["small", "coder", "chat"]),
        (["chat"], ["chat", "small", "coder"]),
        (["coder", "chat"], ["coder", "chat", "small"]),
    ],
)
def test_guard_stops_in_the_order_of_the_site(order: list[str], killed: list[str]) -> None:
    chat = CHAT | {"alternatives": [{"name": "coder", "same_as": "chat"}]}
    site = site_of(chat, SMALL)
    guard = Guard.requested({"order": order}, DeclaredNode.__new__(DeclaredNode))
    assert guard.killed(site, site.head) == tuple(f"sparkgen-engine-{name}" for name in killed)


def test_runbook_counts_what_an_engine_has_beside_its_share() -> None:
    site = site_of(CHAT, SMALL)
    memory = site.groups[1].memory
    assert memory
    taken = 0.3 * (VISIBLE - NOT_FREE) + memory.nodes[0].reserve_gib
    share = round(taken / VISIBLE, 3)
    row = f"| spark1 | chat (0.45), small ({share} with its reserve) | {round(0.45 + share, 3)} |"
    assert row in render(site, "")["README.md"].text.splitlines()


def test_engine_alone_on_its_node_has_no_bound() -> None:
    flags = flags_of(site_of(SMALL), "small")
    assert flags["--mem-fraction-static"] == "0.3"
    assert "--max-total-tokens" not in flags


def test_largest_alternative_counts() -> None:
    def with_turn(share: float) -> dict[str, Any]:
        engine = CHAT["engine"] | {"memory_utilization": share}  # type: ignore[operator]
        turn = {"name": "coder", "model": CHAT["model"], "engine": engine}
        return CHAT | {"alternatives": [turn]}

    beside = [
        flags_of(site_of(with_turn(share), SMALL), "small")["--mem-fraction-static"]
        for share in (0.3, 0.45, 0.5)
    ]
    assert (
        beside[0] == beside[1] == flags_of(site_of(CHAT, SMALL), "small")["--mem-fraction-static"]
    )
    assert float(beside[2]) > float(beside[1])


def test_llama_cpp_leaves_the_rest_free() -> None:
    """`--fit-target` is the memory to leave free, so what others hold is not part of it."""
    engine = {
        "name": "llama.cpp",
        "version": "0.5.0-dev",
        "image": "llama.cpp-rpc:0c1e57098",
        "port": 8081,
        "memory_utilization": 0.2,
    }
    model = {"source": "/srv/m", "file": "/srv/m/x.gguf", "context_length": 8192}
    gguf = {"name": "gguf", "nodes": ["spark1"], "model": model, "engine": engine}

    def target(*groups: dict[str, Any]) -> float:
        part = next(each for each in site_of(*groups).groups if each.group == "gguf")
        words = [word for words in part.nodes[0].container.command for word in words]
        return int(words[words.index("--fit-target") + 1]) / 1024

    assert target(gguf) == pytest.approx(0.8 * VISIBLE, abs=0.1)
    left = VISIBLE - 0.45 * VISIBLE - SYSTEM
    assert target(CHAT, gguf) == pytest.approx(left - 0.2 * VISIBLE, abs=0.1)
    assert target(gguf, CHAT) == target(CHAT, gguf)


def test_explicit_bounds_are_used() -> None:
    engine = SMALL["engine"] | {"args": {"max-total-tokens": 65536}}  # type: ignore[operator]
    flags = flags_of(site_of(CHAT, SMALL | {"engine": engine}), "small")
    assert flags["--max-total-tokens"] == "65536"


def test_explicit_bound_of_states_is_used() -> None:
    """A fixed number of states leaves the rest of the pool to tokens, which are then limited."""
    model = {"name": "nvidia-nemotron-3-nano-30b-a3b-nvfp4", "context_length": 8192}
    engine = SMALL["engine"] | {"args": {"max-mamba-cache-size": 40}}  # type: ignore[operator]
    flags = flags_of(site_of(CHAT, SMALL | {"model": model, "engine": engine}), "small")
    assert flags["--max-mamba-cache-size"] == "40"
    assert int(flags["--max-total-tokens"]) > 8192
