"""What vLLM passes to other processes: parts of the KV cache, and the choice of experts."""

from generator.diagnostics import did_you_mean
from generator.engines.startup import Condition, Effect, Refusal, Start

_TRANSFER, _EXPERTS = "kv-transfer-config", "enable-return-routed-experts"
_CONTEXT = "decode-context-parallel-size"
# The connectors of all releases from 0.19 to 0.33.
_CONNECTORS = (
    "DecodeBenchConnector",
    "ExampleConnector",
    "ExampleHiddenStatesConnector",
    "FlexKVConnectorV1",
    "HF3FSKVConnector",
    "HiSparseConnector",
    "LMCacheConnectorV1",
    "LMCacheMPConnector",
    "MoRIIOConnector",
    "MooncakeConnector",
    "MooncakeStoreConnector",
    "MultiConnector",
    "NixlConnector",
    "NixlPullConnector",
    "NixlPushConnector",
    "OffloadingConnector",
    "P2pNcclConnector",
    "SimpleCPUOffloadConnector",
)
_ONE_CACHE = ("ExampleConnector", "FlexKVConnectorV1", "HF3FSKVConnector", "LMCacheConnectorV1")
_ROLES = ("kv_producer", "kv_consumer", "kv_both")


def _role(start: Start) -> Refusal | None:
    role = start.word(_TRANSFER, "kv_role")
    if role and role not in _ROLES:
        return start.refuse(
            _TRANSFER, f"'{role}' is not a role", f"write {' or '.join(_ROLES)}", "kv_role"
        )
    if start.word(_TRANSFER, "kv_connector") and not role:
        return start.refuse(
            _TRANSFER,
            "a connector needs a role",
            "write 'kv_role: kv_both' beside it",
            "kv_connector",
        )
    return None


def _growing_segments(start: Start) -> Refusal | None:
    name, connector = "PYTORCH_CUDA_ALLOC_CONF", start.word(_TRANSFER, "kv_connector")
    moved = "expandable_segments:True" in start.environment.get(name, "")
    pinned = start.is_on("enable-cumem-allocator") or start.is_on("enable-sleep-mode")
    if connector and moved and not pinned:
        return start.refuse_variable(
            name, f"{connector} registers memory, and expandable segments move it", "take it out"
        )
    return None


def _unknown_connector(start: Start) -> Refusal | None:
    name = start.word(_TRANSFER, "kv_connector")
    if not name or name in _CONNECTORS or start.word(_TRANSFER, "kv_connector_module_path"):
        return None
    return start.refuse(
        _TRANSFER,
        f"vLLM has no connector '{name}'",
        did_you_mean(name, _CONNECTORS) or "write 'kv_connector_module_path' beside it",
        "kv_connector",
    )


def _several_caches(start: Start) -> Refusal | None:
    name, flag = start.word(_TRANSFER, "kv_connector"), "disable-hybrid-kv-cache-manager"
    if name in _ONE_CACHE and start.is_off(flag):
        return start.refuse(
            flag,
            f"{name} does not support hybrid KV caches",
            f"take it out, or write '{flag}: true'",
        )
    return None


def _contexts_over_ranks(start: Start) -> Refusal | None:
    size, name = start.count(_CONTEXT), start.word(_TRANSFER, "kv_connector")
    if name != "NixlConnector" or size == 1:
        return None
    if size != start.sizes.tensor:
        message = f"NixlConnector supports caches on one rank or on all {start.sizes.tensor}"
        return start.refuse(_CONTEXT, message, f"write {start.sizes.tensor}, or take it out")
    if start.known and not start.known.latent:
        message = "NixlConnector supports distributed caches only for latent attention (MLA)"
        return start.refuse(_CONTEXT, message, "take it out")
    return None


def _sparse_cache_in_memory(start: Start) -> Refusal | None:
    if start.word(_TRANSFER, "kv_connector") != "HiSparseConnector":
        return None
    size = start.number(_TRANSFER, "kv_connector_extra_config", "host_pool_gib")
    if size is None or size <= 0:
        return start.refuse(
            _TRANSFER,
            "HiSparseConnector needs a pool in host memory",
            "write 'kv_connector_extra_config: {host_pool_gib: GIB}' beside it",
            "kv_connector",
        )
    if start.known and start.known.indexer is None:
        message = "HiSparseConnector is only for sparse attention, which the model does not use"
    elif start.sizes.pipeline > 1 or start.count(_CONTEXT) > 1:
        message = "HiSparseConnector supports neither pipeline stages nor context parallelism"
    else:
        return None
    return start.refuse(_TRANSFER, message, "take it out", "kv_connector")


def _unsized_offload(start: Start) -> Refusal | None:
    name = "kv-offloading-backend"
    if name in start.settings and "kv-offloading-size" not in start.settings:
        return start.refuse(
            name, "offloading needs a size", "write 'kv-offloading-size: GIB' beside it"
        )
    return None


_FACTORY = "vllm/distributed/kv_transfer/kv_connector/factory.py"

CONDITIONS = (
    Condition(_role, "vllm/config/kv_transfer.py:115"),
    Condition(_growing_segments, "vllm/config/vllm.py:1291", (0, 21)),
    Condition(_unknown_connector, f"{_FACTORY}:128", until=(0, 34)),
    Condition(_several_caches, f"{_FACTORY}:57", until=(0, 34)),
    Condition(_contexts_over_ranks, "vllm/config/vllm.py:1582", (0, 30)),
    Condition(_sparse_cache_in_memory, "vllm/config/vllm.py:1885", (0, 30)),
    Condition(_unsized_offload, "vllm/config/vllm.py:1157", effect=Effect.DIFFERS),
)
