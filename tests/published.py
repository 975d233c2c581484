"""Figures that others published, and what our formulas compute for the same cases, in one list.

Each has its source and a tolerance: how far ours may be off, as a fraction.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from declared import a_model, an_engine, some_nodes

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit import formulas, parts
from generator.fit.assessment import Fit, NodeMemory, assess
from generator.fit.caches import Cache, Split, cache
from generator.fit.complete import complete
from generator.fit.formulas import CACHED, GB, GIB
from generator.fit.kinds import count_kinds
from generator.fit.requested import element_bytes, requested
from generator.models.architecture import GATED_DELTA, Recurrent, Shape, known_shape
from generator.records import replace
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Parallel

CONSELARA = "https://conselara.dev/notes/dgx-spark-benchmarks/"
PROFILER = "https://github.com/vllm-project/vllm/pull/10511"
INSIGHTS = "https://arxiv.org/abs/2505.09343"
MINIMAX = "https://github.com/eugr/spark-vllm-docker/issues/396"
FORUM = "https://forums.developer.nvidia.com/t/361819"
GPT_OSS = "https://github.com/vllm-project/vllm/issues/23278"
COMPRESSED = "https://github.com/vllm-project/vllm/issues/44376"
PACKED_GROUPS = "https://github.com/vllm-project/vllm/issues/54703"
LOG_OF_QWEN = "https://github.com/vllm-project/vllm/issues/40691"
LONG_BLOCKS = "https://github.com/vllm-project/vllm/issues/54458"
TWO_3090 = "https://github.com/mitchross/talos-argocd-proxmox/pull/1995"
ONE_5090 = "https://github.com/noonghunna/club-3090/issues/612"
OTHER_5090 = "https://github.com/noonghunna/club-3090/issues/652"
BOTH_ENGINES = "https://github.com/vllm-project/vllm/issues/21348"
LENGTHS = "https://github.com/vllm-project/vllm/issues/10517"
OLLAMA = "https://github.com/ollama/ollama/issues/16480"
NO_LLAMA = "https://github.com/aweussom/NoLlama/issues/21"
VISION_72B = "https://github.com/vllm-project/vllm/issues/16570"
HUB = "https://huggingface.co"
GEMMA_4 = "https://ai.google.dev/gemma/docs/core/model_card_4"
GEMMA_12B = "https://github.com/raullenchai/Rapid-MLX/pull/1423"
GLM_PAGES = "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/122"
ONE_SPARK = "https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-One-DGX-Spark/issues/4"
GRAPHS = "https://github.com/eugr/spark-vllm-docker/pull/200"
TABLES = "https://github.com/eugr/spark-vllm-docker/issues/388"
FLASH_NEXT = "https://github.com/MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark/pull/41"
CARD_OF_GPT_OSS = "https://arxiv.org/abs/2508.10925"
QWEN3 = "https://arxiv.org/abs/2505.09388"
DEEPSEEK_V3 = "https://arxiv.org/abs/2412.19437"
LLAMA_3 = "https://arxiv.org/abs/2407.21783"
GLM_4_5 = "https://arxiv.org/abs/2508.06471"
KIMI_K2 = "https://arxiv.org/abs/2507.20534"
CACHE_SIZES = "https://github.com/LMCache/LMCache/pull/1769"
# Files in public repositories, by subject.
PROFILES = "llm-d, 'vLLM Empirical Memory Profiling Results'"
KIMI_LOG = "SGLang's log of KimiK25ForConditionalGeneration, February 2026"
GLM_LOG = "SGLang's log of GlmMoeDsaForCausalLM, February 2026"
GLM_5_2 = "vLLM's log of GLM-5.2-NVFP4 on four B200, August 2026"
GLM_SPARKS = "a report of GLM-5 with SGLang on four Sparks, July 2026"
NANO_SPARKS = "a log of Nemotron 3 Nano Omni with SGLang on four Sparks, October 2026"
STATES_SPARK = "a log of Qwen3.8-27B with SGLang on one Spark, September 2026"
GEMMA_POOLS = "SGLang's pools of Gemma 4 in 16 bits, of logs"
R1_LOG = "a parser's sample of SGLang's log of DeepSeek-R1, November 2025"
CONTROL_PLANE = "a cold start of Qwen3-32B with SGLang, taken apart"
L40S = "a report of Qwen3-235B-A22B-Instruct-2507-FP8 on eight L40S, September 2025"
SECOND_LOG = "'Qwen3.6-27B-NVFP4 - Second Startup Log' of a Spark, July 2026"
LONG_27B = "a log of Qwen3.8-27B at 786,432 tokens on a Spark, August 2026"
RUN_2 = "'Run2' of Llama 3.1 8B with vLLM 0.33, October 2026"
EAGLE_LOG = "vLLM's issue 'Overhead of SD with PC is 30-40% higher than baseline'"
PATCHED_FLASH = "'HD-489' of Qwen3.8-Flash-Next on a Spark, October 2026"
SMALL = "a guide to vLLM 0.27.1 on a Spark with Qwen3-0.6B, September 2026"
TWO_SPARKS = "a playbook of Qwen3.8-Flash-Next on two Sparks, September 2026"
LAYOUT_30B = "a report of Qwen3-30B-A3B at tensor 2, July 2026"
# Logs that were found after the formulas were written, none of which is derived from them.
LOG_27B = "a log of Qwen3.6-27B-Text-NVFP4-MTP with vLLM 0.20.0, May 2026"
SPARK_35B = "a log of RedHatAI/Qwen3.6-35B-A3B-NVFP4 with vLLM 0.20.0 on a Spark, May 2026"
SMALL_35B = "a log of RedHatAI/Qwen3.6-35B-A3B-NVFP4 with vLLM 0.20.0 on 32 GB, May 2026"
PRISMA_35B = "a log of Qwen3.6-35B-A3B-PrismaQuant with vLLM 0.20.2 on a Spark, May 2026"
LOG_GEMMA = "a log of nvidia/Gemma-4-26B-A4B-NVFP4 with vLLM 0.20.2, May 2026"
RERANKER = "a log of Qwen3-Reranker-8B with vLLM 0.20, May 2026"
THOR = "'KV Cache Budget - Thor 128 GB Unified Memory', logs of April 2026"
KIMI_TRTLLM = "TensorRT-LLM's log of a test of Kimi-K2.5"
DYNAMO = "Dynamo's guide to TensorRT-LLM with DeepSeek-R1-Distill-Llama-8B, February 2025"
CODER_LOG = "llama.cpp's log of Qwen3-Coder-30B-A3B with 65536 cells"
STATES_360 = "SGLang on a Spark with nvidia/Qwen3.8-27B-NVFP4 and 360 states"
GLM_H200 = "vLLM's log of GLM-5-FP8 on eight H200, May 2026"
NANO_XPU = "SGLang's log of Nemotron-3-Nano-30B-A3B on four XPUs"
SOLAR = "https://github.com/bjk110/spark_vllm_docker/blob/main/README.md"
STATES_LOG = "llama.cpp's log of a Qwen3.5 with 18 layers of states, 2026"
INKLING = "https://github.com/vllm-project/vllm/pull/54705"
SOLAR_PAGES = "https://github.com/ai-dynamo/dynamo/tree/main/recipes/solar-open2-250b"
STAGE_C = (
    "vLLM 0.21.1rc1.dev339+g1967a5627bc3's log on two Sparks, variant02-dspark-nvfp4, July 2026"
)
LOG_8B = "a parser's sample of vLLM 0.19.1's log of Qwen3-8B, September 2026"
TWO_EXL3 = "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/204"

# Figures of a second blind test, found after the formulas were written. The uncertainty of a
# reserve (3.2 GiB) and the memory not free for SGLang (11.7 GiB) were then set from them, so the
# test is no longer blind for rooms.
SUPER_LOG = "a log of Nemotron-3-Super with SGLang 0.5.21 on four Sparks, October 2026"
OMNI_LOG = "a log of Nemotron 3 Nano Omni beside another engine on four Sparks, October 2026"
DEEP_EMBED = "measurements of Qwen3-Embedding-4B with vLLM on a Spark, July 2026"
B200_8B = "SGLang's log of Qwen3-8B on a B200, April 2026"
EARLY_8B = "vLLM's log of Qwen3-8B, June 2025"
LORA_8B = "SGLang's log of Llama 3.1 8B with LoRA, May 2026"
COLD_32B = "SGLang's log of a cold start of Qwen3-32B"
KIMI_H100 = "notes on Kimi-K2.5 with SGLang on eight H100"
DRAFT_WEIGHTS = "https://github.com/MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark/pull/47"
AUDITED = "a record of DeepSeek-V4-Flash-0731 with a patched vLLM on two Sparks, August 2026"
FOUR_SPARKS = "a report of DeepSeek-V4-Flash-0731 on four Sparks, August 2026"
DAY_0 = "a recipe for Qwen3.8-Flash-Next of RadixArk on two Sparks with vLLM's first image for it"

# Figures of the same test that were left out at first: ours differ, or the build is not named.
FLASH_SGLANG = "SGLang's logs of Qwen3.8-Flash-Next on one Spark, August and October 2026"
FIRST_DAY = "a record of Qwen3.8-Flash-Next with SGLang on two Sparks on its first day, August 2026"
DUAL_SGLANG = "https://github.com/MiaAI-Lab/Qwen3.8-Flash-Next-Dual-DGX-Sparks/issues/8"
# Found after all others, so nothing was set from them: an image that keeps the tables in a file.
ONE_IN_A_FILE = "https://github.com/blazux/qwen3.8-Flash-DGX/issues"
A_BLOG = "a blog about DeepSeek-V4-Flash on two Sparks, 2026, rounded"

WEIGHTS, UNIFORM, MIXED, ROOM = (
    "weights",
    "KV cache, uniform",
    "KV cache, of several kinds",
    "room for the cache",
)


# A model and where it runs: the arguments of the function that computes the figure.
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Figure:
    """A published figure, and our figure in the same unit."""

    what: str
    published: float
    unit: str
    source: str
    tolerance: float
    ours: Callable[[], float]
    kind: str = WEIGHTS

    @property
    def difference(self) -> float:
        """How far our figure is off, as a fraction of the published one."""
        return self.ours() / self.published - 1


def fit_of(name: str, parallel: Parallel | None = None, **model: Any) -> Fit:
    """The fit of a catalog model on as many nodes as its split requires."""
    sizes = parallel or Parallel()
    engine = an_engine(parallel=sizes, version=model.pop("version", "0.33.0"))
    found = assess(some_nodes(sizes.ranks), a_model(name=name, **model), engine)
    assert found
    return found


def weights_gib(name: str, parallel: Parallel | None = None) -> float:
    """Weights on the fullest rank."""
    return max(node.weights_gib for node in fit_of(name, parallel, context_length=4096).nodes)


def sum_of_weights(name: str, parallel: Parallel | None = None, **model: Any) -> float:
    """Weights on the fullest rank, including its draft model."""
    fit = fit_of(name, parallel, context_length=4096, **model)
    return max(node.weights_gib + node.draft_gib for node in fit.nodes)


def cache_kib(name: str) -> float:
    """KV cache per token of the whole model at 16 bits."""
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    shape = known_shape(checkpoint)
    if shape.mla:
        elements = formulas.latent_cache_elements(shape.mla.kv_rank, shape.mla.rope)
    else:
        assert shape.head_dim
        elements = formulas.grouped_cache_elements(shape.kv_heads, shape.head_dim, 1)
    return shape.attention_layers * elements * CACHED["bf16"] / 1024


def one_sequence_gib(name: str, context: int, parallel: Parallel) -> float:
    """KV cache of one sequence on a rank at 16 bits."""
    return fit_of(name, parallel, context_length=context).nodes[0].kv_one_gib


def paged_gib(
    name: str,
    context: int,
    version: str,
    *,
    kv: str | None = None,
    tensor: int = 1,
    step: int | None = None,
    mtp: int = 0,
    prefixes: bool | None = None,
    tables: str | None = None,
) -> float:
    """KV cache of one sequence on a rank as a release of vLLM pages it."""
    flag = "enable-prefix-caching" if prefixes else "no-enable-prefix-caching"
    args: dict[str, Any] = {} if prefixes is None else {flag: True}
    args |= {"max-num-batched-tokens": step} if step else {}
    sizes = Parallel(tensor=tensor)
    engine = an_engine(version=version, parallel=sizes, args=args)
    drafts = {"speculative": {"method": "mtp", "tokens": mtp}} if mtp else {}
    model = a_model(name=name, context_length=context, kv_cache_dtype=kv, tables=tables, **drafts)
    found = assess(some_nodes(tensor), model, engine)
    assert found
    assert found.nodes, found.missing
    return found.nodes[0].kv_one_gib


def sized(name: str, published: float, source: str, tolerance: float = 0.01) -> Figure:
    """A model's parameters in billions, computed from its shape."""
    return Figure(
        f"{name}: parameters",
        published,
        "e9",
        source,
        tolerance,
        lambda: parameters(name) / GB,
    )


def held(
    what: str,
    published: float,
    source: str,
    name: str,
    tensor: int = 1,
    tolerance: float = 0.02,
    **model: Any,
) -> Figure:
    """Weights on a rank, including its draft model, in GiB."""
    sizes = Parallel(tensor=tensor)

    def ours() -> float:
        return sum_of_weights(name, sizes, **model)

    return Figure(what, published, "GiB", source, tolerance, ours)


def room(
    what: str, published: float, source: str, tolerance: float, place: Place, **how: Any
) -> Figure:
    """Room for the KV cache on a node in GiB."""
    return Figure(what, published, "GiB", source, tolerance, lambda: room_gib(*place, **how), ROOM)


def states(
    what: str, published: float, source: str, tolerance: float, which: Place, **how: Any
) -> Figure:
    """States that SGLang holds on a rank, in GiB."""

    def ours() -> float:
        return held_states(*which, **how) / GIB

    return Figure(what, published, "GiB", source, tolerance, ours, MIXED)


def allocated(what: str, published: float, source: str, kind: str, which: Place) -> Figure:
    """What llama.cpp allocates for one kind of layers, in MiB."""
    return Figure(what, published, "MiB", source, 0.001, lambda: llama_cpp_mib(*which), kind)


def in_cache(
    what: str,
    published: float,
    source: str,
    name: str,
    tokens: int,
    tensor: int = 1,
    **how: Any,
) -> Figure:
    """Memory that a cache of the given number of tokens takes on a rank, in GiB."""
    name_of_engine, args = how.pop("engine", "vllm"), how.pop("args", {})
    kind = how.pop("kind", UNIFORM)

    def ours() -> float:
        sizes = Parallel(tensor=tensor)
        start = ENGINE_TRAITS[name_of_engine].start
        assert start
        engine = an_engine(name=name_of_engine, version=start.version, parallel=sizes, args=args)
        model = a_model(name=name, context_length=tokens, **how)
        found = assess(some_nodes(sizes.ranks), model, engine)
        assert found
        assert found.nodes, found.missing
        return found.nodes[0].kv_one_gib

    return Figure(f"{what}: cache of {tokens} tokens", published, "GiB", source, 0.005, ours, kind)


def held_states(
    name: str,
    count: int,
    tensor: int = 1,
    drafted: int = 0,
    sequences: int | None = None,
    **args: str,
) -> int:
    """Bytes of the given number of states that SGLang is configured to hold."""
    engine = an_engine(name="sglang", version="0.5.23", args={"max-mamba-cache-size": count} | args)
    drafts = {"speculative": {"method": "mtp", "tokens": drafted}} if drafted else {}
    model = a_model(name=name, max_sequences=sequences, **drafts)
    return cache_of(known_shape_of(name), model, engine, tensor).fixed


def cached(name: str, published: float, source: str, tolerance: float = 0.001) -> Figure:
    """KV cache per token of the whole model in KiB, at 16 bits."""
    return Figure(
        f"{name}: KV cache per token in 16 bits",
        published,
        "KiB",
        source,
        tolerance,
        lambda: cache_kib(name),
        UNIFORM,
    )


def paged(what: str, published: float, source: str, name: str, *place: Any, **how: Any) -> Figure:
    """KV cache of one sequence on a rank in GiB, as a release of vLLM pages it."""
    tolerance = how.pop("tolerance", 0.03)
    return Figure(
        what, published, "GiB", source, tolerance, lambda: paged_gib(name, *place, **how), MIXED
    )


def a_block(
    what: str, published: int, source: str, name: str, *, drafted: int, kv: str, tensor: int = 1
) -> Figure:
    """Tokens per block, which vLLM makes as large as a recurrent state."""

    def ours() -> float:
        engine = an_engine(version="0.30.0", args={"enable-prefix-caching": True})
        drafts = {"speculative": {"method": "mtp", "tokens": drafted}} if drafted else {}
        model = a_model(name=name, kv_cache_dtype=kv, **drafts)
        found = cache_of(known_shape_of(name), model, engine, tensor)
        return float(max(pages.block for pages in found.pages if pages.kind == "state"))

    return Figure(what, published, "tokens", source, 0.001, ours, MIXED)


def compressed_block(published: int, layers: int, kind: str, index: int) -> Figure:
    """Bytes per block in one of the groups of DeepSeek-V4's pool."""

    def ours() -> float:
        model = a_model(name="deepseek-v4-flash", kv_cache_dtype="fp8")
        found = cache_of(known_shape_of("deepseek-v4-flash"), model, an_engine(version="0.28.1"), 2)
        group = found.pools[0].groups[index]
        return float(sum(ceil(p.layers / group.count) * p.page for p in group.pages))

    what = f"DeepSeek-V4-Flash: block of {layers} layers of {kind}"
    return Figure(what, published, "B", PACKED_GROUPS, 0.0001, ours, MIXED)


def llama_cpp_mib(name: str, context: int, sequences: int, kind: str, step: int) -> float:
    """What llama.cpp allocates for one kind of layers, in MiB."""
    engine = an_engine(name="llama.cpp", version="0.5.0-dev", args={"ubatch-size": step})
    found = cache_of(known_shape_of(name), a_model(name=name, max_sequences=sequences), engine)
    pool = next(
        pool for pool, pages in zip(found.pools, found.pages, strict=True) if pages.kind == kind
    )
    return sequences * pool.sequence(context, found.under_way) / 2**20


def states_mib(recurrent: Recurrent, sequences: int) -> float:
    """What llama.cpp allocates for the states of the given number of sequences, in MiB."""
    known = known_shape_of("qwen3.5-9b")
    others = known.layers - recurrent.layers
    shape = replace(known, recurrent=recurrent, attention_layers=others)
    model = a_model(name="qwen3.5-9b", max_sequences=sequences)
    pages = cache_of(shape, model, an_engine(name="llama.cpp", version="0.5.0-dev")).pages
    held = sum(each.page * each.blocks for each in pages if each.kind == "state")
    return sequences * recurrent.layers * held / 2**20


def cache_of(shape: Shape, model: DeclaredModel, engine: DeclaredEngine, tensor: int = 1) -> Cache:
    """What one of the given number of tensor ranks caches."""
    whole, element = complete(shape), element_bytes(model)
    assert whole
    assert element
    kinds = count_kinds(shape, 0, shape.layers)
    split = Split(kinds, kinds, tensor, 1, 0)
    wanted = requested(model, engine, 8192, element)
    return cache(whole, split, wanted, ENGINE_TRAITS[engine.name].paging)


def known_shape_of(name: str) -> Shape:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    return known_shape(checkpoint)


def room_gib(
    name: str, context: int, version: str, share: float, visible: float, **how: Any
) -> float:
    """Room for the KV cache on a node with the given amount of memory."""
    sizes = Parallel(tensor=how.pop("tensor", 1))
    args, env = how.pop("args", {}), how.pop("env", {})
    engine = an_engine(
        version=version, parallel=sizes, args=args, env=env, memory_utilization=share
    )
    nodes = [replace(node, visible_gib=visible) for node in some_nodes(sizes.ranks)]
    found = assess(nodes, a_model(name=name, context_length=context, **how), engine)
    assert found
    return found.nodes[0].kv_room_gib


def drawn(name: str, rows: int, published: float, version: str) -> Figure:
    """Peak memory of a step of 8192 tokens, reached when a token is sampled for each sequence."""

    def ours() -> float:
        fit = fit_of(name, version=version, context_length=4096, max_sequences=rows)
        return fit.nodes[0].activations_gib

    what = f"{name}, vLLM {version}, {rows} sequences: peak of a step"
    source = L40S if rows == 256 else PROFILES
    return Figure(what, published, "GiB", source, 0.05, ours, ROOM)


ONE_WINDOW = (1048576, "0.24.0", 0.8, 121.63)
FOUR_IN_FP8: dict[str, Any] = {"max_sequences": 4, "kv_cache_dtype": "fp8"}

_SUPER = "nvidia-nemotron-3-super-120b-a12b-nvfp4"
_DAY_0 = ("radixark/qwen3.8-flash-next-nvfp4", 1000000, "0.29.0")
_OF_DAY_0: dict[str, Any] = {
    "tensor": 2,
    "max_sequences": 8,
    "tables": "memory",
    "speculative": {"method": "mtp", "tokens": 3},
    "args": {
        "max-num-batched-tokens": 8192,
        "compilation-config": {"cudagraph_mode": "FULL_DECODE_ONLY"},
    },
}


def pools_of_super() -> float:
    """Cache and states of Nemotron-3-Super on one of four nodes, with the weights from its log.

    It has 160 states and drafts 3 tokens for 32 sequences.
    """
    engine = an_engine(
        name="sglang",
        version="0.5.21",
        parallel=Parallel(tensor=4, expert=True),
        memory_utilization=0.75,
        args={"max-mamba-cache-size": 160},
    )
    model = a_model(
        name=_SUPER,
        context_length=524288,
        max_sequences=32,
        kv_cache_dtype="fp8_e4m3",
        speculative={"method": "mtp", "tokens": 3},
    )
    found = assess(some_nodes(4, 121.63), model, engine)
    assert found
    [*_, node] = found.nodes
    loaded = 20.99 + 1.77 - node.weights_gib - node.draft_gib
    return node.kv_room_gib + held_states(_SUPER, 160, 4, 3, 32) / GIB - loaded


_NEXT = "radixark/qwen3.8-flash-next-nvfp4"


def keys_and_values_gib(tokens: int, tensor: int) -> float:
    """Keys and values of Qwen3.8-Flash-Next on a rank without its index, which SGLang does not log.

    Source: SGLang 0.5.23, mem_cache/qsa_kv_pool.py, `QSATokenToKVPool`: the pool that it derives
    from logs its size; model_executor/pool_configurator.py, line 532, counts the index separately.
    """
    engine = an_engine(name="sglang", version="0.5.23")
    held = cache_of(known_shape_of(_NEXT), a_model(name=_NEXT), engine, tensor)
    pages, _ = (each for each in held.pages if each.kind == "full")
    return tokens * pages.layers * pages.page / GIB


def sglang_room_gib(
    share: float, tensor: int, context: int, sequences: int, tables: str, predicted: int = 3
) -> float:
    """Room for the pools of Qwen3.8-Flash-Next under SGLang."""
    engine = an_engine(
        name="sglang",
        version="0.5.23",
        parallel=Parallel(tensor=tensor),
        memory_utilization=share,
    )
    model = a_model(
        name=_NEXT,
        context_length=context,
        max_sequences=sequences,
        tables=tables,
        speculative={"method": "mtp", "tokens": predicted} if predicted else None,
    )
    found = assess(some_nodes(tensor, 121.69), model, engine)
    assert found
    return found.nodes[0].kv_room_gib


def next_weights_gib(tensor: int, tables: str) -> float:
    """Weights of Qwen3.8-Flash-Next on the fullest rank."""
    fit = fit_of(_NEXT, Parallel(tensor=tensor), context_length=4096, tables=tables)
    return max(node.weights_gib for node in fit.nodes)


def _loaded_gib(node: NodeMemory) -> float:
    """What vLLM counts besides its cache, activations and graphs."""
    return node.weights_gib + node.draft_gib + node.runtime_gib + node.nccl_gib


def beside_tables_in_a_file(name: str, share: float, context: int) -> NodeMemory:
    """Qwen3.8-Flash-Next on a Spark, with its tables on disk, in the first vLLM release for it.

    One of the reports states 2 predicted tokens and 8 sequences; the other states neither: with 1
    to 3 predicted tokens we get 13.3 to 13.6 GiB, against its 13.5.
    """
    engine = an_engine(
        version="0.29.0", memory_utilization=share, args={"enable-prefix-caching": True}
    )
    drafts = {"method": "mtp", "tokens": 2}
    model = a_model(
        name=name, context_length=context, max_sequences=8, tables="disk", speculative=drafts
    )
    found = assess(some_nodes(1, 121.69), model, engine)
    assert found
    return found.nodes[0]


_0731 = ("deepseek-v4-flash-0731", 1048576)

FIGURES = (
    held(
        "Qwen3-235B-A22B GPTQ-Int4, tensor 2: weights per node",
        57.64,
        CONSELARA,
        "qwen3-235b-a22b-gptq-int4",
        2,
    ),
    held(
        "Qwen3.5-122B-A10B int4-AutoRound: weights",
        62.65,
        FORUM,
        "qwen3.5-122b-a10b-int4-autoround",
    ),
    held("Llama 3 8B in 16 bits: weights", 14.96, PROFILER, "llama-3.1-8b-instruct"),
    held("Llama 3 8B, tensor 2: weights per rank", 7.48, PROFILER, "llama-3.1-8b-instruct", 2),
    held("Llama 3.1 8B in 16 bits, vLLM 0.5: weights", 14.9888, LENGTHS, "llama-3.1-8b-instruct"),
    held("gpt-oss-120b with Marlin's kernels: weights", 65.965, GPT_OSS, "gpt-oss-120b"),
    held(
        "Qwen2.5-VL-72B, tensor 4: weights per rank, here without its vision tower",
        34.43,
        VISION_72B,
        "qwen2.5-72b-instruct",
        4,
    ),
    Figure(
        "Qwen3.8-Flash-Next NVFP4, tables on disk: weights",
        73.97,
        "GiB",
        TABLES,
        0.03,
        lambda: (
            fit_of("nvidia/qwen3.8-flash-next-nvfp4", context_length=4096, tables="disk")
            .nodes[0]
            .weights_gib
        ),
    ),
    Figure(
        "Llama 3.1 405B in 4 bits, without scales",
        203,
        "GB",
        "405.85e9 parameters x 0.5 bytes",
        0.002,
        lambda: parameters("llama-3.1-405b-instruct") * 0.5 / GB,
    ),
    sized("gpt-oss-120b", 116.83, CARD_OF_GPT_OSS),
    sized("gpt-oss-20b", 20.91, CARD_OF_GPT_OSS),
    sized("qwen3-8b", 8.2, QWEN3),
    sized("qwen3-32b", 32.8, QWEN3),
    sized("qwen3-30b-a3b", 30.5, QWEN3),
    sized("qwen3-235b-a22b", 235, QWEN3),
    sized("deepseek-v3", 671, DEEPSEEK_V3),
    sized("llama-3.1-405b-instruct", 405, LLAMA_3),
    sized("glm-4.5-air", 106, GLM_4_5),
    sized("kimi-k2.5", 1040, KIMI_K2, 0.02),
    sized("qwen2.5-72b-instruct", 72.7, "https://arxiv.org/abs/2412.15115"),
    sized("llama-3.1-8b-instruct", 8, LLAMA_3),
    sized("llama-3.1-70b-instruct", 70, LLAMA_3),
    sized("minimax-m2", 230, "https://github.com/MiniMax-AI/MiniMax-M2"),
    sized("mimo-v2-flash", 309, "https://github.com/XiaomiMiMo/MiMo-V2-Flash"),
    sized("gemma-4-26b-a4b-it", 25.2, GEMMA_4),
    sized("gemma-4-31b-it", 30.7, GEMMA_4),
    sized(
        "qwen3-next-80b-a3b-instruct", 80, "https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct"
    ),
    sized("qwen3.5-122b-a10b", 122, "https://huggingface.co/Qwen/Qwen3.5-122B-A10B"),
    sized("qwen3.5-397b-a17b", 397, "https://huggingface.co/Qwen/Qwen3.5-397B-A17B"),
    sized("qwen3-vl-235b-a22b-instruct", 235, "https://arxiv.org/abs/2511.21631"),
    sized("deepseek-v3.2", 671, "https://huggingface.co/deepseek-ai/DeepSeek-V3.2"),
    sized("qwen3-embedding-0.6b", 0.596, f"{HUB}/Qwen/Qwen3-Embedding-0.6B"),
    sized("qwen3-embedding-4b", 4.02, f"{HUB}/Qwen/Qwen3-Embedding-4B"),
    sized("qwen3-reranker-8b", 8.19, f"{HUB}/Qwen/Qwen3-Reranker-8B"),
    sized("qwen3-coder-480b-a35b-instruct", 480, f"{HUB}/Qwen/Qwen3-Coder-480B-A35B-Instruct"),
    sized(
        "laguna-s-2.1-fp8", 117.55, "48 layers of its config.json, with 72 heads of queries in 36"
    ),
    sized("qwen3.5-27b", 27, "https://huggingface.co/Qwen/Qwen3.5-27B"),
    sized(
        "nvidia-nemotron-3-ultra-550b-a55b-bf16",
        550,
        "https://huggingface.co/nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
    ),
    held("Llama 3.3 70B in FP8: weights", 67.72, PROFILES, "llama-3.3-70b-instruct-fp8"),
    held("Llama 3.3 70B in FP8, tensor 2", 33.88, PROFILES, "llama-3.3-70b-instruct-fp8", 2),
    held("Qwen3-0.6B: weights", 1.12, PROFILES, "qwen3-embedding-0.6b"),
    held("Qwen3-32B: weights", 61.03, PROFILES, "qwen3-32b"),
    held("Qwen3-32B, tensor 2: weights per rank", 30.59, PROFILES, "qwen3-32b", 2),
    held("Qwen3-30B-A3B, tensor 2: weights per rank", 28.4767, LAYOUT_30B, "qwen3-30b-a3b", 2),
    held("gpt-oss-20b on an H100: weights", 13.47, PROFILES, "gpt-oss-20b"),
    held("Kimi-K2.5, tensor 8, SGLang: weights per rank", 73.58, KIMI_LOG, "kimi-k2.5", 8, 0.04),
    held("GLM-5 in FP8, tensor 8, SGLang: weights per rank", 89.58, GLM_LOG, "glm-5-fp8", 8),
    held("GLM-5.2-NVFP4, tensor 4: weights per rank", 106.69, GLM_5_2, "glm-5.2-nvfp4", 4),
    held("Qwen3.8-27B in 16 bits: weights", 51.35, LONG_27B, "qwen3.8-27b"),
    held(
        "Qwen3.6-27B-NVFP4 with its prediction layer: weights",
        20.57,
        SECOND_LOG,
        "qwen3.6-27b-nvfp4",
        tolerance=0.02,
        speculative={"method": "mtp", "tokens": 2},
    ),
    held(
        "Qwen3.8-Flash-Next NVFP4 of RadixArk, tensor 2: weights per rank",
        64.06,
        TWO_SPARKS,
        "radixark/qwen3.8-flash-next-nvfp4",
        tensor=2,
        tolerance=0.03,
        tables="memory",
    ),
    held(
        "Qwen3.8-Flash-Next NVFP4 of NVIDIA, tensor 2: weights per rank",
        61.93,
        TWO_SPARKS,
        "nvidia/qwen3.8-flash-next-nvfp4",
        tensor=2,
        tolerance=0.03,
        tables="memory",
    ),
    Figure(
        "Qwen3-235B-A22B in FP8, tensor 4, two replicas, experts spread: weights per rank",
        27.72,
        "GiB",
        L40S,
        0.04,
        lambda: weights_gib(
            "qwen3-235b-a22b-instruct-2507-fp8", Parallel(tensor=4, data=2, expert=True)
        ),
    ),
    in_cache("Qwen3-8B", 50.32, CACHE_SIZES, "qwen3-8b", 366400),
    in_cache("Qwen3-32B, tensor 2", 33.66, CACHE_SIZES, "qwen3-32b", 275760, tensor=2),
    in_cache("Qwen3-32B, SGLang", 9.54, CONTROL_PLANE, "qwen3-32b", 39078, engine="sglang"),
    in_cache("Llama 3.1 8B", 56.21, RUN_2, "llama-3.1-8b-instruct", 460496),
    in_cache(
        "Llama 3.1 8B with an EAGLE head",
        51.63,
        EAGLE_LOG,
        "llama-3.1-8b-instruct",
        410128,
        speculative={"method": "eagle", "tokens": 2, "source": "a/head", "weight_gb": 0.5},
    ),
    in_cache(
        "Qwen3-235B-A22B, tensor 4",
        10.65,
        L40S,
        "qwen3-235b-a22b-instruct-2507-fp8",
        238208,
        tensor=4,
    ),
    in_cache(
        "Nemotron 3 Nano, tensor 4, SGLang: states beside it, 0.9 of it",
        53.38,
        NANO_SPARKS,
        "nvidia-nemotron-3-nano-30b-a3b-nvfp4",
        19644177,
        4,
        engine="sglang",
        kv_cache_dtype="fp8_e4m3",
        kind=MIXED,
    ),
    in_cache(
        "Qwen3.8-27B, SGLang: beside 360 states",
        6.98,
        STATES_SPARK,
        "qwen3.8-27b-fp8",
        228520,
        engine="sglang",
        kv_cache_dtype="fp8_e4m3",
        args={"max-mamba-cache-size": 360},
        kind=MIXED,
    ),
    states(
        "Qwen3.8-27B, SGLang: 360 states and one more",
        51.76,
        STATES_SPARK,
        0.01,
        ("qwen3.8-27b-fp8", 360),
    ),
    in_cache(
        "Gemma 4 31B, SGLang: windows for 0.8 of the tokens",
        737280 * 32768 / GIB,
        GEMMA_POOLS,
        "gemma-4-31b-it",
        32768,
        engine="sglang",
        kind=MIXED,
    ),
    in_cache(
        "Gemma 4 26B-A4B, SGLang: windows for 0.8 of the tokens",
        184320 * 32768 / GIB,
        GEMMA_POOLS,
        "gemma-4-26b-a4b-it",
        32768,
        engine="sglang",
        kind=MIXED,
    ),
    in_cache("Kimi-K2.5, SGLang", 160.63, KIMI_LOG, "kimi-k2.5", 2454421, 8, engine="sglang"),
    in_cache(
        "DeepSeek-R1, SGLang, cache of 8 bits",
        17.16,
        R1_LOG,
        "deepseek-r1",
        524288,
        8,
        engine="sglang",
        kv_cache_dtype="fp8_e4m3",
    ),
    in_cache(
        "GLM-5, SGLang, cache of 8 bits and index",
        7.51,
        GLM_SPARKS,
        "glm-5.1-fp8",
        131072,
        4,
        engine="sglang",
        kv_cache_dtype="fp8_e4m3",
    ),
    cached("llama-3.1-405b-instruct", 516.096 * 1000 / 1024, INSIGHTS),
    cached("qwen2.5-72b-instruct", 327.680 * 1000 / 1024, INSIGHTS),
    cached("deepseek-v3", 70.272 * 1000 / 1024, INSIGHTS),
    cached("qwen3-30b-a3b", 96, NO_LLAMA),
    cached("llama-3.1-8b-instruct", 3.81 * 2**20 / (1952 * 16), LENGTHS, 0.002),
    Figure(
        "Llama 3.1 8B: KV cache of 23648 tokens",
        2.89,
        "GiB",
        LENGTHS,
        0.002,
        lambda: cache_kib("llama-3.1-8b-instruct") * 23648 / 2**20,
        UNIFORM,
    ),
    Figure(
        "Qwen3-235B-A22B, tensor 4, SGLang: keys of 367404 tokens, per rank",
        8.23,
        "GiB",
        BOTH_ENGINES,
        0.002,
        lambda: cache_kib("qwen3-235b-a22b-fp8") / 2 / 4 * 367404 / 2**20,
        UNIFORM,
    ),
    Figure(
        "Qwen3-235B-A22B, tensor 4, vLLM: cache of 178880 tokens, per rank",
        8.11,
        "GiB",
        BOTH_ENGINES,
        0.02,
        lambda: one_sequence_gib("qwen3-235b-a22b-fp8", 178880, Parallel(tensor=4)),
        UNIFORM,
    ),
    Figure(
        "MiniMax-M2.7, tensor 2: sequence of 196608 tokens, per rank",
        23.25,
        "GiB",
        MINIMAX,
        0.001,
        lambda: one_sequence_gib("minimax-m2.7-nvfp4", 196608, Parallel(tensor=2)),
        UNIFORM,
    ),
    Figure(
        "MiniMax-M2.7, tensor 2: cache of 240816 tokens, per rank",
        28.74,
        "GiB",
        MINIMAX,
        0.02,
        lambda: one_sequence_gib("minimax-m2.7-nvfp4", 240816, Parallel(tensor=2)),
        UNIFORM,
    ),
    allocated(
        "gpt-oss-120b, llama.cpp: full layers of 2 sequences of 131072 tokens",
        9216,
        OLLAMA,
        MIXED,
        ("gpt-oss-120b", 131072, 2, "full", 1024),
    ),
    allocated(
        "gpt-oss-120b, llama.cpp: windows of 2 sequences, 1024 tokens per step",
        90,
        OLLAMA,
        MIXED,
        ("gpt-oss-120b", 131072, 2, "window", 1024),
    ),
    paged(
        "DeepSeek-V4-Flash, tensor 2, 16384 tokens per step: sequence of 30000 tokens",
        6.66,
        COMPRESSED,
        "deepseek-v4-flash",
        30000,
        "0.22.0",
        kv="fp8",
        tensor=2,
        step=16384,
    ),
    compressed_block(1002240, 62, "entries and indexes", 0),
    compressed_block(823680, 22, "windows", 1),
    compressed_block(870912, 42, "compression by 4", 2),
    compressed_block(656640, 20, "compression by 128", 3),
    paged(
        "Qwen3.6-35B-A3B, fp8 cache, vLLM 0.24: sequence of 131072 tokens",
        5.98 / 4.33,
        ONE_5090,
        "qwen3.6-35b-a3b-fp8",
        131072,
        "0.24.0",
        kv="fp8",
        prefixes=True,
    ),
    paged(
        "Qwen3.6-35B-A3B, fp8 cache, another boot: sequence of 131072 tokens",
        6.01 / 4.35,
        OTHER_5090,
        "qwen3.6-35b-a3b-fp8",
        131072,
        "0.24.0",
        kv="fp8",
        prefixes=True,
    ),
    paged(
        "Qwen3.8-27B, tensor 2, fp8 cache, vLLM 0.28: sequence of 131072 tokens, per rank",
        4.99 / 2.31,
        TWO_3090,
        "qwen3.8-27b-fp8",
        131072,
        "0.28.0",
        kv="fp8",
        tensor=2,
    ),
    paged(
        "Qwen3.8-27B, vLLM 0.27, no prefixes: sequence of 786432 tokens",
        50.29 / (820013 / 786432),
        LONG_27B,
        "qwen3.8-27b",
        786432,
        "0.27.0",
        prefixes=False,
    ),
    paged(
        "Qwen3.6-27B-NVFP4, fp8 cache, 2 tokens predicted, vLLM 0.23: sequence of 262144 tokens",
        48.6 / (1394129 / 262144),
        SECOND_LOG,
        "qwen3.6-27b-nvfp4",
        262144,
        "0.23.1",
        kv="fp8",
        mtp=2,
        step=65536,
        prefixes=True,
    ),
    paged(
        "Qwen3.8-Flash-Next, 3 tokens predicted, a pool of 16 GB: sequence of 262144 tokens",
        16e9 / 2**30 / (515786 / 262144),
        PATCHED_FLASH,
        "radixark/qwen3.8-flash-next-nvfp4",
        262144,
        "0.30.0",
        mtp=3,
        tables="disk",
    ),
    a_block(
        "Qwen3.8-27B, tensor 2, fp8 cache: block size",
        1568,
        TWO_3090,
        "qwen3.8-27b-fp8",
        drafted=0,
        kv="fp8",
        tensor=2,
    ),
    *(
        paged(
            f"Inkling-Small, {kv} cache, tensor 4, steps of {step}: sequence of {context} tokens",
            round(114.37 * context / tokens, 3),
            INKLING,
            "inkling-small-nvfp4",
            context,
            "0.28.1",
            kv=kv,
            tensor=4,
            step=step,
            tolerance=0.003,
        )
        for kv, context, step, tokens in (
            ("bf16", 131072, 16384, 1200271),
            ("fp8", 131072, 16384, 1303934),
            ("bf16", 131072, 2048, 6392807),
            ("bf16", 1048576, 2048, 14159015),
            ("fp8", 1048576, 2048, 24509531),
        )
    ),
    Figure(
        "llama.cpp, Qwen3.5-2B: states of 4 sequences in 18 layers",
        77.06,
        "MiB",
        STATES_LOG,
        0.001,
        lambda: states_mib(Recurrent(GATED_DELTA, 18, 2048, 2048, 16 * 128 * 128), 4),
        MIXED,
    ),
    a_block(
        "Solar-Open2-250B, tensor 2: block size",
        1072,
        SOLAR_PAGES,
        "solar-open2-250b-nota-nvfp4",
        drafted=0,
        kv="auto",
        tensor=2,
    ),
    paged(
        "Solar-Open2-250B, prefixes cached: 4 GiB that hold 66,764 tokens of sequences of 4,096",
        4 * 4096 / 66764,
        SOLAR,
        "solar-open2-250b-nota-nvfp4",
        4096,
        "0.25.1",
        tensor=2,
        prefixes=True,
    ),
    a_block(
        "Qwen3.8-Flash-Next, 2 tokens predicted: block size",
        1600,
        LONG_BLOCKS,
        "radixark/qwen3.8-flash-next-nvfp4",
        drafted=2,
        kv="auto",
    ),
    a_block(
        "GLM-5.3-Flash, tensor 2, 7 tokens drafted, fp8 cache: block size",
        3584,
        GLM_PAGES,
        "nvidia/glm-5.3-flash-nvfp4",
        drafted=7,
        kv="fp8",
        tensor=2,
    ),
    Figure(
        "Gemma 4 12B: growth per token, in 8 layers of one head of 512",
        16,
        "KiB",
        GEMMA_12B,
        0.001,
        lambda: 8 * formulas.grouped_cache_elements(1, 512, 1) * CACHED["bf16"] / 1024,
        MIXED,
    ),
    Figure(
        "Qwen3.5-27B, vLLM 0.19: sequences of 32768 tokens in 1487 blocks",
        33.04,
        "",
        LOG_OF_QWEN,
        0.001,
        lambda: 1487 / blocks_of("qwen3.5-27b", 32768, "0.19.0"),
        MIXED,
    ),
    Figure(
        "Qwen3.5-27B, vLLM 0.19: tokens of 371 rounds of blocks",
        290864,
        "tokens",
        LOG_OF_QWEN,
        0.001,
        lambda: 371 * block_of("qwen3.5-27b", "0.19.0"),
        MIXED,
    ),
    Figure(
        "vLLM on a GB10, 256 sequences: graphs of mixed steps",
        51,
        "graphs",
        GRAPHS,
        0.001,
        lambda: float(formulas.captured_sizes(512)),
        ROOM,
    ),
    *(
        room(
            f"MiniMax-M2.7 in 4 bits, tensor 2, vLLM 0.29, {share} of 121.63 GiB: room",
            gib,
            MINIMAX,
            0.05,
            ("minimax-m2.7-nvfp4", 196608, "0.29.1", share, 121.63),
            tensor=2,
        )
        for share, gib in ((0.8, 22.5), (0.85, 28.74))
    ),
    Figure(
        "GLM-5.2 on four ranks: memory of 102 graphs",
        4.99,
        "GiB",
        GLM_5_2,
        0.05,
        lambda: formulas.graph_bytes(51, 51, exchanges_experts=True) / GIB,
        ROOM,
    ),
    Figure(
        "Qwen3.5-27B and others on one GPU, vLLM 0.19: memory of 86 graphs",
        0.66,
        "GiB",
        "vLLM's logs: 0.53, 0.55, 0.66, 0.78 and 0.83 GiB",
        0.05,
        lambda: formulas.graph_bytes(51, 35, exchanges_experts=False) / GIB,
        ROOM,
    ),
    Figure(
        "MiniMax-M2.7, tensor 2: memory of graphs, out of the share of 0.8",
        0.042 * 121.63,
        "GiB",
        MINIMAX,
        0.07,
        lambda: (
            fit_of(
                "minimax-m2.7-nvfp4",
                Parallel(tensor=2),
                version="0.29.1",
                context_length=196608,
            )
            .nodes[0]
            .graphs_gib
        ),
        ROOM,
    ),
    room(
        "Qwen3.8-27B in 16 bits, vLLM 0.27, 0.92 of 119.63 GiB: room",
        50.29,
        LONG_27B,
        0.03,
        ("qwen3.8-27b", 786432, "0.27.0", 0.92, 119.63),
    ),
    room(
        "Qwen3.6-27B-NVFP4, 65536 tokens per step, vLLM 0.23, 0.7 of 121.69 GiB: room",
        48.6,
        SECOND_LOG,
        0.05,
        ("qwen3.6-27b-nvfp4", 262144, "0.23.1", 0.7, 121.69),
        max_sequences=8,
        kv_cache_dtype="fp8",
        speculative={"method": "mtp", "tokens": 2},
        args={"max-num-batched-tokens": 65536},
    ),
    room(
        "Qwen3-0.6B, vLLM 0.27, 0.6 of 121.69 GiB: room",
        69.4,
        SMALL,
        0.05,
        ("qwen3-embedding-0.6b", 32768, "0.27.1", 0.6, 121.69),
    ),
    room(
        "Qwen3.8-Flash-Next of RadixArk, tensor 2, no graphs, 0.9 of 121.69 GiB: room",
        109.52 - 68.68 - 1.42,
        TWO_SPARKS,
        0.05,
        ("radixark/qwen3.8-flash-next-nvfp4", 262144, "0.29.1", 0.9, 121.69),
        tensor=2,
        max_sequences=16,
        tables="memory",
        args={"enforce-eager": True},
    ),
    *(
        drawn(name, rows, published, version)
        for name, rows, published, version in (
            ("llama-3.1-8b-instruct", 1024, 4.76, "0.11.0"),
            ("qwen3-32b", 1024, 5.64, "0.11.0"),
            ("gpt-oss-120b", 1024, 7.38, "0.11.0"),
            ("qwen3-235b-a22b-instruct-2507-fp8", 256, 1.4, "0.10.2"),
        )
    ),
    paged(
        "Qwen3.6-27B, fp8 cache, vLLM 0.20: sequence of 32768 tokens",
        6.67 / 5.15,
        LOG_27B,
        "qwen3.6-27b-nvfp4",
        32768,
        "0.20.0",
        kv="fp8",
        prefixes=True,
    ),
    a_block(
        "Qwen3.6-27B, fp8 cache: block size",
        1568,
        LOG_27B,
        "qwen3.6-27b-nvfp4",
        drafted=0,
        kv="fp8",
    ),
    *(
        paged(
            f"Qwen3.6-35B-A3B, fp8 cache, vLLM 0.20: sequence of {context} tokens",
            gib,
            source,
            "qwen3.6-35b-a3b-fp8",
            context,
            "0.20.0",
            kv="fp8_e4m3",
            prefixes=True,
        )
        for context, gib, source in (
            (65536, 82.42 / 108.5, SPARK_35B),
            (8192, 2.95 / 14.7, SMALL_35B),
        )
    ),
    paged(
        "Qwen3.6-35B-A3B, fp8 cache, 3 tokens predicted, vLLM 0.20: sequence of 262144 tokens",
        64.69 / 20.84,
        PRISMA_35B,
        "qwen3.6-35b-a3b-fp8",
        262144,
        "0.20.2",
        kv="fp8",
        prefixes=True,
        mtp=3,
    ),
    *(
        a_block(
            f"Qwen3.6-35B-A3B, fp8 cache, {drafted} tokens predicted: block size",
            block,
            source,
            "qwen3.6-35b-a3b-fp8",
            drafted=drafted,
            kv="fp8",
        )
        for drafted, block, source in ((0, 2096, SPARK_35B), (3, 2144, PRISMA_35B))
    ),
    paged(
        "Gemma-4-26B-A4B, fp8 cache, 16384 tokens per step, vLLM 0.20: sequence of 256000 tokens",
        4.58 / (286007 / 256000),
        LOG_GEMMA,
        "gemma-4-26b-a4b-nvfp4",
        256000,
        "0.20.2",
        kv="fp8_e4m3",
        step=16384,
    ),
    *(
        paged(
            f"Qwen3.5-122B-A10B, fp8 cache, {mtp} predicted, vLLM 0.19: sequence of {context}",
            gib,
            THOR,
            "qwen3.5-122b-a10b-fp8",
            context,
            "0.19.0",
            kv="fp8",
            prefixes=True,
            mtp=mtp,
        )
        for mtp, context, gib in ((0, 131072, 21.43 / 11.79), (1, 262144, 24.05 / 6.42))
    ),
    held(
        "Gemma-4-26B-A4B NVFP4 of NVIDIA: weights",
        17.89,
        LOG_GEMMA,
        "gemma-4-26b-a4b-nvfp4",
        tolerance=0.03,
    ),
    held("Gemma-4-26B-A4B in 16 bits: weights", 48.5, THOR, "gemma-4-26b-a4b-it"),
    held(
        "Gemma-4-31B NVFP4 of NVIDIA: weights",
        31.04,
        THOR,
        "gemma-4-31b-it-nvfp4",
        tolerance=0.03,
    ),
    held("Qwen3-Reranker-8B: weights", 15.26, RERANKER, "qwen3-reranker-8b"),
    held("Qwen3-8B in 16 bits: weights", 15.27, LOG_8B, "qwen3-8b"),
    held("GLM-5 in FP8, tensor 8, vLLM: weights per rank", 89.39, GLM_H200, "glm-5-fp8", 8),
    held(
        "Nemotron-3-Nano-30B-A3B in 16 bits, tensor 4, SGLang: weights per rank",
        14.76,
        NANO_XPU,
        "nvidia-nemotron-3-nano-30b-a3b-bf16",
        4,
    ),
    in_cache("Qwen3-Reranker-8B", 62.35, RERANKER, "qwen3-reranker-8b", 454016),
    in_cache("Qwen3-8B", 53.54, LOG_8B, "qwen3-8b", 389888),
    in_cache("GLM-5, tensor 8, index of 8 bits", 32.06, GLM_H200, "glm-5-fp8", 343744, 8),
    in_cache(
        "Kimi-K2.5, TensorRT-LLM, cache of 8 bits",
        166.02,
        KIMI_TRTLLM,
        "kimi-k2.5",
        5073376,
        8,
        engine="tensorrt-llm",
        kv_cache_dtype="fp8",
    ),
    in_cache(
        "Llama 3.1 8B, TensorRT-LLM",
        26.91,
        DYNAMO,
        "llama-3.1-8b-instruct",
        220480,
        engine="tensorrt-llm",
    ),
    allocated(
        "Qwen3-30B-A3B, llama.cpp: a sequence of 65536 tokens",
        6144,
        CODER_LOG,
        UNIFORM,
        ("qwen3-30b-a3b", 65536, 1, "full", 512),
    ),
    in_cache(
        "Qwen3.8-27B, SGLang with 360 states, cache of 8 bits",
        3.49 * 2,
        STATES_360,
        "qwen3.8-27b",
        228520,
        engine="sglang",
        args={"max-mamba-cache-size": 360},
        kv_cache_dtype="fp8_e4m3",
        kind=MIXED,
    ),
    states(
        "Qwen3.8-27B, SGLang: 360 states", 0.99 + 50.77, STATES_360, 0.001, ("qwen3.8-27b", 360)
    ),
    in_cache(
        "Nemotron-3-Nano-30B-A3B, tensor 4, SGLang with 8 states",
        2.23 * 2,
        NANO_XPU,
        "nvidia-nemotron-3-nano-30b-a3b-bf16",
        1557504,
        4,
        engine="sglang",
        args={"max-mamba-cache-size": 8},
        kind=MIXED,
    ),
    held(
        "DeepSeek-V4-Flash-DSpark, tensor 2, with its draft: weights per node",
        79.52,
        STAGE_C,
        "deepseek-v4-flash-dspark",
        2,
    ),
    paged(
        "DeepSeek-V4-Flash-DSpark, tensor 2, vLLM 0.21 with patches: sequence of 1048576 tokens",
        20.36 / 3076565 * 1048576,
        STAGE_C,
        "deepseek-v4-flash-dspark",
        1048576,
        "0.21.1",
        kv="nvfp4_ds_mla",
        tensor=2,
        step=8192,
        tolerance=0.06,
    ),
    room(
        "DeepSeek-V4-Flash-DSpark, tensor 2, vLLM 0.21 with patches, 0.85 of 121.63 GiB: room",
        20.36,
        STAGE_C,
        0.3,
        ("deepseek-v4-flash-dspark", 1048576, "0.21.1", 0.85, 121.63),
        tensor=2,
        max_sequences=12,
        kv_cache_dtype="nvfp4_ds_mla",
        args={"max-num-batched-tokens": 8192, "max-cudagraph-capture-size": 8},
        env={
            "VLLM_SPARSE_INDEXER_MAX_LOGITS_MB": "256",
            "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0",
        },
    ),
    Figure(
        "Qwen3.6-35B-A3B NVFP4 of Red Hat, vLLM 0.20, 0.9 of a Spark: room beside 21.86 GiB",
        82.42,
        "GiB",
        SPARK_35B,
        0.05,
        lambda: room_beside(
            21.86,
            0.9,
            "0.20.0",
            {"max-num-batched-tokens": 8192, "max-cudagraph-capture-size": 1},
            context_length=65536,
            max_sequences=1,
        ),
        ROOM,
    ),
    Figure(
        "Qwen3.6-35B-A3B, 32768 tokens per step, vLLM 0.20, 0.8 of a Spark: room beside 21.42 GiB",
        64.69,
        "GiB",
        PRISMA_35B,
        0.07,
        lambda: room_beside(
            21.42,
            0.8,
            "0.20.2",
            {"max-num-batched-tokens": 32768},
            context_length=262144,
            max_sequences=10,
            speculative={"method": "mtp", "tokens": 3},
        ),
        ROOM,
    ),
    in_cache(
        "Nemotron-3-Super, tensor 4, SGLang with 160 states",
        9.71 * 2,
        SUPER_LOG,
        _SUPER,
        10182073,
        4,
        engine="sglang",
        kv_cache_dtype="fp8_e4m3",
        args={"max-mamba-cache-size": 160},
        kind=MIXED,
    ),
    states(
        "Nemotron-3-Super, tensor 4, SGLang: 160 states",
        6.29 + 0.09,
        SUPER_LOG,
        0.001,
        (_SUPER, 160, 4),
    ),
    states(
        "Nemotron 3 Nano, tensor 4, SGLang: 48 states",
        0.55 + 0.01,
        OMNI_LOG,
        0.001,
        ("nvidia-nemotron-3-nano-30b-a3b-nvfp4", 48, 4),
    ),
    Figure(
        "Nemotron-3-Super, tensor 4, SGLang, 0.75 of what is free: pools beside 22.76 GiB",
        56.65,
        "GiB",
        SUPER_LOG,
        0.1,
        pools_of_super,
        ROOM,
    ),
    held("Qwen3-Embedding-4B: weights", 7.56, DEEP_EMBED, "qwen3-embedding-4b"),
    in_cache("Qwen3-Embedding-4B", 11.34, DEEP_EMBED, "qwen3-embedding-4b", 82592),
    in_cache("Qwen3-8B, SGLang", 68.18 * 2, B200_8B, "qwen3-8b", 992896, engine="sglang"),
    in_cache("Qwen3-8B, an early release", 18.69, EARLY_8B, "qwen3-8b", 136080),
    in_cache("Llama 3.1 8B", 2.5, LORA_8B, "llama-3.1-8b-instruct", 20480, engine="sglang"),
    held("Qwen3-32B, SGLang: weights", 61.07, COLD_32B, "qwen3-32b"),
    held("Kimi-K2.5, tensor 8, SGLang, H100: weights per rank", 72.19, KIMI_H100, "kimi-k2.5", 8),
    held(
        "Qwen3.8-Flash-Next NVFP4 of NVIDIA, tables on disk, with its prediction layer: weights",
        75.94,
        DRAFT_WEIGHTS,
        "nvidia/qwen3.8-flash-next-nvfp4",
        tolerance=0.01,
        tables="disk",
        speculative={"method": "mtp", "tokens": 3},
    ),
    held(
        "DeepSeek-V4-Flash-0731, tensor 2, with its draft: weights per node",
        80.84,
        AUDITED,
        "deepseek-v4-flash-0731",
        tensor=2,
        tolerance=0.04,
        speculative={"method": "dspark", "tokens": 5},
    ),
    held(
        "DeepSeek-V4-Flash-0731, tensor 4, with its draft: weights per node",
        40.55,
        FOUR_SPARKS,
        "deepseek-v4-flash-0731",
        tensor=4,
        tolerance=0.04,
        speculative={"method": "dspark", "tokens": 5},
    ),
    room(
        "DeepSeek-V4-Flash-0731, tensor 4, vLLM with patches, 0.7 of 121.63 GiB: room",
        42.43,
        FOUR_SPARKS,
        0.1,
        ("deepseek-v4-flash-0731", 600000, "0.24.0", 0.7, 121.63),
        tensor=4,
        max_sequences=12,
        kv_cache_dtype="nvfp4_ds_mla",
        speculative={"method": "dspark", "tokens": 5},
        env={"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"},
    ),
    *(
        room(
            f"Qwen3.8-Flash-Next of RadixArk, tensor 2, 3 predicted, {share} of 121.69 GiB: room",
            gib,
            DAY_0,
            0.1,
            (*_DAY_0, share, 121.69),
            **_OF_DAY_0,
        )
        for share, gib in ((0.835, 35.11), (0.85, 36.35))
    ),
    paged(
        "Qwen3.8-Flash-Next of RadixArk, tensor 2, 3 predicted: sequence of 1000000, per rank",
        35.11 / 2.481424,
        DAY_0,
        *_DAY_0,
        tensor=2,
        mtp=3,
        tables="memory",
        tolerance=0.05,
    ),
    *(
        Figure(
            f"Qwen3.8-Flash-Next, tensor {tensor}, SGLang: keys and values of {tokens} tokens",
            published,
            "GiB",
            source,
            0.01,
            lambda tokens=tokens, tensor=tensor: keys_and_values_gib(tokens, tensor),
            MIXED,
        )
        for tokens, tensor, published, source in (
            (159552, 1, 1.83 * 2, FLASH_SGLANG),
            (482176, 1, 5.52 * 2, FLASH_SGLANG),
            (137408, 2, 1.58, DUAL_SGLANG),
            (715136, 2, 8.18, DUAL_SGLANG),
        )
    ),
    *(
        states(
            f"Qwen3.8-Flash-Next, tensor 2, SGLang: {count} states, in 16 bits by their size",
            published,
            DUAL_SGLANG,
            0.02,
            (_NEXT, count, 2, 3, running),
            **{"mamba-ssm-dtype": "bfloat16"},
        )
        for count, running, published in ((28, 5, 1.43), (143, 16, 5.78))
    ),
    *(
        Figure(
            f"Qwen3.8-Flash-Next of RadixArk, tensor {tensor}, SGLang, {when}: taken by loading",
            published,
            "GiB",
            source,
            tolerance,
            lambda tensor=tensor, tables=tables: next_weights_gib(tensor, tables),
        )
        for tensor, tables, when, published, source, tolerance in (
            (1, "disk", "August", 82.97, FLASH_SGLANG, 0.06),
            (1, "disk", "October", 109.83 - 30.04, FLASH_SGLANG, 0.02),
            (2, "memory", "at 0.7", 73.13, DUAL_SGLANG, 0.15),
            (2, "memory", "at 0.8", 73.47, DUAL_SGLANG, 0.15),
        )
    ),
    *(
        Figure(
            f"Qwen3.8-Flash-Next of RadixArk, tensor {tensor}, SGLang at {share}: pools",
            published,
            "GiB",
            source,
            tolerance,
            lambda share=share, tensor=tensor, context=context, tables=tables: sglang_room_gib(
                share, tensor, context, 16 if tensor == 2 else 2, tables
            ),
            ROOM,
        )
        for share, tensor, context, tables, published, source, tolerance in (
            (0.765, 1, 8192, "disk", 4.4, FLASH_SGLANG, 0.01),
            (0.7, 2, 262144, "memory", 1.58 + 1.43, DUAL_SGLANG, 0.03),
            (0.8, 2, 262144, "memory", 8.18 + 5.78, DUAL_SGLANG, 0.01),
        )
    ),
    Figure(
        "Qwen3.8-Flash-Next of RadixArk, tensor 2, SGLang at 0.78, no draft: pools",
        2 * 2.77 + 5.17 + 0.1,
        "GiB",
        FIRST_DAY,
        0.09,
        lambda: sglang_room_gib(0.78, 2, 262144, 6, "memory", predicted=0),
        ROOM,
    ),
    *(
        room(
            f"DeepSeek-V4-Flash-0731, tensor 2, patched vLLM, 0.87 of 121.63 GiB: room, {rank}",
            published,
            AUDITED,
            0.12,
            (*_0731, "0.24.0", 0.87, 121.63),
            tensor=2,
            max_sequences=6,
            kv_cache_dtype="fp8",
            speculative={"method": "dspark", "tokens": 5},
            args={"max-num-batched-tokens": 4096},
            env={"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"},
        )
        for rank, published in (("rank 0", 19.27), ("rank 1", 17.14))
    ),
    *(
        paged(
            f"DeepSeek-V4-Flash-0731, tensor 2, patched, as {version}: sequence of 1048576 tokens",
            17.14 / 2356056 * 1048576,
            AUDITED,
            *(*_0731, version),
            kv="fp8",
            tensor=2,
            step=4096,
            tolerance=tolerance,
        )
        for version, tolerance in (("0.24.0", 0.26), ("0.28.1", 0.1))
    ),
    held("DeepSeek-V4-Flash, tensor 2: weights per node", 74, A_BLOG, "deepseek-v4-flash", 2),
    *(
        Figure(
            f"Qwen3.8-Flash-Next of {who}, 2 predicted, a patched image of vLLM: {what}",
            published,
            "GiB",
            f"{ONE_IN_A_FILE}/{issue}",
            tolerance,
            lambda name=name, share=share, context=context, part=part: part(
                beside_tables_in_a_file(name, share, context)
            ),
            kind,
        )
        for who, name, share, context, issue, what, published, tolerance, kind, part in (
            (
                *("NVIDIA", "nvidia/qwen3.8-flash-next-nvfp4", 0.8, 500000, 27),
                *("one of 500000 tokens", 13.5, 0.01, MIXED, lambda node: node.kv_one_gib),
            ),
            (
                *("NVIDIA", "nvidia/qwen3.8-flash-next-nvfp4", 0.8, 500000, 27),
                *("room at 0.8", 12.99, 0.16, ROOM, lambda node: node.kv_room_gib),
            ),
            (
                *("RadixArk", _NEXT, 0.85, 262144, 7),
                *("weights and memory outside tensors", 79.79, 0.06, ROOM, _loaded_gib),
            ),
        )
    ),
)


def blocks_of(name: str, context: int, version: str) -> int:
    """Blocks of one sequence in vLLM's pool."""
    return paged_cache(name, version).pools[0].blocks(context, 0)


def block_of(name: str, version: str) -> int:
    """Tokens per block."""
    return max(pages.block for pages in paged_cache(name, version).pages if pages.kind == "full")


def paged_cache(name: str, version: str) -> Cache:
    return cache_of(known_shape_of(name), a_model(name=name), an_engine(version=version))


def room_beside(
    weights: float, share: float, version: str, args: dict[str, Any], **how: Any
) -> float:
    """Room on a Spark beside Qwen3.6-35B-A3B, with the weights that its log says it loaded."""
    known = {"source": "example/x", "like": "qwen3.6-35b-a3b", "kv_cache_dtype": "fp8"}
    model = a_model(weight_gb=weights * GIB / GB, **known, **how)
    engine = an_engine(version=version, args=args, memory_utilization=share)
    found = assess(some_nodes(1), model, engine)
    assert found
    return found.nodes[0].kv_room_gib


@dataclass(frozen=True)
class Unknown:
    """A published figure for a build or draft that we can't compute, and report as unknown."""

    what: str
    published: str
    source: str
    version: str
    tensor: int
    model: dict[str, Any]
    args: dict[str, Any]

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not known about it."""
        engine = an_engine(
            version=self.version, parallel=Parallel(tensor=self.tensor), args=self.args
        )
        found = assess(some_nodes(self.tensor), a_model(**self.model), engine)
        assert found
        return found.missing if found.state == "unknown" else ()


_PATCHED_NEXT = {"name": "nvidia/qwen3.8-flash-next-nvfp4", "kv_cache_dtype": "fp8"}
_NEXT_8 = {**_PATCHED_NEXT, "tables": "disk", "max_sequences": 8}
_NEXT_PREDICTS = {**_NEXT_8, "speculative": {"method": "mtp", "tokens": 3}}
_PATCHED_V4 = {"name": "deepseek-v4-flash", "kv_cache_dtype": "fp8", "context_length": 262144}
_EXL3 = {
    "name": "nvidia/glm-5.3-flash-nvfp4",
    "kv_cache_dtype": "fp8",
    "context_length": 850000,
    "speculative": {"method": "dflash", "source": "example/draft", "tokens": 7, "weight_gb": 2.0},
}
_STEP = "max-num-batched-tokens"

UNKNOWN = (
    *(
        Unknown(
            f"DeepSeek-V4-Flash, vLLM 0.15.1 with patches, {step} tokens per step: peak of a step",
            published,
            ONE_SPARK,
            "0.15.1+befbc472",
            1,
            _PATCHED_V4,
            {_STEP: step},
        )
        for step, published in ((8224, "5.3 GiB"), (2048, "1.39 GiB"))
    ),
    *(
        Unknown(
            f"Qwen3.8-Flash-Next, an image patched for 8 bits, 3 predicted: {what}",
            published,
            FLASH_NEXT,
            "0.29.1+patched",
            1,
            {**_NEXT_PREDICTS, "context_length": 262144},
            {_STEP: 4096},
        )
        for what, published in (
            ("one of 262144 tokens", "3.925 GiB"),
            ("room at 0.753 of 121.69 GiB", "8.87 GiB"),
        )
    ),
    *(
        Unknown(
            f"Qwen3.8-Flash-Next, an image of B12X patched for 8 bits: {what}",
            published,
            TABLES,
            "0.29.1+b12x",
            1,
            {**_NEXT_8, "context_length": 32768},
            {_STEP: 2048},
        )
        for what, published in (
            ("one of 32768 tokens", "0.6539 GiB"),
            ("room at 0.72 of 121.63 GiB", "8.22 GiB"),
        )
    ),
    Unknown(
        "GLM-5.3-Flash in EXL3, tensor 2, 7 tokens drafted: sequence of 850000 tokens",
        "13.46 GiB",
        TWO_EXL3,
        "0.30.0+exl3",
        2,
        _EXL3,
        {},
    ),
)


@dataclass(frozen=True)
class Run:
    """A published recipe for Sparks from a registry, with the release that it was written for."""

    recipe: str
    name: str
    share: float
    context: int | None
    engine: str = "vllm"
    version: str = "0.19.0"
    tensor: int = 1
    pipeline: int = 1
    sequences: int | None = None
    kv: str | None = None
    mtp: int = 0
    step: int | None = None
    prefixes: bool = True
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def fit(self) -> Fit:
        """Its fit on nodes whose memory was not measured."""
        sizes = Parallel(tensor=self.tensor, pipeline=self.pipeline)
        start = ENGINE_TRAITS[self.engine].start
        assert start
        is_vllm = self.engine == "vllm"
        step = {_STEP: self.step} if self.step else {}
        prefixes = {"enable-prefix-caching": True} if is_vllm and self.prefixes else {}
        engine = an_engine(
            name=self.engine,
            version=self.version if is_vllm else start.version,
            parallel=sizes,
            memory_utilization=self.share,
            args={**step, **prefixes, **self.args},
        )
        drafts = {"speculative": {"method": "mtp", "tokens": self.mtp}} if self.mtp else {}
        model = a_model(
            name=self.name,
            context_length=self.context,
            max_sequences=self.sequences,
            kv_cache_dtype=self.kv,
            **drafts,
        )
        nodes = [replace(node, measured=False) for node in some_nodes(sizes.ranks)]
        found = assess(nodes, model, engine)
        assert found
        return found


# The recipes of github.com/spark-arena/recipe-registry whose models are in the catalog, except
# three with drafts of unknown size, and one that is 4 GiB short here (the AWQ of Qwen3.5-122B at
# 0.7). Startup logs were seen for few of them: a recipe shows that somebody wrote it, not that it
# runs.
RUNS = (
    Run(
        "deepseek4-flash-fp8-mtp-vllm",
        "deepseek-v4-flash",
        0.825,
        256000,
        version="0.29.1",
        tensor=2,
        sequences=10,
        kv="fp8",
        mtp=2,
        step=6144,
        args={"max-cudagraph-capture-size": 8},
    ),
    Run(
        "deepseek4-flash-fp8-vllm",
        "deepseek-v4-flash",
        0.825,
        256000,
        version="0.29.1",
        tensor=2,
        sequences=10,
        kv="fp8",
        step=6144,
        args={"max-cudagraph-capture-size": 8},
    ),
    Run("minimax-m2-awq-vllm", "minimax-m2-awq", 0.7, 128000, tensor=2, prefixes=False),
    Run("minimax-m2.5-4x-vllm", "minimax-m2.5", 0.9, 128000, tensor=4, prefixes=False),
    Run("minimax-m2.5-awq-vllm", "minimax-m2.5-awq-4bit", 0.7, 128000, tensor=2, prefixes=False),
    Run(
        "nemotron-3-nano-nvfp4-vllm", "nvidia-nemotron-3-nano-30b-a3b-nvfp4", 0.7, 262144, kv="fp8"
    ),
    Run(
        "nemotron-3-super-nvfp4-vllm",
        "nvidia-nemotron-3-super-120b-a12b-nvfp4",
        0.7,
        262144,
        tensor=2,
        sequences=10,
        kv="fp8",
    ),
    Run("openai-gpt-oss-120b-vllm", "gpt-oss-120b", 0.7, None, kv="fp8", step=8192),
    Run("qwen3-coder-next-fp8-vllm", "qwen3-coder-next-fp8", 0.7, 131072, kv="fp8"),
    Run("qwen3-coder-next-int4-autoround-vllm", "qwen3-coder-next-int4-autoround", 0.7, 262144),
    Run("qwen3.5-122b-a10b-fp8-vllm", "qwen3.5-122b-a10b-fp8", 0.7, 262144, tensor=2, step=8192),
    Run(
        "qwen3.5-122b-a10b-int4-autoround-vllm",
        "qwen3.5-122b-a10b-int4-autoround",
        0.7,
        262144,
        step=8192,
    ),
    Run("qwen3.5-35b-a3b-fp8-vllm", "qwen3.5-35b-a3b-fp8", 0.7, 262144, kv="fp8", step=16384),
    Run(
        "qwen3.5-397b-a17b-fp8-4x-vllm",
        "qwen3.5-397b-a17b-fp8",
        0.85,
        262144,
        tensor=4,
        sequences=32,
        kv="fp8",
        step=8192,
        args={"compilation-config.cudagraph_mode": "none"},
    ),
    Run(
        "qwen3.5-397b-a17b-int4-autoround-2x-vllm",
        "qwen3.5-397b-a17b-int4-autoround",
        0.9,
        262144,
        tensor=2,
        sequences=2,
        kv="fp8",
        step=4176,
    ),
    Run(
        "qwen3.5-397b-a17b-int4-autoround-4x-vllm",
        "qwen3.5-397b-a17b-int4-autoround",
        0.78,
        32768,
        tensor=4,
        kv="fp8",
        step=8192,
    ),
    Run("gemma4-26b-a4b-bf16-vllm", "gemma-4-26b-a4b-it", 0.8, 262144, step=8192),
    Run("gemma4-26b-a4b-online-fp8-vllm", "gemma-4-26b-a4b-it", 0.8, 262144, kv="fp8", step=8192),
    Run(
        "minimax-m3-v0-nvfp4-2x-reap25",
        "minimax-m3-v0-nvfp4-reap25",
        0.81,
        32768,
        engine="sglang",
        tensor=2,
    ),
    Run(
        "minimax-m3-v0-nvfp4-2x-reap50",
        "minimax-m3-v0-nvfp4-reap50",
        0.81,
        131072,
        engine="sglang",
        tensor=2,
    ),
    Run("minimax-m3-v0-nvfp4-4x", "minimax-m3-v0-nvfp4", 0.8, 200000, engine="sglang", tensor=4),
    Run(
        "qwen3.5-397b-a17b-int4-autoround-3x-vllm",
        "qwen3.5-397b-a17b-int4-autoround",
        0.7,
        262144,
        pipeline=3,
        sequences=10,
        kv="fp8",
        step=16384,
    ),
    Run("minimax-m2.7-awq4-vllm", "minimax-m2.7-awq-4bit", 0.8, 196608, tensor=2, prefixes=False),
    Run("minimax-m2.7-nvfp4-vllm", "minimax-m2.7-nvfp4", 0.85, 196608, tensor=2, prefixes=False),
    Run(
        "qwen3-coder-next-int4-autoround-vllm",
        "qwen3-coder-next-int4-autoround",
        0.7,
        262144,
        sequences=128,
        kv="fp8",
        step=16384,
    ),
    Run("qwen3.6-27b-fp8-mtp-vllm", "qwen3.6-27b-fp8", 0.8, 262144, kv="fp8", mtp=2, step=32768),
    Run("qwen3.6-27b-fp8-vllm", "qwen3.6-27b-fp8", 0.8, 262144, kv="fp8", step=32768),
    Run(
        "qwen3.6-35b-a3b-fp8-mtp-vllm",
        "qwen3.6-35b-a3b-fp8",
        0.8,
        262144,
        kv="fp8",
        mtp=2,
        step=32768,
    ),
    Run("qwen3.6-35b-a3b-fp8-vllm", "qwen3.6-35b-a3b-fp8", 0.8, 262144, kv="fp8", step=32768),
)


def parameters(name: str) -> float:
    """Parameters of a model, as summed up by the formulas."""
    whole = complete(known_shape_of(name))
    assert whole
    found = parts.parameters(whole)
    assert found
    return found[0]
