"""What vLLM's class of a model supports, and what is rejected because it doesn't.

A line of `schemas/vllm-kinds.tsv` is a kind of model, by the model_type of its config.json. Nothing
is known or reported about other kinds.
"""

from collections.abc import Mapping
from functools import cache, wraps

from generator.catalogs.versions import Release, release
from generator.engines.conditions import Check
from generator.engines.startup import METHOD, Condition, Effect, Refusal, Start
from generator.records import record
from generator.resources import SCHEMAS

# The first release whose classes were not read.
_UNREAD = (0, 34)
_NEVER: Release = (10**6,)


@record
class Kind:
    """The first releases in which a class has adapters, EAGLE-3, it over stages, and MTP layers."""

    adapters: Release
    eagle3: Release
    stages: Release
    prediction: Release
    images: bool


@cache
def kinds() -> Mapping[str, Kind]:
    """The known kinds by model_type."""
    lines = (SCHEMAS / "vllm-kinds.tsv").read_text("utf-8").splitlines()
    _, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {
        name: Kind(
            _since(adapters), _since(eagle3), _since(stages), _since(drafts), images == "yes"
        )
        for name, adapters, eagle3, stages, drafts, images in rows
    }


def _since(text: str) -> Release:
    return _NEVER if text == "-" else release(text)


def kind(start: Start) -> Kind | None:
    """The kind of a site's model, if it is known."""
    return kinds().get(start.model_type)


def of_images(check: Check) -> Check:
    """A check that is skipped for models without images: vLLM has no settings for them."""

    @wraps(check)
    def made(start: Start) -> Refusal | None:
        known = kind(start)
        return None if known and not known.images else check(start)

    return made


def lacks_eagle3(start: Start) -> bool | None:
    """Whether the model's class lacks EAGLE-3; None if the class is not known."""
    known = kind(start)
    return None if known is None else known.eagle3 > _version(start)


def _version(start: Start) -> Release:
    return release(start.engine.version)


def _title(start: Start) -> str:
    return f"vLLM {start.engine.version}"


def _later(start: Start, since: Release) -> str:
    """What to write if a later release has it."""
    if since == _NEVER or since <= _version(start):
        return "take it out"
    return f"take vLLM {'.'.join(map(str, since))} or later"


def _without_prediction(start: Start) -> Refusal | None:
    known, drafts = kind(start), start.model.speculative
    # A separate model may have the layers, as Gemma 4's assistants do.
    if start.method != "mtp" or known is None or (drafts and drafts.source):
        return None
    if known.prediction <= _version(start):
        return None
    if known.prediction != _NEVER:
        message = f"{_title(start)} does not load the model's MTP layers"
        return Refusal(message, METHOD, _later(start, known.prediction))
    return Refusal(
        "the model has no MTP layers, which the method 'mtp' needs",
        METHOD,
        "write 'method: eagle3' or 'method: draft' with a 'source', or take 'speculative' out",
    )


def _without_eagle3(start: Start) -> Refusal | None:
    known = kind(start)
    if start.method != "eagle3" or known is None or not lacks_eagle3(start):
        return None
    later = f"{_later(start, known.eagle3)}, or" if known.eagle3 != _NEVER else ""
    other = "mtp" if known.prediction <= _version(start) else "draft"
    return Refusal(
        f"{_title(start)} does not support EAGLE-3 for {start.model_type} models",
        METHOD,
        f"{later} write 'method: {other}', or take 'speculative' out".strip(),
    )


def _eagle3_over_stages(start: Start) -> Refusal | None:
    known, stages = kind(start), start.sizes.pipeline
    if start.method != "eagle3" or stages == 1 or known is None:
        return None
    if known.eagle3 > _version(start) or known.stages <= _version(start):
        return None
    return Refusal(
        f"vLLM does not run EAGLE-3 over {stages} pipeline stages for models of this kind",
        METHOD,
        "split the model by 'tensor' alone, or take 'speculative' out",
    )


def _prediction_by_transformers(start: Start) -> Refusal | None:
    known = kind(start)
    if start.word("model-impl") == "transformers" and start.method == "mtp" and known:
        return (
            start.refuse(
                "model-impl",
                "the Transformers implementation does not support 'mtp' for models that take "
                "images",
                "take it out",
            )
            if known.images
            else None
        )
    return None


def _small_floats_by_transformers(start: Start) -> Refusal | None:
    if start.word("model-impl") == "transformers" and start.form == "mxfp4":
        message = "the Transformers implementation does not support weights in mxfp4"
        return start.refuse("model-impl", message, "take it out")
    return None


def _without_adapters(start: Start) -> Refusal | None:
    known = kind(start)
    if not start.is_on("enable-lora") or known is None or known.adapters <= _version(start):
        return None
    return start.refuse(
        "enable-lora",
        f"{_title(start)} does not support LoRA adapters for {start.model_type} models",
        _later(start, known.adapters),
    )


def _limits_of_images(start: Start) -> Refusal | None:
    known, name = kind(start), "limit-mm-per-prompt"
    if name in start.settings and known and not known.images:
        return start.refuse(
            name, "the model takes no images, so the limit has no effect", "take it out"
        )
    return None


_SPECULATION = "vllm/config/speculative.py"

CONDITIONS = (
    Condition(_small_floats_by_transformers, "vllm/model_executor/models/transformers/base.py:166"),
    Condition(_without_prediction, f"{_SPECULATION}:1499", until=_UNREAD),
    Condition(_without_eagle3, "vllm/v1/worker/gpu_model_runner.py:5236", until=_UNREAD),
    Condition(
        _eagle3_over_stages,
        "vllm/v1/worker/gpu/spec_decode/eagle/eagle3_utils.py:57",
        (0, 30),
        _UNREAD,
    ),
    Condition(_prediction_by_transformers, f"{_SPECULATION}:1391", (0, 33)),
    Condition(_without_adapters, "vllm/config/lora.py:150", until=_UNREAD),
    Condition(
        _limits_of_images,
        "vllm/config/multimodal.py",
        until=_UNREAD,
        effect=Effect.DIFFERS,
    ),
)
