"""Asks vLLM's preflight about sites and recipes that run; run by hand.

    python tests/startup/ask_sites.py --python /path/to/venv/bin/python [--version 0.32.0]
        [--only PATTERN]

Asked are the engines of `deployments`, `right` and `strangers/recipes.yaml` whose model's
config.json `ask_rows.py` knows, as if each were of that version, which the other Python has. Prints
those about which sparkgen and vLLM differ, and a table of all; what needs weights, memory or a
second node is not asked.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml
from ask_rows import HERE, MEMORY, MODELS, asked, outcome

TESTS = HERE.parent
SECTIONS = ("args", "env", "parallel", "own")


def settings() -> Iterator[dict[str, Any]]:
    """What each site and recipe starts vLLM with."""
    for path in sorted([*TESTS.glob("deployments/*.yaml"), *TESTS.glob("right/*.yaml")]):
        held = yaml.safe_load(path.read_text("utf-8"))
        engine = held.get("engine") if isinstance(held, dict) else None
        if isinstance(engine, dict) and engine.get("name") == "vllm" and "model" in held:
            sections = {key: engine[key] for key in SECTIONS if key in engine}
            yield {"says": f"{path.parent.name}/{path.stem}", "model": held["model"]} | sections
    for row in yaml.safe_load((TESTS / "strangers/recipes.yaml").read_text("utf-8")):
        if row.get("engine", "vllm") == "vllm":
            kept = {key: row[key] for key in ("model", *SECTIONS) if key in row}
            yield {"says": row["source"]} | kept


def main() -> None:
    """Ask, and print what differs."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--python", required=True)
    reader.add_argument("--version", default="0.32.0")
    reader.add_argument("--only", default="", help="a pattern of the sites' names and addresses")
    options = reader.parse_args()
    sys.path.insert(0, str(HERE.parents[1]))
    from generator.diagnostics import Severity

    argv = [options.python, str(HERE / "asked_on_a_spark.py"), "vllm"]
    known = [each for each in settings() if each["model"].get("name") in MODELS]
    known = [each for each in known if re.search(options.only, each["says"])]
    table = Counter[str]()
    for each, read, answers in asked(argv, "vllm", known, options.version):
        name, said = outcome(answers)
        errors = [f for f in read.findings if f.severity is Severity.ERROR]
        told = [f"{f.rule}: {f.message}" for f in errors if f.rule not in MEMORY]
        theirs = name if name == "accepted" or name.startswith("refused") else "not asked"
        table[f"{'refused' if told else 'accepted'} here, {theirs} there"] += 1
        if theirs != "not asked" and bool(told) != theirs.startswith("refused"):
            print(f"{each['says']}: {theirs}: {told or said[:300]}", flush=True)
    print(dict(sorted(table.items())))


if __name__ == "__main__":
    main()
