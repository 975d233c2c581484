"""Runs vLLM's own planner on kinds of layers; `compare_vllm_planner.py` starts it under vLLM.

For each line of JSON on stdin it prints one line: groups, bytes of a block, bytes of a sequence.
"""

import importlib
import json
import sys
from types import SimpleNamespace as Some
from typing import Any

import torch
from vllm.v1 import kv_cache_interface as interface
from vllm.v1.kv_cache_layout import KVCacheLayout

try:
    planner = importlib.import_module("vllm.v1.core.kv_cache_planning")
except ModuleNotFoundError:
    planner = importlib.import_module("vllm.v1.core.kv_cache_utils")
# The original looks for a GPU.
planner.get_hisparse_kv_cache_groups = lambda *_: None


def spec(pages: dict[str, Any]) -> Any:
    """The specification of one layer, in bytes only."""
    kind, block, page, blocks = (pages[key] for key in ("kind", "block", "page", "blocks"))
    if kind == "state":
        return interface.MambaSpec(
            block_size=block,
            shapes=((page,),),
            dtypes=(torch.uint8,),
            num_prefill_checkpoint_blocks=max(0, blocks - 2),
            tp_replicated=pages["whole"],
        )
    keys = page // block // 2
    sizes = {
        "block_size": block,
        "num_kv_heads": 1,
        "head_size": keys,
        "head_size_v": page // block - keys,
        "dtype": torch.uint8,
        "page_size_padded": page if page % block else None,
    }
    if kind == "window":
        return interface.SlidingWindowSpec(sliding_window=pages["window"], **sizes)
    if kind == "ring":
        return interface.CircularBufferSpec(**sizes)
    return interface.FullAttentionSpec(**sizes)


def planned(case: dict[str, Any]) -> list[int]:
    """Groups, bytes per block, bytes per sequence."""
    layout = KVCacheLayout.BLHNC if case["packed"] else KVCacheLayout.LBNHC
    config = Some(
        scheduler_config=Some(disable_hybrid_kv_cache_manager=False),
        cache_config=Some(
            get_resolved_kv_cache_layout=lambda: layout, mamba_cache_mode=case["states"]
        ),
        parallel_config=Some(decode_context_parallel_size=1),
        model_config=Some(max_model_len=case["tokens"]),
        max_in_flight_tokens=case["under_way"],
        kv_transfer_config=None,
        attention_config=Some(),
        speculative_config=None,
    )
    layers = {}
    for number, pages in enumerate(case["pages"]):
        layer = spec(pages)
        assert layer.page_size_bytes == pages["page"], pages
        layers |= {f"{number}.{count}": layer for count in range(pages["layers"])}
    groups = planner.get_kv_cache_groups(config, layers)
    size = planner._get_kv_cache_bytes_per_block(groups, layout)
    blocks = sum(
        -(
            -group.kv_cache_spec.max_memory_usage_bytes(config)
            // group.kv_cache_spec.page_size_bytes
        )
        for group in groups
    )
    return [len(groups), size, blocks * size]


for line in sys.stdin:
    try:
        answer: Any = planned(json.loads(line))
    except (AssertionError, NotImplementedError, ValueError) as error:
        answer = f"{type(error).__name__}: {error}"
    print(json.dumps(answer), flush=True)
