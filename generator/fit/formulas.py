"""Every formula of memory and speed, each with its units and who says so.

Sizes of models are in elements or parameters, memory is in bytes, `tensor` is the tensor parallel
size. Nothing here knows of sites, catalogs or engines' words.
"""

from collections.abc import Mapping, Sequence

GIB = 2**30
GB = 10**9
WIDE = 2.0

# What a parameter takes in bytes, scales of its group included: NVFP4 has an 8 bit scale for 16
# parameters, MXFP4 and MXFP8 one for 32, INT4 a 16 bit scale and a 4 bit zero for 128.
# Source: OCP Microscaling Formats 1.0; NVIDIA, "Introducing NVFP4"; AutoGPTQ's and AutoAWQ's files.
PACKED: Mapping[str, float] = {
    "bf16": WIDE,
    "fp8": 1.0,
    "fp8-block128": 1.0,
    "mxfp8": 1 + 1 / 32,
    "nvfp4": (4 + 8 / 16) / 8,
    "nvfp4-mixed": (4 + 8 / 16) / 8,
    "mxfp4": (4 + 8 / 32) / 8,
    "fp4-fp8": (4 + 8 / 32) / 8,
    "mxfp4-mxfp8": (4 + 8 / 32) / 8,
    "gptq-int4": (4 + 20 / 128) / 8,
    "awq-int4": (4 + 20 / 128) / 8,
    "int4-autoround": (4 + 20 / 128) / 8,
    "int4": (4 + 20 / 128) / 8,
}

# What an element of the KV cache takes in bytes; "auto" is the model's own type, 16 bits.
# Source: vLLM, vllm/config/cache.py and --kv-cache-dtype; SGLang, --kv-cache-dtype.
CACHED: Mapping[str, float] = {
    "auto": WIDE,
    "bf16": WIDE,
    "bfloat16": WIDE,
    "fp16": WIDE,
    "float16": WIDE,
    "f16": WIDE,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "fp8_inc": 1.0,
    "fp8_ds_mla": 656 / 576,
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
    "mxfp8": 1 + 1 / 32,
    "nvfp4": (4 + 8 / 16) / 8,
    "fp4_mx_block16": (4 + 8 / 16) / 8,
}

# The GB10's memory bandwidth. Source: docs.nvidia.com/dgx/dgx-spark, "Hardware overview".
BANDWIDTH_BYTES_S = 273 * GB

# What the system, its page cache and everything beside the engine need to stay alive. A node was
# seen to freeze at 113 GiB used, and to be safe at 107.
# Source: appmilla/guardkit dgx-spark notes; NVIDIA/dgx-spark-playbooks issues 97, 102 and 116.
SYSTEM_BYTES = 16 * GIB
FREEZE_GIB = 113

# What the CUDA context, its libraries and their workspaces take beside tensors.
# Source: 1.79 GiB of memory outside PyTorch, as vLLM's profiler shows (vLLM pull request 10511).
CONTEXT_BYTES = int(1.8 * GIB)

# What captured CUDA graphs take. Source: 0.1 to 5 GiB in vLLM's logs on GB10, by batch sizes and
# layers; eugr/spark-vllm-docker issue 396 has 4.2 % of the memory, others less than 1 GiB.
GRAPH_BYTES = 2 * GIB


def attention_parameters(
    hidden: int, heads: int, kv_heads: int, head: int, gated: bool
) -> tuple[int, int]:
    """Parameters of grouped-query attention: of queries and output, and of keys and values.

    A gated query projection is twice as wide.
    Source: Ainslie et al., "GQA"; transformers, `Qwen3NextAttention`.
    """
    return hidden * heads * head * (3 if gated else 2), 2 * hidden * kv_heads * head


def latent_parameters(
    hidden: int, heads: int, ranks: tuple[int, int], head: tuple[int, int, int]
) -> tuple[int, int]:
    """Parameters of latent attention: those that heads divide, and those kept whole.

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


def delta_parameters(hidden: int, keys: int, values: int) -> int:
    """Parameters of a gated delta rule layer: queries, keys, values, gate, and the output.

    Source: transformers, `Qwen3NextGatedDeltaNet`.
    """
    return hidden * (2 * keys + 2 * values) + values * hidden


def mamba_parameters(hidden: int, keys: int, values: int) -> int:
    """Parameters of a Mamba 2 layer; `keys` are its groups times its state, `values` its width.

    Source: Dao and Gu, "Transformers are SSMs"; transformers, `NemotronHMamba2Mixer`.
    """
    return hidden * (2 * values + 2 * keys) + values * hidden


def feed_forward_parameters(width: int, inside: int, matrices: int = 3) -> int:
    """Parameters of a gated feed-forward part, or of an expert.

    Source: Shazeer, "GLU Variants Improve Transformer".
    """
    return matrices * width * inside


def stage_sizes(layers: int, stages: int, given: Sequence[int] = ()) -> tuple[int, ...]:
    """Layers of each pipeline stage; what is left over goes to the last but one and those before.

    Source: vLLM, vllm/distributed/utils.py, `get_pp_indices`; VLLM_PP_LAYER_PARTITION gives others.
    """
    if given:
        return tuple(given)
    each, left = divmod(layers, stages)
    sizes = [each] * stages
    for back in range(2, left + 2):
        sizes[-back] += 1
    return tuple(sizes)


def first_stages_larger(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage where the first ones take what is left over.

    Source: TensorRT-LLM, `Mapping.pp_layers` (torch.tensor_split); llama.cpp splits alike.
    """
    each, left = divmod(layers, stages)
    return tuple(each + (stage < left) for stage in range(stages))


def layers_between(kind: int, layers: int, first: int, last: int) -> int:
    """How many of a kind of layers, spread evenly, lie in `first` to before `last`.

    A period ends with its layer of the kind: of 60 layers with 15 of full attention, each fourth.
    Source: transformers, `layer_types` of Qwen3-Next, gpt-oss and Gemma 3.
    """
    return kind * last // layers - kind * first // layers


def packed_bytes(
    weights: float, wide: int, others: int, experts: int, form: str
) -> tuple[float, float]:
    """Bytes a parameter of linear layers other than experts, and of experts.

    `weights` are the checkpoint's bytes without what is not of its layers, `wide` the parameters
    that stay in 16 bits whatever the format: embedding, head, routers. Some checkpoints pack all
    linear layers and some the experts alone, with 16 or 8 bits for the rest: the one is taken whose
    bytes an expert's parameter come nearest to the format's, so that all adds up to `weights`.
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


def grouped_cache_elements(kv_heads: int, head: int, tensor: int) -> int:
    """Elements of KV cache a token, layer and rank: a KV head is copied where there are too few.

    Keys and values count KV heads, not attention heads.
    Source: vLLM, `get_num_kv_heads`: max(1, kv_heads // tensor).
    """
    return 2 * max(1, kv_heads // tensor) * head


def latent_cache_elements(kv_rank: int, rope: int) -> int:
    """Elements of KV cache a token and layer under MLA, the same on every tensor rank.

    Source: DeepSeek-V3 technical report, section 2.1.1: the latent and the shared rotary key.
    """
    return kv_rank + rope


def indexer_cache_bytes(head: int) -> int:
    """Bytes that the indexer caches a token and layer: 8 bits an element, and a 32 bit scale.

    Source: vLLM, `DeepseekV32IndexerCache`; for MiniMax-M3 taken to be the same.
    """
    return head + 4


def window_tokens(context: int, window: int, batched: int) -> int:
    """Tokens that a sliding-window layer holds of a sequence while it is prefilled in chunks.

    Source: vLLM, `SlidingWindowSpec.max_memory_usage_bytes`.
    """
    return min(context, window - 1 + batched)


def state_bytes(state: int, keys: int, values: int, tensor: int, drafted: int) -> float:
    """Bytes of a sequence's state in one linear-attention or Mamba layer, a rank.

    The state is in 32 bits, the last three inputs of the convolution in 16; a drafted token needs a
    state of its own.
    Source: vLLM, `MambaStateShapeCalculator`; mamba_ssm_dtype of Qwen3.5 and Nemotron.
    """
    convolution = (2 * keys + values) * 3 * WIDE
    return (state * 4 + convolution) * (1 + drafted) / tensor


def activation_bytes(tokens: int, hidden: int, widest: int) -> float:
    """Bytes of tensors alive at once in a step of so many tokens, in 16 bits.

    The residual stream and its copies, and the widest part of a layer with what goes in and out.
    Source: vLLM's profile run measures it: 1.26 GiB for Llama 3 8B (pull request 10511).
    """
    return tokens * WIDE * (4 * hidden + 2 * widest)


def logits_bytes(sequences: int, vocabulary: int) -> float:
    """Bytes of the last stage's logits: in 16 bits, in 32, and the sampler's sorted copy.

    Source: vLLM, `_dummy_sampler_run`.
    """
    return float(sequences * vocabulary * (2 + 4 + 4))


def nccl_bytes(communicators: int) -> int:
    """Bytes of NCCL's buffers: 16 channels, each with a ring's and a tree's connections.

    A connection has a buffer a protocol: Simple 1 MiB on Arm, LL 512 KiB, LL128 4800 KiB.
    Source: NCCL, src/init.cc (DEFAULT_BUFFSIZE_ARM, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE).
    """
    connection = (1024 + 512 + 4800) * 1024
    return communicators * 16 * 4 * connection


def share_of_free(share: float, visible: float, held: float) -> float:
    """TensorRT-LLM's fraction, of what is free after load, that keeps within a share of all.

    `held` are the bytes of weights and reserve, `visible` those that the GPU sees.
    Source: TensorRT-LLM, `KvCacheConfig.free_gpu_memory_fraction`.
    """
    free = visible - held
    return max(0.0, (share * visible - held) / free) if free > 0 else 0.0


def ceiling_tokens_s(bytes_of_stages: Sequence[float]) -> float:
    """Tokens a second that memory bandwidth allows one sequence: a ceiling, never reached.

    A token passes the stages one after the other; each reads all that is active in it, and the
    ranks of a stage read at the same time. An engine that packs further weights when it loads them
    reads less.
    Source: Pope et al., "Efficiently Scaling Transformer Inference", memory-bound decoding.
    """
    return BANDWIDTH_BYTES_S / sum(bytes_of_stages)
