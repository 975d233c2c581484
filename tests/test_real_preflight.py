"""The preflight of a real vLLM, which sees a GB10: `pytest -n0 -m cluster`, by hand.

Its configuration, layers, worker, planner and API are vLLM's own; no kernel runs.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cluster import vllm_cpu
from startup.compare_vllm_classes import write_configs

STARTUP = Path(__file__).parent / "startup"

pytestmark = pytest.mark.cluster

# Flags of gpt-oss-120b, the last stage that is asked, and what is said of it.
STARTS = [
    ("--max-num-seqs=x", "arguments", "invalid int value"),
    (
        "--block-size=16 --max-num-batched-tokens=3 --max-num-seqs=8",
        "configuration",
        "max_num_seqs",
    ),
    ("--kv-cache-dtype=fp8 --attention-backend=FLASH_ATTN", "layers", "kv_cache_dtype"),
    (
        "--max-model-len=131072 --kv-cache-memory-bytes=500000000",
        "plan",
        "larger than the available KV cache memory",
    ),
    ("--enable-lora --lora-modules a={folder}/adapter", "adapters", "LoRA rank 64 is greater"),
]
_FLAGS = [flags for flags, _, _ in STARTS]
EAGLE3 = '{"method":"eagle3","num_speculative_tokens":2,"model":"{folder}/gpt-oss-120b-eagle3"}'


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("models")
    write_configs(folder)
    (folder / "adapter").mkdir()
    adapter = {"peft_type": "LORA", "r": 64, "lora_alpha": 64, "target_modules": ["q_proj"]}
    (folder / "adapter/adapter_config.json").write_text(json.dumps(adapter))
    taken = "--max-model-len=8192 --kv-cache-memory-bytes=16000000000"
    drafting = f"{taken} --speculative-config={EAGLE3}"
    flags = [each.replace("{folder}", str(folder)) for each in (taken, drafting, *_FLAGS)]
    model = str(folder / "gpt-oss-120b")
    starts = [{"words": ["vllm", "serve", model, *f.split()], "env": {}} for f in flags]
    python = str(vllm_cpu.vllm_cpu() / "python")
    done = subprocess.run(
        [python, str(STARTUP / "asked_on_a_spark.py"), "vllm"],
        input="".join(json.dumps(start) + "\n" for start in starts),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    return [json.loads(line.removeprefix("ANSWERS ")) for line in lines]


def test_accepted_to_its_last_stage(answers: list[list[dict[str, Any]]]) -> None:
    """70.8 GB is what the checkpoint has; 18 of 36 layers slide, in a group of their own."""
    stages = [(answer["stage"], answer["status"]) for answer in answers[0]]
    names = ("variables", "arguments", "configuration", "layers", "plan", "api")
    assert stages == [(name, "accepted") for name in names]
    *_, configuration, layers, plan, _ = (answer.get("found") for answer in answers[0])
    assert configuration["max_model_len"] == 8192
    assert configuration["versions"]["torch"].startswith(vllm_cpu.TORCH)
    assert layers["parameter_bytes"] == 70_756_592_256
    assert [group["layers"] for group in plan["groups"]] == [18, 18]
    page = sum(group["page_bytes"] * group["layers"] for group in plan["groups"]) // 2
    assert plan["blocks"] == 16_000_000_000 // page


def test_drafts_layers_are_in_the_plan(answers: list[list[dict[str, Any]]]) -> None:
    """Its one layer attends to everything, as half of the model's do."""
    stages = {answer["stage"]: answer for answer in answers[1]}
    assert {answer["status"] for answer in stages.values()} == {"accepted"}
    assert stages["draft"]["found"]["architecture"] == "Eagle3LlamaForCausalLM"
    groups = stages["plan"]["found"]["groups"]
    assert sum(group["layers"] for group in groups) == 37


@pytest.mark.parametrize(("start", "stage", "message"), STARTS)
def test_refused_by_the_engine_itself(
    start: str, stage: str, message: str, answers: list[list[dict[str, Any]]]
) -> None:
    last = answers[2 + _FLAGS.index(start)][-1]
    assert (last["stage"], last["status"]) == (stage, "refused")
    assert message in last["message"]
