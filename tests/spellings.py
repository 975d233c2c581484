"""Other ways to write a site file that mean the same, and what must not depend on them.

Run by hand, with many more draws than in CI:

    python tests/spellings.py [--count 50000] [--seed 1] [--sites 300]

Each draw takes a site of the tests, writes it in one to three other ways, and compares what
sparkgen makes of both: the findings, the memory figures and every installed file. Prints each
difference and a table of the ways; the exit status is 1 if there is a difference.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from generator.bundle.render import render
from generator.catalogs.flag_files import catalog
from generator.catalogs.flags import Flag, ResolvedFlag
from generator.pipeline import Reading, read_site
from generator.sitefile import source
from generator.sitefile.beside import Source, SourceFile
from generator.sitefile.disk import beside
from generator.sitefile.source import Plain

Data = dict[str, Any]
_INDENTED = "  "
_SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
# Words that YAML reads as something other than text.
_SPECIAL = re.compile(r"(?i)(true|false|null|yes|no|on|off|y|n|nan|inf|~)?")


@dataclass
class Site:
    """A site of the tests: its data, and the file beside which it stands."""

    name: str
    data: Data
    file: Path

    @cached_property
    def plain(self) -> Reading:
        """The site, written in the simplest way."""
        return reading(Writing(copied(self.data), random.Random(0)), self.file)


@dataclass
class Writing:
    """A site that is being written in another way.

    `names` are the new names and values that findings may quote, each with the one in its place.
    `refused` counts the findings that a way adds because the site file does not take it.
    """

    data: Data
    dice: random.Random
    names: dict[str, str] = field(default_factory=dict)
    base: Data | None = None
    is_flow: bool = False
    is_quoted: bool = False
    has_anchors: bool = False
    refused: set[str] = field(default_factory=set)
    # Whether a finding may be at another place of the same group.
    moves: bool = False

    @cached_property
    def texts(self) -> tuple[str, str]:
        """The site file and the base that it extends, written once all is as it is to be."""
        base = _Text(self).block(self.base) if self.base is not None else ""
        return _Text(self).block(self.data), base

    def engines(self) -> Iterator[Data]:
        """The sections of engines in which flags and variables are written."""
        groups = self.data.get("groups")
        own = (
            [each for each in groups if isinstance(each, dict)] if isinstance(groups, list) else []
        )
        for holder in (self.data, *own):
            if isinstance(engine := holder.get("engine"), dict):
                yield engine

    def flags(self) -> Iterator[tuple[Data, str, Any, ResolvedFlag]]:
        """The entries of `engine.args` that the engine's catalog has."""
        shared = self.data.get("engine")
        for engine in self.engines():
            merged = {**shared, **engine} if isinstance(shared, dict) else engine
            name, version, args = (merged.get(key) for key in ("name", "version", "args"))
            known = _catalog(str(name), str(version))
            if not isinstance(engine.get("args"), dict) or known is None:
                continue
            args = engine["args"]
            for written, value in list(args.items()):
                if found := known.find(written):
                    yield args, written, value, found

    def parser(self) -> frozenset[str]:
        """What the parser of the site's engine accepts."""
        engine = self.data.get("engine")
        if not isinstance(engine, dict):
            return frozenset()
        known = _catalog(str(engine.get("name")), str(engine.get("version")))
        return known.traits if known else frozenset()

    def rename(self, args: Data, old: str, new: str, value: Any) -> bool:
        """Write an entry under another name, in its place."""
        if new == old or new in args:
            return False
        entries = [(new, value) if key == old else (key, each) for key, each in args.items()]
        args.clear()
        args.update(entries)
        self.names[new] = self.names.get(old, old)
        return True


@cache
def _catalog(engine: str, version: str) -> Any:
    try:
        return catalog(engine, version)
    except (ValueError, LookupError):
        return None


Way = Callable[[Writing], bool]
WAYS: dict[str, Way] = {}


def way(name: str) -> Callable[[Way], Way]:
    """Register a way to write a site; it returns whether it could be applied."""

    def register(function: Way) -> Way:
        WAYS[name] = function
        return function

    return register


@way("underscores")
def _underscores(writing: Writing) -> bool:
    return _respell(writing, "-", "_")


@way("hyphens")
def _hyphens(writing: Writing) -> bool:
    return _respell(writing, "_", "-")


def _respell(writing: Writing, old: str, new: str) -> bool:
    """The names of all flags with another sign, if the engine's parser takes both."""
    if "underscores" not in writing.parser():
        return False
    found = [
        writing.rename(
            args,
            name,
            name.partition(".")[0].replace(old, new) + name[len(name.partition(".")[0]) :],
            value,
        )
        for args, name, value, found in list(writing.flags())
        if not found.is_short
    ]
    return any(found)


@way("alias")
def _alias(writing: Writing) -> bool:
    entries = list(writing.flags())
    return sum(_other_name(writing, *entry, is_short=False) for entry in entries) > 0


@way("short form")
def _short(writing: Writing) -> bool:
    """The site file has no short forms: refused, and nothing else changes."""
    entries = [each for each in writing.flags() if not each[3].is_short]
    writing.dice.shuffle(entries)
    return any(_other_name(writing, *entry, is_short=True) for entry in entries[:1])


def _other_name(
    writing: Writing, args: Data, name: str, value: Any, found: ResolvedFlag, is_short: bool
) -> bool:
    # A mapping for an option that is no JSON is a file that sparkgen writes.
    is_file = isinstance(value, dict) and found.flag.type != "json"
    if found.is_off or found.key or found.is_short or is_file:
        return False
    others = [
        option.lstrip("-")
        for option in found.flag.names
        if option.startswith("--") != is_short and option != found.option
    ]
    if not others:
        return False
    new = writing.dice.choice(others)
    if is_short:
        writing.refused.add(new)
    return writing.rename(args, name, new, value)


@way("no- form")
def _negation(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        is_on = {"true": True, "false": False}.get(str(value).lower())
        # Turning what is off by its name off again is refused.
        is_off = bool(is_on) == found.is_off
        if found.flag.type != "switch" or not found.flag.off or is_on is None or not is_off:
            continue
        if isinstance(value, str) and not isinstance(value, Plain):
            continue
        long = [option for option in found.flag.off if option.startswith("--")]
        new = found.flag.name if found.is_off else writing.dice.choice(long or [name])
        turned = Plain("false" if found.is_off else "true")
        changed |= writing.rename(args, name, new.lstrip("-"), turned)
    return changed


@way("JSON as text")
def _json_text(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        if found.flag.type == "json" and not found.key and isinstance(value, dict):
            args[name] = json.dumps(_plain(value))
            changed = True
    return changed


@way("JSON as data")
def _json_data(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        if found.flag.type != "json" or found.key or not isinstance(value, str):
            continue
        try:
            data = json.loads(value)
        except ValueError:
            continue
        if isinstance(data, dict) and data:
            args[name] = _written(data)
            changed = True
    return changed


@way("dotted keys")
def _dotted(writing: Writing) -> bool:
    if "dotted" not in writing.parser():
        return False
    changed = False
    for args, name, value, found in list(writing.flags()):
        if found.flag.type != "json" or found.key or not isinstance(value, dict) or not value:
            continue
        keys = [str(key) for key in value]
        if any("." in key or "-" in key or f"{name}.{key}" in args for key in keys):
            continue
        if not all(_goes_alone(each) for each in value.values()):
            continue
        entries = []
        for key, each in args.items():
            entries += (
                [(f"{name}.{k}", v) for k, v in value.items()] if key == name else [(key, each)]
            )
        args.clear()
        args.update(entries)
        writing.names |= {f"{name}.{key}": name for key in keys}
        changed = True
    return changed


def _goes_alone(value: Any) -> bool:
    """Whether a value of JSON means the same as a word of its own."""
    if isinstance(value, dict | list):
        return False
    text = str(value)
    is_text = isinstance(value, str) and not isinstance(value, Plain)
    return bool(re.fullmatch(r"\d+|true|false", text)) != is_text and bool(text)


@way("list or word")
def _list(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        flag = found.flag
        if not flag.many or found.key or flag.type == "json":
            continue
        if isinstance(value, list) and len(value) == 1 and flag.many in ("+", "*", "append"):
            args[name] = value[0]
            changed = True
        elif isinstance(value, str) and flag.many in ("+", "*", "append"):
            args[name] = [value]
            changed = True
        elif isinstance(value, str) and flag.many == "comma" and "," in value:
            args[name] = value.split(",")
            changed = True
    return changed


@way("suffixes")
def _suffixes(writing: Writing) -> bool:
    changed = False
    units = (("Ki", 1024),) if "iec" in writing.parser() else (("K", 1024), ("k", 1000))
    for args, name, value, found in list(writing.flags()):
        if found.flag.type != "int" or not found.flag.suffixes or not isinstance(value, str):
            continue
        if not re.fullmatch(r"[1-9]\d*", value):
            continue
        for unit, size in units:
            if int(value) % size == 0:
                new = f"{int(value) // size}{unit}"
                args[name] = Plain(new)
                writing.names[new] = value
                changed = True
                break
    return changed


@way("digits")
def _digits(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        if not isinstance(value, str) or found.flag.also:
            continue
        new = ""
        if found.flag.type == "int" and re.fullmatch(r"[1-9]\d{0,8}", value):
            new = f"0{value}"
        elif found.flag.type == "float" and re.fullmatch(r"\d+\.\d+", value):
            new = f"{value}0"
        if new:
            args[name] = new
            writing.names[new] = value
            changed = True
    return changed


@way("case of a choice")
def _case(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        flag: Flag = found.flag
        known = {*flag.choices, *flag.known}
        if flag.folded and isinstance(value, str) and value in known and not flag.many:
            new = value.swapcase()
            args[name] = Plain(new) if not _SPECIAL.fullmatch(new) else new
            writing.names[new] = value
            changed = new != value
    return changed


@way("on and off")
def _words(writing: Writing) -> bool:
    changed = False
    for args, name, value, found in list(writing.flags()):
        if found.flag.words and str(value) in found.flag.words:
            new = "true" if str(value) == found.flag.words[0] else "false"
            args[name] = Plain(new)
            writing.names[new] = str(value)
            changed = True
    return changed


@way("variables of nodes")
def _env_of_nodes(writing: Writing) -> bool:
    """A variable of the engine, for each of its nodes."""
    engine, nodes = writing.data.get("engine"), writing.data.get("nodes")
    if writing.data.get("groups") or not isinstance(engine, dict) or not isinstance(nodes, list):
        return False
    env = engine.get("env")
    if not isinstance(env, dict) or not env or not all(isinstance(each, dict) for each in nodes):
        return False
    if any(not isinstance(node.get("env", {}), dict) for node in nodes):
        return False
    name = writing.dice.choice(list(env))
    value = env.pop(name)
    for node in nodes:
        own = node.get("env", {})
        node["env"] = own if name in own else {**own, name: value}
    if not env:
        del engine["env"]
    return True


@way("variables of the engine")
def _env_of_engine(writing: Writing) -> bool:
    """A variable that all nodes have with the same value."""
    engine, nodes = writing.data.get("engine"), writing.data.get("nodes")
    if writing.data.get("groups") or not isinstance(engine, dict) or not isinstance(nodes, list):
        return False
    if not nodes or not all(
        isinstance(each, dict) and isinstance(each.get("env"), dict) for each in nodes
    ):
        return False
    env = engine.get("env", {})
    same = [
        name
        for name, value in nodes[0]["env"].items()
        if all(str(node["env"].get(name)) == str(value) for node in nodes)
    ]
    if not same or not isinstance(env, dict):
        return False
    name = writing.dice.choice(same)
    engine["env"] = {**env, name: nodes[0]["env"][name]}
    for node in nodes:
        del node["env"][name]
        if not node["env"]:
            del node["env"]
    return True


@way("extends")
def _extends(writing: Writing) -> bool:
    if "extends" in writing.data or writing.base is not None:
        return False
    movable = [key for key in writing.data if key not in ("version", "requires", "waivers")]
    if not movable:
        return False
    moved = set(writing.dice.sample(movable, writing.dice.randint(1, len(movable))))
    writing.base = {key: value for key, value in writing.data.items() if key in moved}
    rest = {key: value for key, value in writing.data.items() if key not in moved}
    writing.data = {"extends": Plain("bases/base.yaml"), **rest}
    return True


@way("same_as")
def _like(writing: Writing) -> bool:
    """What a group is like, written out."""
    groups = writing.data.get("groups")
    if not isinstance(groups, list) or not all(isinstance(each, dict) for each in groups):
        return False
    known = {str(each.get("name")): each for each in groups}
    changed = False
    for group in groups:
        other = known.get(str(group.get("same_as")))
        if other is None or "same_as" in other:
            continue
        del group["same_as"]
        group.update({key: copied(other[key]) for key in ("model", "engine") if key in other})
        writing.moves = changed = True
    return changed


@way("defaults")
def _defaults(writing: Writing) -> bool:
    """A default that is written out, where it does not depend on anything."""
    engine = writing.data.get("engine")
    topology = writing.data.get("topology")
    holders: list[tuple[Any, str, str]] = [
        (engine, "memory_utilization", "0.8"),
        (topology, "halves", "both"),
    ]
    open_ones = [
        (holder, key, value)
        for holder, key, value in holders
        if isinstance(holder, dict) and key not in holder
    ]
    if writing.data.get("groups") or not open_ones:
        return False
    holder, key, value = writing.dice.choice(open_ones)
    holder[key] = Plain(value)
    return True


@way("order of keys")
def _order(writing: Writing) -> bool:
    def rearranged(value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            if depth < 3:
                writing.dice.shuffle(keys)
            return {key: rearranged(value[key], depth + 1) for key in keys}
        return [rearranged(item, depth + 1) for item in value] if isinstance(value, list) else value

    writing.data = rearranged(writing.data, 0)
    return True


@way("flow style")
def _flow(writing: Writing) -> bool:
    writing.is_flow = True
    return True


@way("quotes")
def _quotes(writing: Writing) -> bool:
    writing.is_quoted = True
    return True


@way("anchors")
def _anchors(writing: Writing) -> bool:
    writing.has_anchors = True
    return True


def _plain(value: Any) -> Any:
    """Data as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Plain):
        low = str(value).lower()
        if low in ("true", "false"):
            return low == "true"
        if low in ("null", "~", ""):
            return None
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
        return str(value)
    return value


def _written(value: Any) -> Any:
    """JSON as the data of a site file."""
    if isinstance(value, dict):
        return {key: _written(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_written(each) for each in value]
    return value if isinstance(value, str) else Plain(json.dumps(value))


class _Text:
    """Writes data as YAML."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing
        self.anchors: dict[str, str] = {}

    def block(self, value: Any, indent: str = "") -> str:
        if isinstance(value, dict) and value:
            flow = self.writing.is_flow and indent and self.writing.dice.random() < 0.5
            if flow:
                return " " + self.flow(value) + "\n"
            lines = [
                f"{indent}{self.key(key)}:{self.block(each, indent + _INDENTED)}"
                for key, each in value.items()
            ]
            return ("\n" if indent else "") + "".join(lines)
        if isinstance(value, list) and value:
            if self.writing.is_flow and self.writing.dice.random() < 0.5:
                return " " + self.flow(value) + "\n"
            return "\n" + "".join(self.item(each, indent) for each in value)
        return " " + self.flow(value) + "\n"

    def item(self, value: Any, indent: str) -> str:
        text = self.block(value, indent + _INDENTED)
        if text.startswith("\n"):
            return f"{indent}- {text[1:].removeprefix(indent + _INDENTED)}"
        return f"{indent}-{text}"

    def flow(self, value: Any) -> str:
        if isinstance(value, dict):
            inner = ", ".join(f"{self.key(key)}: {self.flow(each)}" for key, each in value.items())
            return f"{{{inner}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.flow, value))}]"
        return self.scalar(value)

    def key(self, key: str) -> str:
        return key if _SIMPLE.fullmatch(key) and not _SPECIAL.fullmatch(key) else json.dumps(key)

    def scalar(self, value: Any) -> str:
        text = self._scalar(value)
        if not self.writing.has_anchors or len(text) < 4:
            return text
        if text in self.anchors:
            return f"*{self.anchors[text]}"
        self.anchors[text] = f"a{len(self.anchors)}"
        return f"&{self.anchors[text]} {text}"

    def _scalar(self, value: Any) -> str:
        text = str(value)
        is_word = bool(_SIMPLE.fullmatch(text)) and not _SPECIAL.fullmatch(text)
        if isinstance(value, Plain):
            if is_word and self.writing.is_quoted:
                return self.writing.dice.choice((json.dumps(text), f"'{text}'"))
            needs = re.search(r"[,\[\]{}]|: |:$| #|^[&*!|>%@`'\"-]", text)
            return json.dumps(text) if needs and not re.fullmatch(r"-?[\d.]+", text) else text
        if is_word and self.writing.is_quoted:
            return text
        return json.dumps(text)


# What few sites of the tests have.
_MORE = """
{engine: {name: vllm, version: 0.33.0, args: {kv_cache_memory_bytes: 80000000000}}}
{engine: {name: vllm, version: 0.33.0, args: {kv-cache-memory-bytes: 8589934592}}}
{engine: {name: vllm, version: 0.33.0, args: {decode_context_parallel_size: 3}}}
{engine: {name: vllm, version: 0.33.0, args: {kv-offloading-size: 128}}}
{engine: {name: vllm, version: 0.33.0, args: {cpu-offload-gb: 8.5}}}
{engine: {name: vllm, version: 0.33.0, args: {max-model-len: 8192}}}
{engine: {name: vllm, version: 0.33.0, args: {max_num_batched_tokens: 16384}}}
{engine: {name: vllm, version: 0.33.0, args: {enable-prefix-caching: false}}}
{engine: {name: vllm, version: 0.33.0, args: {attention-backend: FLASH_ATTN, middleware: a.b}}}
{engine: {name: vllm, version: 0.33.0, args: {compilation-config: '{"mode": 3}', seed: 7}}}
{engine: {name: vllm, version: 0.33.0, args: {compilation-config: '{"mode": 7}'}}}
{engine: {name: vllm, version: 0.33.0, args: {kv-transfer-config: '{"kv_connector": "X"}'}}}
{engine: {name: vllm, version: 0.33.0}, env: {NCCL_IB_HCA: '=nope0'}}
{engine: {name: vllm, version: 0.33.0}, env: {NCCL_IB_DISABLE: '1'}}
{engine: {name: vllm, version: 0.33.0}, env: {NCCL_SOCKET_IFNAME: 'nope0'}}
{engine: {name: vllm, version: 0.33.0, env: {NCCL_IB_TIMEOUT: '1000', VLLM_LOGING_LEVEL: DEBUG}}}
{engine: {name: vllm, version: 0.33.0, env: {NCCL_DEBUG: WARN, VLLM_HOST_IP: 10.0.0.99}}}
{engine: {name: sglang, version: 0.5.23, args: {enable-hierarchical-cache: true, hicache-size: 64}}}
{engine: {name: sglang, version: 0.5.23, args: {max-total-tokens: 65536, cpu-offload-gb: 4}}}
{engine: {name: sglang, version: 0.5.23, args: {ep-size: 2}}}
"""
# The part of the draws that are of these.
_FEW = 0.2
_LLAMA = """
{load_mode: mmap}
{load-mode: mmap, cache_ram: 65536}
{flash-attn: 'on', no-kv-offload: true}
{tensor-split: '3,1'}
{ctx-size: 8192}
"""


def _more() -> Iterator[Data]:
    for line in _MORE.strip().splitlines():
        own = source.read("", line.encode()).data
        image = {"image": Plain("registry.lan/engine:1"), "parallel": {"tensor": Plain("2")}}
        management = ({"address": Plain(f"10.0.0.1{count}/24")} for count in (1, 2))
        yield {
            "version": Plain("1"),
            "name": Plain("lab"),
            "nodes": [
                {"name": Plain(f"spark{count}"), "management": each}
                | ({"env": dict(own["env"])} if "env" in own else {})
                for count, each in enumerate(management, 1)
            ],
            "cabling": [{"endpoints": [Plain("spark1:p0"), Plain("spark2:p0")]}],
            "topology": {"kind": Plain("direct")},
            "model": {"name": Plain("gpt-oss-120b")},
            "engine": {**own["engine"], **image},
        }
    for line in _LLAMA.strip().splitlines():
        engine = {"name": "llama.cpp", "version": "0.5.0-dev", "image": "registry.lan/llama.cpp:1"}
        yield {
            "version": Plain("1"),
            "name": Plain("lab"),
            "nodes": [{"name": Plain("spark1")}],
            "topology": {"kind": Plain("single")},
            "model": {"name": Plain("gpt-oss-120b"), "file": Plain("/srv/models/model.gguf")},
            "engine": {
                **{key: Plain(value) for key, value in engine.items()},
                "args": source.read("", line.encode()).data,
            },
        }


def texts() -> Iterator[tuple[bytes, Path]]:
    """Every site of the tests, and its file."""
    import error_cases

    folder = Path(__file__).resolve().parent
    for pattern in (
        *("golden/*/site.yaml", "golden/*/*/site.yaml", "right/*.yaml", "../sites/**/*.yaml"),
        *("released/*/*.yaml", "released/*/*/*.yaml", "deployments/*.yaml"),
    ):
        for file in sorted(folder.glob(pattern)):
            if file.stem not in ("expected", "runs"):
                yield file.read_bytes(), file
    for file in sorted(folder.glob("errors/*.yaml")):
        yield error_cases.read(file.stem, file.read_bytes()).site, file
    import test_startup

    for index, row in enumerate(test_startup.ROWS):
        for kind in ("bad", "good"):
            made = test_startup._site(row.engine, getattr(row, kind))
            yield json.dumps(made).encode(), folder / f"startup-{index}-{kind}.yaml"


def sites() -> list[Site]:
    """Those that are YAML."""
    found = [
        Site(f"more-{index}", data, Path(__file__).parent / "more.yaml")
        for index, data in enumerate(_more())
    ]
    for raw, file in texts():
        data = source.read("site.yaml", raw).data
        if isinstance(data, dict) and all(isinstance(key, str) for key in data):
            found.append(Site(f"{file.parent.name}/{file.stem}", data, file))
    return found


def copied(value: Any) -> Any:
    """A copy whose mappings and lists are its own."""
    if isinstance(value, dict):
        return {str(key): copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def reading(writing: Writing, file: Path) -> Reading:
    """The site as it is written now."""
    return read_text(*writing.texts, file)


def read_text(main: str, base: str, file: Path) -> Reading:
    """The site of a text and of the base that it extends."""
    files = beside(file)

    def own(path: str) -> Source:
        if base and path == "bases/base.yaml":
            return Source((SourceFile("", base.encode(), False),))
        return files(path)

    return read_site("site.yaml", main.encode(), own)


def meaning(read: Reading, names: Mapping[str, str], moves: bool) -> tuple[Counter[Any], list[Any]]:
    """The findings, with names as they were written first, and the figures."""
    findings = Counter(
        (
            each.rule,
            str(each.severity),
            () if moves else _place(each.path, read),
            _said(each.message, names),
        )
        for each in read.findings
    )
    parts = read.declaration.parts if read.declaration else ()
    return findings, [_figures(part.memory) for part in parts]


def _figures(memory: Any) -> Any:
    if memory is None:
        return None
    more = tuple((each.name, each.amount) for each in getattr(memory, "beside", ()))
    return memory.state, memory.tight, memory.nodes, memory.longest_context, more


def _place(path: tuple[Any, ...], read: Reading) -> tuple[str, ...]:
    """The flag or the variable for what is in `args` or `env`, else the path."""
    words = tuple(map(str, path))
    if "args" in words:
        index = words.index("args")
        return ("args", *_flag_name(words[index + 1 :][:1], read))
    if "env" in words:
        return ("env", *words[words.index("env") + 1 :])
    return words


def _flag_name(name: tuple[str, ...], read: Reading) -> tuple[str, ...]:
    data = read.document.data
    engine = data.get("engine") if isinstance(data, dict) else None
    if not name or not isinstance(engine, dict):
        return name
    known = _catalog(str(engine.get("name")), str(engine.get("version")))
    found = known.find(name[0]) if known else None
    return (found.flag.name,) if found else (name[0].replace("_", "-"),)


def _said(message: str, names: Mapping[str, str]) -> str:
    if re.search("' both set '|are the same flag", message):
        return ""
    for new in sorted(names, key=len, reverse=True):
        message = message.replace(f"'{new}'", f"'{names[new]}'")
    # Names in words of the message, and the values of switches.
    return re.sub(r"[_-]", "-", message)


def written(site: Site, count: int, dice: random.Random) -> tuple[Writing, list[str]]:
    """A site in this many other ways, and the ways."""
    after = Writing(copied(site.data), dice)
    applied: list[str] = []
    # What is wrong in a site with these is how it is written.
    if not any(each.rule.startswith("SG10") for each in site.plain.findings):
        for name in dice.sample(list(WAYS), len(WAYS)):
            if len(applied) < count and not after.refused and WAYS[name](after):
                applied.append(name)
    return after, applied


def differences(plain: Reading, other: Reading, after: Writing) -> Iterator[str]:
    """What a site means otherwise if it is written like this."""
    names = after.names | {old: old for old in after.names.values()}
    (findings, figures), (others, other_figures) = (
        meaning(each, names, after.moves) for each in (plain, other)
    )
    lost, more = findings - others, others - findings
    if after.refused:
        # The refusal itself, and nothing of what needs a site without errors.
        yield from () if other.site is None or more else ("a short form is not refused",)
        return
    if after.has_anchors:
        # What is wrong with a value is said where the value is, and not at its aliases.
        said = {(rule, message) for rule, _, _, message in others}
        lost = Counter(each for each in lost if (each[0], each[3]) not in said)
    if after.moves:
        # Two groups report the same once.
        if plain.site is None:
            return
        lost, more = Counter({*findings} - {*others}), Counter({*others} - {*findings})
    yield from (f"- {each}" for each in lost)
    yield from (f"+ {each}" for each in more)
    if figures != other_figures:
        yield f"figures {figures} {other_figures}"
    if (plain.site is None) != (other.site is None):
        yield "a site, and none"
    if plain.site and other.site:
        yield from _files(plain, other)


def _files(plain: Reading, other: Reading) -> Iterator[str]:
    assert plain.site
    assert other.site
    if plain.site == other.site:
        return
    trees = [render(each.site, "") for each in (plain, other) if each.site]
    for path in sorted({*trees[0], *trees[1]} - {"MANIFEST.json"}):
        texts = [tree[path].text if path in tree else "" for tree in trees]
        if texts[0] != texts[1]:
            first, second = (text.splitlines() for text in texts)
            at = next(
                (
                    i
                    for i, pair in enumerate(zip(first, second, strict=False))
                    if pair[0] != pair[1]
                ),
                0,
            )
            yield f"file {path}: {first[at : at + 1]} {second[at : at + 1]}"
            return


@dataclass
class Drawn:
    """A site, and another way to write it."""

    site: Site
    ways: list[str]
    writing: Writing

    def differences(self) -> list[str]:
        """What it means otherwise."""
        other = reading(self.writing, self.site.file)
        return list(differences(self.site.plain, other, self.writing))


def drawn(count: int, seed: int, of: int) -> Iterator[Drawn]:
    """Draws of this many sites."""
    dice, known = random.Random(seed), sites()
    few = [site for site in known if site.name.startswith("more-")]
    known = dice.sample(known, min(of, len(known)))
    done = 0
    while done < count:
        site = dice.choice(few if dice.random() < _FEW else known)
        ways = dice.choice((1, 1, 2, 3))
        writing, applied = written(site, ways, random.Random(dice.random()))
        if applied:
            done += 1
            yield Drawn(site, applied, writing)


def _saved(draw: Drawn) -> str:
    writing = draw.writing
    texts = [*Writing(draw.site.data, random.Random(0)).texts, *writing.texts]
    flags = [writing.names, sorted(writing.refused), writing.moves]
    return json.dumps([draw.site.name, str(draw.site.file), draw.ways, texts, *flags])


def _replayed(line: str) -> tuple[str, list[str], list[str]]:
    name, file, ways, texts, names, refused, moves = json.loads(line)
    writing = Writing({}, random.Random(0), names, refused=set(refused), moves=moves)
    plain, other = (read_text(*pair, Path(file)) for pair in (texts[:2], texts[2:]))
    return name, ways, list(differences(plain, other, writing))


def main() -> None:
    """Draw, and print what differs."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sites", type=int, default=10**6)
    parser.add_argument("--save", type=Path, help="write the draws to a file, and compare nothing")
    parser.add_argument("--replay", type=Path, help="compare the draws of a file, here")
    options = parser.parse_args()
    draws = drawn(options.count, options.seed, options.sites)
    if options.save:
        options.save.write_text("".join(f"{_saved(draw)}\n" for draw in draws))
        return
    if options.replay:
        results = map(_replayed, options.replay.read_text().splitlines())
    else:
        results = ((draw.site.name, draw.ways, draw.differences()) for draw in draws)
    tried, failed = Counter[str](), Counter[str]()
    for name, ways, said in results:
        tried.update(ways)
        if said:
            failed.update(ways)
            print(name, ways, *said[:6], sep="\n    ", flush=True)
    for kind in WAYS:
        print(f"{kind}\t{tried[kind]}\t{failed[kind]}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
