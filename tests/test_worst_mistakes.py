"""Thirty mistakes that once had the worst reports, each in an example site: findings and fixes.

A study of 10,826 single mistakes found them: some unreported, some reported far from their line or
many times, and some that `fix` spread to correct parts.
"""

from collections import Counter
from typing import NamedTuple

import pytest
from valid_sites import EXAMPLES

from generator.diagnostics import Severity
from generator.fixing.repair import repair
from generator.pipeline import read_site
from generator.reports.text import place


class Worst(NamedTuple):
    """A mistake, its rule and expected words, part of its line, and whether fix undoes it.

    `at` is the wrong text itself unless given.
    """

    site: str
    right: str
    wrong: str
    rule: str
    message: str
    is_undone: bool = False
    at: str = ""
    also: tuple[str, ...] = ()


def variable(line: str, rule: str, message: str, is_undone: bool = False, at: str = "") -> Worst:
    """A variable in a site that has none."""
    site = "  image: vllm/vllm-openai:v0.33.0\n"
    return Worst(
        "single", site, f"{site}  env:\n    {line}\n", rule, message, is_undone, at or line
    )


# Mistakes that are not undone have two readings, or undoing would drop what was requested.
MISTAKES = (
    Worst("pair-sglang", "image:", "imagge:", "SG101", "did you mean 'image'?", True),
    Worst("ring-405b", "endpoints:", "endpoins:", "SG101", "did you mean 'endpoints'?", True),
    Worst("ring-405b", "nodes:", "node:", "SG101", "did you mean 'nodes'?", True),
    Worst("pair-llamacpp", "kv_heads: 4", "kv_heads: 40", "SG507", "can't share 40 KV heads"),
    Worst(
        *("pair-llamacpp", "max_sequences: 2", "max_sequences: 20", "SG520"),
        *("use 'context_length: 27648'", False, "source:"),
    ),
    Worst(
        *("pair-sglang", "chunked-prefill-size: 8192", "chunked-prefill-size: 122880", "SG525"),
        *("write 'memory_utilization: 0.7'", False, "memory_utilization"),
    ),
    Worst(
        *("lab-mesh", "name: spark2\n", "name: spark20\n", "SG203"),
        *("did you mean 'spark20', or is spark20 called 'spark2'?", False, "spark2:p1"),
    ),
    Worst(
        *("lab-mesh", "name: spark3\n", 'name: "x"\n', "SG203"),
        *("write 'name: spark3' in place of 'name: x'", False, "spark3:p1"),
    ),
    Worst(
        "pair-chatbot",
        "name: spark1\n    management: {interface: enP7s7, address: 10.0.0.11/24}\n"
        "  - name: spark2\n",
        "name: spark1\n    management: {interface: enP7s7, address: 10.0.0.11/24}\n    host: 10\n"
        "  - name: spark2\n    host: 10\n",
        "SG206",
        "two nodes have the host number 10",
        at="host: 10",
    ),
    variable("NCCL_IB_RETRY_CNT: # 7", "SG108", "write 'NCCL_IB_RETRY_CNT: 7'"),
    Worst("lab-mesh", "enP7s7,", "enP7s77,", "SG320", "did you mean 'enP7s7'?", True),
    Worst("lab-mesh", "enP7s7,", "enp7s7,", "SG320", "did you mean 'enP7s7'?", True),
    variable("NCLC_IB_TIMEOUT: 22", "SG428", "did you mean 'NCCL_IB_TIMEOUT'?", True),
    variable("CCL_DEBUG: INFO", "SG428", "did you mean 'NCCL_DEBUG'?", True),
    variable(
        *("PYTORCH_CUAD_ALLOC_CONF: expandable_segments:True", "SG428"),
        *("did you mean 'PYTORCH_CUDA_ALLOC_CONF'?", True),
    ),
    variable("VLM_LOGGING_LEVEL: DEBUG", "SG428", "did you mean 'VLLM_LOGGING_LEVEL'?", True),
    Worst("ring-405b", "nccl: 2.30.7", "nccl: 22.30.7", "SG441", "did you mean 2.30.7?", True),
    variable(
        *("NCCL_MIN_NCHANNELS: 40\n    NCCL_MAX_NCHANNELS: 8", "SG440", "write 8 or less"),
        at="NCCL_MIN_NCHANNELS",
    ),
    variable("NCCL_BUFFSIZE: -1", "SG413", "out of range"),
    Worst("lab-mesh", "192.168.177.0/24", "192.16.177.0/24", "SG323", "public addresses"),
    Worst("pair-chatbot", "10.100.0.0/16", "8.8.0.0/16", "SG323", "public addresses"),
    Worst("pair-sglang", "10.0.0.12/24", "10.0.1.12/24", "SG322", "and spark1 in 10.0.0.0/24"),
    Worst("single", "10.0.0.11/24", "10.0.0.11/2", "SG106", "its prefix length, 8 to 30"),
    Worst("single", "openai:v0.33.0", "openai:v0.33.00", "SG613", "write 0.33.0"),
    Worst("single", "context_length: 65536", "context_length: 4", "SG105", "64 to 100000000"),
    Worst("pair-llamacpp", "kv_heads: 4", "kv_heads: 5", "SG507", "can't share 5 KV heads"),
    Worst("pair-llamacpp", "size: 4096", "size: 496", "SG507", "a width of 496"),
    Worst("lab-mesh", "kind: ring", "kind: 'ring", "SG001", "a quote is not closed", True, "'ring"),
    Worst("ring-405b", "kind: ring", "kind:\u00a0ring", "SG012", "U+00A0", True),
    Worst(
        *("pair-chatbot", "engine:\n  name", "  name", "SG102"),
        *("write 'engine:' on a line of its own", True, "name: vllm"),
    ),
    Worst(
        *("ring-405b", "cabling:\n", "", "SG102"),
        *("write 'cabling:' on a line of its own", True, "spark1:p0"),
    ),
    Worst(
        "single",
        "model:\n",
        "model:\n  image: vllm/vllm-openai:v0.33.0\n",
        "SG101",
        "write it under 'engine'",
        True,
        "image:",
        also=("  version: 0.33.0\n  image: vllm/vllm-openai:v0.33.0\n", "  version: 0.33.0\n"),
    ),
    Worst(
        *("pair-llamacpp", "    layers: 94\n", "", "SG102"),
        *("from the model's config.json", False, "architecture:"),
    ),
    Worst(
        *("rack-switch", "  - {endpoints: [spark4:p0, crs804:qsfp56-dd-2-5]}\n", "", "SG207"),
        *("add '- endpoints: [spark4:p0, crs804:PORT]'", False, "spark4"),
    ),
    Worst(
        *("single", "{interface: enP7s7, address: 10.0.0.11/24, gateway: 10.0.0.1}", "true"),
        *("SG103", "for example 'management: {address: 10.0.0.11/24}'", False, "management: true"),
    ),
    Worst(
        *("slurm-trtllm", "  args:\n", "  args:\n    backend: pytorch\n", "SG604"),
        *("remove this", False, "backend: pytorch"),
    ),
    Worst(
        *("slurm-trtllm", "  args:\n", "  args:\n    config: {cuda_grph_config: {}}\n", "SG672"),
        *("did you mean 'cuda_graph_config'?", True, "cuda_grph_config"),
    ),
    Worst(
        *("slurm-trtllm", "  args:\n", "  args:\n    config: {print_iter_log: maybe}\n", "SG672"),
        *("takes true or false, not 'maybe'", False, "maybe"),
    ),
    Worst(
        *("single", "vllm/vllm-openai:v0.33.0", "nvcr.io/nvidia/vllm:26.04-py33", "SG613"),
        *("did you mean '26.04-py3'?", False, "26.04-py33"),
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.site}-{m.rule}-{m.message[:20]}")
def test_mistake_is_reported_and_undone(mistake: Worst) -> None:
    right = EXAMPLES[mistake.site].read_text()
    wrong = right
    for old, new in ((mistake.right, mistake.wrong), mistake.also or ("", "")):
        assert old in wrong
        wrong = wrong.replace(old, new, 1)
    known = Counter((f.rule, f.message) for f in read_site("site.yaml", right.encode()).findings)
    done = repair("site.yaml", wrong.encode())
    new_ones = [f for f in done.before.findings if not known[f.rule, f.message]]
    finding = next(f for f in new_ones if f.severity is not Severity.NOTE)
    line = wrong.split("\n")[place(done.before.document, finding).line]
    assert [f.rule for f in new_ones if f.severity is not Severity.NOTE] == [mistake.rule]
    assert mistake.message in f"{finding.message} / {finding.help}"
    assert (mistake.at or mistake.wrong.strip()) in line
    fixed = read_site("site.yaml", done.raw)
    if mistake.is_undone:
        assert not [f for f in fixed.findings if not known[f.rule, f.message]]
    else:
        assert done.raw == wrong.encode()
