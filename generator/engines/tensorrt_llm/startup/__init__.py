"""What TensorRT-LLM rejects or fails on at startup."""

from generator.engines import rows
from generator.engines.startup import Condition
from generator.engines.tensorrt_llm.startup import sizes

CONDITIONS: tuple[Condition, ...] = (
    *sizes.CONDITIONS,
    *rows.conditions("tensorrt-llm", sizes.FACTS),
)
