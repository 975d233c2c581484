"""Makes vLLM built for CPUs see a GB10; imported before vLLM, by vLLM's Python.

Compiled modules, whose kernels nothing here calls, are replaced by stand-ins.
"""

import importlib.metadata
import os
import sys
import types
from collections.abc import Callable
from typing import Any

MEMORY = 128_452_132_864
os.environ |= {"HF_HUB_OFFLINE": "1"}
_MODULES = ("_C", "_C_stable_libtorch", "_moe_C", "_moe_C_stable_libtorch", "vllm_flash_attn")


def stand_in(name: str) -> Any:
    """A module that has any function."""

    def function(attribute: str) -> Callable[..., int]:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return lambda *_, **__: 2

    module: Any = types.ModuleType(name)
    module.__getattr__ = function
    return module


for missing in _MODULES:
    sys.modules[f"vllm.{missing}"] = stand_in(f"vllm.{missing}")

import psutil
import torch

_real_operator = torch._ops._OpNamespace.__getattr__
# Namespaces of vLLM's compiled modules; on a node, their operators exist.
_COMPILED = ("_C", "_moe_C", "_vllm_fa2_C", "_vllm_fa3_C", "_qutlass_C")
_with_operators = False


class Operator:
    """An operator of a compiled module, or one of its overloads."""

    _schema = None

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> bool:
        return True

    def __getattr__(self, name: str) -> "Operator":
        if name.startswith("__"):
            raise AttributeError(name)
        return Operator(name)


def _operator(namespace: Any, name: str) -> Any:
    """An operator; those that vLLM asks about the GPU's capabilities return true."""
    try:
        return _real_operator(namespace, name)
    except AttributeError:
        if "supports" in name:
            return lambda *_, **__: True
        if _with_operators and namespace.name.startswith(_COMPILED) and name[:2] != "__":
            return Operator(name)
        raise


def with_operators() -> None:
    """From now on compiled operators exist: vLLM registers functions for those that do."""
    global _with_operators
    import vllm._custom_ops  # noqa: F401

    _with_operators = True


torch._ops._OpNamespace.__getattr__ = _operator  # type: ignore[method-assign]

import triton
from triton.backends.compiler import GPUTarget


class Driver:
    """Triton's driver of a GB10's GPU."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 121, 32)

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_, **__: 0


# Triton itself, as on a node: vLLM puts something in its place where no driver is active.
triton.backends.backends["nvidia"].driver.is_active = staticmethod(lambda: True)
triton.runtime.driver.set_active(Driver())
_version = importlib.metadata.version
# By its version vLLM knows that it was built for CPUs, for which it has another Triton.
importlib.metadata.version = lambda name: _version(name).replace("+cpu", "")

import vllm.platforms
import vllm.triton_utils
from vllm.platforms.cuda import NonNvmlCudaPlatform
from vllm.platforms.interface import DeviceCapability


class Spark(NonNvmlCudaPlatform):  # type: ignore[misc]
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
assert vllm.triton_utils.HAS_TRITON
_properties = {"total_memory": MEMORY, "major": 12, "minor": 1, "multi_processor_count": 48}
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(
    name="NVIDIA GB10", **_properties
)  # type: ignore
torch.cuda.current_device = lambda: 0
_memory = psutil.virtual_memory
psutil.virtual_memory = lambda: _memory()._replace(total=MEMORY, available=MEMORY)


class _Stream:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass


torch.cuda.Stream = torch.cuda.Event = torch.cuda.current_stream = _Stream  # type: ignore
torch.accelerator.current_device_index = lambda: 0  # type: ignore
torch.accelerator.current_accelerator = lambda *_: torch.device("cuda")  # type: ignore
