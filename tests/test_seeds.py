"""What the field's guides say against the hardware, and the proof of what sparkgen does instead.

A proof is a test, `FILE::FUNCTION`; a site of `errors/`; or a case of `golden/`.
"""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from bundles import BUNDLES
from programs import require

TESTS = Path(__file__).parent

SEEDS = {
    "the second interface of a port has an address too: variables come from what netplan gets": (
        "test_golden.py::test_first_node_of_lab_mesh_has_these_addresses_and_nothing_else",
        "test_topologies.py::test_groups_of_ranks",
        "errors/SG402-socket-interface",
        "errors/SG414-half-without-address",
        "errors/SG414-socket-of-a-half-without-address",
    ),
    "each half of a port is in a subnet of its own": (
        "test_network.py::test_fabric_works_and_every_lost_address_is_reported",
        "errors/SG301-both-halves",
        "golden/direct-first-half",
    ),
    "no GPUDirect RDMA: nothing about it is emitted, and a setting of it is told": (
        "errors/SG418-level",
        "errors/SG418-dma-buf",
    ),
    "nccl.conf replaces that of DGX OS, which turns RDMA off": (
        "test_golden.py::test_nccl_conf_agrees_with_the_engines_environment",
        "test_golden.py::test_nccl_conf_is_in_the_grammar_of_nccl",
        "errors/SG416-disabled-on-all-nodes",
    ),
    "tensor and pipeline parallelism by the site's word, with what each costs": (
        "test_fit.py::test_alternatives_are_splits_that_the_engine_takes",
        "errors/SG510-attention-heads",
        "golden/ring-native",
    ),
    "the KV cache is counted by its own heads": (
        "test_fit.py::test_cache_of_the_catalog_follows_from_the_formulas",
        "test_fit.py::test_kv_heads_are_replicated_over_more_ranks",
    ),
    "flags are those of the pinned release, with what replaced them": (
        "errors/SG633-gone-and-replaced",
        "errors/SG633-gone-since",
        "errors/SG637-choice",
    ),
    "TensorRT-LLM serves without an engine that is built first": (
        "test_tensorrt_llm.py::test_flags_of_a_version",
        "golden/trtllm-mpi-direct",
    ),
    "Compose files are accepted: no ports on the host's network": (
        "test_consumers.py::test_web_ui",
        "golden/direct-web-ui",
    ),
    "least privilege, and addresses as the site says": (
        "test_services.py::test_firewall_lets_in_only_what_it_should",
        "test_consumers.py::test_units_are_hardened",
        "errors/SG701-open-api",
        "golden/direct-container",
    ),
    "nodes wait for each other, within bounds, and say for whom": (
        "test_lifecycle.py::test_late_cable",
        "test_mpi.py::test_head_without_workers_gives_up",
        "test_network.py::test_forever_waits_and_reports_faults_once",
    ),
    "one owner of restarts, with a limit": (
        "test_lifecycle.py::test_restarts_are_bounded",
        "test_nodes.py::check_container",
    ),
    "priority flow control only where the site asks for it, on a switch": (
        "test_services.py::test_dcb_accepts_its_commands",
        "golden/switch-services",
    ),
    "frames of 9000 bytes where both ends are ours, and the same at both": (
        "test_network.py::test_forever_waits_and_reports_faults_once",
        "golden/switch-native",
    ),
    "three nodes do not share heads that three does not divide": ("errors/SG510-kv-heads",),
    "an image by its digest": (
        "test_lock.py::test_build_uses_the_lock",
        "test_policy.py::test_digest_of_an_image_that_is_built",
        "errors/SG609-no-tag",
    ),
    "a model of 203 GB does not fit two nodes with the context that was asked for": (
        "test_fit.py::test_llama_405b_in_nvfp4_does_not_fit_two_nodes_and_does_three",
        "test_fit.py::test_formulas_agree_with_published_figures",
    ),
    "FP4 through CUTLASS in early releases is told": (
        "errors/SG527-dense",
        "errors/SG527-experts",
    ),
    "what people do on the cables themselves: trainings, tests, nccl-tests": (
        "test_jobs.py::test_job_between_two_servings",
        "test_slurm.py::test_job_beside_an_engine",
        "golden/network-pair",
    ),
    "logins: a key per node, three tries in 20 seconds, no passwords from elsewhere": (
        "test_services.py::test_sshd",
        "test_services.py::test_ssh_knows_a_node_by_all_its_names",
        "test_services.py::test_keys_are_copied_once",
        "test_seeds.py::test_runbook_commands_at_the_machine",
    ),
}


def test_runbook_commands_at_the_machine(tmp_path: Path) -> None:
    """A host key is forgotten under the name that ssh keeps it under, and tmux takes the name."""
    require("ssh-keygen", "tmux")
    bundle = next(bundle for bundle in BUNDLES if bundle.name == "lab-mesh")
    runbook = (bundle.folder / "README.md").read_text()
    [forget] = re.findall(r"`(ssh-keygen -R [^`]+)`", runbook)
    [work] = re.findall(r"`tmux (new -A -s [^`]+)`", runbook)
    known = tmp_path / "known_hosts"
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8dVqMCb9zWQ1bY1QF4rHh3yBq0nVJx3nGx0xYk5N1h"
    known.write_text(f"spark1.lab-mesh {key}\nspark2.lab-mesh {key}\n")
    subprocess.run([*forget.split(), "-f", str(known)], check=True, capture_output=True)
    assert known.read_text() == f"spark2.lab-mesh {key}\n"
    tmux = ["tmux", "-S", str(tmp_path / "tmux")]
    # Detached, as no terminal is here.
    subprocess.run([*tmux, *work.split(), "-d", "sleep 60"], check=True)
    shown = subprocess.run([*tmux, "ls"], capture_output=True, text=True)
    subprocess.run([*tmux, "kill-server"], check=True)
    assert shown.stdout.startswith("lab-mesh:")


@cache
def functions(file: str) -> frozenset[str]:
    """The functions of a module of tests."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("seed", SEEDS)
def test_proof_exists(seed: str) -> None:
    for proof in SEEDS[seed]:
        file, _, function = proof.partition("::")
        if function:
            assert function in functions(file), proof
        else:
            found = (TESTS / f"{file}.yaml", TESTS / file / "site.yaml")
            assert any(path.is_file() for path in found), proof
