"""What is publicly known about models and their checkpoints, by name.

The catalog is read on first use; None means that it has no entry.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import all_nearest
from generator.records import record
from generator.resources import SCHEMAS

ModelFacts = Mapping[str, Any]

# The basis of a size that follows from a model's shape and format.
COMPUTED = "computed"

_ANOTHER_MODEL = r"distill|reap|prune|draft|eagle|dflash|dspark|speculator|medusa|vision"
_SIZE_BESIDE = r"(?<![\w.])[0-9]+(\.[0-9]+)?b(?![\w.])"


@record
class Architecture:
    """The shape of a model; `facts` is everything else in its entry."""

    name: str
    hf_id: str
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int | None
    max_context: int | None
    experts: int | None
    gated: bool
    tool_call_parser: str | None
    reasoning_parser: str | None
    advised: Mapping[str, ModelFacts]
    facts: ModelFacts

    def __hash__(self) -> int:
        return hash(self.name)


@record
class Checkpoint:
    """Weights that can be downloaded: `weight_gb` is in units of 1e9 bytes.

    `basis` is the source of `weight_gb`; one that is computed from the shape leaves out the vision
    tower's `vision_gb`. `mtp_gb` is the part that predicts further tokens, and is only loaded on
    request; `tables_gb` are tables beside the layers, if they aren't as large as the architecture
    implies.
    """

    name: str
    hf_id: str
    format: str
    weight_gb: float | None
    vision_gb: float
    basis: str
    max_context: int | None
    architecture: Architecture
    mtp_gb: float = 0.0
    tables_gb: float | None = None

    @property
    def gated(self) -> bool:
        """Whether the download needs a token, as only the gated publisher's own repositories do."""
        return self.architecture.gated and _owner(self.hf_id) == _owner(self.architecture.hf_id)


def checkpoint(name: str) -> Checkpoint | None:
    """The checkpoint with this name or Hugging Face id, in any case."""
    wanted = name.lower()
    known = _checkpoints(_last_part(wanted))
    found = known.get(wanted) or known.get(_last_part(wanted))
    return found if found and wanted in (found.name, found.hf_id.lower()) else None


def named_after(name: str) -> str | None:
    """The catalog's model whose name is contained in another name; the longest of several.

    With a word for a distilled, pruned or draft model or a size beside it, it is another model.
    """
    last = _last_part(name.lower())
    if re.search(_ANOTHER_MODEL, last):
        return None
    known = {
        named: _last_part(hf_id)
        for key, block in _blocks().items()
        for hf_id in [*re.findall(r"^  hf_id: (\S+)", block.lower(), re.MULTILINE)]
        for named in (key, _last_part(hf_id))
    }
    inside = [
        named for named in known if re.search(rf"(?<![\w.]){re.escape(named)}(?![\w.])", last)
    ]
    longest = max(inside, key=len, default="")
    is_of_another_size = re.search(_SIZE_BESIDE, last.replace(longest, " "))
    return None if is_of_another_size else known.get(longest)


def siblings(known: Checkpoint) -> tuple[Checkpoint, ...]:
    """The checkpoints of the same model, including this one."""
    items = _model(known.architecture.name)["checkpoints"]
    return tuple(found for item in items if (found := checkpoint(item["id"])))


def checkpoint_names() -> tuple[str, ...]:
    """One name for each checkpoint, sorted."""
    return tuple(sorted(_checkpoints()))


def near_checkpoints(name: str) -> list[str]:
    """The names that an unknown one most likely stands for.

    Family and size are words of a name: `qwen3.5-397b` is a checkpoint with both words in its name,
    and never one of another size that has more letters in common.
    """
    known = checkpoint_names()
    words = set(_words_of(name))
    if same := [one for one in known if _words_of(one) == _words_of(name)]:
        return same
    forms = [words, *map(set, _without_owner(name.lower()))]
    if found := [n for n in known if any(own and own <= set(_words_of(n)) for own in forms)]:
        return found
    sizes = {word for word in words if _SIZE.fullmatch(word)}
    return [
        one
        for one in all_nearest(name, known)
        if sizes in (set(), {word for word in _words_of(one) if _SIZE.fullmatch(word)})
    ]


_SIZE = re.compile(r"[0-9.]+m?")


def _without_owner(name: str) -> Iterator[list[str]]:
    """The words of a model in a name with its owner or a tag, its version apart or not."""
    owner, _, model = name.replace(":", "-").rpartition("/")
    for form in (model, re.sub(r"(?<=[a-z])(?=[0-9]+\.)", "-", model)):
        yield [word for word in _words_of(form) if word not in _words_of(owner)]


def _words_of(name: str) -> list[str]:
    """The words of a name, sizes in billions without their unit."""
    return re.split(r"[-_/ ]", re.sub(r"(?<=[-_/ ])([0-9.]+)b(?![a-z0-9])", r"\1", name.lower()))


@cache
def _checkpoints(mentioned: str = "") -> Mapping[str, Checkpoint]:
    """Checkpoints by the last part of their id, or by the whole id if others share that name.

    Only entries that mention the name are parsed: reading the whole catalog takes longer than the
    rest of a build.
    """
    found: dict[str, Checkpoint] = {}
    entries = _models(mentioned)
    ids = (item["id"].lower() for entry in entries.values() for item in entry["checkpoints"])
    owners = Counter(map(_last_part, ids))
    for name, entry in entries.items():
        facts = _over(_model(entry["like"]), entry) if "like" in entry else entry
        architecture = _architecture(name, facts)
        for item in entry["checkpoints"]:
            hf_id = item["id"].lower()
            short = _last_part(hf_id)
            key = hf_id if owners[short] > 1 else short
            found[key] = Checkpoint(
                name=key,
                hf_id=item["id"],
                format=item["format"],
                weight_gb=item["weight_gb"],
                basis=item["basis"],
                vision_gb=facts.get("vision_gb", 0.0) if item["basis"] == COMPUTED else 0.0,
                max_context=item.get("max_context", architecture.max_context),
                architecture=architecture,
                mtp_gb=item.get("mtp_gb", 0.0),
                tables_gb=item.get("tables_gb"),
            )
    return found


def _models(mentioned: str) -> Mapping[str, ModelFacts]:
    """The entries whose text mentions a checkpoint with that name."""
    wanted = f"/{mentioned}" if mentioned else ""
    text = "".join(block for block in _blocks().values() if wanted in block.lower())
    return yaml.load(text, Loader=yaml.CSafeLoader) or {}


def _model(name: str) -> ModelFacts:
    entry: ModelFacts = yaml.load(_blocks()[name], Loader=yaml.CSafeLoader)[name]
    return entry


@cache
def _blocks() -> Mapping[str, str]:
    """The text of each entry in the model catalog, by name."""
    text = (SCHEMAS / "models.yaml").read_text(encoding="utf-8")
    starts = [*re.finditer(r"^([a-z0-9][^:\n]*):$", text, re.MULTILINE)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(starts, ends, strict=True)}


def _over(base: ModelFacts, own: ModelFacts) -> ModelFacts:
    """An entry merged with the one it is like: mappings key by key, with its own `unverified`."""
    merged = {k: base[k] | v if k in base and isinstance(v, dict) else v for k, v in own.items()}
    return {k: v for k, v in base.items() if k != "unverified"} | merged


def _architecture(name: str, entry: ModelFacts) -> Architecture:
    advised = entry["advised"]
    parsers: ModelFacts = next(
        (own for e, own in advised.items() if ENGINE_TRAITS[e].names_parsers), {}
    )
    values: dict[str, Any] = {key: entry.get(key) for key in Architecture.__match_args__}
    values |= {"name": name, "gated": entry.get("gated", False)}
    values["experts"] = entry.get("moe", {}).get("experts")
    values |= {key: parsers.get(key) for key in ("tool_call_parser", "reasoning_parser")}
    values["facts"] = {key: value for key, value in entry.items() if key not in values}
    return Architecture(**values)


def _owner(hf_id: str) -> str:
    return hf_id.partition("/")[0]


def _last_part(hf_id: str) -> str:
    return hf_id.rpartition("/")[2]
