"""Compares sparkgen's checks of settings with SGLang's own argument handling; run by hand.

    python tests/startup/compare_sglang.py --python /path/to/venv/bin/python \
        --source /path/to/unpacked/wheel [--source MORE] [--count 500]

The other Python needs torch for CPUs, transformers and what SGLang imports to read flags (msgspec,
orjson and the like, which may be in a folder given by another `--source`); `sglang_on_a_spark.py`
makes SGLang 0.5.23 see the machine as a GB10. Half of the settings are drawn from the table
`sglang.yaml`, combining parts of one to three rows with changed numbers, and half from all flags of
the catalog. What sparkgen refuses because of code elsewhere in SGLang would fail later than these
steps, and does not count. Prints the settings on which the two differ; the exit status is then 1.
Known differences: files, devices and packages that the machine lacks, what kernels and schedulers
would reject later, and `enable-nvidia-megakernel`, whose kernels are in another package.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from compare_vllm_classes import (
    CONFIGS,
    NUMBERS,
    OTHERS,
    Ours,
    arguments_of_comparison,
    differences,
    readings,
    theirs,
    write_configs,
)

HERE = Path(__file__).parent
VERSION = "0.5.23"
# The code of these steps; what other code refuses is refused later.
STEPS = "sglang/srt/arg_groups"
# Methods that need no draft model, or a small Llama.
METHODS = ("ngram", "mtp", "eagle3", "draft")
# These rules are about kernels and schedulers, which run later.
LATER = ("SG532",)
# Flags for other machines, and files that nobody has.
LEFT_OUT = ("device", "decrypted-config-file", "decrypted-draft-config-file", "config")


def drawn(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Settings, as a site's `model` and `engine` hold them."""
    from generator.catalogs.flag_files import catalog
    from generator.engines import handed_on
    from generator.engines.sglang import engine as sglang

    draw = random.Random(seed)
    known = catalog("sglang", VERSION)
    assert known
    flags = [f for f in known.flags() if f.name not in {*handed_on.owned(sglang.NAME), *LEFT_OUT}]
    rows = yaml.safe_load((HERE / "sglang.yaml").read_text("utf-8"))
    pieces = [row[side] for row in rows for side in ("bad", "good") if "version" not in row[side]]
    for number in range(count):
        chosen = draw.sample(pieces, draw.randint(1, 2)) if number % 2 else []
        args = {flag.name: _value(flag, draw) for flag in draw.sample(flags, draw.randint(1, 3))}
        piece = {"args": {name: value for name, value in args.items() if value is not None}}
        yield _together(chosen or [piece], draw)


def _value(flag: Any, draw: random.Random) -> Any:
    if flag.type == "switch":
        return True
    if flag.choices or flag.known:
        choice = draw.choice(flag.choices or flag.known)
        return [choice] if flag.many else choice
    value = {"int": draw.choice(NUMBERS), "float": draw.choice((0.0, 0.3, 1.0, 2.5))}.get(flag.type)
    return value if value is None or not flag.many else [str(value)]


def _together(pieces: list[dict[str, Any]], draw: random.Random) -> dict[str, Any]:
    args: dict[str, Any] = {}
    model: dict[str, Any] = {"name": draw.choice(sorted(CONFIGS))}
    sizes = draw.choice(({}, {}, {"tensor": 2}, {"pipeline": 2}, {"tensor": 4}))
    env: dict[str, str] = {}
    for piece in pieces:
        args = piece.get("args", {}) | args
        sizes = piece.get("parallel", sizes)
        env |= {name: str(value) for name, value in piece.get("env", {}).items()}
        section = piece.get("model", {})
        model |= {"name": section["name"]} if section.get("name") in CONFIGS else {}
        for key in ("context_length", "max_sequences", "kv_cache_dtype"):
            model |= {key: section[key]} if key in section else {}
        if section.get("speculative", {}).get("method") in METHODS:
            model["speculative"] = section["speculative"]
    return {"model": model, "parallel": sizes, "args": args, "env": env}


def command(declared: Any, folder: Path) -> list[str]:
    """The arguments of `sglang serve` on the head; a site with errors has no bundle to read."""
    from generator.engines.arguments import arguments
    from generator.engines.sglang import engine as sglang

    model, sizes = declared.model, declared.engine.parallel
    words = [f"--model-path={folder / model.name}", "--host=127.0.0.1", "--port=30000"]
    if sizes.ranks > 1:
        words += [f"--tp-size={sizes.tensor}", f"--pp-size={sizes.pipeline}"]
        words += [f"--ep-size={sizes.experts_over or sizes.tensor}"] if sizes.expert else []
        words += [f"--nnodes={sizes.ranks}", "--node-rank=0", "--dist-init-addr=10.0.0.11:20000"]
    words += ["--mem-fraction-static=0.8"]
    words += [f"--context-length={model.context_length}"] if model.context_length else []
    words += [f"--max-running-requests={model.max_sequences}"] if model.max_sequences else []
    words += [f"--quantization={model.quantization}"] if model.quantization else []
    if dtype := model.kv_cache_dtype:
        words += [f"--kv-cache-dtype={sglang._KV_CACHE_DTYPES.get(dtype, dtype)}"]
    if drafts := model.speculative:
        draft_path = str(folder / f"{model.name}-{drafts.method}")
        groups = sglang._speculative(drafts, VERSION)
        source = drafts.source or "a/b"
        words += [
            word.replace(f"={source}", f"={draft_path}") for group in groups for word in group
        ]
    groups = arguments(declared.engine.settings)
    return [*words, *(word for group in groups for word in group)]


def ours(read: Any) -> Ours:
    """What sparkgen refuses, and whether these steps would."""
    from generator.diagnostics import Severity
    from generator.engines import conditions
    from generator.engines.startup import Effect, verdicts

    errors = [
        f"{found.rule}: {found.message}"
        for found in read.findings
        if found.severity is Severity.ERROR and found.rule not in (*OTHERS, *LATER)
    ]
    declared = read.declaration
    refused = [
        condition.source
        for condition in conditions("sglang")
        if condition.effect is Effect.FAILS
        and verdicts((condition,), declared.engine, declared.model)
    ]
    at_steps = any(source.startswith(STEPS) for source in refused)
    return Ours(errors, at_steps or not all(error.startswith("SG671") for error in errors))


def main() -> int:
    """Compare, and print the differences."""
    reader = arguments_of_comparison(__doc__)
    reader.add_argument("--source", action="append", required=True)
    options = reader.parse_args()
    sys.path.insert(0, str(HERE.parents[1]))
    pairs = readings(drawn(options.count, options.seed), "sglang", VERSION)
    with tempfile.TemporaryDirectory() as name:
        write_configs(Path(name))
        starts = [
            {"words": command(read.declaration, Path(name)), "env": each["env"]}
            for each, read in pairs
        ]
        argv = [options.python, str(HERE / "sglang_on_a_spark.py"), *options.source]
        real = theirs(argv, starts)
    return differences("SGLang", pairs, real, ours)


if __name__ == "__main__":
    sys.exit(main())
