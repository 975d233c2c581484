"""What TensorRT-LLM refuses or dies of at its start."""

from generator.engines.startup import Condition
from generator.engines.tensorrt_llm.startup import draft_settings, model, options, values

CONDITIONS: tuple[Condition, ...] = (
    *options.CONDITIONS,
    *values.CONDITIONS,
    *model.CONDITIONS,
    *draft_settings.CONDITIONS,
)
