"""Public deployments, written as sites: nothing is said of them that is not so.

Each file of `deployments/` names its source. What is listed in `expected.yaml` is right, or known
to be wrong and says so; what is not listed there is a false finding.
"""

from pathlib import Path

import pytest
import yaml

from generator.diagnostics import Severity
from generator.pipeline import read_site

FOLDER = Path(__file__).parent / "deployments"
EXPECTED = yaml.safe_load((FOLDER / "expected.yaml").read_text("utf-8"))
SITES = sorted(set(FOLDER.glob("*.yaml")) - {FOLDER / "expected.yaml"})


@pytest.mark.parametrize("file", SITES, ids=lambda file: file.stem)
def test_no_false_finding(file: Path) -> None:
    read = read_site("site.yaml", file.read_bytes())
    told = [found for found in read.findings if found.severity is not Severity.NOTE]
    listed = EXPECTED[file.stem]
    false = [f"{found.rule} {found.message}" for found in told if found.rule not in listed]
    assert false == []
    assert {found.rule for found in told} == set(listed)


@pytest.mark.parametrize("file", SITES, ids=lambda file: file.stem)
def test_source_is_named(file: Path) -> None:
    first = file.read_text("utf-8").partition("\n")[0]
    assert first.startswith("# Source: https://")


def test_every_deployment_is_expected() -> None:
    assert {file.stem for file in SITES} == set(EXPECTED)


# What each of these was started with, beyond what sparkgen adds by itself.
WORDS = {
    "nemotron-super-ray-pair": (
        "--tensor-parallel-size=2 --distributed-executor-backend=ray --max-num-seqs=10 "
        "--reasoning-parser-plugin=/srv/parsers/super_v3_reasoning_parser.py --port=8888"
    ),
    "gpt-oss-tuned": "--served-model-name=openai/gpt-oss-120b --max-num-batched-tokens=8192",
    "gpt-oss-dflash": '"method":"dflash" "num_speculative_tokens":2',
    "gemma-31b-mtp": '"method":"mtp" "model":"google/gemma-4-31B-it-assistant"',
    "glm-flash-own-transformers": "--quantization=fp8 --served-model-name=llm_chat --port=8001",
    "qwen3-embedding": "--runner=pooling --gpu-memory-utilization=0.25 --host=0.0.0.0",
    "gpt-oss-trtllm-pair": "--tensor_parallel_size=2 --max_seq_len=32000 --port=8887",
    "qwen38-next-sglang": (
        "--speculative-num-steps=3 --speculative-eagle-topk=1 --speculative-num-draft-tokens=4 "
        "--speculative-draft-model-quantization=unquant --ple-offload-embedding"
    ),
    "qwen3-coder-scitrera": "--max-model-len=256000 --tool-call-parser=qwen3_coder",
    "ling-gguf": "--spec-type draft-mtp --load-mode mmap --ubatch-size 2048",
}


@pytest.mark.parametrize("stem", WORDS)
def test_recipe_is_started_as_its_author_does(stem: str) -> None:
    site = read_site("site.yaml", (FOLDER / f"{stem}.yaml").read_bytes()).site
    assert site
    command = " ".join(word for group in site.head.container.command for word in group)
    command = command.replace('": ', '":')
    assert [word for word in WORDS[stem].split() if word not in command] == []
