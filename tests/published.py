"""Figures that others published, and what the formulas make of the same: all in one list.

Each has its source and a tolerance: how far ours may be off, as a fraction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from declared import a_model, an_engine, some_nodes

from generator import catalogs
from generator.architecture import known_shape
from generator.declaration import Parallel
from generator.fit import formulas
from generator.fit.assessment import Fit, assess
from generator.fit.formulas import CACHED, GB

CONSELARA = "https://conselara.dev/notes/dgx-spark-benchmarks/"
PROFILER = "https://github.com/vllm-project/vllm/pull/10511"
INSIGHTS = "https://arxiv.org/abs/2505.09343"
MODEL_CARD = "https://arxiv.org/abs/2508.10925"
MINIMAX = "https://github.com/eugr/spark-vllm-docker/issues/396"
FORUM = "https://forums.developer.nvidia.com/t/361819"


@dataclass(frozen=True)
class Figure:
    """A published figure, and ours in the same unit."""

    what: str
    published: float
    unit: str
    source: str
    tolerance: float
    ours: Callable[[], float]

    @property
    def difference(self) -> float:
        """By how much ours is off, as a fraction of the published one."""
        return self.ours() / self.published - 1


def fit_of(name: str, parallel: Parallel | None = None, **model: Any) -> Fit:
    """The fit of a model of the catalog on as many nodes as its split takes."""
    sizes = parallel or Parallel()
    engine = an_engine(parallel=sizes)
    found = assess(some_nodes(sizes.ranks), a_model(name=name, **model), engine)
    assert found
    return found


def weights_gib(name: str, parallel: Parallel | None = None) -> float:
    """Weights of the fullest rank."""
    return max(node.weights_gib for node in fit_of(name, parallel, context_length=4096).nodes)


def cache_kib(name: str) -> float:
    """KV cache a token of the whole model at 16 bits."""
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    shape = known_shape(checkpoint)
    layers = shape.attention_layers
    assert layers
    if shape.mla:
        elements = formulas.latent_cache_elements(shape.mla.kv_rank, shape.mla.rope)
    else:
        assert shape.kv_heads
        assert shape.head_dim
        elements = formulas.grouped_cache_elements(shape.kv_heads, shape.head_dim, 1)
    return layers * elements * CACHED["bf16"] / 1024


def one_sequence_gib(name: str, context: int, parallel: Parallel) -> float:
    """KV cache of one sequence on a rank at 16 bits."""
    return fit_of(name, parallel, context_length=context).nodes[0].kv_one_gib


FIGURES = (
    Figure(
        "Qwen3-235B-A22B GPTQ-Int4, tensor 2, experts spread: weights a node",
        57.64,
        "GiB",
        CONSELARA,
        0.005,
        lambda: weights_gib("qwen3-235b-a22b-gptq-int4", Parallel(tensor=2, expert=True)),
    ),
    Figure(
        "Qwen3.5-122B-A10B int4-AutoRound, one node: weights",
        62.65,
        "GiB",
        FORUM,
        0.01,
        lambda: weights_gib("qwen3.5-122b-a10b-int4-autoround"),
    ),
    Figure(
        "Llama 3 8B in 16 bits, one rank: weights",
        14.96,
        "GiB",
        PROFILER,
        0.005,
        lambda: weights_gib("llama-3.1-8b-instruct"),
    ),
    Figure(
        "Llama 3 8B in 16 bits, tensor 2: weights a rank",
        7.48,
        "GiB",
        PROFILER,
        0.005,
        lambda: weights_gib("llama-3.1-8b-instruct", Parallel(tensor=2)),
    ),
    Figure(
        "gpt-oss-120b: checkpoint",
        60.8,
        "GiB",
        MODEL_CARD,
        0.005,
        lambda: weights_gib("gpt-oss-120b"),
    ),
    Figure(
        "gpt-oss-20b: checkpoint",
        12.8,
        "GiB",
        MODEL_CARD,
        0.005,
        lambda: weights_gib("gpt-oss-20b"),
    ),
    Figure(
        "Llama 3.1 405B at 4 bits, without scales",
        203,
        "GB",
        "405.85e9 parameters x 0.5 bytes",
        0.002,
        lambda: parameters("llama-3.1-405b-instruct") * 0.5 / GB,
    ),
    Figure(
        "Llama 3.1 405B, KV cache a token at 16 bits",
        516.096 * 1000 / 1024,
        "KiB",
        INSIGHTS,
        0.0001,
        lambda: cache_kib("llama-3.1-405b-instruct"),
    ),
    Figure(
        "Qwen2.5 72B, KV cache a token at 16 bits; Llama 3.1 70B has the same heads",
        327.680 * 1000 / 1024,
        "KiB",
        INSIGHTS,
        0.0001,
        lambda: cache_kib("llama-3.1-70b-instruct"),
    ),
    Figure(
        "DeepSeek-V3, latent KV cache a token at 16 bits",
        70.272 * 1000 / 1024,
        "KiB",
        INSIGHTS,
        0.0001,
        lambda: cache_kib("deepseek-v3"),
    ),
    Figure(
        "MiniMax-M2.7, tensor 2: KV cache a rank of 196608 tokens at 16 bits",
        23.25,
        "GiB",
        MINIMAX,
        0.001,
        lambda: one_sequence_gib("minimax-m2.7-nvfp4", 196608, Parallel(tensor=2)),
    ),
)


def parameters(name: str) -> float:
    """Parameters of a dense model with grouped-query attention, summed up by the formulas."""
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    shape = known_shape(checkpoint)
    assert shape.layers
    assert shape.hidden_size
    assert shape.vocab_size
    assert shape.heads
    assert shape.kv_heads
    assert shape.head_dim
    assert shape.intermediate_size
    hidden = shape.hidden_size
    attention = formulas.attention_parameters(
        hidden, shape.heads, shape.kv_heads, shape.head_dim, gated=False
    )
    layer = sum(attention) + formulas.feed_forward_parameters(hidden, shape.intermediate_size)
    return 2 * hidden * shape.vocab_size + shape.layers * layer


def markdown() -> str:
    """The table as the README has it."""
    lines = ["| What | Published | Ours | Difference |", "|---|---|---|---|"]
    for figure in FIGURES:
        published = f"{figure.published:.4g} {figure.unit}"
        if figure.source.startswith("http"):
            published = f"[{published}]({figure.source})"
        ours = f"{figure.ours():.4g} {figure.unit}"
        lines.append(f"| {figure.what} | {published} | {ours} | {figure.difference:+.1%} |")
    return "\n".join(lines) + "\n"
