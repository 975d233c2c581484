"""Sites of groups at random, with any engines, alternatives, shared nodes and a gateway."""

import random
from itertools import chain
from typing import Any

import yaml

from generator.resources import ROOT

GOLDEN = ROOT / "tests/golden"
# Golden cases with a model and an engine, by number of nodes.
ENGINES = {
    1: ["single-web-ui", "sglang-single", "trtllm-single", "llamacpp-single"],
    2: ["direct-tensor", "sglang-direct", "trtllm-mpi-direct", "llamacpp-direct"],
}


def served(size: int, rng: random.Random) -> dict[str, Any]:
    """A model for a group of the given size, with any of the four engines."""
    file = GOLDEN / rng.choice(ENGINES[size]) / "site.yaml"
    site = yaml.safe_load(file.read_text())
    return {"model": site["model"], "engine": site["engine"]}


def sharing(rng: random.Random) -> list[dict[str, Any]]:
    """Groups that share a node, each with its own port and a part of the memory."""
    groups = []
    for index in range(rng.choice((2, 2, 3))):
        declared = served(1, rng)
        file = {key: declared["model"][key] for key in ("file",) if key in declared["model"]}
        model = {"name": "llama-3.1-8b-instruct-fp8", "context_length": 4096, **file}
        shared = {"memory_utilization": 0.2, "port": 8100 + index}
        group = {
            "name": f"s{index}",
            "nodes": ["shared"],
            "model": model | {"served_name": f"shared-{index}"},
            "engine": declared["engine"] | shared,
        }
        if rng.random() < 0.3:
            group["alternatives"] = [{"name": f"s{index}-turn", "same_as": f"s{index}"}]
        groups.append(group | {"active": f"s{index}"})
    return groups


def random_site(rng: random.Random) -> dict[str, Any]:
    """Pairs and single nodes in any order, on a switch or with one cable per pair.

    Some sites have another node that groups share, and some have a gateway on any node.
    """
    sizes = [rng.choice((1, 2)) for _ in range(rng.randint(1, 5))]
    kind = rng.choice(("switch", "pairs")) if 2 in sizes else "single"
    names = [f"n{index}" for index in range(sum(sizes))]
    rng.shuffle(names)
    free = iter(names)
    members = [[next(free) for _ in range(size)] for size in sizes]
    pairs = [group for group in members if len(group) == 2]
    cables = [f"[{a}:p0, {b}:p0]" for a, b in pairs]
    if kind == "switch":
        cables = [f"[{name}:p0, rack:{index}]" for index, name in enumerate(chain(*pairs))]
    groups: list[dict[str, Any]] = []
    for index, group in enumerate(members):
        like = [g for g in groups if "same_as" not in g and len(g["nodes"]) == len(group)]
        reference = {"same_as": rng.choice(like)["name"]} if like and rng.random() < 0.3 else None
        others = [
            {"name": f"g{index}-{turn}", **served(len(group), rng)}
            for turn in range(rng.choice((0, 0, 1, 2)))
        ]
        groups.append(
            {
                "name": f"g{index}",
                "nodes": group,
                **(reference or served(len(group), rng)),
                **({"alternatives": others} if others else {}),
                "active": rng.choice([f"g{index}", *(other["name"] for other in others)]),
            },
        )
    names.sort()
    if rng.random() < 0.5:
        names.append("shared")
        groups += sharing(rng)
    front: dict[str, Any] = {"web_ui": True} if rng.random() < 0.5 else {}
    front = {"gateway": {"node": rng.choice(names)}, **front} if rng.random() < 0.5 else {}
    for each in (each for group in groups for each in (group, *group.get("alternatives", ()))):
        # Clients must not be able to bypass the gateway.
        if front and "engine" in each:
            each["engine"].pop("bind", None)
    return {
        "version": 1,
        "name": "lab",
        "nodes": [
            {"name": name, "management": {"address": f"10.0.0.{index + 1}/24"}}
            for index, name in enumerate(names)
        ],
        **({"cabling": [{"endpoints": yaml.safe_load(ends)} for ends in cables]} if cables else {}),
        "topology": {"kind": kind},
        "groups": groups,
        "services": front
        | dict.fromkeys(
            (
                "firewall",
                "guard",
                "monitoring",
                "ssh",
                *(["qos"] if kind == "switch" else []),
            ),
            True,
        ),
    }
