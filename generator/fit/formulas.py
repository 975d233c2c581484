"""Every formula for memory and speed, each with its units and its source.

Sizes of models are in elements or parameters, memory is in bytes, `tensor` is the tensor parallel
size. Nothing here depends on sites, catalogs or the names that engines use.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from generator.resources import rows

GIB = 2**30
GB = 10**9
WIDE = 2.0


def _bytes(use: str) -> Mapping[str, float]:
    """Bytes per element by format, including the scales of its group, of schemas/formats.tsv."""
    return {
        name: (int(bits) + int(scales) / int(group)) / 8
        for used, name, bits, scales, group, _ in rows("formats")
        if used == use
    }


# Of parameters, and of elements of the KV cache.
PACKED, CACHED = _bytes("weights"), _bytes("cache")

# Formats whose experts the kernels pad to tiles.
TILED = ("mxfp4", "fp4-fp8", "mxfp4-mxfp8")

# The GB10's memory bandwidth. Source: docs.nvidia.com/dgx/dgx-spark, "Hardware overview".
BANDWIDTH_BYTES_S = 273 * GB

# What the system, its page cache and everything besides the engine need to stay alive. A node was
# seen to freeze at 113 GiB used, and to be safe at 107.
# Source: appmilla/guardkit dgx-spark notes; NVIDIA/dgx-spark-playbooks issues 97, 102 and 116.
SYSTEM_BYTES = 16 * GIB
FREEZE_GIB = 113
# With less than this left, nodes freeze.
LEAST_BYTES = 8 * GIB

# What the CUDA context, its libraries and their workspaces take besides tensors.
# Source: 1.79 GiB of memory outside PyTorch, as vLLM's profiler shows (vLLM pull request 10511).
CONTEXT_BYTES = int(1.8 * GIB)

# The same for vLLM on a GB10, where it measures how much less memory the whole system has than
# before: including the process, its compiler and caches, and what the driver keeps for each page
# that it allocates, which is in proportion to the weights.
# Source: vLLM 0.33.0, vllm/utils/mem_utils.py, line 151 (MemAvailable). "Consumed memory" less
# weights in logs on Sparks: 2.2 GiB with 1.1 (Qwen3-0.6B, vLLM 0.27), 4.6 with 51.4 (Qwen3.8-27B,
# 0.27), 4.3 with 64.4 (Qwen3.8-Flash-Next on two), 5.7 with 80.8 (DeepSeek-V4-Flash on two). Equal
# starts differ by a GiB (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks issue 204). If something else
# frees memory meanwhile, an engine counts less than it holds, and takes more than its share: 54.8
# GiB in all with weights of 56.9, and 4.85 for a cache at 0.49 of 121.7, where nothing is left of
# 59.6 (a log of Qwen3-30B-A3B on a Spark). No site can rely on that.
_SYSTEM_CONTEXT_BYTES, _SYSTEM_SHARE = int(2.2 * GIB), 0.04
_NODE_BYTES = 128 * GB

# Two starts of one measured site differ by a GiB (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks issue
# 204).
STARTS_DIFFER_BYTES = GIB

# How much of a node with 121.6 GiB isn't free when SGLang starts to load, and how much less it may
# be: of 121.6 GiB, 104.5, 108.1, 109.5, 109.8, 110.0, 111.5, 112.0 and 113.9 were free at eight
# starts on Sparks in 2026: seven from logs, and one inferred. SGLang's fraction is of free memory.
# Source: SGLang, model_executor/model_runner.py, `pre_model_load_memory` (MemAvailable on a GB10,
# with its CUDA context and NCCL there already), and mem_cache/kv_cache_configurator.py,
# `_profile_available_bytes`; MiaAI-Lab/Qwen3.8-Flash-Next-Dual-DGX-Sparks issue 8, where a tenth
# more of the fraction is 10.95 GiB more of cache.
NOT_FREE_BYTES, FREE_ERROR_BYTES = int(11.7 * GIB), 4 * GIB

# The part of that which is SGLang's own processes, besides its CUDA context: an idle Spark has
# 115.9 GiB free (unslothai/unsloth pull request 10704).
PROCESS_BYTES = int(4.2 * GIB)

# By how much SGLang's process grows while it loads a model: it counts as weights how much less
# memory the node has then, and imports the classes of all models meanwhile.
# Source: SGLang 0.5.12, model_executor/model_runner.py, line 1547, and model_loader/utils.py, line
# 196; five starts on one Spark, with 0.03, 0.13, 0.35, 0.36 and 0.42 GiB more than their weights.
LOADING_BYTES = int(0.35 * GIB)

# What captured CUDA graphs take if their number isn't known. Source: SGLang's logs on GB10.
GRAPH_BYTES = 2 * GIB

# What vLLM's graphs take: in common, and each; and each of a model with experts on several ranks.
# Source: "Estimated CUDA graph memory" in logs of vLLM 0.18 to 0.29: 0.53 to 0.83 GiB for 86
# graphs, 0.37 for 54, 0.36 for 16, 0.22 for 15, 0.61 for 9, 0.45 for 6, 0.26 for 5 and 0.36 to 0.43
# for 2 (issue 50780, gpustack/runner pull request 251), though 1.6 and 1.9 for as many of
# Qwen3.8-27B on a Spark. For 102 graphs 5.1 of MiniMax-M2.7 on two Sparks (eugr/spark-vllm-docker
# issue 396) and 5.0 of GLM-5.2 on four B200.
_GRAPHS_SHARED_BYTES, _GRAPH_EACH_BYTES = 352 * 2**20, 4 * 2**20
_EXCHANGING_GRAPH_BYTES = 48 * 2**20

# What sparse attention's index keeps for itself in vLLM, besides its cache: FlashInfer's buffer for
# DeepSeek-V4 on a GB10, and the entries in which a step's index is gathered, for each token of
# context.
# Source: vLLM 0.33.0, vllm/models/deepseek_v4/nvidia/flashinfer_sparse.py, line 43, and
# vllm/v1/attention/backends/mla/indexer.py, line 916, `get_max_prefill_buffer_size`, with the
# factors of vllm/config/vllm.py, line 1873; vLLM 0.31.0 has 40 whatever the context.
SPARSE_WORKSPACE_BYTES = 128 * 2**20
_GATHERED, _GATHERED_LONG, _LONG_CONTEXT = 40, 16, 256 * 1024


def attention_parameters(
    hidden: int, heads: tuple[int, int], head: tuple[int, int], gated: bool
) -> tuple[int, int]:
    """Parameters of grouped-query attention: of queries and output, and of keys and values.

    `heads` are those of queries and of keys, `head` the sizes of a key's and of a value's. A gated
    query projection is twice as wide.
    Source: Ainslie et al., "GQA"; transformers, `Qwen3NextAttention`.
    """
    queries, keys = heads
    split = hidden * queries * (head[0] * (2 if gated else 1) + head[1])
    return split, hidden * keys * sum(head)


def latent_parameters(
    hidden: int, heads: int, ranks: tuple[int, int], head: tuple[int, int, int]
) -> tuple[int, int]:
    """Parameters of latent attention: those divided among heads, and those kept whole.

    `ranks` are those of queries and of keys and values, `head` the parts of a head without and with
    positions, and its value.
    Source: DeepSeek-V3 technical report, section 2.1.1; transformers, `DeepseekV3Attention`.
    """
    q_rank, kv_rank = ranks
    nope, rope, value = head
    split = (
        q_rank * heads * (nope + rope) + kv_rank * heads * (nope + value) + heads * value * hidden
    )
    return split, hidden * (q_rank + kv_rank + rope)


def indexer_parameters(hidden: int, q_rank: int, heads: int, head: int) -> int:
    """Parameters of sparse attention's indexer, kept whole on each rank.

    Source: transformers, `GlmMoeDsaIndexer`; DeepSeek-V3.2 report, "lightning indexer".
    """
    return q_rank * heads * head + hidden * (head + heads)


def recurrent_parameters(hidden: int, keys: int, values: int) -> int:
    """Parameters of a gated delta rule layer: queries, keys, values, gate, and the output.

    A Mamba 2 layer has as many; `keys` are its groups times its state, `values` its width.
    Source: transformers, `Qwen3NextGatedDeltaNet` and `NemotronHMamba2Mixer`; Dao and Gu,
    "Transformers are SSMs".
    """
    return hidden * (2 * values + 2 * keys) + values * hidden


def system_context_bytes(weights: float) -> float:
    """Bytes that the whole system loses when vLLM runs on a GB10, besides what it allocates.

    Weights that no node can hold cost nothing extra.
    """
    return _SYSTEM_CONTEXT_BYTES + _SYSTEM_SHARE * min(weights, _NODE_BYTES)


def feed_forward_parameters(width: int, inside: int, matrices: int = 3) -> int:
    """Parameters of a gated feed-forward part or of an expert.

    Source: Shazeer, "GLU Variants Improve Transformer".
    """
    return matrices * width * inside


def stage_sizes(layers: int, stages: int, given: Sequence[int] = ()) -> tuple[int, ...]:
    """Layers of each pipeline stage; the remainder goes to the last but one and those before it.

    Source: vLLM 0.33.0, vllm/distributed/utils.py, line 198, `get_pp_indices`;
    VLLM_PP_LAYER_PARTITION sets others.
    """
    if given:
        return tuple(given)
    each, left = divmod(layers, stages)
    sizes = [each] * stages
    for back in range(2, left + 2):
        sizes[-back] += 1
    return tuple(sizes)


def first_stages_larger(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage if the first stages take the remainder.

    Source: TensorRT-LLM, tensorrt_llm/mapping.py, `Mapping.pp_layers` (torch.tensor_split).
    llama.cpp, build 11434, src/llama-model.cpp, lines 1559 to 1602, splits in the same way if
    devices have the same free memory.
    """
    each, left = divmod(layers, stages)
    return tuple(each + (stage < left) for stage in range(stages))


def layers_between(kind: int, layers: int, first: int, last: int) -> int:
    """How many layers of a kind, spread evenly, are in `first` to before `last`.

    A period ends with its layer of the kind: of 60 layers with 15 of full attention, every fourth.
    Source: transformers, `layer_types` of Qwen3-Next, gpt-oss and Gemma 3.
    """
    return kind * last // layers - kind * first // layers


def packed_bytes(
    weights: float, wide: int, others: int, experts: int, form: str
) -> tuple[float, float]:
    """Bytes per parameter of linear layers other than experts, and of experts.

    `weights` are the checkpoint's bytes without those outside its layers, `wide` the parameters
    that stay in 16 bits in any format: embedding, head, routers. Some checkpoints pack all linear
    layers and some only the experts, with 16 or 8 bits for the rest: the result is the combination
    that adds up to `weights` and brings the bytes per expert parameter closest to the format's.
    Source: arithmetic; hf_quant_config.json of NVIDIA's checkpoints lists what each leaves out.
    """
    rest = max(0.0, weights - wide * WIDE)
    if not experts:
        return (rest / others, 0.0) if others else (0.0, 0.0)
    even = rest / (others + experts)
    choices = [(even, even)]
    if PACKED.get(form, WIDE) < 1:
        choices += [(kept, (rest - kept * others) / experts) for kept in (WIDE, 1.0)]
    nominal = PACKED.get(form, even)
    return min(choices, key=lambda choice: abs(choice[1] - nominal))


def grouped_cache_elements(kv_heads: int, head: int, tensor: int, value: int | None = None) -> int:
    """Elements of KV cache per token, layer and rank: a KV head is copied if there are too few.

    Keys and values count KV heads, not attention heads; a value's head may have another size.
    Source: vLLM 0.33.0, vllm/config/model.py, line 1663, `get_num_kv_heads`: max(1, kv_heads //
    tensor); vllm/v1/kv_cache_interface.py, line 586, `AttentionSpec.state_content_size_bytes`.
    SGLang 0.5.23, mem_cache/memory_pool.py, line 2184, `MHATokenToKVPool`. llama.cpp, build 11434,
    src/llama-kv-cache.cpp, lines 233 and 234. TensorRT-LLM at d2a5560ab,
    _torch/pyexecutor/resource_manager.py, `KVCacheManager.get_cache_bytes_per_token`.
    """
    return max(1, kv_heads // tensor) * (head + (value or head))


def latent_cache_elements(kv_rank: int, rope: int) -> int:
    """Elements of KV cache per token and layer with MLA, the same on every tensor rank.

    Source: DeepSeek-V3 technical report, section 2.1.1: the latent and the shared rotary key. vLLM
    0.33.0, vllm/v1/kv_cache_interface.py, line 729, `MLAAttentionSpec`. SGLang 0.5.23,
    mem_cache/memory_pool.py, line 4754, `MLATokenToKVPool`. llama.cpp, build 11434,
    src/llama-kv-cache.cpp, line 231: no values. TensorRT-LLM at d2a5560ab,
    _torch/pyexecutor/resource_manager.py, `KVCacheManager.get_cache_size_per_token`: one in place
    of keys and values.
    """
    return kv_rank + rope


def indexer_cache_bytes(head: int, wide: bool) -> int:
    """Bytes that the indexer caches per token and layer.

    8 bits per element and a 32 bit scale; or 16 bits, unless `indexer_kv_dtype` says otherwise.
    Source: vLLM 0.33.0, vllm/model_executor/models/deepseek_v2.py, line 638,
    `DeepseekV32IndexerCache`; vllm/models/minimax_m3/common/indexer.py, line 102, and
    vllm/models/qwen4_exp/nvidia/indexer_qsa.py, line 152. SGLang 0.5.23,
    model_executor/pool_configurator.py, line 560, `_compute_dsa_indexer_cell_size`.
    """
    return 2 * head if wide else head + 4


def state_bytes(
    state: int, convolution: float, tensor: int, drafted: int, kernel: int = 4
) -> float:
    """Bytes of a sequence's state in one linear-attention or Mamba layer, per rank.

    `state` and `convolution` are bytes of the state itself and of one input of the convolution,
    which keeps all but one of its kernel's inputs, and the drafted ones.
    Source: vLLM 0.33.0, vllm/model_executor/layers/mamba/mamba_utils.py, lines 186 to 319,
    `MambaStateShapeCalculator`: `mamba2_state_shape`, `gated_delta_net_state_shape`,
    `kda_state_shape`. SGLang 0.5.23, mem_cache/memory_pool.py, line 505, `MambaPool`. llama.cpp,
    build 11434, src/llama-memory-recurrent.cpp, lines 101 to 103.
    """
    return (state + convolution * (kernel - 1 + drafted)) / tensor


def padded(size: float, tile: int) -> int:
    """The next multiple of a tile."""
    return ceil(size / tile) * tile


def activation_bytes(tokens: int, hidden: int, widest: int) -> float:
    """Bytes of tensors alive at once in a step of this many tokens, in 16 bits.

    The residual stream and its copies, and the widest part of a layer with its input and output.
    """
    return tokens * WIDE * (4 * hidden + 2 * widest)


def feed_forward_bytes(tokens: int, hidden: int, inside: int) -> float:
    """The same in a dense feed-forward part: the residual stream, gate, up, and their product.

    Source: vLLM 0.33.0, vllm/model_executor/models/qwen2_moe.py, `Qwen2MoeMLP`; 110 KB a token of
    Qwen3.8-27B (issue 52872).
    """
    return tokens * WIDE * (hidden + 3 * inside)


def encoding_bytes(tokens: int, width: int, tensor: int) -> float:
    """Bytes that vLLM holds of images of this many tokens while it measures a step, without output.

    Of each patch, four to a token: 1,536 pixels, the position, a layer's input, its norm and its
    result, and divided among ranks queries, keys and values, twice the rotated ones, and attention.
    Source: vLLM 0.33.0, vllm/model_executor/models/qwen2_5_vl.py, `Qwen2_5_VisionAttention`, and
    qwen3_vl.py. What holds them beyond the encoder's run is not known, but logs have the sum: 2.21
    GiB with steps of 2,048 tokens of Qwen3.8-27B, and 0.11 more for each 1,024 (issue 52872).
    """
    return tokens * 4 * WIDE * (1536 + width * (4 + 8 / tensor))


def gathered_bytes(context: int, entry: int, every: int, sized: bool) -> int:
    """Bytes in which the index of a step is gathered, if an entry stands for `every` tokens.

    A long context is assumed to need no less than a shorter one, although just beyond 262,144
    tokens the engine takes less.
    Source: vLLM 0.33.0, vllm/model_executor/layers/sparse_attn_indexer.py, lines 327 and 484, which
    the profile run reserves; `max_total_seq_len` of vllm/models/deepseek_v4/attention.py, line
    1015, of vllm/models/glm5next/common/attention.py, line 282, and of deepseek_v32/attention.py.
    """
    tokens = context * _GATHERED
    if sized and context > _LONG_CONTEXT:
        tokens = max(context * _GATHERED_LONG, _LONG_CONTEXT * _GATHERED)
    return tokens // every * entry


def logits_bytes(sequences: int, vocabulary: int, sorts: bool) -> float:
    """Bytes of the last stage's logits and of sampling a token from them.

    In 16 bits and in 32, then probabilities and noise in 32; if the vocabulary is sorted, also the
    sorted copy, its indices in 64 bits, the sort's own buffers and sums: 38.4 bytes in all, as vLLM
    0.11 shows with 1024 sequences of Llama 3, Qwen3 and gpt-oss (4.8, 5.6 and 7.4 GiB), and an
    older one with 256 of Qwen3 (1.4 GiB). With 1024 sequences of gpt-oss it is the peak of a start
    (vLLM issues 23278 and 27508).
    Source: vLLM 0.33.0, vllm/v1/sample/ops/topk_topp_sampler.py, lines 501 to 580,
    `apply_top_k_top_p` (Triton) and `apply_top_k_top_p_pytorch` (sorts); `_dummy_sampler_run`,
    which samples once for each sequence, or twice with drafts, however many.
    """
    return sequences * vocabulary * (38.4 if sorts else 14.0)


def captured_sizes(most: int) -> int:
    """The number of batch sizes up to `most` for which vLLM captures graphs.

    Source: vLLM 0.33.0, vllm/config/vllm.py, line 2398, `_set_cudagraph_sizes`.
    """
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, most + 1, 16)]
    return sum(size <= most for size in sizes)


def graph_bytes(mixed: int, decode: int, exchanges_experts: bool) -> float:
    """Bytes that vLLM's profiler estimates for graphs: for any kind of step, and for decoding.

    It captures the two largest of either kind, and assumes that each further one is as large as the
    second, however much that one took from a pool that the first had filled.
    Source: vLLM 0.33.0, vllm/v1/worker/gpu_model_runner.py, lines 6268 to 6414,
    `profile_cudagraph_memory`; issue 45178.
    """
    each = _EXCHANGING_GRAPH_BYTES if exchanges_experts else _GRAPH_EACH_BYTES
    return _GRAPHS_SHARED_BYTES + (mixed + decode) * each


def nccl_bytes(communicators: int) -> int:
    """Bytes of NCCL's buffers: 16 channels, each with a ring's and a tree's connections.

    A connection has a buffer for each protocol: Simple 1 MiB on Arm, LL 512 KiB, LL128 4800 KiB.
    Source: NCCL, src/init.cc (DEFAULT_BUFFSIZE_ARM, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE).
    """
    connection = (1024 + 512 + 4800) * 1024
    return communicators * 16 * 4 * connection


def bandwidth_tokens_s(bytes_of_stages: Sequence[float]) -> float:
    """Tokens per second that one sequence would have if memory bandwidth alone decided.

    A token passes the stages one after the other; each reads everything that is active in it, and
    the ranks of a stage read at the same time. An engine that packs further weights when loading
    them reads less.
    Source: Pope et al., "Efficiently Scaling Transformer Inference", memory-bound decoding.
    """
    return BANDWIDTH_BYTES_S / sum(bytes_of_stages)
