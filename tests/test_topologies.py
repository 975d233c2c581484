"""Topologies: what each states about itself is true for every number of nodes it supports."""

import re

import pytest

from generator.fabric.groups import gap, groups
from generator.fabric.topologies import TOPOLOGIES, without_a_switch
from generator.resources import ROOT
from generator.sitefile.declaration import Parallel
from generator.sitefile.topology_kinds import kind_traits

Ranks = tuple[int, ...]

each_kind = pytest.mark.parametrize("kind", TOPOLOGIES)


def test_schema_has_traits_of_each_kind() -> None:
    assert list(kind_traits()) == list(TOPOLOGIES)
    for topology in TOPOLOGIES.values():
        assert topology.fewest <= topology.most >= topology.assumed_for


def test_no_other_module_names_a_kind() -> None:
    names = rf'"({"|".join(TOPOLOGIES)})"|SINGLE|PAIRS|SWITCH'
    kinds = re.compile(rf"kind\s*(==|!=|in|not in)\s*\(?({names})")
    files = [*(ROOT / "generator").rglob("*.py"), *(ROOT / "templates").rglob("*.j2")]
    assert files
    assert [str(file) for file in files if kinds.search(file.read_text())] == []


@each_kind
def test_cables_are_as_many_as_nodes_need(kind: str) -> None:
    topology = TOPOLOGIES[kind]
    for count in range(topology.fewest, min(topology.most, 16) + 1):
        names = [f"spark{number}" for number in range(1, count + 1)]
        pairs = topology.pairs(names)
        assert topology.missing(names, pairs) == ()
        assert topology.missing(names, pairs[1:]) == pairs[:1]
        ports = [name for pair in pairs for name in pair]
        assert all(ports.count(name) <= 2 for name in names)


@each_kind
def test_without_a_switch(kind: str) -> None:
    topology = TOPOLOGIES[kind]
    for count in (topology.fewest, topology.most):
        assert (kind in without_a_switch(count)) is topology.connects_directly


RING = TOPOLOGIES["ring"]
FIVE = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("joined", "missing"),
    [
        ([("a", "b"), ("c", "d")], [("b", "c"), ("d", "e"), ("e", "a")]),
        ([("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")], [("a", "b")]),
        # If the cables do not follow the order of the list, the ends of existing chains are joined.
        ([("a", "c"), ("c", "e"), ("e", "b"), ("b", "d")], [("d", "a")]),
        ([("c", "a")], [("b", "c"), ("b", "d"), ("d", "e"), ("e", "a")]),
    ],
)
def test_missing_cables_of_a_ring(
    joined: list[tuple[str, str]], missing: list[tuple[str, str]]
) -> None:
    assert sorted(RING.missing(FIVE, joined)) == missing
    assert len(RING.order(FIVE, [*joined, *missing])) == len(FIVE)


def test_order_of_a_ring() -> None:
    across = [("a", "c"), ("c", "e"), ("e", "b"), ("b", "d"), ("d", "a")]
    assert RING.order(FIVE, across) == ("a", "c", "e", "b", "d")
    assert RING.order(FIVE, across[:-1]) == ()


def test_rings_that_leave_nodes_out() -> None:
    closed = [("b", "c"), ("c", "d"), ("d", "b")]
    assert RING.closed_subset(FIVE, closed) == ("b", "c", "d")
    assert RING.order(FIVE, [*closed, ("a", "e"), ("e", "a")]) == ()
    assert RING.closed_subset(FIVE, RING.pairs(FIVE)) == ()


def kinds_of(sizes: Parallel, context: int = 1, shared: bool = False) -> dict[str, set[Ranks]]:
    found: dict[str, set[Ranks]] = {}
    for group in groups(sizes, context, shared):
        found.setdefault(group.kind, set()).add(group.ranks)
    return found


def test_groups_of_ranks() -> None:
    assert kinds_of(Parallel(tensor=2, pipeline=2)) == {
        "tensor": {(0, 1), (2, 3)},
        "pipeline": {(0, 2), (1, 3)},
    }
    assert kinds_of(Parallel(tensor=2, pipeline=2, data=2), shared=True) == {
        "tensor": {(0, 1), (2, 3), (4, 5), (6, 7)},
        "pipeline": {(0, 2), (1, 3), (4, 6), (5, 7)},
        "data": {(0, 4), (1, 5), (2, 6), (3, 7)},
        "expert": {(0, 1, 4, 5), (2, 3, 6, 7)},
    }
    assert kinds_of(Parallel(tensor=4), context=2)["context"] == {(0, 1), (2, 3)}
    assert kinds_of(Parallel(tensor=4), context=4) == {"tensor": {(0, 1, 2, 3)}}


def test_gap_of_a_group() -> None:
    joined = RING.pairs(FIVE)
    assert gap(FIVE, joined) is None
    assert gap(("b", "a"), joined) is None
    assert gap(("d", "e", "a", "b", "c"), joined) is None
    assert gap(("a", "c"), joined) == ("a", "c")
    assert gap(("a", "b", "c"), joined) == ("c", "a")


def test_setup_of_a_switch_can_run_twice() -> None:
    """Entries are only added if missing, blocks are closed, and each port gets a setting once."""
    text = (ROOT / "tests/golden/switch-setup/expected/switches/left.rsc").read_text()
    commands = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in commands:
        assert line.count('"') % 2 == 0, line
        if " add " in line:
            assert re.fullmatch(r":if \(\[:len \[.*\]\] = 0\) do=\{ .* \}", line), line
    for opening, closing in ("[]", "{}", "()"):
        assert text.count(opening) == text.count(closing)
    assert text.index("/export") < text.index("/interface/ethernet\nset")
    for port in ("qsfp56-1-1", "qsfp56-dd-2-5"):
        settings = [line for line in commands if f"default-name={port} ]" in line]
        assert [line.count(" speed=") for line in settings] == [1, 0]
