"""Asks engines' preflights about the starts of strangers that the site file does not tell; by hand.

    python tests/startup/ask_faults.py vllm --python PYTHON --releases FOLDER
    python tests/startup/ask_faults.py sglang --python PYTHON --releases FOLDER

FOLDER has the unpacked wheels of releases as `vllm-0.33.0/`; each start is asked of its own
release, or of the first after it. Libraries that a release needs are in its folder's `beside/`,
those that all need in folders `--beside`. The models are those of `strangers/configs.yaml`,
`configs.yaml` and `more_configs.yaml`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compare_sglang
import compare_vllm_classes as vllm
import yaml
from ask_rows import COMMANDS, PROGRAMS, known_models, nearest, outcome

HERE = Path(__file__).parent
STRANGERS = HERE.parent / "strangers"
HELD: dict[str, Any] = yaml.safe_load((STRANGERS / "configs.yaml").read_text("utf-8"))
NEWEST = {"vllm": vllm.VERSION, "sglang": compare_sglang.VERSION}


def words(row: dict[str, Any], engine: str, folder: Path) -> list[str]:
    """The command that the row's settings are started with."""
    from generator.pipeline import read_site

    model = row["model"]
    full = {"parallel": {}, "args": {}, "env": {}} | row
    # A name that the catalog has; the path to the model is put in its place.
    named = {"name": model.get("name", "gpt-oss-120b")}
    full["model"] = {k: v for k, v in model.items() if k not in ("source", "like")} | named
    site = vllm.site(full, engine, row.get("version", NEWEST[engine]))
    declared = read_site("lab.yaml", yaml.safe_dump(site).encode()).declaration
    assert declared, row["source"]
    found = [*PROGRAMS[engine], *COMMANDS[engine](declared, folder)]
    own, drafts = str(folder / named["name"]), declared.model.speculative
    if drafts and (source := drafts.source):
        place = str(_place(folder, source))
        found = [word.replace(f"{own}-{drafts.method}", place) for word in found]
        found = [word.replace(source, place) for word in found]
    found = [word.replace(own, str(_place(folder, _name(row)))) for word in found]
    found = [_adapter(word, folder) for word in found]
    share = row.get("memory_utilization")
    return found + ([f"--gpu-memory-utilization={share}"] if share and engine == "vllm" else [])


def _place(folder: Path, name: str) -> Path:
    return folder / name.replace("/", "--")


def _name(row: dict[str, Any]) -> str:
    return row["model"].get("source") or row["model"]["name"]


def _adapter(word: str, folder: Path) -> str:
    """An adapter as it is here: `name=source`."""
    name, _, source = word.rpartition("=")
    return f"{name}={_place(folder, source)}" if source in HELD["adapters"] else word


def write_models(folder: Path) -> None:
    """Every model and draft, with a tokenizer, and every adapter."""
    alike = {"deepseek-v3": "deepseek-v3-fp4", "nvidia/DeepSeek-R1-0528-NVFP4": "deepseek-v3-fp4"}
    # Of these only R1 has tokens for reasoning.
    without = {"deepseek-v3": {"tokens": []}}
    same = {name: vllm.CONFIGS[other] | without.get(name, {}) for name, other in alike.items()}
    for name, config in {**known_models(), **HELD["drafts"], **same}.items():
        vllm._write(_place(folder, name), config)
    for name, config in HELD["adapters"].items():
        _place(folder, name).mkdir()
        (_place(folder, name) / "adapter_config.json").write_text(json.dumps(config))


def answers_of(
    options: argparse.Namespace, source: Path, starts: list[dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    """The answers of a release to each start."""
    paths = [source, *source.glob("beside"), *options.beside]
    folders = [str(source)] if options.engine == "sglang" else []
    asking = subprocess.Popen(
        [options.python, str(HERE / "asked_on_a_spark.py"), options.engine, *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert asking.stdin
    assert asking.stdout
    for start in starts:
        asking.stdin.write(json.dumps(start) + "\n")
        asking.stdin.flush()
        # What the engine prints comes before its answers.
        for line in asking.stdout:
            if line.startswith("ANSWERS "):
                yield json.loads(line.removeprefix("ANSWERS "))
                break
    asking.stdin.close()
    asking.wait()


def main() -> None:
    """Ask about each, and print a line for it."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("engine", choices=PROGRAMS)
    reader.add_argument("--python", required=True)
    reader.add_argument("--releases", type=Path, required=True)
    reader.add_argument("--beside", type=Path, action="append", default=[])
    reader.add_argument("--only", default="")
    reader.add_argument("--full", action="store_true")
    reader.add_argument("--faults", type=Path, default=STRANGERS / "faults.yaml")
    options = reader.parse_args()
    sys.path.insert(0, str(HERE.parents[1]))
    rows = yaml.safe_load(options.faults.read_text("utf-8"))
    chosen = {
        number: row
        for number, row in enumerate(rows)
        if row.get("silent")
        and row.get("engine", "vllm") == options.engine
        and re.fullmatch(options.only or r"\d+", str(number))
    }
    by_release: dict[Path, list[int]] = {}
    for number, row in chosen.items():
        source = nearest(options.releases, options.engine, row.get("version", "9"))
        by_release.setdefault(source, []).append(number)
    with tempfile.TemporaryDirectory() as name:
        write_models(Path(name))
        for source, numbered in by_release.items():
            starts = []
            for number in numbered:
                env = {key: str(value) for key, value in chosen[number].get("env", {}).items()}
                said = words(chosen[number], options.engine, Path(name))
                starts.append({"words": said, "env": env})
            for number, answers in zip(numbered, answers_of(options, source, starts), strict=True):
                told, said_of = outcome(answers)
                if options.full:
                    print(json.dumps(answers))
                print(f"{number} {source.name} {told}: {said_of[:400]}", flush=True)
                print(f"   reported: {chosen[number]['says']}", flush=True)


if __name__ == "__main__":
    main()
