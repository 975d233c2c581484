"""Makes SGLang see a GB10 without a GPU; imported before SGLang, by a Python with torch.

Kernel packages and the like, which nothing here calls, are replaced by stand-ins. The arguments of
the program are the folder of SGLang's sources, and more such folders.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [argument for argument in sys.argv[1:] if "/" in argument]
sys.path.append(str(HERE.parent))

MEMORY = 128_452_132_864
os.environ |= {"HF_HUB_OFFLINE": "1"}

# Before torchvision is replaced: transformers checks whether it is installed.
import torch
import transformers
from missing_modules import _Anything


for name in ("AutoConfig", "AutoImageProcessor", "AutoModel", "AutoProcessor", "AutoTokenizer"):
    getattr(transformers, name)
transformers.utils.import_utils.is_torchvision_available()
_register = transformers.AutoConfig.register
# An older SGLang has classes of its own for kinds that this Transformers knows.
transformers.AutoConfig.register = lambda *of, **how: _register(*of, **{**how, "exist_ok": True})


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A module with any name, for each package that is not installed, except SGLang's own."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in MISSING:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        module: Any = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = anything
        return module

    def exec_module(self, module: types.ModuleType) -> None: ...


def anything(name: str) -> Any:
    """What a stand-in returns for any name."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _Anything()


MISSING = {
    *("IPython", "av", "cuda", "cutlass", "decord", "deep_gemm", "tilelang"),
    "torchaudio",
    *("flashinfer", "gguf", "kernels", "llguidance", "modelscope", "nvidia", "outlines"),
    *("prometheus_client", "scipy", "sgl_kernel", "soundfile", "timm", "torch_memory_saver"),
    *("torchao", "torchcodec", "torchvision", "triton", "uvicorn", "uvloop", "xgrammar", "zmq"),
}
# Used as they are where they are installed: they compute nothing by themselves.
MISSING |= {name for name in ("compressed_tensors", "einops") if not find_spec(name)}
sys.meta_path.append(StandIns())

_register_fake: Any = torch.library.register_fake


def _registered(name: Any, *how: Any, **more: Any) -> Any:
    """What PyTorch knows of an operator; those of a package that is not installed are left out."""
    if isinstance(name, str) and name.startswith("sgl_kernel::"):
        return lambda function: function
    return _register_fake(name, *how, **more)


torch.library.register_fake = _registered
cuda: Any = torch.cuda
cuda.is_available = lambda: True
cuda.device_count = lambda: 1
cuda.current_device = lambda: 0
cuda.get_device_capability = lambda *_: (12, 1)
cuda.get_device_name = lambda *_: "NVIDIA GB10"
cuda.mem_get_info = lambda *_: (MEMORY, MEMORY)
cuda.get_device_properties = lambda *_: types.SimpleNamespace(
    total_memory=int(os.environ.get("SPARK_MEMORY", MEMORY)),
    major=12,
    minor=1,
    multi_processor_count=48,
    name="NVIDIA GB10",
)
torch.version.cuda = "13.0"


class _Stream:
    """A stream of work for the GPU, or an event in it."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return anything(name)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None: ...


# PyTorch's compiler wants a class of its own for each.
for name in ("Stream", "Event", "StreamContext"):
    setattr(cuda, name, type(name, (_Stream,), {}))
for name in ("set_device", "empty_cache", "synchronize", "stream", "current_stream", "init"):
    setattr(cuda, name, lambda *_, **__: _Stream())

# Without this program, earlier releases do not start. On a GB10 it names no memory.
PROGRAMS = Path(tempfile.mkdtemp())
(PROGRAMS / "nvidia-smi").write_text("#!/bin/sh\necho '[N/A]'\n")
(PROGRAMS / "nvidia-smi").chmod(0o755)
os.environ["PATH"] = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
