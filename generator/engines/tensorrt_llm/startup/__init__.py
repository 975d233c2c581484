"""What TensorRT-LLM rejects or fails on at startup."""

from generator.engines.startup import Condition
from generator.engines.tensorrt_llm.startup import draft_settings, model, options, values

CONDITIONS: tuple[Condition, ...] = (
    *options.CONDITIONS,
    *values.CONDITIONS,
    *model.CONDITIONS,
    *draft_settings.CONDITIONS,
)
