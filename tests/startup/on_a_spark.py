"""Runs vLLM's own config classes as on a Spark, without a GPU; executed by vLLM's Python.

Reads arguments of `vllm serve` and variables as JSON, one line per start, and writes the error that
ends the start, from the parser or from the classes that the engine builds from the arguments.
Compiled modules, whose kernels nothing here calls, are replaced by stand-ins. Each start runs in
its own process, because some classes keep state.
"""

import contextlib
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from verdicts import answer

MEMORY = 128_452_132_864
os.environ |= {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "CRITICAL"}


def stand_in(name: str) -> Any:
    """A module that has any function."""

    def function(attribute: str) -> Callable[..., int]:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return lambda *_, **__: 2

    module: Any = types.ModuleType(name)
    module.__getattr__ = function
    return module


for missing in ("_C", "_C_stable_libtorch", "_moe_C", "_moe_C_stable_libtorch", "vllm_flash_attn"):
    sys.modules[f"vllm.{missing}"] = stand_in(f"vllm.{missing}")

import torch
import vllm.platforms
import vllm.triton_utils
from vllm.platforms.cuda import NonNvmlCudaPlatform
from vllm.platforms.interface import DeviceCapability


real_operator = torch._ops._OpNamespace.__getattr__


def operator(namespace: Any, name: str) -> Any:
    """An operator; those that vLLM asks about the GPU's capabilities return true."""
    try:
        return real_operator(namespace, name)
    except AttributeError:
        if "supports" not in name:
            raise
        return lambda *_, **__: True


torch._ops._OpNamespace.__getattr__ = operator


class Spark(NonNvmlCudaPlatform):
    """A GB10."""

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability:
        return DeviceCapability(12, 1)

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return "NVIDIA GB10"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return MEMORY

    @classmethod
    def device_count(cls) -> int:
        return 1

    @classmethod
    def is_integrated_gpu(cls, device_id: int = 0) -> bool:
        return True

    def is_cumem_allocator_available(self) -> bool:
        return True


# Before importing the modules that check these.
vllm.platforms._current_platform = Spark()
vllm.triton_utils.HAS_TRITON = True
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(
    total_memory=MEMORY, major=12, minor=1, multi_processor_count=48, name="NVIDIA GB10"
)

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser


PARSER = make_arg_parser(FlexibleArgumentParser())


def verdict(words: list[str]) -> str:
    """The error that ends the start; empty if there is none."""
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            args = PARSER.parse_args(words)
            # As the command line's own entry point does.
            args.model, args.subparser = args.model_tag, "serve"
            validate_parsed_serve_args(args)
            AsyncEngineArgs.from_cli_args(args).create_engine_config(UsageContext.OPENAI_API_SERVER)
    except SystemExit:
        return output.getvalue().strip().splitlines()[-1]
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' '.join(lines[:3])}"
    return ""


answer(verdict)
