"""Settings that engines accept, and that must cause no finding."""

from pathlib import Path

import pytest

from generator.diagnostics import Severity
from generator.pipeline import Reading, read_site
from generator.sitefile.lint import lint

SITE = """\
version: 1
name: lab
nodes:
  - name: spark1
topology:
  kind: single
model:
  name: gpt-oss-120b
engine:
  name: {engine}
  version: {version}
  image: example.org/engine:1
  {settings}
"""

RIGHT = [
    # A time to the first token is not a secret.
    ("sglang", "0.5.23", "args: {bucket-time-to-first-token: ['0.1', '0.5']}"),
    # A version with an epoch, and with another separator that PEP 440 allows.
    ("vllm", "0!0.33.0", "args: {watchdog-config: {timeout: 60}}"),
    ("vllm", "0.33.0_rc1", "args: {linear-backend: marlin}"),
    # A version between two known ones accepts what either of them accepts.
    ("vllm", "0.24.0", "args: {tool-call-parser: deepseek_v4, enable-auto-tool-choice: true}"),
    ("vllm", "0.24.0", "args: {tokenizer-mode: deepseek_v4}"),
    ("vllm", "0.26.1rc1.dev439+g7b9f2dad8", "args: {linear-backend: marlin}"),
    ("vllm", "0.27.0.post1", "args: {reasoning-config: {reasoning_parser: deepseek_r1}}"),
    ("sglang", "0.5.12", "args: {cuda-graph-max-bs: 16}"),
    ("sglang", "0.5.19.post1", "args: {cuda-graph-max-bs: 16}"),
    # Flags, variables and parsers that the site declares for a custom build.
    ("vllm", "0.33.0+own", "args: {dspark-profile: fast}\n  own: {flags: [dspark-profile]}"),
    ("vllm", "0.33.0+own", "args: {dspark.profile: fast}\n  own: {flags: [dspark]}"),
    ("vllm", "0.33.0+own", "env: {VLLM_DSPARK: 1}\n  own: {env: [VLLM_DSPARK]}"),
    (
        *("vllm", "0.29.1rc1.dev17+g1234567.d20260913"),
        "args: {reasoning-parser: dspark}\n  own: {parsers: [dspark]}",
    ),
    # A parser from a plugin.
    (
        *("vllm", "0.33.0"),
        "args: {tool-call-parser: lab, enable-auto-tool-choice: true, "
        "tool-parser-plugin: /opt/lab.py}",
    ),
    (
        *("vllm", "0.33.0"),
        "args: {reasoning-parser: lab, reasoning-parser-plugin: /opt/lab.py}",
    ),
    # A search path, which is not a folder to mount.
    ("vllm", "0.33.0+own", "env: {PATH: '/opt/vllm/.venv/bin:/root/.cargo/bin:/usr/bin'}"),
    # The numbers of vLLM's enumeration.
    ("vllm", "0.33.0", "args: {optimization-level: 3}"),
    # Tokens of a vocabulary are not secrets.
    ("vllm", "0.33.0", "args: {hf-overrides: {classifier_from_token: ['no', 'yes']}}"),
    ("vllm", "0.33.0", "args: {hf-overrides: {image_token: '<image>'}}"),
    ("vllm", "0.33.0", "args: {hf-overrides.image_token: '<image>'}"),
    # Methods that model.speculative does not offer.
    ("vllm", "0.33.0", "args: {speculative-config: {method: ngram, num_speculative_tokens: 4}}"),
    ("vllm", "0.26.0", "args: {speculative-config: {method: dspark, num_speculative_tokens: 4}}"),
    ("sglang", "0.5.23", "args: {speculative-algorithm: DFLASH}"),
]


SINGLE = """\
version: 1
name: lab
nodes:
  - name: spark1
    management: {address: 10.0.0.11/24}
topology:
  kind: single
"""
# Whole sites, by what once caused a false finding.
SITES = {
    "a context that YaRN makes": f"""\
{SINGLE}\
model:
  name: qwen2.5-72b-instruct-awq
  context_length: 65536
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  args:
    hf-overrides: {{rope_parameters: {{rope_type: yarn, factor: 4}}}}
""",
    "states for the sequences that vLLM runs by default on a Spark": f"""\
{SINGLE}\
model:
  name: qwen3.6-35b-a3b-fp8
  context_length: 8192
engine:
  name: vllm
  version: 0.31.0
  image: vllm/vllm-openai:v0.31.0
  memory_utilization: 0.4
  args: {{trust-remote-code: true}}
""",
    "lists that are not indented, and spaces at the end of a line": """\
version: 1
name: lab  \n\
nodes:
- name: spark1
topology:
  kind: single
model:
  name: gpt-oss-120b
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:nightly-0123456789abcdef0123456789abcdef01234567
""",
    "a flag that builds before the newest one have": """\
version: 1
name: lab
nodes:
  - name: spark1
    management: {address: 10.0.0.11/24}
topology:
  kind: single
model:
  name: gpt-oss-20b
  file: /srv/models/gpt-oss-20b.gguf
  context_length: 8192
  max_sequences: 2
engine:
  name: llama.cpp
  version: b10300
  image: ghcr.io/ggml-org/llama.cpp:server-cuda-b10300
  args: {no-mmap: true}
""",
    "a home router's range beside management, and a GID chosen by address": """\
version: 1
name: lab
nodes:
  - name: spark1
    management: {address: 10.0.0.11/24}
  - name: spark2
    management: {address: 10.0.0.12/24}
cabling:
  - endpoints: [spark1:p0, spark2:p0]
    subnets: [192.168.0.0/24, 192.168.1.0/24]
topology:
  kind: direct
model:
  name: gpt-oss-120b
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  nccl: 2.32.3
  parallel: {tensor: 2}
  env:
    NCCL_IB_ADDR_RANGE: 192.168.0.0/23
    NCCL_IB_GID_INDEX: 3
    NCCL_PROGRESS_COUNTERS: 1
""",
    "a source that the catalog knows": """\
version: 1
name: lab
nodes:
  - name: spark1
topology:
  kind: single
model:
  source: nvidia/Qwen3.8-27B-NVFP4
  context_length: 32768
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
""",
}


# Sites with the settings of public recipes and guides, in the styles that people use.
FILES = sorted((Path(__file__).parent / "right").glob("*.yaml"))


def messages(reading: Reading) -> list[str]:
    found = [*reading.findings, *lint(reading.document)]
    return [finding.message for finding in found]


@pytest.mark.parametrize("text", SITES.values(), ids=SITES.keys())
def test_correct_site_has_no_finding(text: str) -> None:
    assert messages(read_site("site.yaml", text.encode())) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_site_of_a_recipe_has_no_finding(path: Path) -> None:
    reading = read_site(path.name, path.read_bytes())
    assert messages(reading) == []
    assert reading.site


def test_right_sites_are_many() -> None:
    assert len(FILES) + len(SITES) + len(RIGHT) >= 70


@pytest.mark.parametrize(("engine", "version", "settings"), RIGHT)
def test_correct_setting_has_no_finding(engine: str, version: str, settings: str) -> None:
    text = SITE.format(engine=engine, version=version, settings=settings)
    assert [finding.message for finding in read_site("site.yaml", text.encode()).findings] == []


# Versions newer or older than the known ones, too; that nothing is known about them is said once.
UNKNOWN = [
    ("vllm", "0.34.0", "newer", "args: {watchdog-config: {timeout: 60}}"),
    ("vllm", "0.8.5", "older", "args: {max-num-partial-prefills: 2}"),
    ("sglang", "0.4.1", "older", "args: {watchdog-timeout: 60}"),
    ("tensorrt-llm", "1.4.0rc1", "newer", "args: {enable_chunked_prefill: true}"),
]


@pytest.mark.parametrize(("engine", "version", "age", "settings"), UNKNOWN)
def test_version_beyond_all_only_says_that_it_is_not_known(
    engine: str, version: str, age: str, settings: str
) -> None:
    text = SITE.format(engine=engine, version=version, settings=settings)
    text = text.replace("gpt-oss-120b", "qwen3-8b")
    (finding,) = read_site("site.yaml", text.encode()).findings
    assert (finding.rule, finding.severity) == ("SG630", Severity.NOTE)
    assert f"{version} is {age} than sparkgen knows" in finding.message


@pytest.mark.parametrize("version", ["25.11-py3", "0.1.dev12774"])
def test_version_that_is_no_release_is_not_older(version: str) -> None:
    text = SITE.format(engine="vllm", version=version, settings="args: {seed: 1}")
    assert not read_site("site.yaml", text.encode()).findings


def test_source_in_the_catalog_is_checked() -> None:
    small, large = "nvidia/Qwen3.8-27B-NVFP4", "local-inference-lab/GLM-5.3-Flash-NVFP4"
    text = SITES["a source that the catalog knows"].replace(small, large)
    found = read_site("site.yaml", text.encode()).findings
    assert [(finding.rule, finding.path) for finding in found] == [("SG520", ("model", "source"))]


RING_OF_FOUR = Path(__file__).parent / "errors/SG431-pat-is-left.yaml"


@pytest.mark.parametrize(
    "left", ["NCCL_ALGO: ^Tree,PAT", "NCCL_ALGO: ^Tree\n    NCCL_PAT_ENABLE: 0"]
)
def test_algorithms_of_a_ring_may_be_named_by_those_left_out(left: str) -> None:
    text = RING_OF_FOUR.read_text("utf-8").partition("#=>")[0].replace("NCCL_ALGO: ^Tree", left)
    found = read_site("site.yaml", text.encode()).findings
    assert [finding.message for finding in found if finding.rule != "SG402"] == []
