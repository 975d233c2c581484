"""What the field's guides say against the hardware, and the proof of what sparkgen does instead.

A proof is a test, `FILE::FUNCTION`; a site of `errors/`; or a case of `golden/`.
"""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from bundles import BUNDLES
from programs import require

TESTS = Path(__file__).parent
BY_NAME = {bundle.name: bundle for bundle in BUNDLES}

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
    "an override that names something without an address is an error": (
        "errors/SG402-socket-interface",
        "errors/SG414-half-without-address",
    ),
    "the model in three stages has what its recipe gives it, the mod with the chat template too": (
        "test_seeds.py::test_lab_mesh_is_its_recipe",
        "errors/SG696-relative",
    ),
    "netplan try: install.sh itself takes back what is not confirmed in time": (
        "test_install.py::test_change_is_confirmed",
        "test_install.py::test_change_that_hangs_is_undone_in_time",
    ),
    "perfquery: RoCE has its counters in sysfs alone, where the runbook and verify.py read them": (
        "test_seeds.py::test_counters_are_those_of_roce",
    ),
    "logins: a key per node, three tries in 20 seconds, no passwords from elsewhere": (
        "test_services.py::test_sshd",
        "test_seeds.py::test_ssh_takes_the_operators_own_keys",
        "test_services.py::test_ssh_knows_a_node_by_all_its_names",
        "test_services.py::test_keys_are_copied_once",
        "test_seeds.py::test_runbook_commands_at_the_machine",
    ),
}


def test_runbook_commands_at_the_machine(tmp_path: Path) -> None:
    """A host key is forgotten under the name that ssh keeps it under, and tmux takes the name."""
    require("ssh-keygen", "tmux")
    bundle = BY_NAME["lab-mesh"]
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


def test_lab_mesh_is_its_recipe() -> None:
    """It has what the recipe says, but for a loader and a share that fit the release."""
    lab, recipe = (
        yaml.safe_load(path.read_text())
        for path in (BY_NAME["lab-mesh"].file, TESTS / "deployments/registry-qwen-397b-mesh.yaml")
    )
    assert lab["model"] == recipe["model"]
    ours, theirs = lab["engine"], recipe["engine"]
    for key in ("image", "nccl", "parallel"):
        assert ours[key] == theirs[key]
    assert {name: str(value) for name, value in ours["env"].items()} == theirs["env"]
    template = ours["args"].pop("chat-template")
    assert ours["args"] == theirs["args"] | {"load-format": "fastsafetensors"}
    (file,) = ours["files"]
    assert file["path"] == template
    assert re.fullmatch("[0-9a-f]{64}", file["sha256"])


def test_counters_are_those_of_roce(tmp_path: Path) -> None:
    bundle = BY_NAME["lab-mesh"]
    text = (bundle.folder / "REFERENCE.md").read_text()
    assert "perfquery" not in text
    (command,) = re.findall(r"^grep \. (/sys/class/infiniband/\S+)$", text, re.MULTILINE)
    hcas = [interface.hca for interface in bundle.site.head.interfaces]
    for hca in hcas:
        counters = tmp_path / f"sys/class/infiniband/{hca}/ports/1/counters"
        counters.mkdir(parents=True)
        (counters / "port_xmit_data").write_text("4\n")
    shown = subprocess.run(
        ["bash", "-c", f"grep . {tmp_path}{command}"], capture_output=True, text=True, check=True
    ).stdout
    assert sorted(line.split("/")[-5] for line in shown.splitlines()) == sorted(hcas)


def test_ssh_takes_the_operators_own_keys() -> None:
    """The file is in the repository: it names no key, and a fast network needs no compression."""
    require("ssh")
    config = BY_NAME["lab-mesh"].folder / "operator/ssh_config"
    told, default = (
        subprocess.run(["ssh", "-G", "-F", file, "spark1"], capture_output=True, text=True).stdout
        for file in (str(config), "/dev/null")
    )
    for word in ("identityfile", "compression", "identitiesonly"):
        lines = [
            [line for line in text.splitlines() if line.startswith(f"{word} ")]
            for text in (told, default)
        ]
        assert lines[0] == lines[1]
    assert "\ncompression no\n" in told


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
