"""A Hugging Face config.json as the `architecture` of a site file, and what it does not say.

Known families: Llama, Mistral, Qwen 2 to 3.6, gpt-oss, DeepSeek and Kimi (MLA), GLM, MiniMax,
Nemotron-H, Gemma. Key names are those of transformers' `configuration_*.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]
Value = int | float | str | bool

# Where models of several parts keep that of text.
_TEXT = ("text_config", "llm_config", "language_config", "thinker_config")

# The same size under the names of several families; the first that is there is taken.
_SIZES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "hidden_size": ("hidden_size", "n_embd"),
    "vocab_size": ("vocab_size",),
    "max_context": ("max_position_embeddings", "n_positions", "max_seq_len"),
}
_EXPERTS: Mapping[str, tuple[str, ...]] = {
    "experts": ("n_routed_experts", "num_experts", "num_local_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "top_k_experts"),
    "expert_intermediate_size": ("moe_intermediate_size", "expert_intermediate_size"),
    "expert_latent_size": ("moe_latent_size",),
}
_LATENT = ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
_LINEAR: Mapping[str, str] = {
    "linear_key_heads": "linear_num_key_heads",
    "linear_key_dim": "linear_key_head_dim",
    "linear_value_heads": "linear_num_value_heads",
    "linear_value_dim": "linear_value_head_dim",
}
_MAMBA = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups")
_INDEXER: Mapping[str, str] = {"index_head_dim": "index_head_dim", "index_heads": "index_n_heads"}

# Families whose query projection is twice as wide, and those whose head is the embedding again.
_GATED = ("qwen3_next", "qwen3_5", "qwen4")
_TIED = ("gemma",)
# Families with a window of which a config.json does not say which layers have it.
_WINDOW_EVERY: Mapping[str, int] = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6}


class NoModelError(Exception):
    """The file is no config.json of a language model; the text says why."""


@dataclass(frozen=True, slots=True)
class Section:
    """Sizes by the keys of a site file, and sentences about what the files do not say."""

    architecture: Mapping[str, Value]
    remarks: tuple[str, ...]


def section(config: object, total_size: object = None) -> Section:
    """The architecture of a config.json; `total_size` in bytes is that of the weights' index.

    Raises NoModelError.
    """
    if not isinstance(config, Mapping):
        raise NoModelError("it holds no object")
    text = next((config[key] for key in _TEXT if isinstance(config.get(key), Mapping)), config)
    sizes = _Reader(text).sizes()
    remarks = [*_remarks(config, text, sizes)]
    form, doubt = _format(config.get("quantization_config") or text.get("quantization_config"))
    found: dict[str, Value] = {**sizes, "format": form}
    if doubt:
        remarks.append(doubt)
    if total_size is None:
        remarks.append(
            "weight_gb: the size of the *.safetensors files in GB (1e9 bytes), which is total_size "
            "of model.safetensors.index.json; without it nobody can say whether the model fits"
        )
    elif not isinstance(total_size, int) or isinstance(total_size, bool) or total_size <= 0:
        raise NoModelError("total_size of the index is not a number of bytes")
    else:
        found["weight_gb"] = max(0.01, round(total_size / 1e9, 2))
    return Section(found, tuple(remarks))


class _Reader:
    """The sizes of one config; a size that is there and no number is an error."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.kind = str(config.get("model_type", ""))

    def sizes(self) -> dict[str, Value]:
        """All sizes by the keys of a site file."""
        found = {key: self.first(names) for key, names in _SIZES.items()}
        for key in ("layers", "heads", "hidden_size"):
            if not found[key] and not (key == "layers" and self._pattern()):
                raise NoModelError(f"'{_SIZES[key][0]}' is missing")
        layers = len(self._pattern()) or found["layers"]
        heads, hidden = found["heads"], found["hidden_size"]
        assert layers
        assert heads
        assert hidden
        found |= {"layers": layers, "kv_heads": found["kv_heads"] or heads}
        if self.get("kv_lora_rank") is None:
            found["head_dim"] = self.get("head_dim") or hidden // heads
        flags = {"tied_embeddings": self._is_tied(), "output_gate": self._is_gated()}
        experts = self._experts()
        return {
            **{key: size for key, size in found.items() if size is not None},
            **{key: True for key, on in flags.items() if on},
            **self._dense(experts),
            **self._attention(layers),
            **experts,
        }

    def get(self, name: str) -> int | None:
        """A size by its own name."""
        value = self.config.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise NoModelError(f"'{name}' is not a whole number")
        return value

    def first(self, names: tuple[str, ...]) -> int | None:
        """A size by the first of its names that is there."""
        return next((size for name in names if (size := self.get(name)) is not None), None)

    def _pattern(self) -> str:
        """Nemotron's kinds of layers, a letter each: M Mamba, * attention, E experts, - dense."""
        pattern = self.config.get("hybrid_override_pattern")
        return pattern if isinstance(pattern, str) else ""

    def _is_tied(self) -> bool:
        return bool(self.config.get("tie_word_embeddings", self.kind.startswith(_TIED)))

    def _is_gated(self) -> bool:
        return bool(self.config.get("attn_output_gate", self.kind.startswith(_GATED)))

    def _experts(self) -> dict[str, Value]:
        found = {key: self.first(names) for key, names in _EXPERTS.items()}
        if not found["experts"]:
            return {}
        found["expert_intermediate_size"] = found["expert_intermediate_size"] or self.get(
            "intermediate_size"
        )
        shared = self.first(
            ("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size")
        )
        count = self.get("n_shared_experts") or (1 if shared else None)
        found |= {
            "shared_experts": count,
            "shared_intermediate_size": shared if count else None,
            "dense_layers": self.get("first_k_dense_replace"),
        }
        if self._pattern():
            found |= {"expert_layers": self._pattern().count("E"), "expert_matrices": 2}
        return {key: size for key, size in found.items() if size}

    def _dense(self, experts: Mapping[str, Value]) -> dict[str, Value]:
        """The width of layers without experts, if there are any."""
        size = self.get("intermediate_size")
        return {"intermediate_size": size} if size and _has_dense(experts) else {}

    def _attention(self, layers: int) -> dict[str, Value]:
        found: dict[str, int | None] = {}
        if self.get("kv_lora_rank") is not None:
            found |= {name: self.get(name) for name in _LATENT}
            found |= {key: self.get(name) for key, name in _INDEXER.items()}
        if pattern := self._pattern():
            found |= {"attention_layers": pattern.count("*"), "mamba_layers": pattern.count("M")}
            found |= {name: self.get(name) for name in _MAMBA}
        linear = self._linear_layers(layers)
        if linear:
            found |= {"linear_layers": linear}
            found |= {key: self.get(name) for key, name in _LINEAR.items()}
        sliding = self._sliding_layers(layers)
        if sliding:
            found |= {"sliding_layers": sliding, "sliding_window": self.get("sliding_window")}
        return {key: size for key, size in found.items() if size is not None}

    def _linear_layers(self, layers: int) -> int:
        if self.get("linear_num_value_heads") is None:
            return 0
        if types := _entries(self.config, "layer_types"):
            return types.count("linear_attention")
        interval = self.get("full_attention_interval")
        return layers - layers // interval if interval else 0

    def _sliding_layers(self, layers: int) -> int:
        if not self.get("sliding_window") or self.config.get("use_sliding_window") is False:
            return 0
        if types := _entries(self.config, "layer_types"):
            return types.count("sliding_attention")
        every = self.get("sliding_window_pattern") or _WINDOW_EVERY.get(self.kind)
        if every:
            return layers - layers // every
        return layers if self.kind == "mistral" else 0


def _entries(config: Config, name: str) -> list[Any]:
    """The entries of a list; none where there is none."""
    value = config.get(name)
    return value if isinstance(value, list) else []


def _has_dense(experts: Mapping[str, Value]) -> bool:
    return not experts or "dense_layers" in experts


def _remarks(config: Config, text: Config, sizes: Mapping[str, Value]) -> Iterator[str]:
    """What there is in the file that the section has no key for, or only nearly."""
    window = text.get("sliding_window") and text.get("use_sliding_window") is not False
    has_experts = "experts" in sizes
    doubts = {
        "vocab_size: the file does not say it": "vocab_size" not in sizes,
        "max_context: the file does not say it": "max_context" not in sizes,
        "experts_per_token: the file does not say it; without it there is no decode ceiling": (
            has_experts and "experts_per_token" not in sizes
        ),
        "the weights of what sees or hears are part of weight_gb and of the text layers here": (
            "vision_config" in config or "audio_config" in config
        ),
        "weight_gb holds the layers that predict further tokens too, if the files have them": (
            text.get("num_nextn_predict_layers") or text.get("mtp_num_hidden_layers")
        ),
        "some layers between those with experts have none: here all have them": has_experts
        and (text.get("mlp_only_layers") or text.get("decoder_sparse_step", 1) != 1),
        "only every so many layers have experts: here all have them": has_experts
        and text.get("interleave_moe_layer_step", 1) != 1,
        "heads of full attention are of another size: the KV cache comes out too small": (
            text.get("global_head_dim") or text.get("num_global_key_value_heads")
        ),
        "lightning attention is not known: its layers are counted as full attention": (
            0 in _entries(text, "attn_type_list")
        ),
        "linear_attn_config: which layers are linear is not read from it": (
            "linear_attn_config" in text
        ),
        "sliding_window: which layers have it the file does not say; none is counted so": (
            window and "sliding_layers" not in sizes
        ),
        "linear_layers: which layers are linear the file does not say": (
            "linear_num_value_heads" in text and "linear_layers" not in sizes
        ),
    }
    return (remark for remark, is_so in doubts.items() if is_so)


def _format(quantized: object) -> tuple[str, str]:
    """How the weights are packed, and what is doubtful about it."""
    if not isinstance(quantized, Mapping):
        return "bf16", ""
    method = str(quantized.get("quant_method", "")).lower()
    algorithm = str(quantized.get("quant_algo", "")).upper()
    if method == "compressed-tensors":
        return _compressed(quantized)
    if method.startswith("modelopt") or algorithm:
        forms = {"NVFP4": "nvfp4", "FP8": "fp8", "MIXED_PRECISION": "nvfp4-mixed", "MXFP8": "mxfp8"}
        return _known(forms.get(algorithm), method or algorithm)
    if method == "fp8":
        return ("fp8-block128" if quantized.get("weight_block_size") else "fp8"), ""
    if quantized.get("bits", quantized.get("w_bit", 4)) != 4:
        return _known(None, f"{method} with {quantized.get('bits')} bits")
    forms = {"gptq": "gptq-int4", "awq": "awq-int4", "mxfp4": "mxfp4"}
    autoround = "int4-autoround" if method.replace("_", "-").endswith("auto-round") else None
    return _known(forms.get(method, autoround), method)


def _compressed(quantized: Config) -> tuple[str, str]:
    form = str(quantized.get("format", ""))
    forms = {
        "nvfp4-pack-quantized": "nvfp4",
        "mxfp4-pack-quantized": "mxfp4",
        "float-quantized": "fp8",
        "pack-quantized": "int4",
    }
    return _known(forms.get(form), form or "compressed-tensors")


def _known(form: str | None, said: str) -> tuple[str, str]:
    if form:
        return form, ""
    return "bf16", f"format: '{said}' is not known; weight_gb counts, the split of it is as of bf16"
