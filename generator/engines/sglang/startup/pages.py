"""Page sizes of a KV cache, in tokens."""

from collections.abc import Mapping

# Backends that support only these page sizes; SGLang changes others to the last one.
PAGES: Mapping[str, tuple[int, ...]] = {
    "flashmla": (64,),
    "trtllm_mla": (32, 64),
    "cutedsl_mla": (32, 64),
    "trtllm_mha": (16, 32, 64, 128),
    "fa4": (128,),
}
