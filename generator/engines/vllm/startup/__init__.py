"""What vLLM rejects or fails on at startup: `schemas/startup/vllm.yaml`."""

from generator.engines import rows
from generator.engines.startup import Condition
from generator.engines.vllm.startup.facts import FACTS

CONDITIONS: tuple[Condition, ...] = rows.conditions("vllm", FACTS)
