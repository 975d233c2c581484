"""What each engine is like, as data: how it uses memory, how its settings are called, what it runs.

Whoever asks for the property of an engine asks here, and not for the engine's name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from generator.catalogs.versions import Release, release
from generator.origin import Origin
from generator.records import record

# What clients ask of a model, and of no other kind of model.
Task = Literal["chat", "embedding", "rerank"]


@record
class BatchDefaults:
    """From a release on: the most tokens of one step, and the most sequences at once."""

    since: Release
    tokens: int
    sequences: int


@record
class Start:
    """The version and image that a new site file starts with.

    `launcher` and `ranks_image` are for several nodes, where they are others; `is_made` says that
    nobody publishes the image of so many, and the runbook how it is made. Nobody would do without
    `args`.
    """

    version: str
    image: str
    launcher: str = ""
    ranks_image: str = ""
    is_made: bool = False
    args: Mapping[str, str] = MappingProxyType({})


@record
class Paging:
    """An engine whose layers of all kinds share one pool of blocks: since when it does what.

    `caches_states`: prefixes of models with recurrent layers are cached unless switched off.
    `two_steps`: windows have room for all steps under way. `packs`: pages of several sizes lie side
    by side and aren't padded to one another. `counts_graphs`: graphs are part of the engine's
    share. `draws_unsorted`: tokens are drawn without a sorted copy of the vocabulary.
    `checkpoints_states` and `checkpoints_delta`: prefilling keeps one more state a sequence for its
    prefix, of Mamba and Kimi's layers and of gated delta layers. `compresses`: it has compressed
    attention (DeepSeek-V4). `caches_pooled`: it caches 8 bits where an entry of the index stands
    for several tokens of plain attention (Qwen3.8-Flash-Next). `sizes_gathers`: what a sparse
    attention's index is gathered in is smaller for long contexts.
    """

    caches_states: Release
    two_steps: Release
    packs: Release
    counts_graphs: Release
    draws_unsorted: Release
    checkpoints_states: Release
    checkpoints_delta: Release
    compresses: Release
    caches_pooled: Release
    sizes_gathers: Release


@record
class Pools:
    """An engine that divides its room at the start, among a pool for each kind of layers.

    `windows` are the tokens of layers with a window for each of those without, `states` the bytes
    of states for each of KV cache: the flag and its default. `slots` are the states of a request,
    by `strategy`, a flag's value; `slots_flag` fixes how many there are in all, and `uncached_flag`
    leaves prefixes uncached, which need states of their own.
    """

    windows: tuple[str, float]
    states: tuple[str, float]
    strategy: str
    slots: Mapping[str, int]
    slots_flag: str
    uncached_flag: str


@record
class EngineTraits:
    """What an engine is like; flags by their names without dashes, empty where there is none.

    `batches` are its defaults on a GB10, oldest first. `step_flag` sets the tokens of a step,
    `eager_flag` switches graphs off, `pool_flag` fixes the size of the KV cache, and
    `settings_flag` names a file of settings that sparkgen writes. `variables_file` is a list of
    variables that it reads, of which its catalog has none. `stage_variable` gives the layers
    of each pipeline stage. `eight_bit_cache` is a KV cache of 8 bits as the engine spells it.

    `allocates_all`: the cache of all sequences is allocated at the start, and not shared as they
    grow. `captures_graphs`: of many sizes. `reserves_outside`: activations and graphs come out of
    what the engine's fraction leaves. `shares_experts`: replicas share the experts of a model,
    spread or sliced. `larger_first`: layers that don't divide make the first stages larger, and not
    the middle ones.

    `finest_blocks` are the fewest columns that a scale of FP8 blocks may stand for where a slice
    cuts through one, from a release on; None where that is not known.
    `drafts_over_stages` are the methods of speculative decoding that go with pipeline stages.

    `delta_kernels` is the first release with kernels of its own for gated delta layers on a GB10,
    `nvfp4_kernels` the first whose NVFP4 is right there; None where it is not known to matter.
    `startup_since` is the oldest release whose checks at the start are known.

    `tasks` are the flags with which it serves something else than chats, with their values, which
    switches have none of, and what that is.

    `joins_dense_replicas`: copies of a model without experts may span nodes. `tuned_by_one` are the
    first release in which one rank alone keeps FlashInfer's tuning, and the first after it.
    `eagle3_over_stages` is the first release that runs EAGLE-3 over pipeline stages. Either is None
    where it is not known to matter.

    `runs_from_venv`: it is a Python package that needs nothing of a container. `addition` is what
    its images lack for several nodes, as `engine.image.adds` calls it. `choice_flag` has to stand
    beside a parser of tools. `drafts_flag` takes the settings of speculative decoding as JSON.
    `commits` are what git calls the versions of one that is built from its source.
    `reads_modelopt`: it reads a checkpoint's kind of quantization by ModelOpt, whatever it is told.

    Where its share is of what others on its node leave free, `tokens_flag` bounds what it caches,
    or `tokens_setting` of its options. Releases before `shares_since` have no such bound.

    `names_parsers`: models' parsers are known by its names for them. `locks_metrics`: they need the
    API's key too. `is_built_for_ranks`: no registry has an image that runs on several nodes.

    `context_flags` set how many ranks share the KV cache of a sequence. `exchanges` are the flags
    that choose how ranks hand experts or a cache to one another, each with the values by which they
    gather and reduce, and not all send to all. `rings_reported`: it runs on rings of four or more.

    `paging` is how one pool of blocks is shared by layers of several kinds, None where each kind
    has its own; then windows are rounded up to `window_cells` tokens. `pools` is how such an engine
    divides its room among them, None where they grow as they are needed. `tile` are the multiples
    to which kernels of 4 bit experts pad their input and their inside.
    """

    ORIGIN = Origin("engine.name", "what the engine is like, generator/catalogs/engines.py")

    title: str
    batches: tuple[BatchDefaults, ...]
    step_flag: str
    eight_bit_cache: str
    other_names: tuple[str, ...] = ()
    eager_flag: str = ""
    pool_flag: str = ""
    settings_flag: str = ""
    variables_file: str = ""
    stage_variable: str = ""
    splits_tensors: bool = True
    drafts_over_stages: tuple[str, ...] = ("eagle3", "draft", "mtp")
    uses_nccl: bool = True
    shares_since: Release = ()
    tokens_flag: str = ""
    tokens_setting: str = ""
    reads_gguf: bool = False
    allocates_all: bool = False
    captures_graphs: bool = True
    reserves_outside: bool = False
    shares_experts: bool = False
    joins_dense_replicas: bool = True
    tuned_by_one: tuple[Release, Release] | None = None
    eagle3_over_stages: Release | None = None
    runs_from_venv: bool = False
    addition: str = ""
    choice_flag: str = ""
    drafts_flag: str = ""
    reads_modelopt: bool = False
    commits: Mapping[str, str] | None = None
    larger_first: bool = False
    finest_blocks: tuple[tuple[Release, int | None], ...] = ()
    delta_kernels: Release | None = None
    nvfp4_kernels: Release | None = None
    startup_since: Release = ()
    context_flags: tuple[str, ...] = ()
    exchanges: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    rings_reported: bool = False
    names_parsers: bool = False
    locks_metrics: bool = False
    is_built_for_ranks: bool = False
    tasks: Mapping[tuple[str, str], Task] = MappingProxyType({})
    paging: Paging | None = None
    pools: Pools | None = None
    window_cells: int = 1
    tile: tuple[int, int] = (1, 1)
    start: Start | None = None

    def task(self, args: Mapping[str, object]) -> Task:
        """What it serves when it is given these."""
        given = {name.replace("_", "-"): value for name, value in args.items()}
        found = [
            task
            for (flag, value), task in self.tasks.items()
            if flag in given and (given[flag] == value or (not value and given[flag] is True))
        ]
        return found[-1] if found else "chat"

    def tunes_anew(self, version: str, ranks: int) -> bool:
        """Whether FlashInfer's tuning may not outlive the container of a rank.

        Where rank 0 alone writes it, it has it at the next start, the others tune, and all wait for
        each other.
        """
        if self.tuned_by_one is None or ranks == 1:
            return False
        first, end = self.tuned_by_one
        return first <= release(version) < end

    def commit(self, version: str) -> str | None:
        """What git calls a version, if that is known: builds are counted, and tagged with a b."""
        if self.commits is None:
            return None
        return f"b{version}" if version.isdecimal() else self.commits.get(version)

    def batch(self, version: str) -> BatchDefaults:
        """The defaults of a version."""
        return [batch for batch in self.batches if batch.since <= release(version)][-1]

    def finest_block(self, version: str) -> int | None:
        """The fewest columns of a scale of FP8 blocks that a version takes, if that is known."""
        found = [least for since, least in self.finest_blocks if since <= release(version)]
        return found[-1] if found else None


# Sources: vLLM 0.19.0 and 0.33.0, `get_batch_defaults` (the GB10 is a small GPU from 0.33 on) and
# `FusedMoEParallelConfig.flatten_tp_across_dp_and_pcp`; pull requests 38423 and 55715. SGLang
# 0.5.23: mem_fraction_static = (weights + KV cache pool) / memory. TensorRT-LLM, `pp_layers`; pull
# request 19376. llama.cpp: `--ctx-size` is the sum over the slots, layers are rounded to devices,
# and RPC is a protocol of its own.
VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP = "vllm", "sglang", "tensorrt-llm", "llama.cpp"
ENGINE_TRAITS: Mapping[str, EngineTraits] = {
    VLLM: EngineTraits(
        title="vLLM",
        batches=(BatchDefaults((), 8192, 1024), BatchDefaults((0, 33), 2048, 256)),
        step_flag="max-num-batched-tokens",
        eager_flag="enforce-eager",
        pool_flag="kv-cache-memory-bytes",
        stage_variable="VLLM_PP_LAYER_PARTITION",
        eight_bit_cache="fp8",
        shares_experts=True,
        joins_dense_replicas=False,
        # vllm-project/vllm issues 52291, 54618, 57423 and 57635; 0.32.0 has a file for each rank.
        tuned_by_one=((0, 27, 1), (0, 32)),
        eagle3_over_stages=(0, 30),
        runs_from_venv=True,
        addition="ray",
        choice_flag="enable-auto-tool-choice",
        drafts_flag="speculative-config",
        reads_modelopt=True,
        drafts_over_stages=(
            *("eagle", "eagle3", "mtp", "dspark", "dflash"),
            *("ngram", "ngram_gpu", "suffix"),
        ),
        # Finer from some release after 0.19 on, certainly in 0.33: `refine_fp8_moe_block_shape`.
        finest_blocks=(((), 128), ((0, 20), None), ((0, 33), 32)),
        delta_kernels=(0, 30),
        nvfp4_kernels=(0, 20),
        startup_since=(0, 19),
        context_flags=("decode-context-parallel-size",),
        exchanges={
            "all2all-backend": ("allgather_reducescatter", "naive"),
            "dcp-comm-backend": ("ag_rs",),
        },
        rings_reported=True,
        names_parsers=True,
        # vLLM 0.22.1, 0.25.1, 0.27.1 and 0.29.0: `is_prefix_caching_supported` (config/model.py),
        # `max_in_flight_tokens` (config/vllm.py), `_get_packed_kv_cache_groups` (kv_cache_utils.py;
        # issue 54703 shows it in 0.28.1). The releases between those two are taken as the newer.
        # Graphs: gpu_worker.py, line 720. Drawing: topk_topp_sampler.py has Triton in 0.19.0.
        # Checkpoints: `num_prefill_checkpoint_blocks` of 0.32.0 and 0.33.0 in mamba_mixer2.py, line
        # 1117, kda.py of GLM-5-Next, line 174, and qwen_gdn_linear_attn.py, line 748.
        paging=Paging(
            caches_states=(0, 26),
            two_steps=(0, 26),
            packs=(0, 28),
            counts_graphs=(0, 20),
            draws_unsorted=(0, 17),
            checkpoints_states=(0, 32),
            checkpoints_delta=(0, 33),
            compresses=(0, 20),
            caches_pooled=(0, 31),
            sizes_gathers=(0, 32),
        ),
        tasks={
            ("runner", "pooling"): "embedding",
            ("convert", "embed"): "embedding",
            ("convert", "classify"): "rerank",
        },
        # vLLM 0.33.0, fused_moe/oracle/mxfp4.py, lines 426 and 865: Marlin on a GB10.
        tile=(256, 128),
        start=Start("0.33.0", "vllm/vllm-openai:v0.33.0"),
    ),
    SGLANG: EngineTraits(
        title="SGLang",
        runs_from_venv=True,
        tokens_flag="max-total-tokens",
        batches=(BatchDefaults((), 8192, 256),),
        step_flag="chunked-prefill-size",
        eager_flag="disable-cuda-graph",
        stage_variable="SGLANG_PP_LAYER_PARTITION",
        eight_bit_cache="fp8_e4m3",
        reserves_outside=True,
        drafts_over_stages=(),
        finest_blocks=(((), 128),),
        startup_since=(0, 5, 5),
        context_flags=("dcp-size", "decode-context-parallel-size"),
        exchanges={
            "dcp-comm-backend": ("ag_rs",),
            "moe-a2a-backend": ("none",),
            "speculative-moe-a2a-backend": ("none",),
        },
        rings_reported=True,
        tasks={("is-embedding", ""): "embedding"},
        # SGLang 0.5.23: arg_groups/fields/schedule.py, lines 150 and 220; a request's states in
        # mem_cache/kv_cache_configurator.py, line 3062, `_calculate_mamba_ratio`, and which
        # strategy is the default in arg_groups/overrides.py, line 477.
        pools=Pools(
            windows=("swa-full-tokens-ratio", 0.8),
            states=("mamba-full-memory-ratio", 0.9),
            strategy="mamba-radix-cache-strategy",
            slots={"no_buffer": 3, "extra_buffer_lazy": 4, "extra_buffer": 5, "": 5},
            slots_flag="max-mamba-cache-size",
            uncached_flag="disable-radix-cache",
        ),
        start=Start("0.5.23", "lmsysorg/sglang:v0.5.23-cu130"),
    ),
    TENSORRT_LLM: EngineTraits(
        title="TensorRT-LLM",
        addition="ssh",
        shares_since=(1, 2, 1),
        tokens_setting="kv_cache_config.max_tokens",
        other_names=("tensorrt", "trt-llm", "trtllm"),
        batches=(BatchDefaults((), 8192, 64),),
        step_flag="max_num_tokens",
        settings_flag="config",
        variables_file="tensorrt-llm-variables.txt",
        eight_bit_cache="fp8",
        larger_first=True,
        delta_kernels=(1, 4),
        startup_since=(1, 2, 1),
        start=Start(
            "1.3.0rc29",
            "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc29",
            launcher="mpi",
            ranks_image="tensorrt-llm-ssh:1.3.0rc29",
            is_made=True,
            args={"enable_chunked_prefill": "true"},
        ),
    ),
    LLAMA_CPP: EngineTraits(
        title="llama.cpp",
        addition="rpc",
        commits={"0.5.0-dev": "0c1e57098bba43ac29e6e3b677cdceebdd22334f"},
        other_names=("llama-cpp", "llamacpp"),
        batches=(BatchDefaults((), 512, 1),),
        step_flag="ubatch-size",
        eight_bit_cache="q8_0",
        splits_tensors=False,
        uses_nccl=False,
        reads_gguf=True,
        allocates_all=True,
        captures_graphs=False,
        # llama.cpp, src/llama-kv-cache-iswa.cpp: the window and a step, padded.
        window_cells=256,
        larger_first=True,
        locks_metrics=True,
        tasks={
            ("embedding", ""): "embedding",
            ("embeddings", ""): "embedding",
            ("rerank", ""): "rerank",
            ("reranking", ""): "rerank",
        },
        is_built_for_ranks=True,
        start=Start("0.5.0-dev", "llama.cpp-rpc:0c1e57098", is_made=True),
    ),
}
