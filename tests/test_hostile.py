"""Hostile site files: whatever they contain, an answer in bounded time, no traceback, no output.

A value that is accepted must also be safe in every file that it reaches: it stays a value there,
and never becomes shell, unit, YAML or template syntax.
"""

import os
import random
import re
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from conftest import Command
from draws import share
from tables import of_each
from test_golden import NAMED_BY_PEOPLE
from test_page import Page
from waiting import PATIENCE, computed_within

from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.pipeline import Reading, read_site
from generator.reports.text import text
from generator.resources import ROOT
from generator.sitefile.sections import site_schema

SECONDS = 6
MOST_PRINTED = 1_000_000
EXAMPLES = sorted((ROOT / "sites").rglob("*.yaml"))

Steps = tuple[str | int, ...]

PAIR: dict[str, Any] = {
    "version": 1,
    "name": "lab",
    "nodes": [{"name": "spark1"}, {"name": "spark2"}],
    "cabling": [{"endpoints": ["spark1:p0", "spark2:p0"]}],
    "topology": {"kind": "direct"},
    "model": {"name": "gpt-oss-120b"},
    "engine": {
        "name": "vllm",
        "version": "0.33.0",
        "image": "vllm/vllm-openai:v0.33.0",
        "parallel": {"pipeline": 2},
    },
}
HEAD = "version: 1\nname: lab\n"
TAIL = (
    "topology: {kind: single}\n"
    "model: {name: gpt-oss-120b}\n"
    "engine: {name: vllm, version: 0.33.0, image: vllm/vllm-openai:v0.33.0, args: ARGS}\n"
)
# Good names, unless YAML turns them into a boolean or a number.
WORDS = ("yes", "1e999", "0x10")
NASTY = (
    "",
    " ",
    "../../etc/passwd",
    "/etc/../etc/passwd",
    "it's",
    'say "yes"',
    "two\nlines",
    "carriage\rreturn",
    "tab\tin it",
    "$(touch pwned)",
    "`touch pwned`",
    "${HOME}",
    "$HOME",
    "$$",
    "%n",
    "%i%h%s",
    "{{ 7 * 7777 }}",
    "{% for x in y %}",
    "{# no comment #}",
    "${{ secrets.TOKEN }}",
    "; touch pwned",
    "| touch pwned",
    "a && touch pwned",
    "a # comment",
    "key: value",
    "- entry",
    "--flag",
    "-rf",
    "*",
    "~",
    "!!python/object/apply:os.system [id]",
    "\\",
    "\\n",
    "<script>alert(1)</script>",
    "[link](http://example.org)",
    "Über",
    "日本語",
    "\u202egnirts",
    "zero\u200bwidth",
    "\x1b[2J\x1b]0;title\x07",
    "\x00",
    "\x85\u2028",
    "x" * 5000,
    *WORDS,
)
ANSWER = "54439"


def leaves(rules: dict[str, Any], path: Steps = ()) -> Iterator[Steps]:
    """The paths of all text in the site format; `KEY` stands for names that a site chooses."""
    types = rules.get("type", ())
    if "string" in ((types,) if isinstance(types, str) else types):
        yield path
    for key, inner in rules.get("schema", {}).items() if "list" not in types else ():
        yield from leaves(inner, (*path, key))
    if "list" in types and "schema" in rules:
        yield from leaves(rules["schema"], (*path, 0))
    if "valuesrules" in rules:
        yield from leaves(rules["valuesrules"], (*path, "KEY"))


LEAVES = list(leaves({"schema": site_schema()}))


def with_value(path: Steps, value: object) -> dict[str, Any]:
    """The pair of nodes with a value at a path, and the other keys that its sections require."""
    site = deepcopy(PAIR)
    if path[:2] == ("model", "source") or path[:2] == ("model", "architecture"):
        del site["model"]["name"]
    rules: dict[str, Any] = {"schema": site_schema()}
    place: Any = site
    for step, following in zip(path, (*path[1:], None), strict=True):
        rules = rules["schema"] if step == 0 else {**rules, **rules.get("schema", {})}
        rules = rules if step == 0 else rules.get(str(step)) or rules["valuesrules"]
        if following is None:
            put(place, step, value)
        else:
            place = entered(place, step, [] if following == 0 else needed(rules))
    return site


def put(place: Any, step: str | int, value: object) -> None:
    if isinstance(place, list) and not place:
        place.append(value)
    else:
        place[step] = value


def entered(place: Any, step: str | int, new: object) -> Any:
    if isinstance(place, list) and not place:
        place.append(new)
    if isinstance(place, dict):
        place.setdefault(step, new)
    # Where both a text and a mapping are allowed, use a mapping.
    if isinstance(place[step], str):
        place[step] = new
    return place[step]


def needed(rules: dict[str, Any]) -> dict[str, Any]:
    inner = rules.get("schema", {})
    return {
        key: deepcopy(inner[key]["meta"].get("example")) or needed(inner[key])
        for key in inner
        if inner[key].get("required") is True
    }


def written(site: object) -> bytes:
    text: str = yaml.dump(
        site, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False, width=10_000
    )
    return text.encode()


def read(raw: bytes) -> Reading:
    """Read a site as the commands do, and check that its findings are fit for a terminal."""
    reading, printed = computed_within(SECONDS, lambda: _printed(raw))
    assert len(printed) < MOST_PRINTED
    assert all(line.isprintable() for line in printed.split("\n"))
    assert reading.findings or reading.site
    return reading


def _printed(raw: bytes) -> tuple[Reading, str]:
    reading = read_site("site.yaml", raw)
    return reading, text(reading.document, reading.findings)


def bundle(reading: Reading) -> Tree:
    assert reading.site
    return render(reading.site, reading.sha256)


# Values of variables that Docker or Compose would misread are written to a separate file.
LIKE_WORDS = ("word", "a # b", "a 'b'", "$b")


@pytest.mark.drawn
@pytest.mark.parametrize("path", LEAVES, ids=lambda path: ".".join(map(str, path)))
def test_text_is_refused_or_stays_text(path: Steps) -> None:
    accepted = []
    # A different share for each successive path, so that each text is the value of many.
    for value in share(NASTY, LEAVES.index(path), 14):
        reading = read(written(with_value(path, value)))
        if reading.site:
            accepted.append((value, tree := bundle(reading)))
            check_tree(tree)
    shapes = shapes_of_words(path) if accepted else []
    for value, tree in accepted:
        assert not shapes or not value.strip() or lines(tree) in shapes, value


def shapes_of_words(path: Steps) -> list[dict[str, int]]:
    """The line counts of bundles with a plain value at the path, for those that are accepted."""
    readings = (read(written(with_value(path, word))) for word in LIKE_WORDS)
    return [lines(bundle(reading)) for reading in readings if reading.site]


def lines(tree: Tree) -> dict[str, int]:
    """The number of lines of each file, to which a value should not add any."""
    # A job's files are named after it.
    named = {path: re.sub(r"\bjobs/[a-z0-9-]+", "jobs/NAME", path) for path in tree}
    return {named[path]: file.text.count("\n") for path, file in tree.items()}


# Scripts that a shell has already checked: many are the same in every tree.
CHECKED: set[str] = set()


def check_tree(tree: Tree) -> None:
    """Check that paths stay inside the tree, text is plain, and each file's syntax is intact."""
    for path, file in tree.items():
        assert ".." not in path.split("/")
        assert not path.startswith("/")
        assert all(line.isprintable() for line in file.text.split("\n")), path
        assert file.text.isascii() or path in NAMED_BY_PEOPLE, path
        assert ANSWER not in file.text or "sha256" in path.lower() or path == "MANIFEST.json"
        if path.endswith((".yaml", ".json")):
            yaml.load(file.text, yaml.CSafeLoader)
        if path.endswith(".svg"):
            ElementTree.fromstring(file.text)
        if path.endswith(".html"):
            assert file.text.count("<script>") <= 1
            Page(file.text)
    shell = "#!/usr/bin/env bash"
    scripts = {file.text for file in tree.values() if file.text.startswith(shell)} - CHECKED
    CHECKED.update(scripts)
    with TemporaryDirectory() as folder:
        for number, script in enumerate(scripts):
            Path(folder, f"{number}.sh").write_text(script, encoding="utf-8")
        check = 'shopt -s nullglob; for script in *.sh; do bash -n "$script" || exit 1; done'
        subprocess.run(["bash", "-c", check], cwd=folder, check=True, timeout=PATIENCE)


@pytest.mark.parametrize(
    "section", [(), ("nodes", 0), ("engine", "args"), ("engine", "env")], ids=str
)
def test_key_is_refused_or_stays_a_key(section: Steps) -> None:
    for key in NASTY:
        site = deepcopy(PAIR)
        place: Any = site
        for step in section:
            place = entered(place, step, {})
        place[key] = "word"
        reading = read(written(site))
        if reading.site:
            check_tree(bundle(reading))


@pytest.mark.parametrize("value", NASTY)
def test_argument_of_any_kind_stays_an_argument(value: str) -> None:
    for nested in ([value, "b"], {"a": value}, {value: "a"}, {"a": [value, {"b": value}]}):
        reading = read(written(with_value(("engine", "args", "flag"), nested)))
        if reading.site:
            check_tree(bundle(reading))


def with_nodes(nodes: str, args: str = "{}", tail: str = "") -> bytes:
    return (HEAD + nodes + TAIL.replace("ARGS", args) + tail).encode()


def many(template: str, count: int = 10_000, joint: str = "") -> str:
    return joint.join(template.format(i) for i in range(count))


HUGE: dict[str, Callable[[], bytes]] = {
    "nodes": lambda: with_nodes("nodes:\n" + many("  - name: n{}\n")),
    "nodes without a name": lambda: with_nodes("nodes:\n" + many("  - nmae: n{}\n")),
    "nodes on one line": lambda: with_nodes(f"nodes: [{many('{{name: n{}}}', joint=', ')}]\n"),
    "aliases of one node": lambda: with_nodes(f"nodes: [&n {{a: b}}{', *n' * 50_000}]\n"),
    "unknown keys": lambda: with_nodes("nodes: [{name: a}]\n", tail=many("version{}: 1\n", 5_000)),
    "keys written twice": lambda: with_nodes("nodes: [{name: a}]\n", tail="name: b\n" * 5_000),
    "flags": lambda: with_nodes("nodes: [{name: a}]\n", f"{{{many('-{}: ü', 5_000, ', ')}}}"),
    "waivers": lambda: with_nodes(
        "nodes: [{name: a}]\n", tail="waivers:\n" + many("  - {{rule: SG609, path: p{}}}\n", 5_000)
    ),
    "cables": lambda: with_nodes(
        "nodes: [{name: a}]\n",
        tail="cabling:\n" + many("  - {{endpoints: [a:p{0}, a:p{0}]}}\n", 488),
    ),
    "a name": lambda: with_nodes("nodes: [{name: " + "n" * 1_000_000 + "}]\n"),
    "a key": lambda: with_nodes("nodes: [{name: a}]\n? " + "k" * 1_000_000 + "\n: 1\n"),
    "bytes": lambda: b"#" * 5_000_000,
    "lines": lambda: b"\n" * 1_000_000,
    "spaces": lambda: b" " * 1_000_000,
    "brackets": lambda: b"a: " + b"[" * 1_000_000,
    "questions": lambda: b"? " * 500_000,
    "dashes": lambda: b"- " * 500_000,
    "a quote": lambda: b'a: "' + b"x" * 1_000_000,
    "a number": lambda: with_nodes("nodes: [{name: a, host: " + "9" * 1_000_000 + "}]\n"),
    "an alias bomb": lambda: with_nodes(
        "nodes: [{name: a}]\n",
        tail="x0: &x0 [a, a, a, a, a, a, a, a, a]\n"
        + "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]\n" for i in range(1, 20)),
    ),
    "a chain of aliases": lambda: with_nodes(
        "nodes: [{name: a}]\n",
        tail="x0: &x0 [a]\n" + "".join(f"x{i}: &x{i} [*x{i - 1}]\n" for i in range(1, 20_000)),
    ),
    "an alias in itself": lambda: with_nodes("nodes: [{name: a}]\n", tail="x: &x\n  - *x\n"),
}


@pytest.mark.parametrize("size", HUGE)
def test_size_is_bounded(size: str) -> None:
    reading = read(HUGE[size]())
    assert reading.findings
    assert not reading.site


BYTES = {
    "empty": b"",
    "blank": b"\n\n",
    "nul": b"\x00" * 100,
    "binary": random.Random(1).randbytes(4096),
    "utf-16": "version: 1\n".encode("utf-16"),
    "utf-32": "version: 1\n".encode("utf-32"),
    "latin-1": "größe: 1\n".encode("latin-1"),
    "cut short": "name: größe".encode()[:-2],
    "byte order mark alone": b"\xef\xbb\xbf",
    "mark inside": "name: a\ufeffb\n".encode(),
    "surrogate": b"name: \xed\xa0\x80\n",
    "null byte after text": "größe: über\x00\n".encode(),
    "document end": b"...\n",
    "directive": b"%YAML 9.9\n---\na: 1\n",
    "tag": b"!!python/object/apply:os.system [id]\n",
    "scalar": b"hello\n",
    "a number where a list is": b"name: lab\nnodes: 1\ntopology: {kind: single}\n",
    "null": b"null\n",
    "block text": b"a: |\n  one\n  \x1b[31m\n",
}


@pytest.mark.parametrize("kind", BYTES)
def test_random_bytes_get_an_answer(kind: str) -> None:
    assert read(BYTES[kind]).findings


@pytest.mark.parametrize("ends", [b"\r\n", b"\r"])
def test_line_ends_of_other_systems_are_read(ends: bytes) -> None:
    raw = EXAMPLES[0].read_bytes().replace(b"\n", ends)
    assert not read(b"\xef\xbb\xbf" + raw).findings


@of_each(range(300))
def test_mutations_of_the_examples_never_raise(seed: int) -> None:
    dice = random.Random(seed)
    site = yaml.load(EXAMPLES[seed % len(EXAMPLES)].read_bytes(), Loader=yaml.BaseLoader)
    for _ in range(dice.randint(1, 4)):
        mutate(site, dice)
    reading = read(written(site))
    if reading.site:
        assert bundle(reading)


def mutate(site: Any, dice: random.Random) -> None:
    """Delete, copy, rename or replace one thing anywhere in a site."""
    places = list(everywhere(site))
    if not places:
        return
    place, key = dice.choice(places)
    others = [other[k] for other, k in places]
    word = dice.choice([*NASTY, "7", "-1", "true", "10.0.0.0/24", "spark1:p0", "spark1"])
    new = dice.choice([word, [], {}, [word], {word: word}, None, deepcopy(dice.choice(others))])
    match dice.choice(["delete", "replace", "copy", "rename"]):
        case "delete":
            del place[key]
        case "copy" if isinstance(place, list):
            place.insert(key, deepcopy(place[key]))
        case "rename" if isinstance(place, dict):
            place[dice.choice([word, key + "x", key[1:]])] = place.pop(key)
        case _:
            place[key] = new


def everywhere(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested data, as a container and a key in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys if isinstance(value, dict | list) else ():
        yield value, key
        if isinstance(value[key], dict | list):
            yield from everywhere(value[key])


@of_each(range(100))
def test_mutations_of_bytes_never_raise(seed: int) -> None:
    dice = random.Random(seed)
    raw = bytearray(EXAMPLES[seed % len(EXAMPLES)].read_bytes())
    for _ in range(dice.randint(1, 20)):
        start = dice.randrange(len(raw))
        piece = raw[start : start + dice.randint(0, 40)]
        at = dice.randrange(len(raw))
        raw[at : at + dice.randint(0, 40)] = dice.choice(
            [piece, b"", dice.randbytes(3), b"[", b"'", b"\t", b"&a ", b"*a", b": ", b"\n- ", b"{{"]
        )
    reading = read(bytes(raw))
    if reading.site:
        assert bundle(reading)


@pytest.mark.parametrize(
    "character", ["\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u200b", "\x7f"]
)
def test_characters_that_steer_a_terminal_are_not_printed(character: str) -> None:
    # Raw in the text, and as an escape in a key, a value and an alias.
    escape = f"\\u{ord(character):04x}"
    for name in (f"a{character}b", f'"a{escape}b"'):
        raw = f"{name}: 1\nname: {name}\nnodes: [{{name: {name}}}]\nmodel: {{{name}: [}}\n"
        reading = read_site(f"dir{character}/site.yaml", raw.encode())
        printed = text(reading.document, reading.findings)
        assert character not in printed
        assert all(line.isprintable() for line in printed.split("\n"))


def test_control_characters_of_the_file_name_are_not_printed(
    sparkgen: Command, tmp_path: Path
) -> None:
    file = tmp_path / "a\x1b[2J.yaml"
    file.write_text("version: 1\n", encoding="utf-8")
    outcome = sparkgen("validate", file.name, cwd=tmp_path)
    assert outcome.code == 3
    assert "\x1b" not in outcome.err


def test_directory_as_a_site_file_exits_with_4(sparkgen: Command, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").mkdir()
    for command in ("validate", "build", "check", "show"):
        outcome = sparkgen(command, "site.yaml", cwd=tmp_path)
        assert outcome.code == 4
        assert outcome.err == "sparkgen: site.yaml: Is a directory\n"


def test_missing_site_file_is_the_environments_fault(sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("build", "site.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (4, "sparkgen: site.yaml: No such file or directory\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_site_file_is_the_environments_fault(sparkgen: Command, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").touch(mode=0)
    outcome = sparkgen("build", "site.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (4, "sparkgen: site.yaml: Permission denied\n")


@pytest.mark.parametrize("name", [name for name in NASTY if name not in WORDS])
def test_hostile_site_writes_nothing(name: str, sparkgen: Command, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_bytes(written({**PAIR, "name": name}))
    outcome = sparkgen("build", "site.yaml", cwd=tmp_path)
    assert outcome.code == 3, outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["site.yaml"]


def test_internal_error_is_one_line(
    sparkgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(name: str, raw: bytes) -> Reading:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("generator.commands.sites.read_site", fault)
    (tmp_path / "site.yaml").write_bytes(written(PAIR))
    outcome = sparkgen("validate", "site.yaml", cwd=tmp_path)
    assert outcome.code == 4
    assert outcome.err.startswith("sparkgen: SG901: ")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("now", ["other", None])
def test_damaged_installation_is_one_line_with_the_file(
    now: str | None, sparkgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(name: str, raw: bytes) -> Reading:
        raise KeyError("a key that the file had")

    monkeypatch.setattr("generator.commands.sites.read_site", fault)
    info, table = tmp_path / "sparkgen-0.dist-info", tmp_path / "generator/schemas/needs.tsv"
    digest = urlsafe_b64encode(sha256(b"as built").digest()).decode().rstrip("=")
    for path in (info, table.parent):
        path.mkdir(parents=True)
    (info / "METADATA").write_text("Name: sparkgen\nVersion: 0\n")
    (info / "RECORD").write_text(f"generator/schemas/needs.tsv,sha256={digest},8\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "site.yaml").write_bytes(written(PAIR))
    table.write_text("as built")
    assert sparkgen("validate", "site.yaml", cwd=tmp_path).err.startswith("sparkgen: SG901: ")
    table.write_text(now) if now else table.unlink()
    outcome = sparkgen("validate", "site.yaml", cwd=tmp_path)
    said = f"sparkgen: {table} is missing or was changed: install sparkgen again\n"
    assert (outcome.code, outcome.err) == (4, said)


ENGINE = "engine: {name: vllm, version: 0.33.0, image: vllm/vllm-openai:v0.33.0}"


@pytest.mark.parametrize("count", [2, 7, 23, 60, 120])
@pytest.mark.parametrize("lacks", ["engine", "model", "both"])
def test_one_mistake_in_all_groups_is_one_finding(count: int, lacks: str) -> None:
    """However many entries have it, and wherever else the keys are."""
    kept = {"engine": "model: {name: gpt-oss-20b}", "model": ENGINE, "both": ""}[lacks]
    entries = (f"  - {{name: g{n}, nodes: [n{n}], {kept}}}\n" for n in range(count))
    nodes = "".join(f"  - name: n{n}\n" for n in range(count))
    own = f"model: {{name: gpt-oss-20b}}\n{ENGINE}\n" if lacks == "both" else ""
    text = f"version: 1\nname: lab\nnodes:\n{nodes}{own}groups:\n{''.join(entries)}"
    found = read(text.encode()).findings
    assert [finding.rule for finding in found] == ["SG109" if lacks == "both" else "SG102"]
