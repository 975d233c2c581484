"""Environment variables in engine configurations, other than NCCL's and the engine's own.

Source: the documentation of each program: PyTorch, "CUDA environment variables" and "torch.cuda";
CUDA C++ programming guide, "Environment variables"; OpenMP 5.2, chapter 21; huggingface_hub,
"Environment variables"; Triton and FlashInfer, their README; UCX, "ucx_info -c"; glibc, ld.so(8).
"""

from functools import cache

from generator.resources import SCHEMAS

RAY = "RAY_"

COMMON = frozenset(
    [
        "CUDA_CACHE_DISABLE",
        "CUDA_CACHE_MAXSIZE",
        "CUDA_CACHE_PATH",
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_DEVICE_ORDER",
        "CUDA_HOME",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_MODULE_LOADING",
        "CUDA_VISIBLE_DEVICES",
        "FLASHINFER_CUDA_ARCH_LIST",
        "FLASHINFER_WORKSPACE_BASE",
        "GLOO_SOCKET_IFNAME",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_HUB_DISABLE_TELEMETRY",
        "HF_HUB_DISABLE_XET",
        "HF_HUB_ENABLE_HF_TRANSFER",
        "HF_HUB_OFFLINE",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "MKL_NUM_THREADS",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVCC_THREADS",
        "NVIDIA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "OPENBLAS_NUM_THREADS",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TIKTOKEN_ENCODINGS_BASE",
        "TIKTOKEN_RS_CACHE_DIR",
        "TOKENIZERS_PARALLELISM",
        "TORCHINDUCTOR_CACHE_DIR",
        "TORCH_CUDA_ARCH_LIST",
        "TORCH_LOGS",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_BLOCKING_WAIT",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_ENABLE_MONITORING",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        "TP_SOCKET_IFNAME",
        "TRANSFORMERS_CACHE",
        "TRANSFORMERS_OFFLINE",
        "TRITON_CACHE_DIR",
        "TRITON_PTXAS_PATH",
        "UCX_IB_GID_INDEX",
        "UCX_NET_DEVICES",
        "UCX_TLS",
    ]
)


@cache
def of_ray() -> frozenset[str]:
    """The variables that Ray is known to read; its core reads more."""
    return of_file("ray-variables.txt")


@cache
def of_file(file: str) -> frozenset[str]:
    """The variables in a list, one per line."""
    lines = (SCHEMAS / file).read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
