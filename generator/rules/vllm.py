"""Rules about vLLM's settings."""

from collections.abc import Iterator, Sequence

from generator.catalogs.engines.vllm import NAME
from generator.engines.startup import Verdict
from generator.rules.registry import Fault, rule
from generator.rules.startup import FIRST, SAID, certain


@rule("SG670", unless=FIRST, suppressed_by=SAID, engine=NAME)
def refused_by_vllm(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """No setting makes vLLM fail at startup.

    vLLM checks its settings against each other, against the model and against the GPU, some of them
    only after loading the weights. This rule reports what it would refuse or fail on.

    Source: vLLM 0.19.0 and 0.33.0, vllm/config and vllm/engine/arg_utils.py; each condition names
    its line in generator/engines/vllm/startup.

    Bad:
        engine:
          args:
            enable-eplb: true

    Good:
        engine:
          args:
            enable-chunked-prefill: true
    """
    yield from certain(verdicts)
