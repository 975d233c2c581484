"""A Hugging Face config.json as the `architecture` of a site file, and what it leaves open.

Known families: Llama, Mistral, Qwen 2 to 3.6, gpt-oss, DeepSeek and Kimi (MLA), GLM, MiniMax,
Nemotron-H, Gemma. Key names are those of transformers' `configuration_*.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.models.architecture import lacking_sizes
from generator.models.formats import packing
from generator.models.layer_kinds import (
    DENSE,
    EXPERTS,
    FULL,
    LINEAR,
    MAMBA,
    WINDOW,
    LayerKinds,
    layer_kinds,
    pattern_length,
)
from generator.models.unread import not_modelled, unread
from generator.records import record
from generator.resources import rows

Config = Mapping[str, Any]
ConfigValue = int | float | str | bool

# Where models of several parts have the part for text.
_TEXT = ("text_config", "llm_config", "language_config", "thinker_config")

# The names of each size in config.json, by the part of the model and the size; the first that is
# present is used.
_NAMES: dict[str, dict[str, list[str]]] = {}
for _part, _size, _names in rows("config-sizes"):
    _NAMES.setdefault(_part, {})[_size] = _names.split()
_LATENT = ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
# Types of a recurrent state by their names in config.json, and the families whose default is the
# model's own. Source: vLLM, `_mamba_state_dtype`, `kda_state_dtype` (mamba_utils.py).
_STATES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
_WIDE_STATES = ("nemotron_h", "qwen3_5", "kimi_linear", "glm5_next")
# Families whose query projection is twice as wide, and those whose head reuses the embedding.
_GATED = ("qwen3_next", "qwen3_5", "qwen4")
_TIED = ("gemma", "cohere")
# Families that read a text at once, without a head or a cache. Source: vLLM, the encoders among
# `_EMBEDDING_MODELS` and `_SEQUENCE_CLASSIFICATION_MODELS` (models/registry.py).
_ENCODERS = (
    *("bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "electra", "mpnet"),
    *("modernbert", "nomic_bert", "new", "gte", "deberta", "deberta-v2"),
)


_WANTED = "the file does not say it; without it nobody can say whether the model fits"


class NoModelError(Exception):
    """The file is not the config.json of a language model; the message says why."""


@record
class Section:
    """Sizes by the keys of a site file, and sentences about what the files leave open."""

    architecture: Mapping[str, ConfigValue]
    remarks: tuple[str, ...]


def section(config: object, total_size: object = None, quantized: object = None) -> Section:
    """The architecture of a config.json; `total_size` in bytes is that of the weights' index.

    `quantized` is the content of hf_quant_config.json, if there is one. Raises NoModelError.
    """
    if not isinstance(config, Mapping):
        raise NoModelError("it holds no object")
    text = next((config[key] for key in _TEXT if isinstance(config.get(key), Mapping)), config)
    reader = _Reader(text)
    sizes = reader.sizes()
    kinds = reader.kinds
    remarks = [*_remarks(config, text, sizes)]
    remarks += [
        f"{kinds.source}: layers of the kind '{name}' are not known" for name in kinds.unknown
    ]
    form, doubt = packing(config, text, quantized)
    found: dict[str, ConfigValue] = {**sizes, "format": form}
    if kind := config.get("model_type"):
        found["model_type"] = str(kind)
    if doubt:
        remarks.append(doubt)
    strange = kinds.source if kinds.unknown else ""
    if why := sizes.get("not_modelled") or not_modelled(text, sizes) or strange:
        found["not_modelled"] = why
        remarks.append(f"{why}: what it does to memory is not modelled: whether it fits is unknown")
    remarks += unread(text)
    remarks += [f"{name}: {_WANTED}" for name in lacking_sizes(found)]
    if total_size is None:
        remarks.append(
            "weight_gb: the size of the *.safetensors files in GB (1e9 bytes), which is total_size "
            "of model.safetensors.index.json; without it nobody can say whether the model fits"
        )
    elif not isinstance(total_size, int) or isinstance(total_size, bool) or total_size <= 0:
        raise NoModelError("total_size of the index is not a number of bytes")
    else:
        # Engines cast 32 bits to 16 when they load: vLLM's and SGLang's `--dtype auto`.
        wide = "float32" in (text.get("torch_dtype"), text.get("dtype"), config.get("torch_dtype"))
        found["weight_gb"] = max(0.01, round(total_size / (2e9 if wide else 1e9), 2))
    return Section(found, tuple(remarks))


class _Reader:
    """The sizes of one config; a size that is not a number is an error."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.kind = str(config.get("model_type", ""))
        self.kinds = LayerKinds(0, {})

    def sizes(self) -> dict[str, ConfigValue]:
        """All sizes by the keys of a site file."""
        found = self.named("model")
        layers = pattern_length(self.config) or self._required("layers")
        heads, hidden = self._required("heads"), self._required("hidden_size")
        self.kinds = layer_kinds(self.config, layers)
        found |= {"layers": layers, "kv_heads": found["kv_heads"] or self._default_kv(heads)}
        if self.get("kv_lora_rank") is None:
            names = ("head_dim", "attention_head_dim", "kv_channels")
            found["head_dim"] = self.first(names) or hidden // heads
        flags = {
            "tied_embeddings": self._is_tied(),
            "output_gate": self._is_gated(),
            "encoder": self._is_encoder(),
        }
        experts = self._experts(layers)
        return {
            **{key: size for key, size in found.items() if size is not None},
            **{key: True for key, on in flags.items() if on},
            **self._dense(experts),
            **self._latent(),
            **self._sparse(),
            **self._attention(layers),
            **self._other_heads(),
            **self._heads_of_layers(),
            **self._unplaced(),
            **self._states(),
            **self._convolutions(),
            **self._compressed(layers),
            **experts,
            **self._own_blocks(heads, found.get("head_dim") or 0),
        }

    def get(self, name: str) -> int | None:
        """A size by its standard name."""
        value = self.config.get(name)
        if isinstance(value, list) and len({*map(str, value)}) == 1:
            value = value[0]
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise NoModelError(f"'{name}' is not a whole number")
        return value

    def first(self, names: Sequence[str]) -> int | None:
        """A size by the first of its names that is present."""
        return next((size for name in names if (size := self.get(name)) is not None), None)

    def named(self, part: str) -> dict[str, int | None]:
        """The sizes of a part of the model; None if none of a size's names is present."""
        return {key: self.first(names) for key, names in _NAMES[part].items()}

    def _required(self, key: str) -> int:
        """A size that every model has."""
        names = _NAMES["model"][key]
        if size := self.first(names):
            return size
        raise NoModelError(f"'{names[0]}' is missing")

    def _default_kv(self, heads: int) -> int:
        """The number of key heads if not given: groups in ChatGLM, a single one in Falcon."""
        if self.config.get("multi_query_attention") is True:
            return self.get("multi_query_group_num") or heads
        is_one = self.config.get("multi_query") is True
        return 1 if is_one and not self.config.get("new_decoder_architecture") else heads

    def _is_tied(self) -> bool:
        is_tied = self.config.get("tie_word_embeddings")
        if is_tied is None:
            is_tied = self.kind.startswith(_TIED)
        return bool(is_tied) or self._is_encoder()

    def _is_encoder(self) -> bool:
        """Whether it reads a text at once, according to the kind of model."""
        return self.kind in _ENCODERS and not self.config.get("is_decoder")

    def _is_gated(self) -> bool:
        default = self.config.get("use_gqa_gate", self.kind.startswith(_GATED))
        return bool(self.config.get("attn_output_gate", default))

    def _experts(self, layers: int) -> dict[str, ConfigValue]:
        found = self.named("experts")
        switches = ("enable_moe_block", "is_moe")
        if not found["experts"] or any(self.config.get(name) is False for name in switches):
            return {}
        found["expert_intermediate_size"] = found["expert_intermediate_size"] or self.get(
            "intermediate_size"
        )
        own = self.named("shared")
        shared, count = own["size"], own["count"] or (1 if own["size"] else None)
        if self.config.get("enable_moe_block") is True:
            # Gemma 4 has a dense part beside the experts of each layer.
            count, shared = 1, self.get("intermediate_size")
        if self.kind.startswith("llama4"):
            count, shared = 1, found["expert_intermediate_size"]
        found |= {
            "shared_experts": count,
            "shared_intermediate_size": shared if count else None,
            "dense_layers": self._dense_layers(layers),
        }
        if self.kinds[EXPERTS]:
            found |= {"expert_layers": self.kinds[EXPERTS], "expert_matrices": 2}
        return {key: size for key, size in found.items() if size}

    def _dense_layers(self, layers: int) -> int | None:
        """The number of layers without experts: as listed, or from the step between those with."""
        step = self.get("interleave_moe_layer_step") or self.get("decoder_sparse_step") or 1
        listed = _entries(self.config, "mlp_only_layers")
        frequency = _entries(self.config, "moe_layer_freq")
        if frequency:
            return sum(1 for each in frequency[:layers] if each == 0)
        if types := _entries(self.config, "mlp_layer_types"):
            return types[:layers].count("dense")
        if whether := _entries(self.config, "is_moe_layer"):
            return whether[:layers].count(False)
        if listing := re.findall(r"\d+", str(self.config.get("moe_layers_enum") or "")):
            return layers - len({each for each in map(int, listing) if each < layers})
        alternate = layers - layers // step if step > 1 else 0
        names = ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
        first = self.first((*names, "dense_mlp_idx"))
        return first or alternate + len(listed)

    def _dense(self, experts: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
        """The width of layers without experts, if there are any."""
        names = (
            *("intermediate_size_mlp", "dense_intermediate_size", "prefix_dense_intermediate_size"),
            *("intermediate_size", "ffn_hidden_size", "n_inner"),
        )
        size = self.first(names)
        has_dense = not experts or "dense_layers" in experts or bool(self.kinds[DENSE])
        return {"intermediate_size": size} if size and has_dense else {}

    def _is_latent(self) -> bool:
        """Whether keys and values are cached as a latent, or compressed."""
        return bool(self.get("kv_lora_rank") or _entries(self.config, "compress_ratios"))

    def _latent(self) -> dict[str, ConfigValue]:
        if self.get("kv_lora_rank") is None:
            own = self.get("v_head_dim")
            return {"value_head_dim": own} if own and own != self.get("head_dim") else {}
        found = {name: self.get(name) for name in _LATENT}
        found |= self.named("index")
        if types := _entries(self.config, "indexer_types"):
            found["index_layers"] = types.count("full")
        return {key: size for key, size in found.items() if size is not None}

    def _attention(self, layers: int) -> dict[str, ConfigValue]:
        kinds, found = self.kinds, dict[str, int | None]()
        if kinds[MAMBA] or kinds.unknown:
            found["attention_layers"] = kinds[FULL]
        if kinds[MAMBA]:
            found["mamba_layers"] = kinds[MAMBA]
            found |= self.named("mamba")
        if kinds[LINEAR]:
            found["linear_layers"] = kinds[LINEAR]
            inside = self.config.get("linear_attn_config")
            if isinstance(inside, Mapping):
                found |= _Reader(inside).named("kda")
            else:
                is_kda = self.config.get("linear_num_heads")
                found |= self.named("plain_kda" if is_kda else "linear")
        window = self.first(("sliding_window", "sliding_window_size", "attention_chunk_size"))
        if kinds[WINDOW] and window and self.config.get("use_sliding_window") is not False:
            found |= {"sliding_layers": kinds[WINDOW], "sliding_window": window}
        return {key: size for key, size in found.items() if size is not None}

    def _sparse(self) -> dict[str, ConfigValue]:
        """The index of MiniMax-M3 and of Qwen4-Exp, in 16 bits.

        Source: vLLM 0.33.0, vllm/models/minimax_m3/nvidia/model.py, lines 99 and 438, and
        vllm/models/qwen4_exp/nvidia/indexer_qsa.py.
        """
        inside, found = self.config.get("sparse_attention_config"), dict[str, int | None]()
        if isinstance(inside, Mapping) and inside.get("use_sparse_attention"):
            layers = [each for each in _entries(inside, "sparse_attention_freq") if each == 1]
            found = _Reader(inside).named("block_index")
            found["index_layers"] = len(layers) or None
        elif self.get("indexer_head_dim"):
            found = self.named("pooled_index")
        elif self.get("index_head_dim") and not self._is_latent():
            found = self.named("index")
            sparse = _entries(self.config, "layer_types").count("minimax_m3_sparse")
            found["index_layers"] = sparse or None
        sizes: dict[str, ConfigValue] = {
            key: size for key, size in found.items() if size is not None
        }
        return sizes | {"index_wide": True} if sizes else {}

    def _unplaced(self) -> dict[str, ConfigValue]:
        """Mamba layers, if the file doesn't say which ones they are."""
        sizes = ("mamba_num_heads", "mamba_n_heads")
        name = next((name for name in sizes if self.config.get(name)), "")
        return {"not_modelled": name} if name and not self.kinds.of else {}

    def _heads_of_layers(self) -> dict[str, ConfigValue]:
        """Heads of layers that attend to all tokens, as listed by layer in transformers 5."""
        listed = self.config.get("per_layer_config")
        if not isinstance(listed, Mapping) or not listed:
            return {}
        names = {"head_dim": "global_head_dim", "num_key_value_heads": "global_kv_heads"}
        every = [entry for entry in listed.values() if isinstance(entry, Mapping)]
        is_of_all = len(every) == len(listed) == self.kinds[FULL]
        if not is_of_all or any(entry != every[0] or not set(entry) <= {*names} for entry in every):
            return {"not_modelled": "per_layer_config"}
        own = _Reader(every[0])
        sizes = {key: own.get(name) for name, key in names.items()}
        return {key: size for key, size in sizes.items() if size is not None}

    def _other_heads(self) -> dict[str, ConfigValue]:
        """Heads that differ by kind of layer; those of windows have the plain names."""
        found: dict[str, ConfigValue] = {}
        if size := self.get("global_head_dim"):
            found["global_head_dim"] = size
        if heads := self.get("num_global_key_value_heads"):
            found["global_kv_heads"] = heads
        if self.config.get("attention_k_eq_v") is True:
            found["shared_values"] = True
        if self.kinds[WINDOW]:
            found |= self._own_of_windows(
                "swa_num_key_value_heads", "num_key_value_heads", "kv_heads"
            )
            found |= self._own_of_windows("swa_head_dim", "head_dim", "head_dim")
        return found

    def _own_of_windows(self, name: str, of_others: str, key: str) -> dict[str, ConfigValue]:
        """A size of layers with a window, if it differs from that of the others."""
        own, theirs = self.get(name), self.get(of_others)
        return {key: own, f"global_{key}": theirs} if own and theirs and own != theirs else {}

    def _states(self) -> dict[str, ConfigValue]:
        """The bytes per element of a recurrent state, if it isn't in 32 bits."""
        if not (self.kinds[MAMBA] or self.kinds[LINEAR]):
            return {}
        dtype = self.config.get("mamba_ssm_dtype") or self.config.get("mamba_ssm_cache_dtype")
        default = 4 if self.kind.startswith(_WIDE_STATES) else 2
        if isinstance(self.config.get("linear_attn_config"), Mapping):
            default = 4
        size = _STATES.get(str(dtype).removeprefix("torch."), default)
        return {"state_dtype_bytes": size} if size < 4 else {}

    def _convolutions(self) -> dict[str, ConfigValue]:
        """Inkling's short convolutions, which are present if its files state the kernel."""
        kernel = self.get("sconv_kernel_size") if self.config.get("use_sconv", True) else None
        return {"convolution_window": kernel} if kernel else {}

    def _compressed(self, layers: int) -> dict[str, ConfigValue]:
        """DeepSeek-V4: which layers cache entries of several tokens, or those for others, too.

        The list also has a ratio for the layer that predicts tokens.
        """
        ratios = _entries(self.config, "compress_ratios")[:layers]
        sources = _entries(self.config, "kv_source_layer_ids")
        kept = [ratios[layer] for layer in sources if layer in range(len(ratios))]
        names = ("q_lora_rank", "qk_rope_head_dim", "o_lora_rank", "o_groups", "index_head_dim")
        known = {"0", "1", "2"} if kept else {"0", "4", "128"}
        if not ratios or not set(map(str, ratios)) <= known:
            return {}
        found = {name: self.get(name) for name in (*names, "sliding_window")}
        if kept:
            found |= {"sources_by_1": kept.count(1), "sources_by_2": kept.count(2)}
        else:
            found |= {"layers_by_4": ratios.count(4), "layers_by_128": ratios.count(128)}
        return {key: size for key, size in found.items() if size is not None}

    def _own_blocks(self, heads: int, head: int) -> dict[str, ConfigValue]:
        """Nemotron's models with a layout of its own for each layer: the heads of all, added up.

        Source: transformers' remote code of Llama-Nemotron, `BlockConfig.attention`.
        """
        parts = [
            block.get("attention")
            for block in _entries(self.config, "block_configs")
            if isinstance(block, Mapping)
        ]
        groups = [part.get("n_heads_in_group") for part in parts if isinstance(part, Mapping)]
        kv = [heads // size for size in groups if isinstance(size, int) and size > 0]
        if not kv:
            return {}
        elements = 2 * head * sum(kv)
        return {
            "kv_heads": max(kv),
            "attention_layers": len(parts),
            "kv_elements_per_token": elements,
        }


def _entries(config: Config, name: str) -> list[Any]:
    """The entries of a list; none if there is no list."""
    value = config.get(name)
    return value if isinstance(value, list) else []


def _remarks(config: Config, text: Config, sizes: Mapping[str, ConfigValue]) -> Iterator[str]:
    """Remarks about what the section has no key for, or no exact one."""
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
            text.get("num_nextn_predict_layers")
            or text.get("mtp_num_hidden_layers")
            or text.get("num_mtp_modules")
            or config.get("mtp_config")
        ),
        "block_configs: layers differ: weights are split evenly over them": (
            bool(_entries(text, "block_configs"))
        ),
        "hidden_size_per_layer_input: its table is counted among the layers": bool(
            text.get("hidden_size_per_layer_input")
        ),
        "num_attention_heads_per_layer: layers differ, and 'heads' stands for all of them": (
            len({n for n in _entries(text, "num_attention_heads_per_layer") if isinstance(n, int)})
            > 1
        ),
        "swa_num_attention_heads: layers with a window have other heads than 'heads' says": (
            "sliding_layers" in sizes
            and text.get("swa_num_attention_heads", sizes["heads"]) != sizes["heads"]
        ),
        "sliding_window: which layers have it the file does not say; none is counted so": (
            window and not {"sliding_layers", "layers_by_4", "sources_by_1"} & {*sizes}
        ),
        "linear_layers: which layers are linear the file does not say": (
            "linear_num_value_heads" in text and "linear_layers" not in sizes
        ),
    }
    return (remark for remark, is_so in doubts.items() if is_so)
