"""What vLLM rejects or fails on at startup. Source: the wheels of 0.19.0 and 0.33.0."""

from generator.engines.startup import Condition
from generator.engines.vllm.startup import (
    attention,
    bounds,
    draft_settings,
    drafts,
    kinds,
    parallel,
    quantization,
    runners,
    sampling,
    scheduler,
    serving,
    settings,
    states,
    transfer,
)

CONDITIONS: tuple[Condition, ...] = (
    *bounds.CONDITIONS,
    *parallel.CONDITIONS,
    *drafts.CONDITIONS,
    *draft_settings.CONDITIONS,
    *kinds.CONDITIONS,
    *scheduler.CONDITIONS,
    *attention.CONDITIONS,
    *quantization.CONDITIONS,
    *runners.CONDITIONS,
    *sampling.CONDITIONS,
    *states.CONDITIONS,
    *serving.CONDITIONS,
    *settings.CONDITIONS,
    *transfer.CONDITIONS,
)
