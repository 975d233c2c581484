"""Generated flags are accepted by the engines; a flag that is not gets a finding with a way out."""

import re
from collections.abc import Iterator, Sequence

import pytest
from bundles import BUNDLES, Bundle
from draws import share

from generator.bundle.plan import CARRIED
from generator.catalogs.flag_files import catalog, versions
from generator.catalogs.flags import FlagCatalog
from generator.diagnostics import Finding
from generator.engines import ENGINES
from generator.pipeline import read_site
from generator.records import replace
from generator.resources import TEMPLATES
from generator.rules.flags import variable_faults
from generator.rules.flags.parser import Parser
from generator.rules.flags.value_faults import value_fault
from generator.settings.environment import Environment, Written
from generator.settings.values import Argument
from generator.site import Member, Part, Site, Words

# The programs with a catalog, by the command that starts them.
PROGRAMS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm-serve": "tensorrt-llm",
    "llama-server": "llama.cpp",
    "ggml-rpc-server": "ggml-rpc-server",
}
RAY = "2.60.0"


# Generated flags


def refused(program: str, version: str, words: Words) -> str:
    """Why a program's parser rejects a flag and its values, or nothing."""
    known = catalog(program, version)
    assert known, f"no catalog of {program}"
    option, equals, text = words[0].partition("=")
    found = known.find(option.removeprefix("--")) if option.startswith("--") else None
    if found is None or (equals and "equals" not in known.traits):
        return f"{program} {known.version} does not know {words[0]}"
    if found.flag.deprecated is not None:
        return f"{program} {known.version} will drop {option}"
    value = as_written([text] if equals else words[1:], known, found.flag.many)
    fault = value_fault(option[2:], value, found, Parser(program, program, known, {}))
    return fault[1].message if fault else ""


def as_written(values: Sequence[str], known: FlagCatalog, many: str) -> Argument:
    """A flag's values as a site file would give them."""
    if not values:
        return True
    return values[0] if len(values) == 1 and not many.isdigit() else [*values]


def commands(part: Part, node: Member) -> Iterator[tuple[str, Words]]:
    """The flags with which a node's container is started, each with its program."""
    program = PROGRAMS.get(node.container.entrypoint, part.engine.name)
    for words in node.container.command:
        if words and words[0].startswith("-"):
            yield program, words
        else:
            program = next((PROGRAMS[word] for word in words if word in PROGRAMS), program)


def faults(site: Site) -> list[str]:
    refusals = (
        refused(program, part.engine.version, words)
        for part in site.parts
        for node in part.nodes
        for program, words in commands(part, node)
    )
    return [fault for fault in refusals if fault]


SERVING = [bundle for bundle in BUNDLES if bundle.site.parts]


@pytest.mark.parametrize("bundle", BUNDLES, ids=str)
def test_generated_command_is_accepted(bundle: Bundle) -> None:
    for part in bundle.site.parts:
        checked = [words for node in part.nodes for _, words in commands(part, node)]
        assert checked or part.engine.launcher in ("mpi", "slurm")
    assert faults(bundle.site) == []


# The rules that say what an engine refuses, among it what a release before a flag does not know.
RULES_OF_STARTS = {"SG247", "SG672", "SG673", "SG674"}


@pytest.mark.drawn
@pytest.mark.parametrize("bundle", SERVING, ids=str)
def test_generated_command_is_accepted_by_every_version(bundle: Bundle) -> None:
    """Each bundle of an engine tries a share of its versions."""
    raw, engine = bundle.file.read_bytes(), bundle.part.engine
    alike = [other for other in SERVING if other.part.engine.name == engine.name]
    for version in share(versions(engine.name), alike.index(bundle), min(4, len(alike))):
        old, new = (f"version: {number}".encode() for number in (engine.version, version))
        reading = read_site("site.yaml", raw.replace(old, new))
        if reading.site:
            assert reading.site.parts[0].engine.version == version
            told = {finding.rule for finding in reading.findings} & RULES_OF_STARTS
            assert faults(reading.site) == [] or told


# The values that ray.sh fills in, by part of the option's name.
RAY_VALUES = {"address": "10.0.0.11", "port": "6379"}


def test_ray_accepts_its_options() -> None:
    script = unfolded((TEMPLATES / "payload/node/opt/sparkgen/ray.sh").read_text())
    started = re.findall(r"^\s*(?:exec )?ray start (.*)$", script, re.M)
    assert len(started) == 2
    for line in started:
        options = line.removesuffix(" &")
        filled = re.sub(r'(address|port)="(?:\$\([^)]*\)|[^"])*"', filled_in, options)
        assert "$" not in filled
        assert [
            refusal for word in filled.split() if (refusal := refused("ray", RAY, (word,)))
        ] == []


def filled_in(found: re.Match[str]) -> str:
    return f"{found[1]}={RAY_VALUES[found[1]]}"


def unfolded(script: str) -> str:
    """A script with each command on one line."""
    return re.sub(r"\\\n\s*", "", script)


@pytest.mark.parametrize("bundle", SERVING, ids=str)
def test_engine_reads_all_variables(bundle: Bundle) -> None:
    """Variables in the environment, and those that any file of the bundle names."""
    engine = bundle.part.engine
    known = catalog(engine.name, engine.version)
    assert known
    texts = [
        path.read_text()
        for path in bundle.folder.rglob("*")
        if path.is_file() and CARRIED not in str(path)
    ]
    named = {name: "" for text in texts for name in re.findall(rf"\b{known.prefix}\w+", text)}
    env = dict.fromkeys(named if known.prefix else ())
    for node in bundle.part.nodes:
        env |= dict.fromkeys(node.env)
    # Placeholders for the values; users choose the names of secrets.
    environment = Environment(Written({name: "1" for name in env if name not in engine.secrets}))
    parser = Parser(engine.name, engine.title, known, {})
    assert [fault.message for _, fault in variable_faults.faults(environment, parser)] == []


@pytest.mark.parametrize(
    "words",
    [
        ("--tensor-parallel-sise=2",),
        ("--tensor-parallel-size=two",),
        ("--tensor-parallel-size", "2", "3"),
        ("--tensor-parallel-size",),
        ("--enable-expert-parallel=true",),
        ("--load-format", "fast"),
        ("--speculative-config={}}",),
        ('--speculative-config={"modell": "x"}',),
        ("--calculate-kv-scales",),
        ("-tp", "2"),
    ],
)
def test_wrong_flag_is_detected(words: Words) -> None:
    bundle = next(bundle for bundle in BUNDLES if bundle.name == "single")
    node = bundle.part.nodes[0]
    wrong = replace(node.container, command=(*node.container.command, words))
    site = replace(bundle.part, nodes=(replace(node, container=wrong),))
    assert len(faults(site)) == 1


# Flags that users write

SITE = """\
version: 1
name: lab
nodes:
  - name: spark1
topology:
  kind: single
model:
  name: gpt-oss-120b
  context_length: 8192
{file}engine:
  name: {engine}
  version: {version}
  image: example.org/engine:{version}
  {section}:
"""


def findings_of(engine: str, version: str, section: str, lines: Sequence[str]) -> list[Finding]:
    file = "  file: /srv/models/gpt-oss-120b.gguf\n" if engine == "llama.cpp" else ""
    head = SITE.format(engine=engine, version=version, section=section, file=file)
    text = head + "".join(f"    {line}\n" for line in lines)
    return list(read_site("site.yaml", text.encode()).findings)


# Flags from guides and older versions, and what findings must name instead.
BAD_FLAGS = {
    ("vllm", "0.19.0"): [
        ("speculative-model: x/y", "SG633", "model.speculative"),
        ("num-speculative-tokens: 5", "SG633", "model.speculative"),
        ("speculative-draft-tensor-parallel-size: 1", "SG633", "model.speculative"),
        ("disable-log-requests: true", "SG633", "'enable-log-requests: true'"),
        ("quantization: fp4", "SG637", "'modelopt_fp4' or 'compressed-tensors'"),
        ("swap-space: 16", "SG633", "remove it"),
        ("task: embed", "SG633", "'runner: pooling'"),
        ("enable-reasoning: true", "SG633", "'reasoning-parser: NAME'"),
        ("guided-decoding-backend: xgrammar", "SG633", "'structured-outputs-config: {backend"),
        ("num-scheduler-steps: 8", "SG633", "remove it"),
        ("use-v2-block-manager: true", "SG633", "remove it"),
        ("rope-scaling: {rope_type: yarn}", "SG633", "'hf-overrides'"),
        ("max-seq-len-to-capture: 8192", "SG633", "'cudagraph-capture-sizes: ["),
        ("cuda-graph-sizes: [1, 2]", "SG633", "'cudagraph-capture-sizes: ["),
        ("disable-frontend-multiprocessing: true", "SG633", "remove it"),
        ("device: cuda", "SG633", "remove it"),
        ("linear-backend: marlin", "SG633", "remove it"),
        ("spec-decoding: x", "SG632", "remove it"),
        ("tensor-parallel: 2", "SG604", "engine.parallel.tensor"),
        ("max-model-length: 8192", "SG632", "'max-model-len'"),
        ("max-num-batched: 8192", "SG634", "'max-num-batched-tokens'"),
        ("enable-chunked-prefill: 'true'", "SG639", "'enable-chunked-prefill: true'"),
        ("disable-chunked-prefill: true", "SG633", "remove it"),
        ("enforce-eager: 1", "SG639", "'enforce-eager: true'"),
        ("dtype: fp16", "SG637", "'float16'"),
        ("reasoning-parser: deepseek-r1", "SG643", "'deepseek_r1'"),
        ("attention-config: {backnd: FLASHINFER}", "SG641", "'backend'"),
        ("block-size: [16, 32]", "SG640", "'block-size: NUMBER'"),
        ("seed: forty-two", "SG636", "'seed: NUMBER'"),
        ("mem-fraction-static: 0.8", "SG632", "engine.memory_utilization"),
    ],
    ("vllm", "0.33.0"): [
        ("override-attention-dtype: bfloat16", "SG633", "remove it"),
        ("max-num-partial-prefills: 2", "SG633", "remove it"),
        ("max-long-partial-prefills: 2", "SG633", "remove it"),
        ("calculate-kv-scales: true", "SG633", "remove it"),
        ("log-config-file: /srv/logging.json", "SG642", "logging-config.pylogging_config_file"),
        ("mamba-cache-mode: none", "SG642", "remove it"),
        ("disable-cascade-attn: true", "SG642", "remove it"),
        ("spec-model: x/y", "SG604", "model.speculative"),
    ],
    ("sglang", "0.5.23"): [
        ("tp: 2", "SG604", "engine.parallel.tensor"),
        ("pp: 2", "SG634", "'pp-size'"),
        ("cuda-graph-max-bs: 16", "SG633", "cuda-graph-max-bs-decode"),
        ("cuda-graph-bs: [1, 2]", "SG633", "cuda-graph-bs-decode"),
        ("disable-cuda-graph: true", "SG642", "cuda-graph-backend-decode: disabled"),
        ("enable-dp-attention: true", "SG642", "attn-dp-size"),
        ("tool_call_parser: glm45", "SG632", "'tool-call-parser'"),
        ("reasoning-parser: deepseek_r1", "SG643", "'deepseek-r1'"),
        ("gpu-memory-utilization: 0.8", "SG632", "engine.memory_utilization"),
        ("max-model-len: 8192", "SG632", "model.context_length"),
    ],
    ("tensorrt-llm", "1.2.1"): [
        ("use_fp4: true", "SG632", "NVFP4"),
        ("max_output_len: 1024", "SG632", "model.context_length"),
        ("max_input_len: 1024", "SG632", "model.context_length"),
        ("engine_dir: /srv/engine", "SG632", "without an engine build"),
        ("tp-size: 2", "SG632", "'tp_size'"),
        ("reasoning_parser: deepseek_r1", "SG643", "'deepseek-r1'"),
    ],
    ("tensorrt-llm", "1.3.0rc29"): [
        ("fail_fast_on_attention_window_too_large: true", "SG633", "remove it"),
        ("engine-dir: /srv/engine", "SG632", "without an engine build"),
    ],
    ("llama.cpp", "0.5.0-dev"): [
        ("mlock: true", "SG633", "'load-mode: mlock'"),
        ("no-mmap: true", "SG633", "'load-mode: none'"),
        ("draft-max: 8", "SG633", "model.speculative"),
        ("draft-min: 1", "SG633", "'spec-draft-n-min: NUMBER'"),
        ("fa: on", "SG634", "'flash-attn'"),
    ],
}
BAD_VARIABLES = {
    ("vllm", "0.19.0"): [
        ("VLLM_ATTENTION_BACKEND: FLASHINFER", "SG645", "'attention-backend: NAME'"),
        ("VLLM_USE_V1: 1", "SG645", "remove it"),
        ("VLLM_FLASH_ATTN_VERSION: 2", "SG645", "'attention-config.flash_attn_version: NUMBER'"),
    ],
    ("vllm", "0.33.0"): [
        ("VLLM_USE_FLASHINFER_MOE_FP4: 1", "SG645", "'moe-backend: NAME'"),
        ("VLLM_FLASHINFER_MOE_BACKEND: throughput", "SG645", "'moe-backend: NAME'"),
        ("VLLM_NVFP4_GEMM_BACKEND: marlin", "SG645", "'linear-backend: NAME'"),
        ("VLLM_TEST_FORCE_FP8_MARLIN: 1", "SG645", "'linear-backend: marlin'"),
        ("VLLM_RPC_TIMEOUT: 10000", "SG645", "remove it"),
    ],
}


def cases() -> Iterator[tuple[str, str, str, list[tuple[str, str, str]]]]:
    for section, table in (("args", BAD_FLAGS), ("env", BAD_VARIABLES)):
        for (engine, version), wanted in table.items():
            if engine in ENGINES:
                yield engine, version, section, wanted


@pytest.mark.parametrize(("engine", "version", "section", "wanted"), list(cases()))
def test_wrong_flag_has_one_finding_with_a_remedy(
    engine: str, version: str, section: str, wanted: list[tuple[str, str, str]]
) -> None:
    found = findings_of(engine, version, section, [line for line, _, _ in wanted])
    by_name = {str(finding.path[2]): finding for finding in found if len(finding.path) > 2}
    assert len(by_name) == len(found) == len(wanted), found
    for line, rule, instead in wanted:
        finding = by_name[line.partition(":")[0]]
        assert (finding.rule, instead in finding.help) == (rule, True), finding


def test_command_lines_of_guides() -> None:
    assert len(BAD_FLAGS["vllm", "0.19.0"]) == 30
    version = {"vllm": ("vllm", "0.19.0"), "trtllm": ("tensorrt-llm", "1.2.1")}
    published = {
        "vllm": ["speculative-model", "num-speculative-tokens", "disable-log-requests"],
        "trtllm": ["use_fp4", "max_output_len", "engine_dir"],
    }
    for program, names in published.items():
        assert {*names} <= {line.partition(":")[0] for line, _, _ in BAD_FLAGS[version[program]]}


def test_correct_flags_have_no_finding() -> None:
    """Every flag of every catalog with a valid value, except those that sparkgen sets."""
    for engine in ENGINES:
        for version in versions(engine):
            known = catalog(engine, version)
            assert known
            lines = [f"{flag.name}: {sample(known, flag.name)}" for flag in known.flags()]
            found = findings_of(engine, version, "args", lines)
            rules = {finding.rule for finding in found}
            assert rules <= {"SG604", "SG642"} | OF_THEIR_OWN, [
                finding for finding in found if finding.rule not in {"SG604", "SG642"}
            ]


# Rules about the meaning of flags rather than their syntax.
STARTUP = {"SG670", "SG671", "SG672", "SG673", "SG674", "SG675", "SG658"}
OF_THEIR_OWN = {"SG520", "SG621", "SG652", "SG711"} | STARTUP


def sample(known: FlagCatalog, name: str) -> str:
    """A value that a flag accepts."""
    found = known.find(name)
    assert found
    flag = found.flag
    if flag.type == "switch":
        return "true"
    if flag.type == "json":
        return f"{{{flag.fields[0]}: 1}}" if flag.fields else "{a: 1}"
    value = (*flag.choices, *flag.known, {"int": "1", "float": "0.5"}.get(flag.type, "text"))[0]
    if flag.many.isdigit():
        return f"[{', '.join([repr(value)] * int(flag.many))}]"
    return f"['{value}']" if flag.many else f"'{value}'"
