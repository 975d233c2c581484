"""vLLM's API: adapters, images, tools, certificates and what it logs."""

from generator.engines.conditions import excludes
from generator.engines.startup import Condition, Refusal, Start
from generator.engines.vllm.startup.kinds import of_images

_IMAGES_OF_ONE_ITEM = "mm-shm-cache-max-object-size-mb"


def _adapters_without_switch(start: Start) -> Refusal | None:
    if "lora-modules" in start.settings and not start.is_on("enable-lora"):
        return start.refuse(
            "lora-modules",
            "adapters are listed, but not enabled",
            "write 'enable-lora: true' beside it",
        )
    return None


def _half_a_certificate(start: Start) -> Refusal | None:
    given = [name for name in ("ssl-keyfile", "ssl-certfile") if name in start.settings]
    if len(given) == 1:
        other = "ssl-certfile" if given == ["ssl-keyfile"] else "ssl-keyfile"
        return start.refuse(
            given[0], f"'{given[0]}' needs '{other}'", f"write '{other}: PATH' beside it"
        )
    return None


def _shared_images(start: Start) -> Refusal | None:
    if _IMAGES_OF_ONE_ITEM in start.settings and start.word("mm-processor-cache-type") != "shm":
        return start.refuse(
            _IMAGES_OF_ONE_ITEM,
            f"'{_IMAGES_OF_ONE_ITEM}' needs a cache in shared memory",
            "write 'mm-processor-cache-type: shm' beside it",
        )
    return None


def _scaled_encoder(start: Start) -> Refusal | None:
    names = ("mm-encoder-fp8-scale-path", "mm-encoder-fp8-scale-save-path")
    name = next((name for name in names if name in start.settings), None)
    if name and start.word("mm-encoder-attn-dtype") != "fp8":
        return start.refuse(
            name,
            f"'{name}' needs an encoder in fp8",
            "write 'mm-encoder-attn-dtype: fp8' beside it",
        )
    return None


def _tensors_in_shared_memory(start: Start) -> Refusal | None:
    if start.word("mm-tensor-ipc") == "torch_shm" and start.sizes.ranks > 1:
        return start.refuse(
            "mm-tensor-ipc", "'torch_shm' does not reach other nodes", "take it out"
        )
    return None


def _spawned_workers(start: Start) -> Refusal | None:
    spawned = start.environment.get("VLLM_WORKER_MULTIPROC_METHOD") == "spawn"
    if start.word("mm-tensor-ipc") == "torch_shm" and start.sizes.ranks == 1 and not spawned:
        return start.refuse(
            "mm-tensor-ipc",
            "'torch_shm' needs workers that are spawned",
            "write 'VLLM_WORKER_MULTIPROC_METHOD: spawn' under engine.env, or take it out",
        )
    return None


def _images_on_the_gpu(start: Start) -> Refusal | None:
    name = "mm-processor-kwargs"
    producer = start.word("ec-transfer-config", "ec_role") == "ec_producer"
    if start.word(name, "device").startswith("cuda") and not producer:
        return start.refuse(
            name,
            "images can't be processed on a GPU that serves the model",
            "take it out",
            "device",
        )
    return None


def _renderers(start: Start) -> Refusal | None:
    name = "renderer-num-workers"
    cache = start.number("mm-processor-cache-gb")
    if start.count(name) > 1 and (cache is None or cache > 0):
        return start.refuse(
            name,
            "several renderers can't share the image cache",
            "write 'mm-processor-cache-gb: 0' beside it, or take it out",
        )
    return None


def _pooled_renderers(start: Start) -> Refusal | None:
    return _renderers(start) if start.word("runner") == "pooling" else None


_PROCESSOR = "vllm/config/multimodal.py"

CONDITIONS = (
    Condition(_adapters_without_switch, "vllm/v1/worker/lora_model_runner_mixin.py:91"),
    Condition(_half_a_certificate, ""),
    Condition(of_images(_shared_images), f"{_PROCESSOR}:521"),
    Condition(of_images(_scaled_encoder), f"{_PROCESSOR}:530", (0, 21)),
    Condition(of_images(_tensors_in_shared_memory), "vllm/config/model.py:1619"),
    Condition(of_images(_spawned_workers), "vllm/config/vllm.py:1749"),
    Condition(of_images(_images_on_the_gpu), f"{_PROCESSOR}:651", (0, 28)),
    Condition(of_images(_renderers), "vllm/config/model.py:650", until=(0, 27)),
    Condition(of_images(_pooled_renderers), "vllm/config/model.py:896", (0, 30)),
    Condition(
        of_images(excludes("mm-encoder-fp8-scale-path", "mm-encoder-fp8-scale-save-path")),
        f"{_PROCESSOR}:537",
        (0, 21),
    ),
)
