"""Asks an engine by its preflight as on a Spark, without a GPU; executed by the engine's Python.

    asked_on_a_spark.py vllm
    asked_on_a_spark.py sglang FOLDER_OF_SOURCES...

Reads starts as lines of JSON, `{"words": [...], "env": {...}}`, and writes the answers to each as
one line. Modules are imported once; each start runs in its own process, since engines keep state.
"""

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path

ENGINE = sys.argv[1]
HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "templates/payload/node/opt/sparkgen/preflight"
sys.path[:0] = [str(SCRIPTS), str(HERE)]
sys.dont_write_bytecode = True

ask = importlib.import_module(f"ask_{ENGINE}")

# Imported once for all starts.
SHARED = {
    "vllm": (
        *("entrypoints.cli.main", "entrypoints.cli.serve", "entrypoints.openai.api_server"),
        *("entrypoints.launchers.api_server", "v1.executor.multiproc_executor", "v1.engine.core"),
        *("v1.engine.async_llm", "model_executor.model_loader.utils"),
        "model_executor.models.registry",
    ),
    "sglang": (
        *("srt.server_args", "srt.configs.model_config", "srt.managers.scheduler"),
        *("srt.model_loader.loader", "srt.models.registry"),
    ),
}


def pretend() -> None:
    """Have the engine see a GB10."""
    if ENGINE == "sglang":
        importlib.import_module("pretended_spark_of_sglang")
        return
    spark = importlib.import_module("pretended_spark")
    create_layers = ask.create_layers

    def created(config: object) -> object:
        spark.with_operators()
        return create_layers(config)

    ask.create_layers = created


def answers(start: dict[str, dict[str, str]]) -> list[object]:
    """The answers to one start, asked in a process of its own."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(writer, 1)
        os.environ.update(start["env"])
        ask.main(["--", *start["words"]])
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        lines = pipe.read().decode(errors="replace").splitlines()
    os.waitpid(child, 0)
    return [json.loads(line) for line in lines if line.startswith("{")]


def main() -> None:
    pretend()
    # What it lacks itself is said here; below, releases differ in where they have a module.
    importlib.import_module(ENGINE)
    for name in SHARED[ENGINE]:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{ENGINE}.{name}")
    for line in sys.stdin:
        print("ANSWERS " + json.dumps(answers(json.loads(line))), flush=True)


main()
