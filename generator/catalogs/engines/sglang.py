"""SGLang's traits, its draft methods, and how people start it.

Sources: SGLang 0.5.23, mem_fraction_static = (weights + KV cache pool) / what is free; for drafts
sglang/srt/arg_groups/speculative_hook.py and its flags by version; for recipes sparkrun 0.2.40,
runtimes/sglang.py.
"""

from generator.catalogs.engines.traits import (
    BatchDefaults,
    Commands,
    EngineTraits,
    Method,
    Pools,
    Program,
    Recipe,
    Start,
)

NAME = "sglang"
TRAITS = EngineTraits(
    title="SGLang",
    runs_from_venv=True,
    tokens_flag="max-total-tokens",
    batches=(BatchDefaults((), 8192, 256),),
    step_flag="chunked-prefill-size",
    eager_flag="disable-cuda-graph",
    stage_variable="SGLANG_PP_LAYER_PARTITION",
    eight_bit_cache="fp8_e4m3",
    reserves_outside=True,
    shares_free=True,
    drafts_over_stages=(),
    finest_blocks=(((), 128),),
    startup_since=(0, 5, 5),
    context_flags=("dcp-size", "decode-context-parallel-size"),
    exchanges={
        "dcp-comm-backend": ("ag_rs",),
        "moe-a2a-backend": ("none",),
        "speculative-moe-a2a-backend": ("none",),
    },
    rings_reported=True,
    tasks={("is-embedding", ""): "embedding"},
    # SGLang 0.5.23: arg_groups/fields/schedule.py, lines 150 and 220; a request's states in
    # mem_cache/kv_cache_configurator.py, line 3062, `_calculate_mamba_ratio`, and which
    # strategy is the default in arg_groups/overrides.py, line 477.
    pools=Pools(
        windows=("swa-full-tokens-ratio", 0.8),
        states=("mamba-full-memory-ratio", 0.9),
        strategy="mamba-radix-cache-strategy",
        slots={"no_buffer": 3, "extra_buffer_lazy": 4, "extra_buffer": 5, "": 5},
        slots_flag="max-mamba-cache-size",
        uncached_flag="disable-radix-cache",
    ),
    start=Start(
        "0.5.23",
        "lmsysorg/sglang:v0.5.23-cu130",
        # An idle scheduler polls without a pause otherwise. Measured on a GB10: 101 % of a core
        # and 12.1 W with nothing to do, 1.7 % and 10.5 W with it, the first token as fast.
        args={"sleep-on-idle": "true"},
    ),
    draft_methods={
        "mtp": Method("EAGLE", "optional", tree=True),
        "eagle": Method("EAGLE", "optional", tree=True),
        "eagle3": Method("EAGLE3", "needed", tree=True),
        "draft": Method("STANDALONE", "needed", tree=True),
        "ngram": Method("NGRAM", "none"),
        "dflash": Method("DFLASH", "needed", tokens="optional", since=(0, 5, 11)),
        "dspark": Method("DSPARK", "optional", tokens="optional", since=(0, 5, 16)),
        "frozen_kv_mtp": Method("FROZEN_KV_MTP", "optional", tree=True, since=(0, 5, 12)),
    },
    drafts_prefix="speculative-",
    commands=Commands(
        programs=(
            Program("sglang", "serve"),
            Program("sglang.launch_server"),
            Program("serve.py", "serve"),
        ),
        version_variable="SGLANG_VERSION",
        variables=("SGLANG", "SGL"),
        marks=("sglang",),
        scripts=("sglang",),
        recipe=Recipe(
            "sglang",
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
        draft_keys={
            "speculative-algorithm": "method",
            "speculative-draft-model-path": "source",
            "speculative-num-draft-tokens": "tokens",
            "speculative-num-steps": "steps",
            "speculative-eagle-topk": "topk",
        },
    ),
)
