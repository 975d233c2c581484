"""SGLang's attention, KV cache and kernels on a GB10, which has compute capability 12.1."""

from generator.engines.sglang.startup.pages import PAGES as _PAGES
from generator.engines.startup import Condition, Effect, Refusal, Start

_FLAGS = ("attention-backend", "prefill-attention-backend", "decode-attention-backend")
_CACHE = ("model", "kv_cache_dtype")
# The flags for the backend that decodes states: the specific one, then the general one.
_STATES = ("linear-attn-decode-backend", "linear-attn-backend")
_RUNNER = "moe-runner-backend"
_ELSEWHERE = {
    "fa3": "compute capability 8.0 to 9.0",
    "cutedsl_mla": "compute capability 10.0",
    "tokenspeed_mla": "compute capability 10.0",
    "hpc_ops": "compute capability 9.0",
    "flashmla": "compute capability 9.0 and 10.0",
    "cutlass_mla": "compute capability 10.0",
}
_LATENT, _PLAIN = ("trtllm_mla", "cutedsl_mla"), ("trtllm_mha", "hpc_ops")
# The backends that a kind of model runs on, if that is not most of them.
_OF_KIND = {
    "gpt_oss": ("triton", "trtllm_mha", "fa3", "fa4", "ascend", "aiter", "intel_xpu"),
    "llama4": ("fa3", "aiter", "triton", "trtllm_mha", "ascend", "intel_xpu"),
    "qwen3_next": ("triton", "trtllm_mha", "flashinfer"),
    "qwen3_5": ("triton", "trtllm_mha", "flashinfer"),
    "qwen3_5_moe": ("triton", "trtllm_mha", "flashinfer"),
    "gemma4": ("trtllm_mha", "triton", "fa4", "ascend", "intel_xpu", "intel_amx", "aiter"),
}
# The backends that a kind of model does not run on.
_NOT_OF_KIND = {
    "olmo2": "flashinfer",
    "olmo3": "flashinfer",
    "lfm2": "triton",
    "lfm2_moe": "triton",
}
_DETERMINISTIC = ("ascend", "fa3", "fa4", "flashinfer", "intel_xpu", "triton")
# Kinds with recurrent layers, whose states are kept in a radix cache of their own.
_RECURRENT = ("qwen3_next", "qwen3_5", "qwen3_5_moe", "nemotron_h", "kimi_linear", "falcon_h1")
_METHODS = {
    "nvfp4": ("modelopt_fp4", "modelopt", "modelopt_mixed", "compressed-tensors"),
    "fp8-block128": ("fp8", "w8a8_fp8", "compressed-tensors"),
    "fp8": ("fp8", "w8a8_fp8", "modelopt", "modelopt_fp8", "compressed-tensors", "fbgemm_fp8"),
    "awq-int4": ("awq", "awq_marlin", "moe_wna16", "compressed-tensors"),
    "gptq-int4": ("gptq", "gptq_marlin", "moe_wna16", "compressed-tensors"),
    "mxfp4": ("mxfp4", "quark"),
}


def _for_another_gpu(start: Start) -> Refusal | None:
    for flag in _FLAGS:
        name = start.word(flag)
        if name in _ELSEWHERE:
            return start.refuse(
                flag,
                f"{name} needs {_ELSEWHERE[name]}, and a GB10 has 12.1",
                "write flashinfer or triton",
            )
    return None


def _for_another_attention(start: Start) -> Refusal | None:
    if start.known is None:
        return None
    for flag in _FLAGS:
        name = start.word(flag)
        if name in _ELSEWHERE:
            continue
        if name in _LATENT and not start.known.latent:
            return start.refuse(
                flag,
                f"{name} is only for latent attention (MLA), which the model does not use",
                "take it out",
            )
        if name in _PLAIN and start.known.latent:
            return start.refuse(
                flag,
                f"{name} does not support latent attention (MLA), which the model uses",
                "take it out",
            )
    return None


def _of_the_kind(start: Start) -> Refusal | None:
    known = _OF_KIND.get(start.model_type)
    for flag in _FLAGS if known else ():
        name = start.word(flag)
        if name and known and name not in known and name not in _ELSEWHERE:
            here = [other for other in known if other in ("triton", "trtllm_mha", "flashinfer")]
            return start.refuse(
                flag, f"{name} does not support this kind of model", f"write {' or '.join(here)}"
            )
    return None


def _not_of_the_kind(start: Start) -> Refusal | None:
    refused = _NOT_OF_KIND.get(start.model_type)
    if refused and start.word("attention-backend") == refused:
        other = "triton" if refused == "flashinfer" else "flashinfer"
        return start.refuse(
            "attention-backend", f"{refused} does not support this kind of model", f"write {other}"
        )
    return None


def _contexts_of_prompts(start: Start) -> Refusal | None:
    flag = next((name for name in reversed(_FLAGS[:2]) if start.word(name)), "")
    if flag and start.word(flag) == "trtllm_mha" and start.count("attn-cp-size") > 1:
        return start.refuse(
            flag,
            "on a GB10, trtllm_mha does not support prefill with context parallelism",
            "write flashinfer",
        )
    return None


def _contexts_of_a_kind(start: Start) -> Refusal | None:
    strategy, kind = start.word("cp-strategy"), start.model_type
    if not start.is_on("enable-prefill-cp"):
        return None
    if kind in ("deepseek_v32", "deepseek_v4") and strategy == "zigzag":
        return start.refuse(
            "cp-strategy", "the model does not support 'zigzag'", "write interleave"
        )
    if kind.startswith("mimo_v2") and strategy not in ("", "zigzag"):
        return start.refuse(
            "cp-strategy", f"the model does not support '{strategy}'", "write zigzag"
        )
    return None


def _contexts_of_nemotron(start: Start) -> Refusal | None:
    if start.model_type == "nemotron_h" and start.count("attn-cp-size") > 1:
        return start.refuse(
            "attn-cp-size", "nemotron_h models do not support context parallelism", "take it out"
        )
    return None


def _verified_states(start: Start) -> Refusal | None:
    name = "linear-attn-verify-backend"
    if start.word(name) == "flashinfer" and start.word("mamba-ssm-dtype") != "bfloat16":
        return start.refuse(
            name,
            "on a GB10, FlashInfer verifies drafts only with states in bfloat16",
            "write 'mamba-ssm-dtype: bfloat16' beside it",
        )
    return None


def _deterministic(start: Start) -> Refusal | None:
    name, flag = start.word("attention-backend"), "enable-deterministic-inference"
    if start.is_on(flag) and name and name not in _DETERMINISTIC and name not in _ELSEWHERE:
        return start.refuse(
            "attention-backend", f"{name} is not deterministic", "write flashinfer or triton"
        )
    return None


def _kernels_of_products(start: Start) -> Refusal | None:
    for flag, wrong in (
        ("fp4-gemm-backend", ("flashinfer_trtllm",)),
        ("fp8-gemm-backend", ("flashinfer_trtllm", "deep_gemm")),
    ):
        if start.word(flag) in wrong:
            message = f"{start.word(flag)} is for other GPUs than a GB10"
            return start.refuse(flag, message, "take it out: SGLang chooses one that runs")
    return None


def _snapped_pages(start: Start) -> Refusal | None:
    page, pages = start.number("page-size"), _PAGES.get(start.word("attention-backend"))
    if page is None or not pages or page in pages:
        return None
    shown = " or ".join(map(str, pages))
    message = f"{start.word('attention-backend')} supports pages of {shown}, and uses {pages[-1]}"
    return start.refuse("page-size", message, f"write {shown}")


def _states_without_buffer(start: Start) -> Refusal | None:
    name = "mamba-radix-cache-strategy"
    if start.word(name) != "no_buffer" or start.model_type not in _RECURRENT:
        return None
    if start.count("page-size") > 1:
        return start.refuse("page-size", "'no_buffer' needs pages of 1 token", "write 1")
    if start.word("attention-backend") == "trtllm_mha":
        return start.refuse(
            name, "'no_buffer' can't be combined with trtllm_mha", "write extra_buffer"
        )
    if not start.is_on("disable-overlap-schedule"):
        return start.refuse(
            name,
            "'no_buffer' can't be combined with overlapping steps",
            "write 'disable-overlap-schedule: true' beside it, or extra_buffer",
        )
    return None


def _cache_of_latent(start: Start) -> Refusal | None:
    dtype = start.model.kv_cache_dtype or "auto"
    if "trtllm_mla" in map(start.word, _FLAGS) and dtype not in (
        "auto",
        "fp8",
        "fp8_e4m3",
        "bf16",
        "bfloat16",
    ):
        return Refusal(
            f"trtllm_mla does not support a KV cache in {dtype}", _CACHE, "write fp8_e4m3"
        )
    return None


def _prompts_in_eight_bits(start: Start) -> Refusal | None:
    dtype = start.model.kv_cache_dtype
    flag = (
        "prefill-attention-backend"
        if start.word("prefill-attention-backend")
        else "attention-backend"
    )
    if start.word(flag) == "trtllm_mha" and dtype in ("fp8", "fp8_e4m3"):
        return start.refuse(
            flag,
            "on a GB10, trtllm_mha does not support prefill with a KV cache in fp8_e4m3",
            "write 'decode-attention-backend: trtllm_mha' and another 'prefill-attention-backend'",
        )
    return None


def _four_bits(start: Start) -> Refusal | None:
    dtype, flag = start.word("prefill-kv-cache-dequant-dtype"), "prefill-kv-cache-dequant-dtype"
    if start.model.kv_cache_dtype != "nvfp4":
        if dtype in ("", "auto"):
            return None
        return start.refuse(flag, "it is only for a KV cache in nvfp4", "take it out")
    prompts = next((name for name in reversed(_FLAGS[:2]) if start.word(name)), "")
    if start.word("decode-attention-backend") not in ("", "trtllm_mha"):
        flag, remedy = "decode-attention-backend", "write trtllm_mha, or take it out"
        return start.refuse(flag, "only trtllm_mha decodes from a KV cache in nvfp4", remedy)
    if dtype == "nvfp4" or (dtype in ("", "auto") and start.word(prompts) == "trtllm_mha"):
        at = flag if dtype == "nvfp4" else prompts
        return start.refuse(
            at,
            "a GB10 does not support prefill with a KV cache in nvfp4",
            f"write '{flag}: fp8_e4m3' beside it",
        )
    if prompts and start.word(prompts) not in ("flashinfer", "trtllm_mha"):
        other = f"{start.word(prompts)} does not support prefill with a KV cache in nvfp4"
        return start.refuse(prompts, other, "write flashinfer, or take it out")
    return None


def _cache_of_deepseek(start: Start) -> Refusal | None:
    dtype = start.model.kv_cache_dtype or "auto"
    if start.model_type in ("deepseek_v32", "deepseek_v4") and dtype not in (
        *("auto", "fp8", "fp8_e4m3", "bf16", "bfloat16"),
    ):
        return Refusal(
            f"the model does not support a KV cache in {dtype}",
            _CACHE,
            "write fp8_e4m3 or bfloat16",
        )
    return None


def _states(start: Start) -> Refusal | None:
    name = next((name for name in _STATES if start.word(name)), "")
    if start.word(name) == "flashinfer" and start.word("mamba-ssm-dtype") != "bfloat16":
        return start.refuse(
            name,
            "on a GB10, FlashInfer decodes only with states in bfloat16",
            "write 'mamba-ssm-dtype: bfloat16' beside it",
        )
    return None


def _other_method(start: Start) -> Refusal | None:
    method, known = start.model.quantization, _METHODS.get(start.form)
    if method == "nvfp4_online":
        message = "nvfp4_online has no kernels for a GB10"
    elif method and known and method not in known:
        message = f"the checkpoint is quantized in {start.form}, not for '{method}'"
    else:
        return None
    remedy = "take it out: the checkpoint says itself how it is quantized"
    return Refusal(message, ("model", "quantization"), remedy)


def _runner_of_other_gpus(start: Start) -> Refusal | None:
    name = start.word(_RUNNER)
    if name.startswith("flashinfer_trtllm") or name == "flashinfer_cutedsl":
        return start.refuse(
            _RUNNER, f"{name} has no kernels for a GB10", "take it out, or write flashinfer_cutlass"
        )
    return None


def _runner_of_another_form(start: Start) -> Refusal | None:
    packed = start.form.startswith(("awq", "gptq", "int4", "mxfp4"))
    if start.word(_RUNNER) == "flashinfer_cutlass" and packed:
        return start.refuse(
            _RUNNER, f"flashinfer_cutlass does not support experts in {start.form}", "take it out"
        )
    return None


_HOOK, _CACHES = "sglang/srt/arg_groups/attention_hook.py", "sglang/srt/arg_groups/kv_cache_hook.py"
_REGISTRY = "sglang/srt/layers/attention/attention_registry.py"
_MODEL = "sglang/srt/configs/model_config.py"

CONDITIONS = (
    Condition(_for_another_gpu, f"{_REGISTRY}:243"),
    Condition(_for_another_attention, f"{_REGISTRY}:97"),
    Condition(_of_the_kind, "sglang/srt/arg_groups/model_hook.py:519"),
    Condition(_not_of_the_kind, "sglang/srt/arg_groups/model_hook.py:694"),
    Condition(_contexts_of_prompts, f"{_HOOK}:233", (0, 5, 19)),
    Condition(_contexts_of_a_kind, "sglang/srt/arg_groups/parallel_hook.py:120", (0, 5, 20)),
    Condition(_contexts_of_nemotron, "sglang/srt/arg_groups/parallel_hook.py:77", (0, 5, 21)),
    Condition(_verified_states, f"{_HOOK}:373", (0, 5, 17)),
    Condition(_deterministic, "sglang/srt/arg_groups/overrides.py:1119"),
    # The available kernels are in the binaries of other packages.
    Condition(_kernels_of_products, ""),
    Condition(_snapped_pages, "sglang/srt/arg_groups/overrides.py:1146", effect=Effect.DIFFERS),
    Condition(_states_without_buffer, "sglang/srt/arg_groups/mamba_hook.py:155", (0, 5, 14)),
    Condition(_cache_of_latent, "sglang/srt/arg_groups/overrides.py:1215"),
    Condition(_prompts_in_eight_bits, f"{_HOOK}:218", (0, 5, 19)),
    Condition(_four_bits, f"{_CACHES}:41", (0, 5, 21)),
    Condition(_cache_of_deepseek, "sglang/srt/arg_groups/overrides.py:907"),
    Condition(_states, f"{_HOOK}:319", (0, 5, 10)),
    Condition(_other_method, f"{_MODEL}:2143"),
    Condition(_runner_of_other_gpus, "sglang/srt/layers/moe/moe_runner/flashinfer_trtllm.py"),
    # The check looks at the method that a flag or an override names; kernels are checked later.
    Condition(_runner_of_another_form, "", (0, 5, 6)),
)
