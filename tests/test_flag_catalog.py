"""Catalogs of the flags that the engines' parsers accept: files that are read only on demand."""

import pytest

from generator.catalogs.engines import names
from generator.catalogs.flag_files import FOLDER, catalog, neighbours, versions
from generator.catalogs.flags import Flag, ResolvedFlag, parse
from generator.resources import SCHEMAS

CATALOGS = sorted(path.stem for path in FOLDER.glob("*.tsv"))
PROGRAMS = (*names(), "ggml-rpc-server", "ray")

SMALL = parse(
    "engine",
    "1.0",
    "# Source: nobody\n"
    "versions\t1.0 1.1 2.0\n"
    "parser\tunderscores\tabbreviations\tdotted\tequals\n"
    "variables\tENGINE_\tall\n"
    "--cache-size --size -c\tint\tsuffixes\tvariable=ENGINE_CACHE\n"
    "--enable-cache\tswitch\toff=--no-enable-cache --disable-cache\n"
    "--overrides\tjson\tfields=rope scale\talso=*\n"
    "--types\ttext\tmany=+\tchoices=fp8 int8\tdeprecated=\n"
    "ENGINE_HOST\n",
)
SIZE, CACHE, OVERRIDES, _ = SMALL.flags()


def test_lines_of_a_catalog() -> None:
    assert list(SMALL.flags()) == [
        Flag(("--cache-size", "--size", "-c"), "int", suffixes=True, variable="ENGINE_CACHE"),
        Flag(("--enable-cache",), "switch", ("--no-enable-cache", "--disable-cache")),
        Flag(("--overrides",), "json", also=("*",), fields=("rope", "scale")),
        Flag(("--types",), "text", many="+", choices=("fp8", "int8"), deprecated=""),
    ]
    assert (SMALL.prefix, SMALL.has_all_variables) == ("ENGINE_", True)
    assert SMALL.variables == {"ENGINE_HOST", "ENGINE_CACHE"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("cache-size", ResolvedFlag(SIZE, "--cache-size", "")),
        ("cache_size", ResolvedFlag(SIZE, "--cache-size", "")),
        ("size", ResolvedFlag(SIZE, "--size", "")),
        ("c", ResolvedFlag(SIZE, "-c", "")),
        ("disable-cache", ResolvedFlag(CACHE, "--disable-cache", "")),
        ("overrides.rope.theta", ResolvedFlag(OVERRIDES, "--overrides", "rope.theta")),
        ("cache-size.rope", None),
        ("cache", None),
    ],
)
def test_aliases_of_a_flag(name: str, found: ResolvedFlag | None) -> None:
    assert SMALL.find(name) == found


def test_names_are_spelled_as_the_parser_spells_them() -> None:
    plain = parse("engine", "1.0", "versions\t1.0\nparser\n--cache-size\tint\n--overrides\tjson\n")
    assert plain.find("cache-size")
    assert plain.find("cache_size") is None
    assert plain.find("overrides.rope") is None
    assert plain.nearest("cache_size") == "cache-size"


def test_a_catalog_without_its_parser_is_named() -> None:
    with pytest.raises(LookupError, match=r"^schemas/engines/engine\.tsv:3: no line 'parser'"):
        parse("engine", "1.0", "# What it takes.\nversions\t1.0\n--cache-size\tint\n")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("# What it takes.\nparser\n--size\tint\n", 0),
        ("versions\nparser\n--size\tint\n", 0),
        ("versions\t1.0\nversions\t1.1\nparser\n", 2),
    ],
)
def test_a_catalog_without_its_versions_is_named(text: str, number: int) -> None:
    with pytest.raises(LookupError, match=rf"^schemas/engines/engine\.tsv: {number} lines 'vers"):
        parse("engine", "1.0", text)


def test_beginnings_and_misspelt_names() -> None:
    assert SMALL.completions("c") == ["cache-size"]
    assert SMALL.completions("en") == ["enable-cache"]
    assert SMALL.completions("") == ["cache-size", "enable-cache", "overrides", "types"]
    assert SMALL.nearest("typ") == "types"
    assert SMALL.nearest("enabel_cache") == "enable-cache"
    assert SMALL.nearest("something") is None


def test_versions_that_have_a_word_or_a_line() -> None:
    text = (
        "versions\t1.0 1.1 2.0 2.1\nparser\nvariables\tE_\tall\n"
        "--level --depth@1.1..\tint\tversions=..2.0\n"
        "--level\ttext\tknown=low high@2.1\tversions=2.1..\n"
        "--mode\ttext\tchoices=a b@1.1..2.0 c@..1.0,2.1..\n"
        "E_OLD\t..1.0\nE_BOTH\n"
    )
    known = {version: parse("engine", version, text) for version in ("1.0", "1.1", "2.0", "2.1")}
    levels = {version: each.find("level") for version, each in known.items()}
    assert [found.flag.type if found else "" for found in levels.values()] == [*["int"] * 3, "text"]
    assert [bool(each.find("depth")) for each in known.values()] == [False, True, True, False]
    modes = [next(f for f in each.flags() if f.name == "mode").choices for each in known.values()]
    assert modes == [("a", "c"), ("a", "b"), ("a", "b"), ("a", "c")]
    assert [sorted(each.variables) for each in known.values()] == [["E_BOTH", "E_OLD"]] + [
        ["E_BOTH"]
    ] * 3


@pytest.mark.parametrize(
    ("requested", "used"),
    [
        ("0.19.0", ("0.19.0",)),
        ("0.33", ("0.33.0",)),
        ("0.33.0+own", ("0.33.0",)),
        ("0.27.0.post1", ("0.27.1", "0.27.0")),
        ("0.26.1rc1.dev439+g7b9f2dad8", ("0.27.0", "0.26.0")),
        ("0.29.1rc1.dev17+g1234567.d20260913", ("0.30.0", "0.29.0")),
        ("0.9.2", ("0.10.0",)),
        ("0.33.0.post1", ("0.33.0",)),
        ("1.0", ("0.33.0",)),
    ],
)
def test_neighbours_of_a_version(requested: str, used: tuple[str, ...]) -> None:
    assert neighbours("vllm", requested) == used
    known = catalog("vllm", requested)
    assert known
    assert known.version == used[0]


def test_program_without_a_catalog() -> None:
    assert catalog("nobody", "1.0") is None


def test_every_program_has_a_catalog() -> None:
    assert {*PROGRAMS} == {*CATALOGS}
    assert all(versions(program) for program in PROGRAMS)


def test_every_minor_release_is_covered() -> None:
    assert {f"0.{minor}.0" for minor in range(19, 34)} <= {*versions("vllm")}
    assert {f"0.5.{patch}" for patch in range(5, 24)} <= {*versions("sglang")}


def each() -> list[tuple[str, str]]:
    return [(program, version) for program in PROGRAMS for version in versions(program)]


@pytest.mark.parametrize(("program", "version"), each())
def test_catalog_is_consistent(program: str, version: str) -> None:
    known = catalog(program, version)
    assert known
    lines = (FOLDER / f"{known.program}.tsv").read_text("utf-8").splitlines()
    assert [line[:1] for line in lines[:2]] == ["#", "#"]
    assert lines[1].startswith("# Source: ")
    assert known.traits <= {"underscores", "abbreviations", "dotted", "iec", "equals"}
    flags = list(known.flags())
    options = [option for flag in flags for option in (*flag.names, *flag.off)]
    assert len(options) == len(set(options))
    assert [flag.names[0] for flag in flags] == sorted(flag.names[0] for flag in flags)
    for flag in flags:
        assert flag.names[0].startswith("--")
        assert flag.type in ("switch", "int", "float", "text", "json")
        assert flag.many in ("", "+", "*", "append", "comma", "2")
        assert not (flag.type == "switch" and (flag.many or flag.choices or flag.words))
        assert not (flag.choices and flag.known)
        assert set(flag.words) <= set(flag.choices)


def test_replacements_have_the_version_of_a_removal() -> None:
    rows = (SCHEMAS / "replaced.tsv").read_text("utf-8").splitlines()
    for program, name, gone, _ in (row.split("\t") for row in rows if row.count("\t") == 3):
        order = versions(program)
        if "=" in name or gone not in order:
            continue
        last = order[order.index(gone) - 1]
        # A later release may have it again.
        assert (has(program, last, name), has(program, gone, name)) == (True, False), name


def has(program: str, version: str, name: str) -> bool:
    known = catalog(program, version)
    assert known
    return bool(known.find(name[2:])) if name.startswith("--") else name in known.variables
