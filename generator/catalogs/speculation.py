"""Speculative decoding: which methods each engine has, by version, and what each of them takes.

Sources: vLLM, vllm/config/speculative.py of 0.19.0 and 0.33.0; SGLang, sglang/srt/arg_groups/
speculative_hook.py and its flags by version; TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py;
llama.cpp, docs/speculative.md and common/arg.cpp.
"""

from collections.abc import Mapping
from typing import Literal

from generator.catalogs.versions import release
from generator.records import record

Need = Literal["needed", "optional", "class", "none"]
_Release = tuple[int, ...]


@record
class Method:
    """A method as an engine spells it; `source` is a draft model or class, `tokens` their number.

    A `tree` has branches and depth (`topk`, `steps`). The engine has it from the release `since`
    on, and no more from `until` on.
    """

    spelled: str
    source: Need
    tokens: Need = "needed"
    tree: bool = False
    since: _Release = ()
    until: _Release = ()

    def is_in(self, version: str) -> bool:
        """Whether a version of the engine has it."""
        number = release(version)
        return number >= self.since and (not self.until or number < self.until)


# Other words for the same: the engines' own, in any case and with dashes or underscores.
_ALIASES = {
    "nextn": "mtp",
    "standalone": "draft",
    "draft_model": "draft",
    "draft_target": "draft",
    "draft_simple": "draft",
    "draft_eagle3": "eagle3",
    "draft_mtp": "mtp",
    "draft_dflash": "dflash",
    "draft_dspark": "dspark",
}

METHODS: Mapping[str, Mapping[str, Method]] = {
    "vllm": {
        "mtp": Method("mtp", "optional"),
        "eagle": Method("eagle", "needed"),
        "eagle3": Method("eagle3", "needed"),
        "draft": Method("draft_model", "needed"),
        "ngram": Method("ngram", "none"),
        "ngram_gpu": Method("ngram_gpu", "none"),
        "suffix": Method("suffix", "none", tokens="optional"),
        "dflash": Method("dflash", "needed", since=(0, 20)),
        "dspark": Method("dspark", "optional", tokens="optional", since=(0, 25)),
        "custom_class": Method("custom_class", "class", since=(0, 22)),
        "extract_hidden_states": Method("extract_hidden_states", "none"),
        "medusa": Method("medusa", "needed", until=(0, 33)),
        "mlp_speculator": Method("mlp_speculator", "needed", until=(0, 33)),
    },
    "sglang": {
        "mtp": Method("EAGLE", "optional", tree=True),
        "eagle": Method("EAGLE", "optional", tree=True),
        "eagle3": Method("EAGLE3", "needed", tree=True),
        "draft": Method("STANDALONE", "needed", tree=True),
        "ngram": Method("NGRAM", "none"),
        "dflash": Method("DFLASH", "needed", tokens="optional", since=(0, 5, 11)),
        "dspark": Method("DSPARK", "optional", tokens="optional", since=(0, 5, 16)),
        "frozen_kv_mtp": Method("FROZEN_KV_MTP", "optional", tree=True, since=(0, 5, 12)),
    },
    "tensorrt-llm": {
        "mtp": Method("MTP", "none"),
        "eagle": Method("Eagle", "needed"),
        "eagle3": Method("Eagle3", "needed"),
        "draft": Method("Draft_Target", "needed"),
        "ngram": Method("NGram", "none"),
        "pard": Method("PARD", "needed", since=(1, 3)),
        "auto": Method("AUTO", "none", tokens="optional"),
        "save_hidden_states": Method("SaveState", "none", tokens="optional"),
    },
    "llama.cpp": {
        # Its --spec-draft-n-max has a default.
        "mtp": Method("draft-mtp", "none", tokens="optional"),
        "eagle3": Method("draft-eagle3", "needed", tokens="optional"),
        "draft": Method("draft-simple", "needed", tokens="optional"),
        "dflash": Method("draft-dflash", "needed", tokens="optional"),
        "dspark": Method("draft-dspark", "needed", tokens="optional"),
        "ngram": Method("ngram-simple", "none", tokens="optional"),
        "ngram_simple": Method("ngram-simple", "none", tokens="optional"),
        "ngram_map_k": Method("ngram-map-k", "none", tokens="optional"),
        "ngram_map_k4v": Method("ngram-map-k4v", "none", tokens="optional"),
        "ngram_mod": Method("ngram-mod", "none", tokens="optional"),
        "ngram_cache": Method("ngram-cache", "none", tokens="optional"),
    },
}

# What the flags of speculative decoding begin with, where they are no JSON.
PREFIXES: Mapping[str, str] = {"sglang": "speculative-", "llama.cpp": "spec-"}


def canonical(word: str) -> str:
    """A method's name here, whichever engine's spelling was written."""
    plain = word.lower().replace("-", "_")
    return _ALIASES.get(plain, plain)


def method_of(engine: str, word: str) -> Method | None:
    """What an engine has under a name.

    vLLM has names of its own for the prediction layers of each kind of model, such as `mimo_mtp`.
    """
    if engine == "vllm" and word.endswith("_mtp"):
        return Method(word, "optional")
    return METHODS.get(engine, {}).get(word)


def methods(engine: str, version: str) -> list[str]:
    """The methods that a version of an engine has."""
    return [word for word, known in METHODS[engine].items() if known.is_in(version)]


def has_no_weights(method: str) -> bool:
    """Whether drafts come from the text or from the model itself, and from no other model."""
    known = [of_engine[method] for of_engine in METHODS.values() if method in of_engine]
    return bool(known) and all(each.source == "none" for each in known)
