"""Advisories: each entry is complete, and applies to exactly what it claims to apply to."""

from collections.abc import Callable

import pytest
from conftest import Command
from declared import an_engine, some_nodes

from generator.catalogs.advisories import Advisory, advisories, within
from generator.rules.advisories import SUBJECTS, engine_with_a_fault, nccl_with_a_fault

ALL = tuple(advisories())
MANY = some_nodes(2)


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_entry_is_complete(entry: Advisory) -> None:
    assert entry.source
    assert entry.effect[0].islower()
    assert not entry.remedy.endswith(".")
    assert "|" not in entry.effect + entry.remedy
    assert bool(entry.engine) == bool(entry.version)
    # An advisory about nodes must name a kernel or a driver by which to recognize them.
    assert entry.subject != "node" or entry.kernel or entry.driver


def test_ids_are_unique() -> None:
    assert len({entry.id for entry in ALL}) == len(ALL)


def test_every_subject_has_a_rule() -> None:
    covered = {subject for subjects in SUBJECTS.values() for subject in subjects}
    assert {entry.subject for entry in ALL} <= covered | {"node"}


@pytest.mark.parametrize(
    ("version", "inside"),
    [
        ("0.27.0", False),
        ("0.27.1", True),
        ("0.31.0+own", True),
        ("0.32.0rc1", True),
        ("0.32.0", False),
        ("0.33.0", False),
    ],
)
def test_version_ranges(version: str, inside: bool) -> None:
    assert within(">=0.27.1, <0.32", version) is inside
    assert within(None, version)


def test_advisory_matches_nodes_version_and_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    advisory = Advisory(
        *("SGA-0", None, "hangs", "use another", "this test"),
        engine="vllm",
        version=">=0.27.1, <0.32",
        nodes=2,
        unless={"enable-flashinfer-autotune": False},
    )
    entries: Callable[..., list[Advisory]] = lambda *_: [advisory]  # noqa: E731
    monkeypatch.setattr("generator.rules.advisories.advisories", entries)
    kept = an_engine(version="0.29.0", image="vllm/vllm-openai:v0.29.0")
    off = an_engine(version="0.29.0", args={"enable-flashinfer-autotune": False})
    assert [fault.path for fault in engine_with_a_fault(kept, MANY)] == [("engine", "version")]
    assert not list(engine_with_a_fault(kept, MANY[:1]))
    assert not list(engine_with_a_fault(off, MANY))
    assert not list(engine_with_a_fault(an_engine(name="sglang", version="0.29.0"), MANY))


def test_patched_nccl_matches_no_release() -> None:
    assert list(nccl_with_a_fault(an_engine(nccl="2.28.9")))
    assert not list(nccl_with_a_fault(an_engine(nccl="2.28.9", nccl_patched=True)))


def test_advisory_about_engine_and_library_needs_both(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Advisory(
        *("SGA-0", None, "hangs", "use another", "this test"),
        engine="vllm",
        version="<0.30",
        nccl="==2.29.7",
    )
    entries: Callable[..., list[Advisory]] = lambda *_: [pair]  # noqa: E731
    monkeypatch.setattr("generator.rules.advisories.advisories", entries)
    assert list(nccl_with_a_fault(an_engine(version="0.29.0", nccl="2.29.7")))
    assert not list(nccl_with_a_fault(an_engine(version="0.30.0", nccl="2.29.7")))
    assert not list(nccl_with_a_fault(an_engine(version="0.29.0", nccl="2.30.7")))


def test_explain_prints_an_advisory_and_a_rule_all_of_its(
    sparkgen: Command, tmp_path: object
) -> None:
    output = sparkgen("explain", "sga-2026-01", cwd=tmp_path).out
    assert output.startswith("SGA-2026-01 (")
    assert "Source: NVIDIA/NV-Kernels issues 590 and 591" in " ".join(output.split())
    rule = sparkgen("explain", "SG689", cwd=tmp_path).out
    for entry in advisories(*SUBJECTS["SG689"]):
        assert f"{entry.id} ({entry.date}): " in rule
