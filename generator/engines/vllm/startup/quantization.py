"""Weight formats in vLLM, and the kernels for experts on a GB10."""

from generator.engines.startup import Condition, Effect, Refusal, Start
from generator.models.architecture import is_of_modelopt

_QUANTIZATION, _EXPERTS = ("model", "quantization"), "moe-backend"

# The methods that a checkpoint's own configuration can have, by how its weights are packed.
_METHODS = {
    "nvfp4": ("modelopt_fp4", "modelopt", "modelopt_mixed", "compressed-tensors"),
    "nvfp4-mixed": ("modelopt_fp4", "modelopt", "modelopt_mixed", "compressed-tensors"),
    "fp8-block128": ("fp8", "compressed-tensors", "deepseek_v4_fp8"),
    "fp8": ("fp8", "modelopt", "compressed-tensors", "fbgemm_fp8"),
    "awq-int4": ("awq", "auto_awq", "awq_marlin", "moe_wna16", "compressed-tensors", "humming"),
    "gptq-int4": ("gptq", "auto_gptq", "gptq_marlin", "moe_wna16", "compressed-tensors", "humming"),
    "mxfp4": ("mxfp4", "gpt_oss_mxfp4", "quark"),
}
# Backends for experts, likewise; those that no GB10 runs are in the next list.
_BACKENDS = {
    "nvfp4": (
        *("b12x", "cutlass", "flashinfer_cutlass", "flashinfer_moe_ep_cutedsl"),
        *("flashinfer_b12x", "marlin", "humming", "emulation"),
    ),
    "fp8": ("triton", "deep_gemm", "cutlass", "flashinfer_cutlass", "marlin", "humming"),
    "fp8-block128": ("triton", "deep_gemm", "cutlass", "flashinfer_cutlass", "marlin", "humming"),
    "mxfp4": (
        *("b12x", "deep_gemm", "flashinfer_cutlass", "triton", "triton_unfused", "humming"),
        "marlin",
    ),
    "bf16": ("triton", "batched_triton", "flashinfer_cutlass"),
    "awq-int4": ("triton", "marlin", "humming", "emulation"),
    "gptq-int4": ("triton", "marlin", "humming", "emulation"),
}
_OTHER_GPUS = ("flashinfer_trtllm", "flashinfer_cutedsl")
_SPREAD = "flashinfer_moe_ep_"

# Methods that only compute in bfloat16, and options of the usual weight loader.
_BFLOAT16_ALONE = ("mxfp4", "gpt_oss_mxfp4", "modelopt_mxfp8", "fp_quant")
_LOADER = ("enable_multithread_load", "num_threads", "enable_weights_track")

# Kinds whose activations exceed the range of float16.
_WIDE = ("gemma2", "gemma3", "gemma3_text", "glm4")


def _other_method(start: Start) -> Refusal | None:
    method, known = start.model.quantization, _METHODS.get(start.form)
    if method and known and method not in known and not is_of_modelopt(start.model):
        return Refusal(
            f"the checkpoint is quantized in {start.form}, not for '{method}'",
            _QUANTIZATION,
            "take it out: the checkpoint says itself how it is quantized",
        )
    return None


def _deprecated_method(start: Start) -> Refusal | None:
    method, allowed = start.model.quantization, "allow-deprecated-quantization"
    if method in ("fbgemm_fp8", "fp_quant") and not start.is_on(allowed):
        return Refusal(
            f"'{method}' is deprecated",
            _QUANTIZATION,
            f"take it out, or write '{allowed}: true' under engine.args",
        )
    return None


def _half_floats(start: Start) -> Refusal | None:
    if start.word("dtype") not in ("float16", "half"):
        return None
    if start.form.startswith("mxfp4"):
        message = "weights in MXFP4 need bfloat16"
    elif start.model_type in _WIDE:
        message = "the model's numbers exceed the range of float16"
    else:
        return None
    return start.refuse("dtype", message, "write bfloat16, or take it out")


def _half_floats_of_the_method(start: Start) -> Refusal | None:
    method, dtype = start.model.quantization or "", start.word("dtype")
    if method in _BFLOAT16_ALONE and dtype in ("float16", "half", "float32"):
        return start.refuse("dtype", f"'{method}' needs bfloat16", "write bfloat16, or take it out")
    return None


def _full_floats(start: Start, *, by_the_method: bool) -> Refusal | None:
    method = start.model.quantization or ""
    if start.word("dtype") not in ("float32", "float") or method in _BFLOAT16_ALONE:
        return None
    # A checkpoint by others may be in compressed-tensors, which accepts it.
    named = bool(method) and method not in ("compressed-tensors", "torchao")
    certain = named or is_of_modelopt(start.model) or start.form == "mxfp4"
    if certain is not by_the_method or not (certain or start.form in _METHODS):
        return None
    message = f"weights in {method or start.form} need a 16-bit dtype"
    return start.refuse("dtype", message, "write bfloat16, or take it out")


def _full_floats_of_a_method(start: Start) -> Refusal | None:
    return _full_floats(start, by_the_method=True)


def _full_floats_of_a_form(start: Start) -> Refusal | None:
    return _full_floats(start, by_the_method=False)


def _backend_with_an_extra(start: Start) -> Refusal | None:
    for name in (_EXPERTS, "linear-backend"):
        if start.word(name) == "b12x" and start.is_stock:
            return start.refuse(
                name,
                "b12x is a separate package, which vLLM's images lack",
                "take it out, or name an image of your own with 'vllm[b12x]'",
            )
    return None


def _mega_kernel_of_another_kind(start: Start) -> Refusal | None:
    name, kind = start.word(_EXPERTS), start.model_type
    if name == f"{_SPREAD}mega_deep_gemm" and kind and not kind.startswith("deepseek_v4"):
        return start.refuse(_EXPERTS, f"{name} is only for DeepSeek V4", "take it out")
    return None


def _linear_backend(start: Start) -> Refusal | None:
    name = start.word("linear-backend")
    if start.form.startswith("nvfp4") and name in ("flashinfer_cutedsl", "torch"):
        return start.refuse(
            "linear-backend",
            f"{name} does not support NVFP4 on a GB10, so vLLM chooses another",
            "take it out",
        )
    return None


def _loader_settings(start: Start) -> Refusal | None:
    name, given = "model-loader-extra-config", start.value("model-loader-extra-config")
    if start.word("load-format") not in ("", "auto", "hf", "safetensors", "mistral", "pt"):
        return None
    unknown = [key for key in given if key not in _LOADER] if isinstance(given, dict) else []
    if unknown:
        return start.refuse(
            name,
            f"the loader has no setting '{unknown[0]}'",
            f"write {' or '.join(_LOADER)}",
            str(unknown[0]),
        )
    return None


def _backend_of_another_form(start: Start) -> Refusal | None:
    name, known = start.word(_EXPERTS), _BACKENDS.get(start.form)
    if not name or name == "auto" or not start.known or not start.known.experts:
        return None
    if name in _OTHER_GPUS:
        message = f"{name} has no kernels for a GB10"
    elif (
        known
        and name not in known
        and not name.startswith(_SPREAD)
        and not start.model.quantization
    ):
        message = f"{name} does not support experts in {start.form}"
    else:
        return None
    usual = [other for other in known or () if other in ("flashinfer_cutlass", "marlin", "triton")]
    return start.refuse(
        _EXPERTS, message, f"write {' or '.join(usual)}, or take it out" if usual else "take it out"
    )


def _spread_backend(start: Start) -> Refusal | None:
    name = start.word(_EXPERTS)
    if not name.startswith(_SPREAD):
        return None
    if not start.sizes.expert:
        return start.refuse(_EXPERTS, f"{name} needs expert parallelism", "take it out")
    if "all2all-backend" in start.settings:
        return start.refuse("all2all-backend", f"{name} exchanges by itself", "take it out")
    return None


def _adapters_of_experts(start: Start) -> Refusal | None:
    name = start.word(_EXPERTS)
    if "mega" in name and start.is_on("enable-lora"):
        return start.refuse(_EXPERTS, f"{name} does not support LoRA adapters", "take it out")
    return None


_KERNELS = "vllm/model_executor/layers/fused_moe/oracle"

CONDITIONS = (
    Condition(_other_method, "vllm/config/model.py:1457"),
    Condition(_deprecated_method, "vllm/config/model.py:1480"),
    Condition(_half_floats, "vllm/config/model.py:2398"),
    Condition(_backend_of_another_form, f"{_KERNELS}/nvfp4.py:179", (0, 20)),
    Condition(_half_floats_of_the_method, "vllm/config/vllm.py:939"),
    Condition(_full_floats_of_a_method, "vllm/config/vllm.py:939"),
    Condition(_full_floats_of_a_form, ""),
    # No publisher lists what an image contains besides vLLM.
    Condition(_backend_with_an_extra, "", (0, 28)),
    Condition(_mega_kernel_of_another_kind, "vllm/config/kernel.py:235", (0, 29)),
    Condition(
        _linear_backend,
        "vllm/model_executor/kernels/linear/__init__.py:428",
        (0, 24),
        None,
        Effect.DIFFERS,
    ),
    Condition(_loader_settings, "vllm/model_executor/model_loader/default_loader.py:111"),
    Condition(_spread_backend, "vllm/config/kernel.py:211", (0, 29)),
    Condition(_adapters_of_experts, "vllm/config/lora.py:142", (0, 33)),
)
