"""Every site and every drift: what `check --live` says of clean nodes, and of those that differ.

    PYTHONPATH=.:tests python tests/compare_live.py

It also has `import` give back each site from its nodes. It prints what is wrong, and how much it
has compared; it takes a few minutes.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

os.environ.setdefault("SPARKGEN_BUILT_BUNDLES", tempfile.mkdtemp())

from captured_nodes import Machine
from drifted_nodes import DRIFTS, MORE, PATH, clean
from valid_sites import valid_file

from generator.capture import Capture
from generator.capture.archive import read
from generator.drift import drift
from generator.drift.recorded import of_captures
from generator.pipeline import ValidReading
from generator.resources import ROOT

SITES = sorted([*ROOT.glob("sites/**/*.yaml"), *ROOT.glob("tests/golden/*/site.yaml")])


def captured(nodes: Sequence[Machine]) -> list[Capture]:
    """The captures of some nodes."""
    with tempfile.TemporaryDirectory() as folder:
        return [read(node.name, node.capture(Path(folder)).read_bytes()) for node in nodes]


def lines(valid: ValidReading, captures: Sequence[Capture]) -> list[str]:
    """The findings, as the command prints them."""
    found = drift(valid.site, captures, None)
    lacking = [f"{name} lacks {what}" for name, what in found.uncaptured.items()]
    return [*(f"{r.rule}: {r.message}; {r.help}" for r in found.differences), *lacking]


def of_clean(path: Path) -> list[str]:
    """What is wrong about nodes that are as their site says."""
    valid = valid_file(path)
    captures = captured(clean(valid))
    found = of_captures(captures)
    lost = [] if found and found.texts["site.yaml"] == path.read_text() else ["another site"]
    return [*lines(valid, captures), *lost]


@cache
def of_site(path: Path) -> tuple[ValidReading, Machine, list[Capture]]:
    """A site, its first node, and the captures of the others, which no drift is about."""
    valid = valid_file(path)
    first, *rest = clean(valid)
    return valid, first, captured(rest)


def main() -> int:
    """Whether something is wrong."""
    wrong = 0
    for path in SITES:
        for line in of_clean(path):
            print(f"{path.parent.name}/{path.name}: {line}")
            wrong += 1
    of_pair = [(name, PATH, change, starts) for name, (change, starts) in DRIFTS.items()]
    others = [(name, site, change, [start]) for name, (site, change, start) in MORE.items()]
    for name, site, change, starts in (*of_pair, *others):
        valid, first, rest = of_site(site)
        found = lines(valid, [*captured([change(first)]), *rest])
        for start in starts:
            if not any(line.startswith(start) for line in found):
                print(f"{name}: nothing begins with '{start}'")
                wrong += 1
    print(f"{len(SITES)} sites, {len(of_pair) + len(others)} drifts, {wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
