"""Asks engines' preflights about the starts of strangers that the site file does not tell; by hand.

    python tests/startup/ask_faults.py vllm --python PYTHON --releases FOLDER
    python tests/startup/ask_faults.py sglang --python PYTHON --releases FOLDER

FOLDER has the unpacked wheels of releases as `vllm-0.33.0/`; each start is asked of its own
release, or of the first after it, with libraries that older ones need in folders `--beside`. The
models are those of `strangers/configs.yaml` and `configs.yaml`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import compare_sglang
import compare_vllm_classes as vllm
import yaml
from ask_rows import COMMANDS, PROGRAMS, outcome

HERE = Path(__file__).parent
STRANGERS = HERE.parent / "strangers"
NEWEST = {"vllm": vllm.VERSION, "sglang": compare_sglang.VERSION}


def numbers(text: str) -> list[int]:
    """A version's release as numbers, which can be compared."""
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


def nearest(folder: Path, engine: str, version: str) -> Path:
    """The sources of a version, of the first after it, or of the newest."""
    sources = sorted(folder.glob(f"{engine}-*"), key=lambda path: numbers(path.name))
    later = [path for path in sources if numbers(path.name) >= numbers(version)]
    return (later or sources[-1:])[0]


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
    own = str(folder / named["name"])
    found = [word.replace(own, str(_place(folder, _name(row)))) for word in found]
    if draft := model.get("speculative", {}).get("source"):
        found = [word.replace(draft, str(_place(folder, draft))) for word in found]
    share = row.get("memory_utilization")
    return found + ([f"--gpu-memory-utilization={share}"] if share and engine == "vllm" else [])


def _place(folder: Path, name: str) -> Path:
    return folder / name.replace("/", "--")


def _name(row: dict[str, Any]) -> str:
    return row["model"].get("source") or row["model"]["name"]


def write_models(folder: Path) -> None:
    """Every model and draft, with a tokenizer."""
    held = yaml.safe_load((STRANGERS / "configs.yaml").read_text("utf-8"))
    drafts = held.pop("drafts")
    alike = {"deepseek-v3": "deepseek-v3-fp4", "nvidia/DeepSeek-R1-0528-NVFP4": "deepseek-v3-fp4"}
    same = {name: vllm.CONFIGS[other] for name, other in alike.items()}
    for name, config in {**vllm.CONFIGS, **held, **drafts, **same}.items():
        vllm._write(_place(folder, name), config)


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
    with tempfile.TemporaryDirectory() as name:
        write_models(Path(name))
        for number, row in enumerate(rows):
            if not row.get("silent") or row.get("engine", "vllm") != options.engine:
                continue
            if options.only and not re.fullmatch(options.only, str(number)):
                continue
            source = nearest(options.releases, options.engine, row.get("version", "9"))
            env = {key: str(value) for key, value in row.get("env", {}).items()}
            start = {"words": words(row, options.engine, Path(name)), "env": env}
            paths = [source, *options.beside]
            folders = [str(source)] if options.engine == "sglang" else []
            done = subprocess.run(
                [options.python, str(HERE / "asked_on_a_spark.py"), options.engine, *folders],
                input=json.dumps(start) + "\n",
                capture_output=True,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            )
            marked = [each for each in done.stdout.splitlines() if each.startswith("ANSWERS ")]
            answers = json.loads(marked[-1].removeprefix("ANSWERS ")) if marked else []
            told, said = outcome(answers)
            said = said if answers else done.stderr.strip()[-300:]
            if options.full:
                print(json.dumps(answers))
            print(f"{number} {source.name} {told}: {said[:400]}", flush=True)
            print(f"   reported: {row['says']}", flush=True)


if __name__ == "__main__":
    main()
