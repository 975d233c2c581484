"""SGLang's settings that require another one, or apply only to some kinds of models."""

from generator.engines.startup import Condition, Refusal, Start


def _buffered_states(start: Start) -> Refusal | None:
    name = "mamba-radix-cache-strategy"
    if start.word(name).startswith("extra_buffer") and start.known and not start.known.keeps_states:
        return start.refuse(name, "the model has no recurrent states", "take it out")
    return None


_GROUPS = "sglang/srt/arg_groups"
_PARALLEL, _MODEL = f"{_GROUPS}/parallel_hook.py", f"{_GROUPS}/model_hook.py"

CONDITIONS = (Condition(_buffered_states, f"{_MODEL}:1063", (0, 5, 21)),)
