"""How SGLang's ranks exchange expert inputs, and the roles that they can have."""

from generator.engines.startup import Condition, Refusal, Start

_EXCHANGE, _RUNNER, _DATA = "moe-a2a-backend", "moe-runner-backend", "attn-dp-size"


def _runner_of_deepep(start: Start) -> Refusal | None:
    runner, exchange = start.word(_RUNNER), start.word(_EXCHANGE)
    if exchange in ("deepep_v2", "pplx") and runner not in ("", "auto", "deep_gemm"):
        return start.refuse(
            _RUNNER, f"'{exchange}' supports only deep_gemm for experts", "take it out"
        )
    return None


_MOE, _PARALLEL = "sglang/srt/arg_groups/moe_hook.py", "sglang/srt/arg_groups/parallel_hook.py"

CONDITIONS = (Condition(_runner_of_deepep, f"{_MOE}:414", (0, 5, 19)),)
