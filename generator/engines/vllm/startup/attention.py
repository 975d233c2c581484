"""vLLM's attention and KV cache on a GB10, which has compute capability 12.1."""

from collections.abc import Callable, Mapping

from generator.catalogs.versions import version
from generator.engines.conditions import one_of
from generator.engines.startup import Condition, Effect, Refusal, Start

_BACKEND, _CACHE = "attention-backend", ("model", "kv_cache_dtype")
_AUTOMATIC = "take it out: vLLM chooses one that runs"

# For other compute capabilities: 9.0, 10.x, or other vendors' GPUs.
_ELSEWHERE = frozenset(
    (
        *("CUTLASS_MLA", "FLASHINFER_MLA", "TOKENSPEED_MLA", "FLASH_ATTN_MLA", "FLASHMLA"),
        *("FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE", "HPC_ATTN", "TRITON_FLASH_ATTN"),
    )
)
_OWN_ATTENTION = "deepseek_v4"
_FOREIGN = ("ROCM_", "XPU_", "CPU_")
_HEAD_SIZES = {"FLASHINFER": (64, 128, 256, 512), "B12X": (64, 128, 192, 256)}
_PLAIN = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "B12X")
# The KV cache types that a backend reads on a GB10.
_WIDE = ("auto", "float16", "bfloat16")
_EIGHT = ("fp8", "fp8_e4m3")
_CACHES: Mapping[str, tuple[str, ...]] = {
    "FLASH_ATTN": _WIDE,
    "FLEX_ATTENTION": _WIDE,
    "FLASHINFER": (*_WIDE, *_EIGHT, "fp8_e5m2", "nvfp4"),
    "TRITON_ATTN": (
        *(*_WIDE, *_EIGHT, "fp8_e5m2"),
        *("int4_per_token_head", "int8_per_token_head", "fp8_per_token_head"),
    ),
    "B12X": ("auto", "bfloat16", *_EIGHT),
    "TRITON_MLA": (*_WIDE, *_EIGHT),
    "FLASHINFER_MLA_SPARSE_SM120": ("auto", "bfloat16", *_EIGHT, "fp8_ds_mla"),
}
# Cache types that only one backend reads, which is used unless the site names one that does.
_OWN = {"turboquant_": "TURBOQUANT", "ultraquant_": "ULTRAQUANT"}
# Backends for image encoders.
_ENCODERS = ("FLASH_ATTN", "TRITON_ATTN", "TORCH_SDPA", "FLASHINFER")


def _requested(start: Start) -> str:
    return (start.word(_BACKEND) or start.word("attention-config", "backend")).upper()


def _backend(start: Start) -> str:
    """The backend for the usual attention: the DeepSeek V4 family has classes of its own."""
    return "" if start.model_type.startswith(_OWN_ATTENTION) else _requested(start)


def _refuse(start: Start, message: str, remedy: str = _AUTOMATIC) -> Refusal:
    if _BACKEND in start.settings:
        return start.refuse(_BACKEND, message, remedy)
    return start.refuse("attention-config", message, remedy, "backend")


def _has_sinks(start: Start) -> bool:
    return start.model_type == "gpt_oss"


def _is_latent(start: Start) -> bool | None:
    return start.known.latent if start.known else None


def _for_another_gpu(start: Start) -> Refusal | None:
    name = _requested(start)
    if name in _ELSEWHERE or name.endswith("_SPARSE_SM90") or name.startswith(_FOREIGN):
        return _refuse(start, f"{name} has no kernels for a GB10")
    return None


def _for_another_attention(start: Start) -> Refusal | None:
    name, latent = _backend(start), _is_latent(start)
    if latent is True and name in _PLAIN:
        return _refuse(
            start, f"{name} does not support latent attention (MLA), which the model uses"
        )
    if latent is False and "MLA" in name and name not in _ELSEWHERE:
        return _refuse(
            start, f"{name} is only for latent attention (MLA), which the model does not use"
        )
    return None


def _without_sinks(backend: str) -> Callable[[Start], Refusal | None]:
    def sinks(start: Start) -> Refusal | None:
        if not _has_sinks(start) or _backend(start) != backend:
            return None
        return _refuse(
            start,
            f"{backend} does not support attention sinks on a GB10, and the model has them",
            "write TRITON_ATTN, or take it out",
        )

    return sinks


def _tiny_heads(start: Start) -> Refusal | None:
    size = start.known.head_dim if start.known else None
    if size and size < 32 and _backend(start) == "TRITON_ATTN":
        return _refuse(start, f"TRITON_ATTN does not support a head size of {size}")
    return None


def _half_floats_of_b12x(start: Start) -> Refusal | None:
    if _backend(start) == "B12X" and start.word("dtype") in ("float16", "half", "float32"):
        return _refuse(
            start, f"B12X computes only in bfloat16, and the site asks for {start.word('dtype')}"
        )
    return None


def _head_size(start: Start) -> Refusal | None:
    name, size = _backend(start), start.known.head_dim if start.known else None
    if not size or _is_latent(start):
        return None
    sizes = _HEAD_SIZES.get(name)
    if (sizes and size not in sizes) or (name == "FLASH_ATTN" and (size % 8 or size > 256)):
        return _refuse(start, f"{name} does not support a head size of {size}")
    return None


def _version_of_flash_attention(start: Start) -> Refusal | None:
    if start.word("attention-config", "flash_attn_version") in ("3", "4"):
        return start.refuse(
            "attention-config",
            "a GB10 always runs version 2 of FlashAttention",
            "take it out",
            "flash_attn_version",
        )
    return None


def _cache_of_the_backend(start: Start) -> Refusal | None:
    dtype, name = start.model.kv_cache_dtype or "", _backend(start)
    if not dtype or not name:
        return None
    own = next((owner for prefix, owner in _OWN.items() if dtype.startswith(prefix)), "")
    if own and name != own:
        message, remedy = (
            f"only {own} supports a KV cache in {dtype}",
            f"write {own}, or take it out",
        )
        return _refuse(start, message, remedy)
    if not own and name in _CACHES and dtype not in _CACHES[name]:
        reads = [other for other, types in _CACHES.items() if dtype in types and "MLA" not in other]
        others = f", or write {' or '.join(reads)}" if reads and not _is_latent(start) else ""
        message = f"{name} does not support a KV cache in {dtype.partition('_e')[0]} on a GB10"
        return _refuse(start, message, f"take it out{others}")
    return None


def _cache_of_other_gpus(start: Start) -> Refusal | None:
    dtype = start.model.kv_cache_dtype or ""
    if dtype.startswith("octave_"):
        return Refusal(f"a KV cache in {dtype} is only for AMD GPUs", _CACHE, "write fp8")
    return None


def _five_bit_mantissas(start: Start) -> Refusal | None:
    if start.model.kv_cache_dtype != "fp8_e5m2":
        return None
    if start.form.startswith("fp8"):
        message = "a KV cache in fp8_e5m2 can't be combined with fp8 weights"
    elif _is_latent(start):
        message = "latent attention (MLA) does not support a KV cache in fp8_e5m2"
    else:
        return None
    return Refusal(message, _CACHE, "write fp8")


def _small_floats(start: Start) -> Refusal | None:
    dtype, known = start.model.kv_cache_dtype or "", start.known
    if dtype == "nvfp4_ds_mla" and version(start.engine.version).local:
        # Custom builds for GB10 have it: MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark.
        return None
    if dtype in ("nvfp4_4over6", "nvfp4_ds_mla"):
        return Refusal(f"a GB10 does not support a KV cache in {dtype}", _CACHE, "write fp8")
    if dtype != "nvfp4":
        return None
    if _is_latent(start):
        return Refusal(
            "latent attention (MLA) does not support a KV cache in nvfp4", _CACHE, "write fp8"
        )
    if _has_sinks(start) or (known and known.head_dim == 64):
        return Refusal(
            "on a GB10, a KV cache in nvfp4 needs a head size above 64 and no attention sinks",
            _CACHE,
            "write fp8",
        )
    return None


def _smaller_floats(start: Start) -> Refusal | None:
    if start.model.kv_cache_dtype == "nvfp4":
        message = f"vLLM {start.engine.version} does not support a KV cache in nvfp4 on a GB10"
        return Refusal(message, _CACHE, "write fp8, or take vLLM 0.32 or later")
    return None


def _cache_of_pools(start: Start) -> Refusal | None:
    known, dtype = start.known, start.model.kv_cache_dtype or "auto"
    built = version(start.engine.version)
    if known is None or not known.indexes_pools or dtype in ("auto", "bfloat16"):
        return None
    if built.local or built.dev != version("0").dev:
        # Many patched builds had it before a release did: vLLM issue 54426.
        return None
    if built < version("0.31"):
        return Refusal(
            f"vLLM {start.engine.version} supports only a 16-bit KV cache for this model",
            _CACHE,
            "take it out, or take vLLM 0.31 or later",
        )
    if dtype not in _EIGHT:
        return Refusal(
            f"this model does not support a KV cache in {dtype}",
            _CACHE,
            "write fp8, or take it out",
        )
    return None


def _cache_of_another_type(start: Start) -> Refusal | None:
    cached, dtype = start.model.kv_cache_dtype, start.word("dtype").replace("half", "float16")
    types = {"float16", "bfloat16"}
    if {cached, dtype} == types:
        message = f"the KV cache is in {cached}, and the model in {dtype}"
        return Refusal(message, _CACHE, "take one of the two out")
    return None


def _sparse_attention(start: Start) -> Refusal | None:
    if start.known and start.known.indexer and start.known.latent:
        return Refusal(
            f"vLLM {start.engine.version} does not support the model's sparse attention on a GB10",
            ("engine", "version"),
            "take vLLM 0.24 or later",
        )
    return None


def _sparse_backend(start: Start) -> Refusal | None:
    name = _backend(start)
    sparse = start.known and start.known.indexer and start.known.latent
    # Custom builds for GB10 have more of b12x than vLLM: eugr/spark-vllm-docker, mods/exp-b12x.
    runs = name == "FLASHINFER_MLA_SPARSE_SM120" or name.startswith("B12X")
    if sparse and "MLA" in name and name not in _ELSEWHERE and not runs:
        return _refuse(start, f"{name} does not support the model's sparse attention on a GB10")
    return None


def _block_size(start: Start) -> Refusal | None:
    size = start.number("block-size")
    # Custom builds have other kernels of b12x.
    own = version(start.engine.version).local
    if size not in (None, 64, 128) and _backend(start) == "B12X" and not own:
        return start.refuse(
            "block-size", "B12X supports only block sizes 64 and 128", "write 64 or 128"
        )
    if size is not None and size % 16:
        return start.refuse(
            "block-size", "no backend supports this block size", "write a multiple of 16"
        )
    return None


_BACKENDS, _VLLM = "vllm/v1/attention", "vllm/config/vllm.py"
_NEWER = (0, 33)

CONDITIONS = (
    Condition(_for_another_gpu, "vllm/platforms/cuda.py:443"),
    Condition(_for_another_attention, f"{_BACKENDS}/backend.py:314"),
    Condition(_without_sinks("FLASH_ATTN"), f"{_BACKENDS}/backends/flash_attn.py:452"),
    # Its kernels for compute capability 12 have sinks since 0.28.
    Condition(
        _without_sinks("FLASHINFER"), f"{_BACKENDS}/backends/flashinfer.py:453", until=(0, 28)
    ),
    Condition(_tiny_heads, f"{_BACKENDS}/backends/triton_attn.py:379"),
    Condition(_half_floats_of_b12x, f"{_BACKENDS}/backends/b12x.py:225", (0, 30)),
    Condition(
        one_of(
            "mm-encoder-attn-backend",
            (*_ENCODERS, *map(str.lower, _ENCODERS)),
            "does not run image encoders",
            f"write {', '.join(_ENCODERS)}, or take it out",
        ),
        "vllm/platforms/cuda.py:545",
    ),
    Condition(_head_size, f"{_BACKENDS}/backends/flashinfer.py:691"),
    Condition(
        _version_of_flash_attention, f"{_BACKENDS}/backends/fa_utils.py:120", effect=Effect.DIFFERS
    ),
    Condition(_cache_of_the_backend, f"{_BACKENDS}/backends/flash_attn.py:438"),
    Condition(_cache_of_other_gpus, f"{_BACKENDS}/backends/rocm_octave_attn.py:95", _NEWER),
    Condition(_five_bit_mantissas, "vllm/model_executor/layers/attention/attention.py:205"),
    Condition(_small_floats, f"{_BACKENDS}/backends/flashinfer.py:667", (0, 32)),
    Condition(_smaller_floats, f"{_BACKENDS}/backends/flashinfer.py:499", (0, 20), (0, 32)),
    Condition(_cache_of_pools, "vllm/models/qwen4_exp/nvidia/qsa.py:258", (0, 29)),
    Condition(_cache_of_another_type, f"{_VLLM}:1505", _NEWER),
    Condition(_sparse_attention, f"{_BACKENDS}/backends/mla", until=(0, 24)),
    Condition(_sparse_backend, f"{_BACKENDS}/backends/mla/flashinfer_mla_sparse.py:164", (0, 24)),
    Condition(_block_size, f"{_BACKENDS}/backend.py"),
)
