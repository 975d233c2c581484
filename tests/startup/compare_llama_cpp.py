"""Compares sparkgen's checks of llama.cpp's flags with llama-server's own parser; run by hand.

    python tests/startup/compare_llama_cpp.py --server /path/to/llama-server

Every flag of the catalog is tried alone, with values of many kinds. The server refuses a flag if it
says that an argument is wrong; what it only finds out later, with the model, is not tested. Prints
every flag on which the two differ; the exit status is then 1. Known differences: numbers with
trailing text, such as 2.5 for an integer, of which the server reads the beginning; files and
folders; and the format of drafts' CPU masks, rates and lengths, which the catalog does not have.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

VALUES = ("1", "0", "-1", "3", "2.5", "1,2", "on", "true", "enabled", "auto", "none", "foo")
RULES = ("SG63", "SG64", "SG673")
LEFT_OUT = re.compile(r"help|version|license|list|completion|cache-list|hf-|.*url|usage")


def tried() -> Iterator[dict[str, Any]]:
    """Each flag that a site may set, with each value."""
    from generator.catalogs.flag_files import catalog, versions
    from generator.engines import handed_on
    from generator.engines.llama_cpp import engine as llama_cpp

    known = catalog("llama.cpp", versions("llama.cpp")[-1])
    assert known
    for flag in known.flags():
        if flag.name in handed_on.owned(llama_cpp.NAME) or LEFT_OUT.match(flag.name):
            continue
        yield from ({flag.name: v} for v in ((True,) if flag.type == "switch" else VALUES))


def ours(version: str, args: dict[str, Any]) -> list[str]:
    """The errors about flags."""
    from generator.diagnostics import Severity
    from generator.pipeline import read_site

    engine = {"name": "llama.cpp", "version": version, "image": "example.org/llama:1"}
    site = {
        "version": 1,
        "name": "lab",
        "nodes": [{"name": "spark1"}],
        "topology": {"kind": "single"},
        "model": {"name": "gpt-oss-120b", "file": "/srv/models/model.gguf"},
        "engine": {**engine, "args": args},
    }
    read = read_site("lab.yaml", yaml.safe_dump(site).encode())
    return [
        f"{found.rule}: {found.message}"
        for found in read.findings
        if found.severity is Severity.ERROR and found.rule.startswith(RULES)
    ]


def theirs(server: str, version: str, args: dict[str, Any]) -> str:
    """The parser's error message; empty if it accepts them."""
    from generator.engines.arguments import arguments
    from generator.settings.flags import EngineSettings

    settings = EngineSettings("llama.cpp", version, args)
    words = [word for group in arguments(settings) for word in group]
    done = subprocess.run(
        [server, "--model", "/nonexistent.gguf", "--port", "0", *words],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=30,
    )
    match = re.search(r"error while handling argument.*|invalid argument:.*", done.stderr)
    return match[0] if match else ""


def main() -> int:
    """Compare, and print the differences."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--server", required=True)
    options = reader.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from generator.catalogs.flag_files import versions

    version = versions("llama.cpp")[-1]
    count = differing = 0
    for args in tried():
        count += 1
        errors, refusal = ours(version, args), theirs(options.server, version, args)
        if bool(errors) != bool(refusal):
            differing += 1
            print(
                args, "\n  sparkgen:", errors or "takes it", "\n  llama.cpp:", refusal or "takes it"
            )
    print(f"{count} settings; sparkgen differs in {differing}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
