"""Public deployments, written as sites: bundles run the same commands, without false findings.

Each file in `deployments/` names its source. A finding in `expected.yaml` is either right or marked
as known to be wrong; any other is a false finding. `runs.yaml` has the commands that the deployment
itself runs; the paths of files on the nodes are up to each owner.
"""

from functools import cache
from pathlib import Path

import pytest
import yaml
from tables import of_each

from generator.diagnostics import Severity
from generator.pipeline import Reading, read_site
from generator.sitefile.disk import beside

FOLDER = Path(__file__).parent / "deployments"
EXPECTED = yaml.load((FOLDER / "expected.yaml").read_bytes(), yaml.CSafeLoader)
RUNS = yaml.load((FOLDER / "runs.yaml").read_bytes(), yaml.CSafeLoader)
SITES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem not in ("expected", "runs"))


@cache
def reading(name: str) -> Reading:
    file = FOLDER / f"{name}.yaml"
    return read_site(file.name, file.read_bytes(), beside(file))


@pytest.mark.parametrize("name", SITES)
def test_no_false_finding(name: str) -> None:
    findings = [found for found in reading(name).findings if found.severity is not Severity.NOTE]
    listed = EXPECTED[name]
    false = [f"{found.rule} {found.message}" for found in findings if found.rule not in listed]
    assert false == []
    assert {found.rule for found in findings} == set(listed)


@of_each(SITES)
def test_source_is_named(name: str) -> None:
    first = (FOLDER / f"{name}.yaml").read_text("utf-8").partition("\n")[0]
    assert first.startswith("# Source: https://")


def test_every_deployment_is_expected() -> None:
    """Every deployment that is not refused has an entry in `runs.yaml`."""
    refused = {name for name in SITES if reading(name).site is None}
    assert set(SITES) == set(EXPECTED)
    assert set(SITES) - refused == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_deployment_starts_what_it_ran(name: str) -> None:
    run, site = RUNS[name], reading(name).site
    assert site
    node = site.nodes[run.get("node", 0)]
    part, member = site.parts_of(node.name)[0]
    container = member.container
    command = " ".join(word for words in container.command for word in words)
    assert [word for word in run.get("words", ()) if word not in command] == []
    env = member.env
    assert {key: env.get(key) for key in run.get("env", {})} == run.get("env", {})
    mounts = {f"{mount.path}:{mount.inside}" for mount in container.mounts}
    assert set(run.get("mounts", ())) <= mounts
    files = [m for m in container.mounts if not m.read_only and not m.may_be_made]
    assert {f"{m.path}:{m.inside}" for m in files} == set(run.get("writable", ()))
    assert container.cpus == run.get("cpus")
    assert container.memory_gib == run.get("memory")
    assert container.shm_size_gib == run.get("shm", container.shm_size_gib)
    build = part.image_build
    assert list(build.mods if build else ()) == run.get("mods", [])
    addresses = {n.name: {i.name: str(i.address) for i in n.interfaces} for n in site.nodes}
    assert {name: addresses[name] for name in run.get("addresses", {})} == run.get("addresses", {})
