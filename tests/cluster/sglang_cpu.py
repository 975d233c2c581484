"""SGLang on the CPU, in an environment outside the checkout."""

import subprocess
import sys
from pathlib import Path

from cluster.llama_cpp import cache
from cluster.vllm_cpu import run

VERSION = "0.5.23"
# Its kernels are built for CUDA only and do not load without the driver's library, of which they
# import one function. No tensor is on a GPU here, so nothing calls it.
_DRIVER = "int cuPointerGetAttribute(void) { return 3; }"


def sglang_cpu() -> Path:
    """The environment's bin folder; the first call installs the environment (9.5 GB)."""
    folder = cache() / f"sglang-{VERSION}"
    if not (folder / "installed").exists():
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        run(str(folder / "bin/python"), "-m", "pip", "install", f"sglang=={VERSION}")
        library = str(_driver(folder))
        compile_it = ("cc", "-shared", "-fPIC", f"-Wl,-soname,{_driver(folder).name}")
        argv = (*compile_it, "-x", "c", "-", "-o", library)
        _driver(folder).parent.mkdir()
        subprocess.run(argv, input=_DRIVER, text=True, check=True)
        (folder / "installed").touch()
    return folder / "bin"


def environment() -> dict[str, str]:
    """The stand-in for the driver's library, and no NCCL, which SGLang would use if it loads."""
    folder = _driver(cache() / f"sglang-{VERSION}").parent
    return {"LD_LIBRARY_PATH": str(folder), "SGLANG_NCCL_SO_PATH": str(folder / "no-nccl")}


def _driver(folder: Path) -> Path:
    return folder / "driver/libcuda.so.1"
