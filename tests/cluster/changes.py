"""Ten changes of a pair that serves, carried out as `sparkgen diff` says."""

import json
from pathlib import Path
from typing import Any

from conftest import Command

from cluster.observing import started
from cluster.pairs import Pair
from cluster.upgrade import carry_out, measured

_IMAGE = """\
image:
    name: tiny-own:1
    from: llama.cpp-rpc:tests
    files: [{source: files/note, target: /opt/note}]
    run: ["sed s/given/built/ /opt/note >/opt/built"]"""
# What is replaced in the site file of `pairs.py`, one change after the other.
CHANGES = {
    "a setting of the engine": ("max_sequences: 2", "max_sequences: 1"),
    "a service goes": ("{guard: true}", "{guard: false}"),
    "an image is built": ("image: llama.cpp-rpc:tests", _IMAGE),
    "a service comes": ("{guard: false}", "{guard: true}"),
    "the MTU": ("{kind: direct}", "{kind: direct, mtu: 4200}"),
    "the pool of subnets": ("mtu: 4200}", "mtu: 4200, subnet_pool: 10.77.0.0/16}"),
    "the context": ("context_length: 2048", "context_length: 1024"),
    "another name of the model": ("served_name: tiny\n", "served_name: tiny\n  aliases: [wee]\n"),
    "the label of a cable": ("spark2:p0]\n", "spark2:p0]\n    label: red\n"),
    "the name of the site": ("name: tiny\nnodes", "name: small\nnodes"),
}


def change(pair: Pair, name: str, folder: Path, sparkgen: Command) -> tuple[float, int]:
    """Carry out one of them: for how many seconds at most nobody is served, measured and told.

    If nothing is told to be down, no engine starts anew.
    """
    old, new = CHANGES[name]
    file = folder / "sites/tiny.yaml"
    if not file.exists():
        (file.parent / "files").mkdir(parents=True)
        (file.parent / "files/note").write_text("given\n")
        file.write_text(pair.bundle.file.read_text())
    assert sparkgen("build", file, cwd=folder).code == 0
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    review = _review(file, folder, sparkgen)
    assert sparkgen("build", file, cwd=folder).code == 0
    before = [started(machine) for machine in (pair.head, pair.worker)]
    with measured(pair.serves, pair.patience) as downtime:
        carry_out(pair.rack.machines, review, folder / "out" / review["site"])
    told = review["downtimeSeconds"]
    if told is None:
        assert before == [started(machine) for machine in (pair.head, pair.worker)], name
    else:
        assert downtime.seconds < told, name
    return downtime.seconds, told or 0


def _review(file: Path, folder: Path, sparkgen: Command) -> dict[str, Any]:
    outcome = sparkgen("diff", file, "--format", "json", cwd=folder)
    (review,) = json.loads(outcome.out)["sites"]
    return dict(review)
