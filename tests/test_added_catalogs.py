"""Catalogs of images that people add, and by which their sites are then checked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from error_cases import ERRORS
from error_cases import read as case_of
from racks import site_text

from generator.catalogs import added, flag_files
from generator.catalogs.flags import Flag, FlagCatalog
from generator.pipeline import Reading, read_site
from generator.sitefile.beside import Source, SourceFile

VERSION = "0.33.0"


def known(version: str = VERSION) -> FlagCatalog:
    found = flag_files.catalog("vllm", version)
    assert found
    return found


def description(catalog: FlagCatalog, **facts: str) -> bytes:
    """What an engine with this catalog says of itself."""
    names = Flag.__match_args__
    flags = [{name: getattr(flag, name) for name in names} for flag in catalog.flags()]
    made: dict[str, Any] = {
        "engine": catalog.program,
        "version": catalog.version,
        "abbreviations": "abbreviations" in catalog.traits,
        "flags": flags,
        "variables": {name: catalog.kinds.get(name, "") for name in catalog.variables},
        "registries": {},
    }
    return json.dumps(made | facts).encode()


def read(site: bytes, catalogs: Mapping[str, str]) -> Reading:
    """A site with catalogs beside it."""
    files = tuple(SourceFile(name, text.encode(), False) for name, text in catalogs.items())

    def beside(path: str) -> Source:
        own = Source(files, is_folder=True)
        return own if path == "catalogs" and files else Source(fault=f"there is no {path}")

    return read_site("lab.yaml", site, beside)


def found(reading: Reading) -> list[tuple[object, ...]]:
    return [(f.rule, f.message, f.path, f.help, f.proposals) for f in reading.findings]


ABOUT_FLAGS = ("SG604", *(f"SG{number}" for number in range(632, 650)))
SITES = [
    case_of(path.stem, path.read_bytes()).site
    for path in sorted(ERRORS.glob("*.yaml"))
    if path.name.startswith(ABOUT_FLAGS)
]


def test_release_without_a_catalog_is_checked_by_an_added_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The findings are the same as with sparkgen's own catalog of the release."""
    text = added.described(description(known())).text
    whole = flag_files._covered
    sites = [site for site in SITES if f"version: {VERSION}\n".encode() in site]
    expected = [found(read(site, {})) for site in sites]
    assert len(sites) > 20
    assert all(expected)

    def covered(program: str) -> tuple[str, ...]:
        return tuple(each for each in whole(program) if each != VERSION)

    remembering = (flag_files.is_covered, flag_files.neighbours)
    monkeypatch.setattr(flag_files, "_covered", covered)
    try:
        for each in remembering:
            each.cache_clear()
        without = [found(read(site, {})) for site in sites]
        assert sum(one != other for one, other in zip(expected, without, strict=True)) > 20
        assert [found(read(site, {"own.tsv": text})) for site in sites] == expected
    finally:
        for each in remembering:
            each.cache_clear()


def site(image: str, flag: str = "enable-prefix-caching") -> bytes:
    text = site_text(image="nightly").replace("vllm/vllm-openai:nightly", image)
    return f"{text}  args: {{{flag}: true}}\n".encode()


NIGHTLY, DIGEST = "example.org/vllm:nightly", "sha256:" + "1" * 64


@pytest.mark.parametrize(
    ("image", "is_its_own"),
    [
        (NIGHTLY, True),
        (f"{NIGHTLY}@{DIGEST}", True),
        (f"example.org/mirror:1@{DIGEST}", True),
        (f"{NIGHTLY}@{DIGEST[:-1]}2", False),
        ("example.org/vllm:other", False),
    ],
)
def test_catalog_of_an_image_wins_for_that_image(image: str, is_its_own: bool) -> None:
    catalog = added.described(description(known(), image=NIGHTLY, digest=DIGEST))
    text = catalog.text.replace("--enable-prefix-caching\t", "--enable-prefix-cache\t")
    rules = [rule for rule, *_ in found(read(site(image), {"own.tsv": text}))]
    assert ("SG633" in rules) == is_its_own
    named = found(read(site(image, "enable-prefix-cache"), {"own.tsv": text}))
    assert ("SG632" in [rule for rule, *_ in named]) != is_its_own


def test_newer_release_says_that_nothing_is_known_of_it() -> None:
    text = site_text().replace("0.33.0", "0.34.0").encode()
    assert [rule for rule, *_ in found(read(text, {}))] == ["SG630"]
    catalog = added.described(description(known(), version="0.34.0"))
    assert found(read(text, {"own.tsv": catalog.text})) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it was written by another version of sparkgen"),
        ("versions\t1.0\nparser\tdotted\n", "it does not say which engine it describes"),
        ("versions\t1.0\nparser\nof\tgrep\t\t\n", "it does not say which engine it describes"),
        ("versions\t1.0\nvariables\n", "it was written by another version of sparkgen"),
        (
            "versions\t1.0 2.0\nparser\nof\tvllm\t\t\n",
            "it was written by another version of sparkgen",
        ),
    ],
)
def test_catalog_that_can_not_be_read(text: str, why: str) -> None:
    (finding,) = read(site_text().encode(), {"x.tsv": text}).findings
    assert (finding.rule, finding.message) == (
        "SG853",
        f"the catalog catalogs/x.tsv can't be used: {why}",
    )


MISTAKES = [
    b"",
    b"\xff",
    b"[]",
    b'"text"',
    b'{"engine": "vllm"}',
    description(known(), engine="grep"),
    description(known(), version="1\t2"),
    description(known(), image="a b"),
    description(known(), flags="none"),
    description(known(), variables="none"),
]


@pytest.mark.parametrize("raw", MISTAKES)
def test_text_that_is_no_description(raw: bytes, tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "own.json").write_bytes(raw)
    outcome = sparkgen("catalog", "add", "own.json", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("sparkgen: own.json: it is no description of an engine")
    assert not (tmp_path / "catalogs").exists()


def test_command_keeps_and_lists(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "own.json").write_bytes(description(known(), image=NIGHTLY))
    written = "catalogs/example.org-vllm-nightly.tsv"
    line = f"vllm {VERSION}, {len([*known().flags()])} flags, {len(known().variables)} variables"
    added_now = sparkgen("catalog", "add", "own.json", cwd=tmp_path)
    assert (added_now.code, added_now.out) == (0, f"{written} is written: {line}, {NIGHTLY}\n")
    assert sparkgen("catalog", "add", "--quiet", "own.json", cwd=tmp_path).out == ""
    listed = sparkgen("catalog", "list", cwd=tmp_path)
    assert (listed.code, listed.out) == (0, f"{written}: {line}, {NIGHTLY}\n")
    (tmp_path / "lab.yaml").write_bytes(site(NIGHTLY, "enable-prefix-cachin"))
    assert "SG634" in sparkgen("validate", "lab.yaml", cwd=tmp_path).err
    assert sparkgen("catalog", "add", "none.json", cwd=tmp_path).code == 4
    (tmp_path / written).write_text("x")
    assert sparkgen("catalog", "list", cwd=tmp_path).code == 3


def test_words_that_would_break_a_line_are_left_out() -> None:
    text = json.loads(description(known()))
    text["flags"] = [{"names": ["--mode"], "type": "text", "choices": ["a", "b c", "d@e", "f\tg"]}]
    catalog = added.described(json.dumps(text).encode())
    assert "--mode\ttext\tchoices=a\n" in catalog.text
    assert added.read(catalog.text) == catalog
