"""Versions compare as PEP 440 says."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version
from tables import of_each

from generator.catalogs.versions import place, release, version
from generator.engines.startup import Condition

# As PEP 440's "Summary of permitted suffixes and relative ordering" has them, oldest first.
ORDERED = (
    "0.19.0",
    "0.33.0.dev439+g7b9f2dad8",
    "0.33.0a1",
    "0.33.0b1.dev456",
    "0.33.0b2",
    "0.33.0rc1.dev439+g7b9f2dad8",
    "0.33.0rc1",
    "0.33.0rc1+own",
    "0.33.0rc29",
    "0.33.0",
    "0.33.0+abc.5",
    "0.33.0+abc.7",
    "0.33.0+5",
    "0.33.0.post456.dev34",
    "0.33.0.post456",
    "0.33.1",
    "1!0.1",
    "nightly",
)


@of_each(itertools.combinations(ORDERED, 2))
def test_order(pair: tuple[str, str]) -> None:
    older, newer = pair
    assert version(older) < version(newer)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("0.33", "0.33.0"),
        ("v0.33.0", "0.33.0"),
        ("1.3.0-rc.29", "1.3.0rc29"),
        ("1.3.0c29", "1.3.0RC29"),
        ("0.5.0-dev", "0.5.0.dev0"),
        ("2.30.7-1", "2.30.7.post1"),
        ("0.33.0+own_1", "0.33.0+own.1"),
        ("b11434", "11434"),
    ],
)
def test_spellings_of_one_version(text: str, same: str) -> None:
    assert version(text) == version(same)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2.30.7-1", (2, 30, 7)), ("0.29.1rc1.dev17+g1234567.d20260913", (0, 29, 1)), ("", ())],
)
def test_public_release(text: str, numbers: tuple[int, ...]) -> None:
    assert release(text) == numbers


def test_own_build_is_based_on_a_public_version() -> None:
    assert version("0.26.1rc1.dev439+g7b9f2dad8").public == version("0.26.1rc1.dev439")


@pytest.mark.parametrize("text", ["25.11-py3", "latest", "", "0.33.0+"])
def test_invalid_versions_still_compare(text: str) -> None:
    assert version(text) < version("26.0")


RELEASES = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)).map(
    lambda numbers: ".".join(map(str, numbers))
)
# Nothing is before it.
RELEASES = RELEASES.filter(lambda text: text != "0.0.0")
SUFFIXES = st.tuples(
    st.sampled_from(["", "rc1", "rc29", "a1", "b2", "-rc.2"]),
    st.sampled_from(["", ".post1", ".post2", "-1"]),
    st.sampled_from(["", ".dev0", ".dev693"]),
    st.sampled_from(["", "+own", "+g7b9f2dad8.d20260913", "+cu130"]),
).map("".join)


@given(RELEASES, SUFFIXES, RELEASES, RELEASES)
def test_bounds_hold_for_every_kind_of_version(
    release: str, suffix: str, since: str, until: str
) -> None:
    text, given = release + suffix, Version(release + suffix)
    condition = Condition(lambda start: None, "", place(since), place(until))
    assert condition.holds(place(text)) == (Version(since) <= given < Version(until))


@pytest.mark.parametrize(
    ("text", "is_reached"),
    [
        ("0.28.0rc1", False),
        ("0.27.1rc1.dev693+g7b9f2dad8", False),
        ("0.28.0", True),
        ("0.28.0+own", True),
        ("0.28.0.post1", True),
        ("0.28.1rc1.dev3+g7b9f2dad8", True),
        ("nightly", True),
    ],
)
def test_release_that_a_version_has_reached(text: str, is_reached: bool) -> None:
    assert (place(text) >= place("0.28.0")) == is_reached


@pytest.mark.parametrize("text", ["nightly", "0.1.dev20610+g4b276a363.d20260910"])
def test_builds_without_a_release_are_newer_than_all(text: str) -> None:
    assert release(text) > release("99.0")
