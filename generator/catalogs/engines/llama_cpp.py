"""llama.cpp's traits, its draft methods, and how people start it.

Sources: llama.cpp: `--ctx-size` is the sum over the slots, layers are rounded to devices, and RPC
is a protocol of its own; for the drafts docs/speculative.md and common/arg.cpp; for recipes
sparkrun 0.2.40, runtimes/llama_cpp.py.
"""

from generator.catalogs.engines.traits import (
    BatchDefaults,
    Commands,
    EngineTraits,
    Method,
    Program,
    Recipe,
    Start,
)

NAME = "llama.cpp"
TRAITS = EngineTraits(
    title="llama.cpp",
    addition="rpc",
    commits={"0.5.0-dev": "0c1e57098bba43ac29e6e3b677cdceebdd22334f"},
    batches=(BatchDefaults((), 512, 1),),
    step_flag="ubatch-size",
    eight_bit_cache="q8_0",
    splits_tensors=False,
    uses_nccl=False,
    reads_gguf=True,
    allocates_all=True,
    # Build 11434, common/log.cpp, line 535: the library's lines are of level 4, the default is 3.
    logs_memory="log-verbosity: 4",
    captures_graphs=False,
    # Build 11434, src/llama-kv-cache-iswa.cpp, line 73: the window and a step, padded; and
    # src/llama-model.cpp, line 2490, with src/llama-memory-recurrent.cpp, line 101.
    window_cells=256,
    wide_states=True,
    larger_first=True,
    locks_metrics=True,
    # Its list of models is there while it loads.
    asked_when_ready=("/health", "/v1/models"),
    tasks={
        ("embedding", ""): "embedding",
        ("embeddings", ""): "embedding",
        ("rerank", ""): "rerank",
        ("reranking", ""): "rerank",
    },
    is_built_for_ranks=True,
    start=Start("11434", "llama.cpp-rpc:b11434", is_made=True),
    draft_methods={
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
    drafts_prefix="spec-",
    commands=Commands(
        programs=(Program("llama-server"),),
        variables=("GGML", "LLAMA"),
        marks=("llama",),
        workers=("ggml-rpc-server", "rpc-server", "llama-rpc-server"),
        # .devops/cuda.Dockerfile: its server's images start llama-server.
        servers=("ggml-org/llama.cpp:server",),
        draft_keys={
            "spec-type": "method",
            "spec-draft-model": "source",
            "spec-draft-n-max": "tokens",
        },
        recipe=Recipe("llama", ("llama-server", "--hf-repo"), {"served_model_name": "alias"}),
    ),
)
