"""Published starts of `schemas/evidence/`, and what is computed for each of their figures.

A start is in the part that estimates are fitted to, or in the one that is held out, by a hash of
its source without the part behind '#'.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

import yaml

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.versions import version
from generator.fit.alternatives import Deployment
from generator.fit.assessment import Fit
from generator.fit.caches import Cache, Split, cache
from generator.fit.complete import complete
from generator.fit.formulas import GIB
from generator.fit.kinds import count_kinds
from generator.fit.requested import element_bytes, requested
from generator.models.architecture import shape
from generator.records import replace
from generator.resources import SCHEMAS
from generator.sitefile.declaration import serving

FOLDER = Path(str(SCHEMAS)) / "evidence"
# Of 256 values of the first byte of the hash: about 60 %.
_FITTED = 154
_NEWER_GIB = 121.6
SPARK = "GB10"
# The tokens of a step that vLLM has by default on GPUs with more memory that it can see.
_STEP = "max-num-batched-tokens"
_STEPS = {"B200": 16384} | dict.fromkeys(("H20", "H100", "H200", "RTX PRO 6000"), 8192)


@dataclass(frozen=True)
class Start:
    """A published start: its file, and what the file says."""

    path: Path
    data: dict[str, Any]

    @property
    def source(self) -> str:
        """Where it was published."""
        return str(self.data["source"])

    @property
    def is_held_out(self) -> bool:
        """Whether no estimate may be fitted to it."""
        return sha256(self.source.split("#")[0].encode()).digest()[0] >= _FITTED

    @property
    def on_sparks(self) -> bool:
        """Whether it ran on Sparks: other nodes have other rooms and speeds."""
        return self.data.get("gpu", SPARK) == SPARK

    @property
    def is_known(self) -> bool:
        """Whether its build is a release, so that its reserve and its pools are known."""
        return not version(str(self.data["engine"]["version"])).local

    @cached_property
    def group(self) -> Deployment:
        """Its nodes, model and engine, as a site declares them."""
        visible = self.data.get("visible_gib", _NEWER_GIB)
        nodes = [
            {"name": f"spark{index + 1}", "visible_gib": visible}
            for index in range(self.data["nodes"])
        ]
        engine = {"image": "none"} | self.data["engine"]
        step = _STEPS.get(self.data.get("gpu", SPARK))
        if step and engine["name"] == "vllm":
            engine["args"] = {_STEP: step} | engine.get("args", {})
        return Deployment(*serving({"nodes": nodes, "model": self.data["model"], "engine": engine}))

    @cached_property
    def fit(self) -> Fit | None:
        """What is computed for it."""
        return self.group.assess()

    @property
    def figures(self) -> Iterator["Printed"]:
        """What it printed."""
        for figure in self.data["figures"]:
            yield Printed(self, figure)


@dataclass(frozen=True)
class Printed:
    """A figure that a start printed: one number by its kind, and under what conditions."""

    start: Start
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        """The kind of figure: the first key, without its unit."""
        return next(iter(self.data)).removesuffix("_gib").removesuffix("_tokens_s")

    @property
    def value(self) -> float:
        """The number."""
        return float(next(iter(self.data.values())))

    @cached_property
    def ours(self) -> float | None:
        """The same number as computed; None if it is not."""
        return _OURS[self.kind](self) if self.kind in _OURS else None

    @property
    def error(self) -> float | None:
        """How far the computed number is off, as a fraction."""
        return None if self.ours is None else self.ours / self.value - 1

    def given(self, kind: str) -> float | None:
        """Another figure of the same start."""
        return next((each.value for each in self.start.figures if each.kind == kind), None)

    @property
    def group(self) -> Deployment:
        """What it is a figure of: with its drafts, unless the engine prints those apart."""
        group = self.start.group
        if self.data.get("drafts") != "apart":
            return group
        return replace(group, model=replace(group.model, speculative=None))

    def fit_at(self, tokens: int) -> Fit | None:
        """The fit with sequences of this many tokens."""
        group = self.group
        return replace(group, model=replace(group.model, context_length=tokens)).assess()


def starts() -> list[Start]:
    """All published starts, by their names."""
    paths = sorted(FOLDER.glob("*.yaml"))
    return [Start(path, yaml.load(path.read_text(), Loader=yaml.CSafeLoader)) for path in paths]


def _weights(figure: Printed) -> float | None:
    fit = figure.start.fit
    if fit is None or not fit.nodes:
        return None
    # Only on a Spark do processes share the memory of the GPU.
    counted = fit.loading_gib if figure.start.on_sparks else 0.0
    return max(node.weights_gib + node.draft_gib for node in fit.nodes) + counted


def _room(figure: Printed) -> float | None:
    fit = figure.start.fit
    if not figure.start.on_sparks or fit is None or fit.is_pinned:
        return None
    return min((node.kv_room_gib for node in fit.nodes), default=None)


def _one(figure: Printed, tokens: int) -> float | None:
    fit = figure.fit_at(tokens)
    return max((node.kv_one_gib for node in fit.nodes), default=None) if fit else None


def _sequence(figure: Printed) -> float | None:
    return _one(figure, figure.data["context"])


def _sequences(figure: Printed) -> float | None:
    """How many sequences a room holds that was printed too, or else the computed one."""
    one = _one(figure, figure.data["context"])
    room = figure.given("room") or _pinned(figure) or _room(figure)
    return room / one if room and one else None


def _pinned(figure: Printed) -> float | None:
    pinned = figure.start.data["model"].get("kv_cache_gib")
    return float(pinned) if pinned else None


def _tokens(figure: Printed) -> float | None:
    context = figure.data.get("context")
    if context is None:
        fit = figure.start.fit
        one = fit.context if fit else None
        context = one or 0
    each = _one(figure, context) if context else None
    room = figure.given("room") or _pinned(figure) or _room(figure)
    return room / each * context if room and each else None


def _cache(figure: Printed) -> float | None:
    one, held = _one(figure, figure.data["tokens"]), _held(figure)
    kept = 1 - held.shares[-1] if held and figure.data.get("states") == "apart" else 1
    return one * kept * figure.data.get("sequences", 1) if one else None


def _graphs(figure: Printed) -> float | None:
    fit = figure.start.fit
    return max((node.graphs_gib for node in fit.nodes), default=None) if fit else None


def _activations(figure: Printed) -> float | None:
    fit = figure.start.fit
    return max((node.activations_gib for node in fit.nodes), default=None) if fit else None


def _held(figure: Printed) -> Cache | None:
    group = figure.group
    known, cached = shape(group.model), element_bytes(group.model)
    whole = complete(known) if known else None
    if known is None or whole is None or cached is None:
        return None
    kinds = count_kinds(known, 0, known.layers)
    split = Split(kinds, kinds, group.engine.parallel.tensor, 1, 0)
    wanted = requested(group.model, group.engine, 8192, cached)
    return cache(whole, split, wanted, ENGINE_TRAITS[group.engine.name].paging)


def _block(figure: Printed) -> float | None:
    held = _held(figure)
    blocks = [pages.block for pages in held.pages if pages.kind == "state"] if held else []
    return max(blocks, default=None)


def _states(figure: Printed) -> float | None:
    held = _held(figure)
    return ceil(held.fixed) / GIB if held else None


_OURS = {
    "weights": _weights,
    "room": _room,
    "sequence": _sequence,
    "sequences": _sequences,
    "cache_tokens": _tokens,
    "cache": _cache,
    "graphs": _graphs,
    "activations": _activations,
    "block_tokens": _block,
    "states": _states,
}
