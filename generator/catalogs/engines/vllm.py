"""vLLM's traits, its draft methods, and how people start it.

Sources: vLLM 0.19.0 and 0.33.0, `get_batch_defaults` (the GB10 is a small GPU from 0.33 on) and
`FusedMoEParallelConfig.flatten_tp_across_dp_and_pcp`; pull requests 38423 and 55715; for the drafts
vllm/config/speculative.py; for recipes sparkrun 0.2.40, runtimes/vllm_ray.py.
"""

from generator.catalogs.engines.traits import (
    BatchDefaults,
    Commands,
    EngineTraits,
    Method,
    Paging,
    Program,
    Recipe,
    Start,
)

NAME = "vllm"
TRAITS = EngineTraits(
    title="vLLM",
    batches=(BatchDefaults((), 8192, 1024), BatchDefaults((0, 33), 2048, 256)),
    step_flag="max-num-batched-tokens",
    eager_flag="enforce-eager",
    pool_flag="kv-cache-memory-bytes",
    stage_variable="VLLM_PP_LAYER_PARTITION",
    # vllm/envs.py.
    step_seconds_variable="VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
    eight_bit_cache="fp8",
    shares_experts=True,
    joins_dense_replicas=False,
    # vllm-project/vllm issues 52291, 54618, 57423 and 57635; 0.32.0 has a file for each rank.
    tuned_by_one=((0, 27, 1), (0, 32)),
    runs_from_venv=True,
    addition="ray",
    drafts_flag="speculative-config",
    reads_modelopt=True,
    drafts_over_stages=(
        *("eagle", "eagle3", "mtp", "dspark", "dflash"),
        *("ngram", "ngram_gpu", "suffix"),
    ),
    # `refine_fp8_moe_block_shape`, which 0.28.0 does not have.
    finest_blocks=(((), 128), ((0, 29), 32)),
    delta_kernels=(0, 30),
    nvfp4_kernels=(0, 20),
    startup_since=(0, 19),
    context_flags=("decode-context-parallel-size",),
    exchanges={
        "all2all-backend": ("allgather_reducescatter", "naive"),
        "dcp-comm-backend": ("ag_rs",),
    },
    rings_reported=True,
    names_parsers=True,
    # vLLM 0.22.1, 0.25.1, 0.27.1 and 0.29.0: `is_prefix_caching_supported` (config/model.py),
    # `max_in_flight_tokens` (config/vllm.py), `_get_packed_kv_cache_groups` (kv_cache_utils.py;
    # issue 54703 shows it in 0.28.1). The releases between those two are taken as the newer.
    # Graphs: gpu_worker.py, line 720. Drawing: topk_topp_sampler.py has Triton in 0.19.0.
    # Checkpoints: `num_prefill_checkpoint_blocks` of 0.32.0 and 0.33.0 in mamba_mixer2.py, line
    # 1117, kda.py of GLM-5-Next, line 174, and qwen_gdn_linear_attn.py, line 748.
    paging=Paging(
        caches_states=(0, 26),
        two_steps=(0, 26),
        packs=(0, 28),
        counts_graphs=(0, 20),
        draws_unsorted=(0, 17),
        checkpoints_states=(0, 32),
        checkpoints_delta=(0, 33),
        compresses=(0, 20),
        caches_pooled=(0, 31),
        sizes_gathers=(0, 32),
        scores_variable="VLLM_SPARSE_INDEXER_MAX_LOGITS_MB",
        graphs_variable="VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS",
    ),
    tasks={
        ("runner", "pooling"): "embedding",
        ("convert", "embed"): "embedding",
        ("convert", "classify"): "rerank",
    },
    # vLLM 0.33.0, fused_moe/oracle/mxfp4.py, lines 426 and 865: Marlin on a GB10.
    tile=(256, 128),
    start=Start("0.33.0", "vllm/vllm-openai:v0.33.0"),
    draft_methods={
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
    mtp_ending="_mtp",
    # vllm/config/model.py:736 and 1270, vllm/model_executor/models/config.py:469 and 717,
    # vllm/platforms/interface.py:750 (0.32.0).
    self_chosen=("runner", "tokenizer-mode", "block-size", "mamba-ssm-cache-dtype"),
    commands=Commands(
        programs=(Program("vllm", "serve"), Program("vllm.entrypoints.openai.api_server")),
        # docker/Dockerfile: vllm-openai starts the server, whatever the tag.
        servers=("vllm/vllm-openai",),
        version_variable="VLLM_VERSION",
        variables=("VLLM",),
        # Images of DeepSeek-V4-Flash-DSpark are its own builds of vLLM.
        marks=("vllm", "dspark"),
        scripts=("vllm",),
        # Source: docs.nvidia.com/deeplearning/frameworks/vllm-release-notes, 25.10.
        first_release="0.10.2",
        recipe=Recipe(
            "vllm",
            ("vllm", "serve"),
            {
                "tensor_parallel": "tensor-parallel-size",
                "pipeline_parallel": "pipeline-parallel-size",
                "data_parallel": "data-parallel-size",
            },
        ),
        draft_keys={"method": "method", "model": "source", "num_speculative_tokens": "tokens"},
        inferred_drafts=("eagle3", "eagle", "medusa", "dflash", "dspark", "mtp"),
        # config/cache.py of 0.19.0 and 0.33.0. Which release changed it is not known.
        own_shares=(((), "0.9"), ((0, 20), "0.92")),
        listens_everywhere=True,
        is_under_ray=True,
    ),
)
