"""How SGLang's ranks exchange expert inputs, and the roles that they can have."""

from generator.engines.conditions import without_drafts, without_stages
from generator.engines.startup import Condition, Refusal, Start

_EXCHANGE, _RUNNER, _DATA = "moe-a2a-backend", "moe-runner-backend", "attn-dp-size"
_STATIC, _MODE = "dwdp-size", "disaggregation-mode"
# The RoCE devices of a Spark, one for each half of a port.
_DEVICES = ("rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1")


def _runner_of_deepep(start: Start) -> Refusal | None:
    runner, exchange = start.word(_RUNNER), start.word(_EXCHANGE)
    if exchange in ("deepep_v2", "pplx") and runner not in ("", "auto", "deep_gemm"):
        return start.refuse(
            _RUNNER, f"'{exchange}' supports only deep_gemm for experts", "take it out"
        )
    return None


def _overlap_of_deepep(start: Start) -> Refusal | None:
    for name in (
        *("enable-two-batch-overlap", "enable-single-batch-overlap"),
        "enforce-shared-experts-fusion",
    ):
        if start.word(_EXCHANGE) == "deepep_v2" and start.is_on(name):
            return start.refuse(name, f"'{name}' can't be combined with 'deepep_v2'", "take it out")
    return None


def _direct_deepep(start: Start) -> Refusal | None:
    name = "deepep-v2-mode"
    if start.word(name) == "direct" and start.sizes.ranks > 1:
        return start.refuse(
            name, "'direct' needs NVLink between the nodes, and Sparks have none", "write hybrid"
        )
    return None


def _groups_of_pplx(start: Start) -> Refusal | None:
    if start.word(_EXCHANGE) == "pplx" and start.count(_DATA) < 2:
        return start.refuse(
            _EXCHANGE, "'pplx' needs data parallel attention", f"write '{_DATA}: 2' or more"
        )
    return None


def _groups_of_flashinfer(start: Start) -> Refusal | None:
    if start.word(_EXCHANGE) != "flashinfer":
        return None
    if start.count(_DATA) != start.sizes.tensor:
        return start.refuse(
            _EXCHANGE,
            "'flashinfer' needs data parallel attention over all tensor ranks",
            f"write '{_DATA}: {start.sizes.tensor}' beside it, or take it out",
        )
    if (start.number("chunked-prefill-size") or 1) <= 0:
        return start.refuse(
            "chunked-prefill-size", "'flashinfer' needs chunked prefill", "write 8192"
        )
    return None


def _static_experts(start: Start) -> Refusal | None:
    size = start.count(_STATIC)
    if size > 1 and size != start.sizes.tensor:
        return start.refuse(
            _STATIC,
            f"'{_STATIC}' {size} must equal tensor size {start.sizes.tensor}",
            f"write {start.sizes.tensor}",
        )
    if size > 1 and start.is_on("enable-eplb"):
        return start.refuse(
            "enable-eplb",
            f"'{_STATIC}' can't be combined with 'enable-eplb'",
            "keep one of the two",
        )
    return None


def _replicated_queries(start: Start) -> Refusal | None:
    name = "dcp-replicate-q-proj"
    if not start.is_on(name):
        return None
    exchange = start.word("dcp-comm-backend")
    if start.count("dcp-size") == 1 or exchange not in ("", "auto", "a2a", "fi_a2a"):
        return start.refuse(
            name,
            "replicated queries need decode context parallelism with 'a2a'",
            "write 'dcp-size' and 'dcp-comm-backend: a2a' beside it, or take it out",
        )
    return None


def _host_cache_of_context(start: Start) -> Refusal | None:
    name = "enable-hierarchical-cache"
    if not start.is_on(name) or start.count("dcp-size") == 1:
        return None
    if start.known and not start.known.latent:
        message = (
            "with context parallelism, only latent attention (MLA) supports a cache in host memory"
        )
        return start.refuse(name, message, "take it out, or 'dcp-size'")
    if start.method:
        message = "with context parallelism, a cache in host memory can't be combined with drafts"
        return start.refuse(name, message, "take one of the three out")
    return None


def _network_device(start: Start) -> Refusal | None:
    for name in ("disaggregation-ib-device", "mooncake-ib-device"):
        given = [part.strip() for part in start.word(name).split(",")]
        wrong = [part for part in given if part and part not in _DEVICES]
        if wrong and not start.word(name).startswith("{"):
            return start.refuse(
                name, f"a Spark has no device '{wrong[0]}'", f"write {' or '.join(_DEVICES)}"
            )
    return None


def _offload_of_a_role(start: Start) -> Refusal | None:
    name = "disaggregation-decode-enable-offload-kvcache"
    if not start.is_on(name):
        return None
    if start.word(_MODE) != "decode":
        return start.refuse(
            name, f"'{name}' is only for decode servers", f"write '{_MODE}: decode'"
        )
    if "hicache-storage-backend" not in start.settings:
        message = f"'{name}' needs 'hicache-storage-backend'"
        return start.refuse(name, message, "write 'hicache-storage-backend: file' beside it")
    return None


def _prompts_in_host_memory(start: Start) -> Refusal | None:
    name = "disaggregation-decode-retraction-backup"
    if start.word(name) == "host_pool" and start.word(_MODE) != "decode":
        return start.refuse(
            name, "'host_pool' is only for decode servers", f"write '{_MODE}: decode'"
        )
    return None


def _roles_with_other_caches(start: Start) -> Refusal | None:
    if start.is_on("enable-lmcache") and start.word(_MODE) in ("prefill", "decode"):
        return start.refuse(
            "enable-lmcache", "LMCache needs servers that both prefill and decode", "take it out"
        )
    return None


_MOE, _PARALLEL = "sglang/srt/arg_groups/moe_hook.py", "sglang/srt/arg_groups/parallel_hook.py"
_CACHES = "sglang/srt/arg_groups/kv_cache_hook.py"

CONDITIONS = (
    Condition(_runner_of_deepep, f"{_MOE}:414", (0, 5, 19)),
    Condition(_overlap_of_deepep, f"{_MOE}:424", (0, 5, 19)),
    Condition(_direct_deepep, f"{_MOE}:433", (0, 5, 22)),
    Condition(_groups_of_pplx, f"{_MOE}:591", (0, 5, 22)),
    Condition(_groups_of_flashinfer, f"{_MOE}:475", (0, 5, 23)),
    Condition(_static_experts, f"{_PARALLEL}:438", (0, 5, 17)),
    Condition(without_stages(_STATIC), f"{_PARALLEL}:451", (0, 5, 17)),
    Condition(without_drafts(_STATIC), f"{_PARALLEL}:448", (0, 5, 17)),
    Condition(_replicated_queries, f"{_PARALLEL}:269", (0, 5, 17)),
    Condition(_host_cache_of_context, "sglang/srt/arg_groups/hicache_hook.py:138", (0, 5, 17)),
    Condition(without_stages("elastic-ep-backend"), f"{_PARALLEL}:543", (0, 5, 16)),
    Condition(_network_device, "sglang/srt/arg_groups/validation_hook.py:525", (0, 5, 9)),
    Condition(_offload_of_a_role, f"{_CACHES}:396"),
    Condition(_prompts_in_host_memory, f"{_CACHES}:352", (0, 5, 18)),
    Condition(_roles_with_other_caches, f"{_CACHES}:473", (0, 5, 21)),
)
