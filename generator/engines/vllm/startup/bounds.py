"""Bounds of numbers, which vLLM's config classes declare as `Field(ge=..., le=...)`."""

from generator.catalogs.versions import Release, release
from generator.engines.startup import Condition, Refusal, Start
from generator.records import record


@record
class Bound:
    """The bounds of a flag, or of a key of its JSON (`flag.key`), since a release.

    `above` and `below` are exclusive.
    """

    name: str
    since: Release = ()
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def holds(self, number: float) -> bool:
        """Whether a number is within the bounds."""
        return not (
            (self.least is not None and number < self.least)
            or (self.above is not None and number <= self.above)
            or (self.most is not None and number > self.most)
            or (self.below is not None and number >= self.below)
        )

    def __str__(self) -> str:
        words = (
            ("at least", self.least),
            ("above", self.above),
            ("at most", self.most),
            ("below", self.below),
        )
        return " and ".join(f"{word} {value:g}" for word, value in words if value is not None)


BOUNDS = (
    Bound("block-size", (0, 23), above=0),
    Bound("cpu-offload-gb", least=0),
    Bound("dbo-decode-token-threshold", (0, 23), least=0),
    Bound("dbo-prefill-token-threshold", (0, 23), least=0),
    Bound("decode-context-parallel-size", (0, 23), least=1),
    Bound("dp-sync-interval", (0, 30), least=1),
    Bound("elastic-ep-max-dp-size", (0, 30), least=1),
    Bound("kv-cache-metrics-sample", above=0, most=1),
    Bound("long-prefill-token-threshold", (0, 25), least=0),
    Bound("mamba-block-size", above=0),
    Bound("max-logprobs", (0, 25), least=-1),
    Bound("max-long-partial-prefills", least=1),
    Bound("max-lora-cls-labels", (0, 31), least=1),
    Bound("max-loras", least=1),
    Bound("max-num-active-seqs", (0, 31), least=1),
    Bound("max-num-batched-tokens", least=1),
    Bound("max-num-partial-prefills", least=1),
    Bound("max-num-queued-reqs", (0, 29), least=0),
    Bound("max-num-queued-tokens", (0, 29), least=0),
    Bound("max-num-scheduled-tokens", (0, 32), least=1),
    Bound("max-parallel-loading-workers", (0, 23), least=1),
    Bound("mm-encoder-fp8-scale-save-margin", (0, 21), above=0),
    Bound("mm-ipc-gpu-memory-gb", (0, 25), least=0),
    Bound("mm-processor-cache-gb", least=0),
    Bound("mm-shm-cache-max-object-size-mb", least=0),
    Bound("offload-group-size", least=0),
    Bound("offload-num-in-group", least=1),
    Bound("offload-prefetch-step", least=0),
    Bound("prefill-context-parallel-size", (0, 23), least=1),
    Bound("prefill-schedule-interval", (0, 24), least=1),
    Bound("prefix-cache-retention-interval", (0, 29), least=0),
    Bound("prefix-match-unit", (0, 26), above=0),
    Bound("replayssm-buffer-len", (0, 27), above=0),
    Bound("safetensors-prefetch-block-size", (0, 21), least=1),
    Bound("safetensors-prefetch-num-threads", (0, 21), least=1),
    Bound("shutdown-timeout", least=0),
    Bound("stream-interval", least=1),
    Bound("ubatch-size", (0, 23), least=0),
    Bound("video-pruning-rate", least=0, below=1),
    Bound("watermark", (0, 24), least=0, below=1),
    Bound("attention-config.indexer_tp_shard_min_rows", (0, 33), least=1),
    Bound("attention-config.sparse_mla_prefill_workspace_factor", (0, 32), least=2),
    Bound("attention-config.tokenspeed_mla_min_split_kv", (0, 32), least=1, most=256),
    Bound("eplb-config.log_balancedness_interval", (0, 20), above=0),
    Bound("eplb-config.num_redundant_experts", least=0),
    Bound("eplb-config.step_interval", (0, 20), above=0),
    Bound("eplb-config.window_size", (0, 20), above=0),
    Bound("profiler-config.active_iterations", least=1),
    Bound("profiler-config.delay_iterations", least=0),
    Bound("profiler-config.max_iterations", least=0),
    Bound("profiler-config.wait_iterations", least=0),
    Bound("profiler-config.warmup_iterations", least=0),
    Bound("watchdog-config.check_interval", (0, 33), above=0),
    Bound("watchdog-config.timeout", (0, 33), above=0),
    Bound("watermark-config.alpha", (0, 30), least=0, most=1),
    Bound("watermark-config.context_width", (0, 30), least=1),
    Bound("watermark-config.deduplicate_contexts_max_history", (0, 30), least=1),
    Bound("watermark-config.key", (0, 30), least=0),
)


def _out_of_bounds(start: Start) -> list[Refusal]:
    version = release(start.engine.version)
    return [
        refusal
        for bound in BOUNDS
        if bound.since <= version and (refusal := _refusal(bound, start))
    ]


def _refusal(bound: Bound, start: Start) -> Refusal | None:
    flag, _, key = bound.name.partition(".")
    keys = (key,) if key else ()
    number = start.number(flag, *keys)
    if number is None or bound.holds(number):
        return None
    return start.refuse(
        flag, f"'{key or flag}' must be {bound}", f"write a number that is {bound}", *keys
    )


CONDITIONS = (Condition(_out_of_bounds, "vllm/config"),)
