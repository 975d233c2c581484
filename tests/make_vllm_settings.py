"""Prints `schemas/vllm-settings.tsv`: what keys of vLLM's JSON flags take, read from its classes.

    python tests/make_vllm_settings.py 0.19.0/vllm/config ... 0.33.0/vllm/config \
        > schemas/vllm-settings.tsv

Each folder comes from the wheel of one release; none of its code is run. A key's type is listed if
all releases that have the key agree on it; its words are those of any release. Keys that have
several types, or that code validates, are left out: the table makes no statement about them.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# Flags whose value is JSON for a class.
FLAGS = {
    "attention-config": "AttentionConfig",
    "compilation-config": "CompilationConfig",
    "diffusion-config": "DiffusionConfig",
    "ec-transfer-config": "ECTransferConfig",
    "engram-config": "EngramConfig",
    "eplb-config": "EPLBConfig",
    "fault-tolerance-config": "FaultToleranceConfig",
    "kernel-config": "KernelConfig",
    "kv-events-config": "KVEventsConfig",
    "kv-transfer-config": "KVTransferConfig",
    "logging-config": "LoggingConfig",
    "pooler-config": "PoolerConfig",
    "profiler-config": "ProfilerConfig",
    "reasoning-config": "ReasoningConfig",
    "structured-outputs-config": "StructuredOutputsConfig",
    "watchdog-config": "WatchdogConfig",
    "watermark-config": "WatermarkConfig",
    "weight-transfer-config": "WeightTransferConfig",
}
PLAIN = {"bool": "bool", "int": "int", "float": "float", "str": "text"}
HEAD = """\
# The values that the keys of vLLM's JSON flags take, from its config classes: a type, and the words
# of a closed list; `keys` is a mapping whose keys are those that follow it; a missing type is not
# known. The type is the same in all releases with the key; the words are those of any of them.
# Source: vllm/config of the wheels of {releases} (tests/make_vllm_settings.py).
setting\ttype\twords
"""


class Setting(NamedTuple):
    """What values a key takes."""

    type: str
    words: tuple[str, ...] = ()


class Release:
    """The classes of a release, and the values that its names are assigned."""

    def __init__(self, folder: Path) -> None:
        modules = [ast.parse(path.read_text("utf-8")) for path in sorted(folder.glob("*.py"))]
        nodes = [node for module in modules for node in module.body]
        self.classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self.names = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def settings(self, flag: str, name: str) -> Iterator[tuple[str, Setting]]:
        """The settings of a class, and of the classes nested in it."""
        definition = self.classes.get(name)
        checked = {
            text for node in (definition.body if definition else ()) for text in _checked(node)
        }
        for node in definition.body if definition and "*" not in checked else ():
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            if node.target.id.startswith("_"):
                continue
            path = f"{flag}.{node.target.id}"
            kinds = [kind for kind in _alternatives(node.annotation) if kind != "None"]
            if len(kinds) == 1 and self._is_settings(kinds[0]):
                yield path, Setting("keys")
                yield from self.settings(path, kinds[0])
            elif found := self._setting(kinds):
                # A field that code validates first may take other spellings than its type does.
                is_plain = found.words or node.target.id not in checked
                yield path, found if is_plain else Setting("")

    def _is_settings(self, name: str) -> bool:
        definition = self.classes.get(name)
        return definition is not None and any(
            isinstance(node, ast.AnnAssign) for node in definition.body
        )

    def _setting(self, kinds: list[str]) -> Setting:
        words = [word for kind in kinds for word in self._words(kind)]
        if kinds and all(self._words(kind) for kind in kinds):
            return Setting("words", tuple(dict.fromkeys(words)))
        if len(kinds) == 1 and kinds[0] in PLAIN:
            return Setting(PLAIN[kinds[0]])
        if len(kinds) == 1 and kinds[0].startswith(("list[", "set[")):
            return Setting("list")
        return Setting("")

    def _words(self, kind: str) -> list[str]:
        """The words of a literal, of a name for one, or of an enumeration."""
        node = ast.parse(kind, mode="eval").body
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            inside = node.slice
            items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return [str(item.value) for item in items if isinstance(item, ast.Constant)]
        if kind in self.names:
            return [w for each in _alternatives(self.names[kind]) for w in self._literal(each)]
        definition = self.classes.get(kind)
        if definition is None or not any("Enum" in ast.unparse(base) for base in definition.bases):
            return []
        members = [node for node in definition.body if isinstance(node, ast.Assign)]
        names = [ast.unparse(node.targets[0]) for node in members]
        values = [n.value.value for n in members if isinstance(n.value, ast.Constant)]
        return [*names, *(str(value) for value in values)]

    def _literal(self, kind: str) -> list[str]:
        return self._words(kind) if kind.startswith("Literal[") or kind in self.names else []


def _alternatives(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [ast.unparse(node)]


def _checked(node: ast.stmt) -> Iterator[str]:
    """The fields that a method validates before pydantic does."""
    calls = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    for call in calls:
        text = ast.unparse(call)
        if isinstance(call, ast.Call) and text.startswith("field_validator") and "before" in text:
            yield from (str(word.value) for word in call.args if isinstance(word, ast.Constant))


def together(releases: list[Release]) -> Mapping[str, Setting]:
    """The settings on which all releases agree."""
    found: dict[str, list[Setting]] = defaultdict(list)
    for release in releases:
        for flag, name in FLAGS.items():
            for path, setting in release.settings(flag, name):
                found[path].append(setting)
    return {path: _agreed(settings) for path, settings in found.items()}


def merged_text(text: str, version: str, release: Release) -> str:
    """The table with one more release."""
    head, *lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert f"{head}\n" == HEAD.splitlines(keepends=True)[-1]
    found = {
        path: Setting(kind, tuple(words.split()))
        for path, kind, words in (line.split("\t") for line in lines)
    }
    for path, setting in together([release]).items():
        found[path] = _agreed([found[path], setting]) if path in found else setting
    releases = re.findall(r"\d+(?:\.\d+)+", next(s for s in text.splitlines() if "Source:" in s))
    return table_text(dict.fromkeys((*releases, version)), found)


def table_text(releases: Iterable[str], found: Mapping[str, Setting]) -> str:
    """The whole table."""
    lines = ("\t".join((path, it.type, " ".join(it.words))) for path, it in sorted(found.items()))
    return HEAD.format(releases=", ".join(releases)) + "".join(f"{line}\n" for line in lines)


def _agreed(settings: list[Setting]) -> Setting:
    if len({setting.type for setting in settings}) > 1:
        return Setting("")
    words = dict.fromkeys(word for setting in settings for word in setting.words)
    return Setting(settings[0].type, tuple(words))


def main() -> None:
    """Print the table."""
    folders = [Path(word) for word in sys.argv[1:]]
    found = together([Release(folder) for folder in folders])
    print(table_text([folder.parts[-3] for folder in folders], found), end="")


if __name__ == "__main__":
    main()
