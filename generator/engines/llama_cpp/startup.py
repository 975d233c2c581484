"""What llama.cpp rejects or fails on at startup. Source: b11434, and commit 0c1e57098."""

import re
from collections.abc import Collection

from generator.catalogs.flag_files import catalog
from generator.engines.conditions import within
from generator.engines.startup import METHOD, Condition, Effect, Refusal, Start

_CACHE = ("model", "kv_cache_dtype")
_WIDE = ("", "auto", "f32", "f16", "bf16")
_BLOCK = 32
_MOST_SLOTS, _MOST_DEVICES = 256, 16
_FLASH = "flash-attn"
# Values that mean off, besides the switch itself.
_OFF = ("off", "false", "disabled", "0")
# The syntax of values, and an example.
_KEY = r"[^=]+=(?:int:-?\d.*|float:.+|bool:(?:true|false)|str:.*)"
_FORMS = {
    "override-kv": (_KEY, "KEY=int:VALUE"),
    "override-tensor": (r"[^=]+=[A-Za-z].*", "PATTERN=CPU"),
    "spec-draft-override-tensor": (r"[^=]+=[A-Za-z].*", "PATTERN=CPU"),
    "logit-bias": (r"\d+[+-].+", "TOKEN+1"),
    "lora-scaled": (r".+:.+", "PATH:SCALE"),
    "control-vector-scaled": (r".+:.+", "PATH:SCALE"),
    "cpu-range": (r"\d*-\d*", "0-9"),
    "cpu-range-batch": (r"\d*-\d*", "0-9"),
    "cpu-mask": (r"(?:0x)?[0-9A-Fa-f]+", "0xff"),
    "cpu-mask-batch": (r"(?:0x)?[0-9A-Fa-f]+", "0xff"),
    "tensor-split": (r"[\d./]+", "1,1"),
}
_DRAFTED = ("simple", "map-k", "map-k4v")
_BOUNDS = (
    *(within(f"spec-ngram-{kind}-size-{side}", 1, 1024) for kind in _DRAFTED for side in "nm"),
    *(within(f"spec-ngram-{kind}-min-hits", 1) for kind in _DRAFTED),
    within("spec-ngram-mod-n-min", 0, 1024),
    within("spec-ngram-mod-n-max", 0, 1024),
    within("spec-ngram-mod-n-match", 1, 1024),
    *(within(name, 0) for name in ("n-cpu-moe", "n-cpu-ffn", "spec-draft-n-cpu-moe")),
    within("prio", -1, 3),
    *(within(name, 0, 3) for name in ("prio-batch", "spec-draft-prio", "spec-draft-prio-batch")),
    within("repeat-last-n", 0),
)


def _dtype(start: Start) -> str:
    return start.model.kv_cache_dtype or ""


def _is_without_flash(start: Start) -> bool:
    return start.is_off(_FLASH) or start.word(_FLASH) in _OFF


def _cache_without_flash_attention(start: Start) -> Refusal | None:
    if _dtype(start) not in _WIDE and _is_without_flash(start):
        return start.refuse(
            _FLASH,
            f"a KV cache in {_dtype(start)} needs flash attention",
            'write "on", or take it out',
        )
    return None


def _heads_of_blocks(start: Start) -> Refusal | None:
    size = start.known.head_dim if start.known else None
    if size and size % _BLOCK and _dtype(start) not in _WIDE:
        return Refusal(
            f"a head size of {size} is not a multiple of {_BLOCK}, the block size of "
            f"{_dtype(start)}",
            _CACHE,
            "write f16",
        )
    return None


def _slots(start: Start) -> Refusal | None:
    slots = start.model.max_sequences or 0
    if slots > _MOST_SLOTS:
        return Refusal(
            f"llama.cpp runs at most {_MOST_SLOTS} sequences",
            ("model", "max_sequences"),
            f"write {_MOST_SLOTS} or less",
        )
    return None


def _no_batch(start: Start) -> Refusal | None:
    if start.number("batch-size") == 0 and start.number("ubatch-size") == 0:
        return start.refuse("batch-size", "a step must have at least one token", "take it out")
    return None


def _lowered_batch(start: Start) -> Refusal | None:
    batch, step = start.count("batch-size", 2048), start.count("ubatch-size", 512)
    if start.is_on("embedding") and "batch-size" in start.settings and batch > step:
        return start.refuse(
            "batch-size",
            f"with embeddings, the batch is lowered to one step, {step} tokens",
            f"write 'ubatch-size: {batch}' beside it",
        )
    return None


def _split(start: Start) -> list[str]:
    """The share of each device."""
    given = start.value("tensor-split")
    if isinstance(given, list):
        return [str(part) for part in given]
    return start.word("tensor-split").replace("/", ",").split(",") if given else []


def _devices_of_a_split(start: Start) -> Refusal | None:
    if len(_split(start)) >= _MOST_DEVICES:
        message = f"a tensor split must have fewer than {_MOST_DEVICES} parts"
        return start.refuse("tensor-split", message, "take it out")
    return None


def _parts_of_a_split(start: Start) -> Refusal | None:
    parts, count = len(_split(start)), start.sizes.ranks
    if parts and parts != count and parts < _MOST_DEVICES:
        return start.refuse(
            "tensor-split",
            f"there are {parts} parts for {count} devices: those without a part get nothing",
            "write a number for each, the workers in their order and the head last",
        )
    return None


def _empty_split(start: Start) -> Refusal | None:
    parts = _split(start)
    if parts and len(parts) == start.sizes.ranks and all(_is_nothing(part) for part in parts):
        return start.refuse(
            "tensor-split",
            "all parts are 0, so the model is split by free memory",
            "take it out, or write a number for each device",
        )
    return None


def _is_nothing(part: str) -> bool:
    return re.fullmatch(r"0+(\.0*)?", part.strip()) is not None


def _devices(start: Start, name: str) -> list[str]:
    given = start.value(name)
    return [str(item) for item in given] if isinstance(given, list) else start.word(name).split(",")


def _unknown_devices(start: Start) -> Refusal | None:
    known = {"CUDA0", "none", *(f"RPC{number}" for number in range(start.sizes.ranks - 1))}
    for name in ("device", "spec-draft-device", "mmproj-device"):
        wrong = [device for device in _devices(start, name) if device and device not in known]
        if wrong:
            return start.refuse(
                name,
                f"the nodes have no device '{wrong[0]}'",
                f"write {' or '.join(sorted(known - {'none'}))}, or take it out",
            )
    return None


def _several_devices_of_images(start: Start) -> Refusal | None:
    if len(_devices(start, "mmproj-device")) > 1:
        return start.refuse(
            "mmproj-device", "images are processed on one device", "write CUDA0, or take it out"
        )
    return None


def _draft_cache_without_flash_attention(start: Start) -> Refusal | None:
    name = "spec-draft-type-v"
    if _is_without_flash(start) and start.word(name) not in _WIDE:
        return start.refuse(
            name, f"a KV cache in {start.word(name)} needs flash attention", "take it out"
        )
    return None


def _images_of_another_server(start: Start) -> Refusal | None:
    first = next(iter(_devices(start, "device")), "")
    if (
        first.startswith("RPC")
        and "mmproj" in start.settings
        and "mmproj-device" not in start.settings
    ):
        return start.refuse(
            "mmproj",
            f"images are processed on the first device, {first}",
            "write 'mmproj-device: CUDA0'",
        )
    return None


def _variables_of_numbers(start: Start) -> Refusal | None:
    known = catalog(start.engine.name, start.settings.version) if start.environment.given else None
    flags = {flag.variable: flag for flag in known.flags()} if known else {}
    for name, variable in start.environment.given.items():
        flag, value = flags.get(name), variable.value
        if flag and flag.type in ("int", "float") and not _is_number(value, flag.also):
            return start.refuse_variable(
                name, f"{name} must be a number, not '{value}'", "take it out, or write a number"
            )
    return None


def _is_number(value: str, others: Collection[str]) -> bool:
    return value in others or re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", value) is not None


def _numbers(start: Start) -> Refusal | None:
    return next((found for check in _BOUNDS if (found := check(start))), None)


def _forms(start: Start) -> Refusal | None:
    for name, (form, example) in _FORMS.items():
        given = start.value(name)
        texts = given if isinstance(given, list) else start.word(name).split(",")
        wrong = next((str(t) for t in texts if t != "" and not re.fullmatch(form, str(t))), "")
        if wrong:
            return start.refuse(
                name, f"'{wrong}' does not have the form '{example}'", f"write '{example}'"
            )
    return None


def _without_prediction(start: Start) -> Refusal | None:
    if start.method == "mtp" and start.model_type in (
        "llama",
        "qwen2",
        "qwen3",
        "qwen3_moe",
        "gpt_oss",
        "mistral",
    ):
        return Refusal(
            "the model has no MTP layers, which the method 'mtp' needs",
            METHOD,
            "write 'method: eagle3' or 'method: draft' with a 'source', or take 'speculative' out",
        )
    return None


def _half_a_certificate(start: Start) -> Refusal | None:
    pair = ("ssl-key-file", "ssl-cert-file")
    given = [name for name in pair if name in start.settings]
    if len(given) == 1:
        other = pair[1 - pair.index(given[0])]
        return start.refuse(
            given[0], f"the API has no TLS without '{other}'", f"write '{other}: PATH' beside it"
        )
    return None


def _shifted_images(start: Start) -> Refusal | None:
    for name in ("context-shift", "cache-reuse"):
        on = start.is_on(name) or (start.number(name) or 0) > 0
        if on and "mmproj" in start.settings:
            return start.refuse(
                name, f"'{name}' is switched off for models that take images", "take it out"
            )
    return None


_CONTEXT, _ARGUMENTS = "src/llama-context.cpp", "common/arg.cpp"

CONDITIONS = (
    Condition(_cache_without_flash_attention, f"{_CONTEXT}:3849"),
    Condition(_heads_of_blocks, f"{_CONTEXT}:3858"),
    Condition(_slots, f"{_CONTEXT}:104"),
    Condition(_no_batch, f"{_CONTEXT}:3810"),
    Condition(_lowered_batch, "tools/server/server.cpp:159", effect=Effect.DIFFERS),
    Condition(_devices_of_a_split, f"{_ARGUMENTS}:2844"),
    Condition(_parts_of_a_split, f"{_ARGUMENTS}:2849", effect=Effect.DIFFERS),
    Condition(_empty_split, "src/llama-model.cpp:1559", effect=Effect.DIFFERS),
    Condition(_unknown_devices, f"{_ARGUMENTS}:1135"),
    Condition(_several_devices_of_images, f"{_ARGUMENTS}:2625"),
    Condition(_draft_cache_without_flash_attention, f"{_CONTEXT}:3849"),
    Condition(_images_of_another_server, f"{_ARGUMENTS}:892", effect=Effect.DIFFERS),
    Condition(_variables_of_numbers, f"{_ARGUMENTS}:806"),
    Condition(_numbers, f"{_ARGUMENTS}:4288"),
    Condition(_forms, _ARGUMENTS),
    Condition(_without_prediction, f"{_CONTEXT}:3885"),
    Condition(_half_a_certificate, "tools/server/server-http.cpp:161", effect=Effect.DIFFERS),
    Condition(_shifted_images, "tools/server/server-context.cpp:1307", effect=Effect.DIFFERS),
)
