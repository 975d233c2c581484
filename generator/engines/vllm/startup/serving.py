"""vLLM's API: adapters, images, tools, certificates and what it logs."""

import json

from generator.catalogs.flag_files import catalog
from generator.engines.conditions import excludes, needs
from generator.engines.startup import Condition, Refusal, Start
from generator.engines.vllm.startup.kinds import of_images

_IMAGES_OF_ONE_ITEM = "mm-shm-cache-max-object-size-mb"
_OUTPUTS = "structured-outputs-config"


def _adapters_without_switch(start: Start) -> Refusal | None:
    if "lora-modules" in start.settings and not start.is_on("enable-lora"):
        return start.refuse(
            "lora-modules",
            "adapters are listed, but not enabled",
            "write 'enable-lora: true' beside it",
        )
    return None


def _named_adapters(start: Start) -> Refusal | None:
    name = "lora-modules"
    given = start.value(name)
    words = given if isinstance(given, list) else [given]
    wrong = [word for word in words if isinstance(word, str) and word and not _is_adapter(word)]
    if wrong:
        return start.refuse(
            name, f"'{wrong[0]}' does not name an adapter", "write 'NAME=PATH', or JSON with both"
        )
    return None


def _is_adapter(word: str) -> bool:
    """Whether a word is a name and a path, or JSON with them."""
    if "=" in word and "," not in word:
        return True
    try:
        return {"name", "path"} <= set(json.loads(word))
    except (ValueError, TypeError):
        return False


def _fewer_adapters_in_memory(start: Start) -> Refusal | None:
    most, kept = start.count("max-loras"), start.number("max-cpu-loras")
    if kept is not None and kept < most:
        return start.refuse(
            "max-cpu-loras",
            f"only {kept:.0f} adapters are kept, and {most} may run at once",
            f"write {most} or more",
        )
    return None


def _adapters_at_run_time(start: Start) -> Refusal | None:
    name = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
    allowed = start.environment.get(name, "").lower() in ("1", "true")
    if allowed and start.count("api-server-count") > 1:
        return start.refuse(
            "api-server-count", f"{name} allows only one API server", "write 1, or take it out"
        )
    return None


def _outputs_without_requests(start: Start) -> Refusal | None:
    if start.is_on("enable-log-outputs") and not start.is_on("enable-log-requests"):
        return start.refuse(
            "enable-log-outputs",
            "outputs are only logged together with requests",
            "write 'enable-log-requests: true' beside it",
        )
    return None


def _metrics_without_statistics(start: Start) -> Refusal | None:
    name = "enable-per-request-metrics"
    if start.is_on(name) and start.is_on("disable-log-stats"):
        return start.refuse(
            name, f"'{name}' needs statistics, which are off", "keep one of the two"
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


def _port_of_grpc(start: Start) -> Refusal | None:
    if "grpc-port" not in start.settings:
        return None
    if start.is_on("grpc"):
        return start.refuse(
            "grpc-port", "'grpc' serves instead of HTTP, and 'grpc-port' beside it", "keep one"
        )
    if start.environment.get("VLLM_USE_RUST_FRONTEND") != "1":
        return start.refuse(
            "grpc-port",
            "'grpc-port' needs the Rust frontend",
            "write 'VLLM_USE_RUST_FRONTEND: 1' under engine.env",
        )
    return None


def _shape_of_outputs(start: Start) -> Refusal | None:
    backend = start.word(_OUTPUTS, "backend") or "auto"
    for key, having in (
        ("disable_any_whitespace", ("xgrammar", "guidance")),
        ("disable_additional_properties", ("guidance",)),
    ):
        if start.is_on(_OUTPUTS, key) and backend not in having:
            return start.refuse(
                _OUTPUTS,
                f"the backend '{backend}' has no '{key}'",
                f"write 'backend: {having[0]}' beside it",
                key,
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


def _unknown_variables(start: Start) -> Refusal | None:
    name = "fail-on-environ-validation"
    known = catalog(start.engine.name, start.settings.version)
    unknown = [
        variable
        for variable in start.environment.given
        if variable.startswith("VLLM_") and known and variable not in known.variables
    ]
    if start.is_on(name) and unknown:
        return start.refuse(
            name,
            f"vLLM has no variable {unknown[0]}, and '{name}' makes that fatal",
            f"take {unknown[0]} out under engine.env",
        )
    return None


_PROCESSOR = "vllm/config/multimodal.py"
_COMMON = "vllm/entrypoints/common/cli_args.py"

CONDITIONS = (
    Condition(_adapters_without_switch, "vllm/v1/worker/lora_model_runner_mixin.py:91"),
    Condition(_named_adapters, f"{_COMMON}:55"),
    Condition(_fewer_adapters_in_memory, "vllm/config/lora.py:124"),
    Condition(_adapters_at_run_time, "vllm/entrypoints/cli/serve.py:316"),
    Condition(_outputs_without_requests, f"{_COMMON}:556"),
    Condition(_metrics_without_statistics, f"{_COMMON}:568", (0, 25)),
    Condition(_half_a_certificate, ""),
    Condition(
        needs("collect-detailed-traces", "otlp-traces-endpoint", "URL"),
        "vllm/config/observability.py:218",
    ),
    Condition(_port_of_grpc, f"{_COMMON}:486", (0, 32)),
    Condition(_shape_of_outputs, "vllm/config/structured_outputs.py:68"),
    Condition(of_images(_shared_images), f"{_PROCESSOR}:521"),
    Condition(of_images(_scaled_encoder), f"{_PROCESSOR}:530", (0, 21)),
    Condition(of_images(_tensors_in_shared_memory), "vllm/config/model.py:1619"),
    Condition(of_images(_spawned_workers), "vllm/config/vllm.py:1749"),
    Condition(of_images(_images_on_the_gpu), f"{_PROCESSOR}:651", (0, 28)),
    Condition(of_images(_renderers), "vllm/config/model.py:650", until=(0, 27)),
    Condition(of_images(_pooled_renderers), "vllm/config/model.py:896", (0, 30)),
    Condition(_unknown_variables, "vllm/platforms/interface.py"),
    Condition(
        of_images(excludes("mm-encoder-fp8-scale-path", "mm-encoder-fp8-scale-save-path")),
        f"{_PROCESSOR}:537",
        (0, 21),
    ),
)
