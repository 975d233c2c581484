"""TensorRT-LLM's traits, its draft methods, and how people start it.

Sources: TensorRT-LLM, `pp_layers`; pull request 19376; for the drafts
tensorrt_llm/llmapi/llm_args.py; for recipes sparkrun 0.2.40, runtimes/trtllm.py.
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

NAME = "tensorrt-llm"
TRAITS = EngineTraits(
    title="TensorRT-LLM",
    addition="ssh",
    shares_since=(1, 2, 1),
    tokens_setting="kv_cache_config.max_tokens",
    batches=(BatchDefaults((), 8192, 64),),
    step_flag="max_num_tokens",
    settings_flag="config",
    variables_file="tensorrt-llm-variables.txt",
    eight_bit_cache="fp8",
    larger_first=True,
    delta_kernels=(1, 4),
    startup_since=(1, 2, 1),
    start=Start(
        "1.3.0rc29",
        "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc29",
        launcher="mpi",
        ranks_image="tensorrt-llm-ssh:1.3.0rc29",
        is_made=True,
        args={"enable_chunked_prefill": "true"},
    ),
    draft_methods={
        "mtp": Method("MTP", "none"),
        "eagle": Method("Eagle", "needed"),
        "eagle3": Method("Eagle3", "needed"),
        "draft": Method("Draft_Target", "needed"),
        "ngram": Method("NGram", "none"),
        "pard": Method("PARD", "needed", since=(1, 3)),
        "auto": Method("AUTO", "none", tokens="optional"),
        "save_hidden_states": Method("SaveState", "none", tokens="optional"),
    },
    commands=Commands(
        programs=(Program("trtllm-serve", "serve"), Program("trtllm-serve")),
        package="tensorrt_llm",
        variables=("TLLM", "TRTLLM"),
        marks=("trtllm", "tensorrt"),
        scripts=("trtllm-serve",),
        launcher="trtllm-llmapi-launch",
        recipe=Recipe(
            "trtllm",
            ("trtllm-serve", "serve"),
            {
                "tensor_parallel": "tp_size",
                "pipeline_parallel": "pp_size",
                "expert_parallel": "ep_size",
                "max_model_len": "max_seq_len",
                # Its flags have underscores.
                **{name: name for name in ("max_num_tokens", "max_batch_size")},
                "trust_remote_code": "trust_remote_code",
                "kv_cache_free_gpu_memory_fraction": "kv_cache_free_gpu_memory_fraction",
            },
        ),
    ),
)
