"""Reading takes time in proportion to a text's length: patterns, and guesses at what was meant."""

import ast
import re
import time
from collections.abc import Iterator

import pytest
from waiting import computed_within

from generator.fixing.repair import repair
from generator.resources import ROOT

# Repeated, these are what a pattern's unbounded classes take, and what may make it begin anew.
PARTS = (
    *("a", "A", "0", " ", "\t", ".", "-", "_", "/", '"', "'", "\\", "#", ":", "=", ",", "[", "{"),
    *("a.", "a-", "a ", "0.", "0,", " #", "a=", "a:", "- ", '"a', "a/", " \n", "a\n"),
)
LENGTHS = (24, 1_000, 10_000)
# Seconds of CPU: what is linear takes a hundredth of it, what is quadratic about as much or more.
MOST = 0.1
# What tries a pattern at each character.
EVERYWHERE = {"finditer", "findall", "search", "split", "sub", "subn"}


def patterns() -> Iterator[tuple[str, set[str], str]]:
    """The place, the ways of use and the text of each constant pattern in the package."""
    for file in sorted((ROOT / "generator").rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        names = {
            id(node.value): node.targets[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str)
            ):
                ways = {node.func.attr}
                if ways == {"compile"}:
                    ways = uses(tree, names.get(id(node), ""))
                yield f"{file.relative_to(ROOT)}:{node.lineno}", ways, node.args[0].value


def uses(tree: ast.AST, name: str) -> set[str]:
    """The methods of a pattern that a module calls; all of them if it hands the pattern on."""
    users = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    called = {
        node.value.lineno: node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    }
    loaded = [node for node in users if isinstance(node.ctx, ast.Load)]
    return {called.get(node.lineno, "search") for node in loaded} or {"match"}


def seconds(pattern: re.Pattern[str], ways: set[str], text: str) -> float:
    """The time that a pattern takes for a text, and for one whose last character it never takes."""
    began = time.process_time()
    for tried in (text, f"{text}\0"):
        if ways & EVERYWHERE:
            pattern.sub("", tried)
        elif "fullmatch" in ways:
            pattern.fullmatch(tried)
        else:
            pattern.match(tried)
    return time.process_time() - began


def is_slow(pattern: re.Pattern[str], ways: set[str], text: str) -> bool:
    """Whether it takes long twice: a pause of the machine is no fault of the pattern."""
    return all(seconds(pattern, ways, text) > MOST for _ in range(2))


def test_every_pattern_is_linear() -> None:
    """Short texts first: a pattern that is worse than quadratic would not end with long ones."""
    known = [*patterns()]
    assert len(known) > 100
    slow = []
    for place, ways, pattern in known:
        compiled = re.compile(pattern, re.MULTILINE if "^" in pattern else 0)
        for part in PARTS:
            texts = [part * (length // len(part)) for length in LENGTHS]
            if any(is_slow(compiled, ways, text) for text in texts):
                slow.append(f"{place} {pattern!r} {part!r}")
                break
    assert slow == []


SITE = (ROOT / "sites/pair-chatbot.yaml").read_text()
ARGS = "  args:\n"


@pytest.mark.parametrize(
    "text",
    {
        "a word as a line": SITE.replace("\nmodel:", f"\n{'a' * 100_000}\nmodel:"),
        "dots as a line": SITE.replace("\nmodel:", f"\n  {'a.' * 50_000}\nmodel:"),
        "blanks": SITE.replace("\nmodel:", f"\nk{' ' * 100_000}x\nmodel:"),
        "brackets": SITE.replace("\nmodel:", f"\nk: {'[' * 50_000}\nmodel:"),
        "unknown keys": SITE + "".join(f"k{n}: 1\n" for n in range(20_000)),
        "flags": SITE.replace(ARGS, ARGS + "".join(f"    k{n}: 1\n" for n in range(20_000))),
        "devices": SITE.replace(ARGS, f"  env: {{CUDA_VISIBLE_DEVICES: {'0' * 10_000}x}}\n{ARGS}"),
    }.values(),
    ids=str.__len__,
)
def test_large_and_wrong_text_is_read_in_seconds(text: str) -> None:
    # Most of it is YAML's own reading of 300 kB, several times.
    assert computed_within(10, lambda: repair("site.yaml", text.encode())).before.findings
