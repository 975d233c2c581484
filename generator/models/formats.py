"""How a checkpoint's weights are packed, from the quantization that its files state.

The names are those of `format` in a site file.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from generator.resources import rows

Config = Mapping[str, Any]

# Packed in several ways, or in one that has no name here: only the size counts.
MIXED = "mixed"

# The formats by what states them and by the name that it gives them.
_FORMATS: Mapping[tuple[str, str], str] = {
    (by, name): form for by, name, form in rows("quantizations")
}
# Methods whose weights have no single number of bits.
_OF_MANY_SIZES = ("exl2", "exl3", "bitsandbytes", "hqq", "aqlm", "torchao", "spqr", "vptq", "quark")


def packing(config: Config, text: Config, quantized: object) -> tuple[str, str]:
    """The format, and what is uncertain about it; `text` is the part of `config` about text.

    `quantized` is the content of hf_quant_config.json, which is NVIDIA's and says more.
    """
    inside = quantized.get("quantization") if isinstance(quantized, Mapping) else None
    quantization = inside or config.get("quantization_config") or text.get("quantization_config")
    if not isinstance(quantization, Mapping):
        return "bf16", ""
    form = _form(quantization)
    experts = text.get("expert_dtype") or quantization.get("store_dtype")
    if form and experts in ("fp4", "mxfp4") and form.startswith("fp8"):
        form = "fp4-fp8"
    if form:
        return form, ""
    method = quantization.get("quant_method") or quantization.get("quant_algo") or "no method"
    bits = f" with {quantization['bits']} bits" if "bits" in quantization else ""
    doubt = f"format: '{method}'{bits} is not known; weight_gb counts, spread evenly over layers"
    return MIXED, doubt


def named_form(source: str) -> str:
    """The format that the name of a repository tells; empty if it tells none."""
    name = source.rsplit("/", 1)[-1].lower()
    words = ((word, form) for (by, word), form in _FORMATS.items() if by == "word")
    return next((form for word, form in words if word in name), "")


def _form(quantization: Config) -> str | None:
    method = str(quantization.get("quant_method", "")).lower().replace("_", "-")
    algorithm = str(quantization.get("quant_algo", "")).upper()
    if method == "compressed-tensors":
        return _compressed(quantization)
    if method.startswith("modelopt") or algorithm:
        return _FORMATS.get(("modelopt", algorithm))
    if method == "fp8":
        return "fp8-block128" if quantization.get("weight_block_size") else "fp8"
    if form := _FORMATS.get(("method", method)):
        return form
    if kind := _type_of_numbers(quantization):
        return kind
    if method in _OF_MANY_SIZES:
        return MIXED
    bits = quantization.get("bits", quantization.get("w_bit", 4))
    family = next((each for each in ("gptq", "awq", "auto-round") if method.endswith(each)), "")
    if family and isinstance(bits, int):
        return _FORMATS.get((family, str(bits)), MIXED)
    return None


def _type_of_numbers(quantization: Config) -> str | None:
    """The type that AutoRound states for all weights, and Quark for most."""
    whole = quantization.get("global_quant_config")
    weights = whole.get("weight") if isinstance(whole, Mapping) else None
    name = weights.get("dtype") if isinstance(weights, Mapping) else quantization.get("data_type")
    return _FORMATS.get(("type", str(name).lower().replace("_", "-")))


def _compressed(quantization: Config) -> str | None:
    """The format, from the groups of layers that compressed-tensors distinguishes.

    Source: compressed-tensors, `QuantizationArgs` and `CompressionFormat`.
    """
    found = {*_groups(quantization)}
    if len(found) == 1:
        return found.pop()
    if found:
        return "nvfp4-mixed" if "nvfp4" in found else MIXED
    form = str(quantization.get("format", ""))
    names = {"pack-quantized": "int4", "int-quantized": "int8", "float-quantized": "fp8"}
    kinds = ("nvfp4", "mxfp4", "mxfp8")
    packed = next((kind for kind in kinds if form.startswith(kind)), None)
    return packed or names.get(form) or (MIXED if form == "mixed-precision" else None)


def _groups(quantization: Config) -> Iterator[str]:
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping) or not weights.get("num_bits"):
            continue
        bits, size = weights["num_bits"], weights.get("group_size")
        if weights.get("type") == "float":
            yield _float(bits, size, weights.get("strategy"))
        else:
            yield "int4" if bits == 4 else "int8" if bits == 8 else MIXED


def _float(bits: object, size: object, strategy: object) -> str:
    if bits == 4:
        return "mxfp4" if size == 32 else "nvfp4"
    if bits == 8:
        return "mxfp8" if size == 32 else "fp8-block128" if strategy == "block" else "fp8"
    return MIXED
