"""Reading YAML: what scalars mean, where everything is, and what a site file may not contain."""

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from valid_sites import valid

from generator.diagnostics import Finding, KeyPath, Severity
from generator.pipeline import read_site
from generator.reports.text import text
from generator.site import Site
from generator.sitefile.source import Document, read


def document(raw: str | bytes) -> Document:
    return read("site.yaml", raw.encode() if isinstance(raw, str) else raw)


def meaning(scalar: str) -> object:
    """The value of a scalar where no schema says that it is text."""
    data = document(f"value: {scalar}\n").data
    return data["value"].meaning()


def faults(raw: str | bytes) -> list[str]:
    """The rule and place of every finding from reading a text."""
    read_ = document(raw)
    return [f"{finding.rule} {place(read_, finding)}" for finding in read_.findings]


def place(read_: Document, finding: Finding) -> str:
    span = finding.span or read_.locate(finding.path, finding.at_key)
    return f"{span.line + 1}:{span.column + 1}" if span else "-"


# What scalars mean


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-17", -17),
        ("+17", 17),
        ("0o17", 15),
        ("0xFF", 255),
        ("26.10", 26.1),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-1.5E-3", -0.0015),
    ],
)
def test_scalar_means_what_yaml_1_2_says(written: str, value: object) -> None:
    found = meaning(written)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "written",
    [
        *("no", "No", "off", "yes", "on", "y", "N", "tRUE", "nULL"),
        *("22:22", "190:20:30", "0755", "-012", "1_000", "0b11", "0X1F", "1,5"),
        *("3c:6d:66:0a:b1:04", "10.0.0.11/24", "2.30.7", "2026-11-21", ".nan", ".inf", "-.inf"),
        *("=", "<", "1e", "1e9999", "12345678901234567890123", "0x", "0o8", "+", "-x", "."),
    ],
)
def test_other_scalars_are_text(written: str) -> None:
    assert meaning(written) == written


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("written", ["", "~", "true", "17", "null", "1e3"])
def test_quoted_scalar_is_text(written: str, quote: str) -> None:
    value = document(f"value: {quote}{written}{quote}\n").data["value"]
    assert (value, type(value)) == (written, str)


def test_text_of_several_lines() -> None:
    data = document("literal: |\n  a\n   b\nfolded: >-\n  a\n  b\nplain: a\n  b\n").data
    assert data == {"literal": "a\n b\n", "folded": "a b", "plain": "a b"}


as_written = pytest.mark.parametrize(
    "written",
    ["no", "22:22", "0755", "26.10", "1e3", "0o17", "0x1F", "1_000", "true", "3c:6d:66:0a:b1:04"],
)


@as_written
def test_text_is_kept_where_the_schema_has_text(written: str) -> None:
    site = derived(f"""\
description: {written}
model: {{name: gpt-oss-120b}}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  env: {{VALUE: {written}}}
""")
    assert site.description == written
    assert site.head.env["VALUE"] == written


@as_written
def test_arguments_are_kept(written: str) -> None:
    site = derived(f"""\
model: {{name: gpt-oss-120b}}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  args:
    chat-template: "{written}"
    logits-processors: [{written}, "{written}"]
""")
    assert (f"--chat-template={written}",) in site.head.container.command
    assert ("--logits-processors", written, written) in site.head.container.command


def derived(rest: str) -> Site:
    """The site of a node with these sections."""
    start = "version: 1\nname: single\nnodes: [{name: spark}]\ntopology: {kind: single}\n"
    return valid(start + rest).site


# Where things stand

PLACES = """\
# é 日本
name: a
"ünïque": [b, "日本", {c: d}]
tabs: [e,\tf, {g:\th}]
block:
  - i: j
    k:
      - l
  -   - m
folded: >
  n
  o
"""


@pytest.mark.parametrize(
    ("path", "at_key", "where", "spelled"),
    [
        (("name",), False, "2:7", "a"),
        (("name",), True, "2:1", "name"),
        (("ünïque",), True, "3:1", '"ünïque"'),
        (("ünïque", 0), False, "3:12", "b"),
        (("ünïque", 1), False, "3:15", '"日本"'),
        (("ünïque", 2, "c"), False, "3:25", "d"),
        (("ünïque", 2, "c"), True, "3:22", "c"),
        (("tabs", 1), False, "4:11", "f"),
        (("tabs", 2, "g"), False, "4:18", "h"),
        (("block", 0, "i"), False, "6:8", "j"),
        (("block", 0, "k", 0), False, "8:9", "l"),
        (("block", 1, 0), False, "9:9", "m"),
    ],
)
def test_place_of_a_key_and_of_a_value(
    path: KeyPath, at_key: bool, where: str, spelled: str
) -> None:
    span = document(PLACES).locate(path, at_key)
    assert span
    assert f"{span.line + 1}:{span.column + 1}" == where
    assert PLACES.split("\n")[span.line][span.column : span.end_column] == spelled


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (("block", 7), ("block",)),
        (("block", "i"), ("block",)),
        (("block", 0, "x"), ("block", 0)),
        (("block", 0, "i", "x", 3), ("block", 0, "i")),
        (("nothing", 0), ()),
    ],
)
def test_place_of_a_missing_value_is_its_nearest_parent(path: KeyPath, nearest: KeyPath) -> None:
    found = document(PLACES)
    assert found.locate(path) in (found.locate(nearest), found.locate(nearest, at_key=True))


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["unix", "dos", "mac"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "mark"])
def test_line_ends_and_byte_order_mark_move_no_place(ends: str, mark: bytes) -> None:
    found = document(mark + PLACES.replace("\n", ends).encode())
    assert found.data == document(PLACES).data
    assert found.text == PLACES
    assert found.locate(("ünïque", 1)) == document(PLACES).locate(("ünïque", 1))


@pytest.mark.parametrize(
    ("line", "path", "token"),
    [
        ("key: [a, bcd, e]", ("key", 1), "bcd"),
        ("key: [é, ßtraße, e]", ("key", 1), "ßtraße"),
        ("key: [日本, 東京, e]", ("key", 1), "東京"),
        ("key: [e\u0301e\u0301, o\u0308, e]", ("key", 1), "o\u0308"),
        ("key: [a,\tbcd,\te]", ("key", 1), "bcd"),
        ('key: [a, "b c", e]', ("key", 1), '"b c"'),
        ("key: {a: {b: c}}", ("key", "a"), "{b: c}"),
        (f"key: [{'x' * 500}, bcd, {'y' * 500}]", ("key", 1), "bcd"),
    ],
)
def test_carets_stand_under_exactly_the_value(line: str, path: KeyPath, token: str) -> None:
    finding = Finding("SG000", Severity.ERROR, "look", path)
    shown = text(document(line + "\n"), [finding]).splitlines()
    source = next(row for row in shown if row.startswith("1 | "))
    carets = shown[shown.index(source) + 1]
    assert set(carets[3:].strip()) == {"^"}
    assert carets.index("^") == width(source[: source.index(token)])
    assert carets.count("^") == width(token)


def width(part: str) -> int:
    """Columns of a terminal."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in part)
    return len(part) + wide - sum(map(bool, map(unicodedata.combining, part)))


# What a site file may not contain


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "SG003 3:1"),
        ("é: {b: 1, 'b': 2}\n", "SG003 1:11"),
        ("a: &x {b: 1}\nc: {<<: *x}\n", "SG004 2:5"),
        ("a: 1\n---\nb: 2\n", "SG005 2:1"),
        ("a:\n\tb: 1\n", "SG002 2:1"),
        ("a: 1\n\tb: 1\n", "SG002 2:1"),
        ("a: !!int 3\n", "SG010 1:4"),
        ("a: !!python/object/apply:os.system [id]\n", "SG010 1:4"),
        ("? [a]\n: b\n", "SG009 1:3"),
        ("", "SG001 -"),
        ("# nothing\n", "SG001 -"),
        ("a: [1, 2\n", "SG001 1:4"),
        ("a: b: c\n", "SG001 1:5"),
        ("a: *x\n", "SG001 1:4"),
        ("a: &x [b, *x]\n", "SG008 1:4"),
        ("a: &x {b: {c: *x}}\n", "SG008 1:4"),
    ],
)
def test_fault_has_its_rule_and_its_place(raw: str, expected: str) -> None:
    assert faults(raw) == [expected]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a: 1\n".encode("utf-16"), "SG006 -"),
        ("a: 1\n".encode("utf-32"), "SG006 -"),
        (b"a: 1\nb: \xe9\n", "SG006 2:4"),
        ("é: 日\nb: ".encode() + b"\xff", "SG006 2:4"),
        (b"a: \x00\n", "SG006 1:4"),
        ("# é日本日本\na: \x1b[31mred\n".encode(), "SG006 2:4"),
        ("a: é\x7f\n".encode(), "SG006 1:5"),
        ("a: \x85b\n".encode(), "SG006 1:4"),
        ("# hidden\u2028a: 1\n".encode(), "SG006 1:9"),
        ("a: \ufeffb\n".encode(), "SG006 1:4"),
    ],
)
def test_character_that_has_no_place_in_a_file(raw: bytes, expected: str) -> None:
    assert faults(raw) == [expected]
    assert document(raw).data is None


def test_alias_repeats_a_value() -> None:
    found = document("a: &x {b: [1]}\nc: *x\nd: [*x, *x]\n")
    assert found.findings == ()
    assert found.data["c"] == found.data["d"][1] == {"b": ["1"]}
    assert found.locate(("c", "b", 0)) == found.locate(("a", "b", 0))


def test_key_that_is_twice_beside_a_mapping_as_key() -> None:
    found = read_site("site.yaml", b"? {a: b}\n: c\nname: x\nname: y\n").findings
    assert [finding.rule for finding in found][:2] == ["SG009", "SG003"]


def test_first_of_two_keys_counts() -> None:
    found = document("a: 1\nb: 2\na: 3\n")
    assert found.data == {"a": "1", "b": "2"}
    (finding,) = found.findings
    assert [related.path for related in finding.related] == [("a",)]


# Input that could crash the reader


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
LADDER = "a0: &a0 x\n" + "".join(f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 99))


@pytest.mark.parametrize(
    "raw",
    [
        BOMB,
        LADDER,
        "{a: " * 100_000,
        "- " * 100_000,
        "".join(f"{' ' * level}a:\n" for level in range(2_000)),
        f"a: [{'x,' * 600_000}]",
        f"# {'x' * 5_000_000}",
    ],
    ids=["bomb", "ladder", "braces", "dashes", "blocks", "long", "large"],
)
def test_oversized_input_is_one_finding(raw: str) -> None:
    reading = read_site("site.yaml", raw.encode())
    assert [finding.rule for finding in reading.findings] == ["SG007"]
    assert reading.site is None


def test_hundred_thousand_brackets_do_not_take_the_process_down(
    tmp_path: Path, process: Command
) -> None:
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    outcome = process("validate", "deep.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG007]: ")


def test_nothing_is_expanded_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "expanded")
    data: Any = document("a: $NAME\nb: ${NAME}\nc: '{{ NAME }}'\n").data
    assert list(data.values()) == ["$NAME", "${NAME}", "{{ NAME }}"]
