"""How people start the engines: the words that a command begins with, and where versions stand."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from generator.catalogs.versions import release


class Program(NamedTuple):
    """What begins a command that serves: a word, and the one behind it, if it needs one."""

    word: str
    second: str
    engine: str


# Source: the engines' own documentation, and the Compose files and scripts that people publish.
PROGRAMS: Sequence[Program] = (
    Program("vllm", "serve", "vllm"),
    Program("vllm.entrypoints.openai.api_server", "", "vllm"),
    Program("sglang", "serve", "sglang"),
    Program("sglang.launch_server", "", "sglang"),
    Program("serve.py", "serve", "sglang"),
    Program("trtllm-serve", "serve", "tensorrt-llm"),
    Program("trtllm-serve", "", "tensorrt-llm"),
    Program("llama-server", "", "llama.cpp"),
)
# What holds a part of a model for another node's server.
WORKERS: Mapping[str, str] = dict.fromkeys(
    ("ggml-rpc-server", "rpc-server", "llama-rpc-server"), "llama.cpp"
)
# What an image starts whose tag the catalog does not know, by a part of its name.
# Source: llama.cpp, .devops/cuda.Dockerfile: its server's images start llama-server; vLLM,
# docker/Dockerfile: vllm-openai starts the server, whatever the tag.
SERVERS: Mapping[str, str] = {
    "ggml-org/llama.cpp:server": "llama.cpp",
    "vllm/vllm-openai": "vllm",
}
# Who is served where `ray start` is all that a container says.
UNDER_RAY = "vllm"
# The folders that Python leaves of a package, and the variables of images that say a version.
PACKAGES: Mapping[str, str] = {"tensorrt_llm": "tensorrt-llm"}
VERSION_VARIABLES: Mapping[str, str] = {"vllm": "VLLM_VERSION", "sglang": "SGLANG_VERSION"}


# The release in the first image for Sparks, where that is older than all flags that are known.
# Source: docs.nvidia.com/deeplearning/frameworks/vllm-release-notes, 25.10.
FIRST_RELEASES: Mapping[str, str] = {"vllm": "0.10.2"}


class Recipe(NamedTuple):
    """How a recipe of sparkrun that has no command starts an engine, and its defaults as flags."""

    start: Sequence[str]
    flags: Mapping[str, str]


# Source: sparkrun 0.2.40, runtimes/vllm_ray.py, sglang.py, llama_cpp.py and trtllm.py.
RECIPES: Mapping[str, Recipe] = {
    "sglang": Recipe(
        ("sglang.launch_server", "--model-path"),
        {
            "tensor_parallel": "tp-size",
            "pipeline_parallel": "pp-size",
            "data_parallel": "dp-size",
            "gpu_memory_utilization": "mem-fraction-static",
            "max_model_len": "context-length",
            "max_num_seqs": "max-running-requests",
        },
    ),
    "llama": Recipe(
        ("llama-server", "--hf-repo"),
        {"served_model_name": "alias"},
    ),
    "trtllm": Recipe(
        ("trtllm-serve", "serve"),
        {
            "tensor_parallel": "tp_size",
            "pipeline_parallel": "pp_size",
            "expert_parallel": "ep_size",
            "max_model_len": "max_seq_len",
            # Its flags have underscores.
            **{name: name for name in ("max_num_tokens", "max_batch_size", "trust_remote_code")},
            "kv_cache_free_gpu_memory_fraction": "kv_cache_free_gpu_memory_fraction",
        },
    ),
    "vllm": Recipe(
        ("vllm", "serve"),
        {
            "tensor_parallel": "tensor-parallel-size",
            "pipeline_parallel": "pipeline-parallel-size",
            "data_parallel": "data-parallel-size",
        },
    ),
}


def recipe(runtime: str) -> Recipe | None:
    """How a runtime of sparkrun starts, vLLM unless one is named; None of one that nobody knows."""
    said = runtime or "vllm"
    return next((r for name, r in RECIPES.items() if re.search(rf"(^|[^a-z]){name}", said)), None)


def own_share(engine: str, version: str) -> str:
    """What an engine takes of the memory where nobody says; empty where it works that out.

    Source: vLLM 0.19.0 and 0.33.0, config/cache.py. Which release changed it is not known.
    """
    if engine != "vllm":
        return ""
    return "0.9" if version and release(version) < (0, 20) else "0.92"


def listens_everywhere(engine: str) -> bool:
    """Whether an engine that is given no address listens on all: vLLM does."""
    return engine == "vllm"
