"""What vLLM rejects or fails on at startup: the rows of `schemas/startup/vllm.yaml`."""

from generator.engines import rows
from generator.engines.startup import Condition
from generator.engines.vllm.startup import facts, settings

CONDITIONS: tuple[Condition, ...] = (*rows.conditions("vllm", facts.FACTS), *settings.CONDITIONS)
