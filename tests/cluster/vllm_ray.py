"""vLLM on the CPU with Ray, in an environment of its own on top of vllm_cpu.py's.

vLLM has no Ray resource name for CPUs and starts no rank on one: "current platform cpu does not
support ray". A plugin, like those for other vendors' devices, gives it the name of the devices that
`ray start --num-gpus=1` offers. Everything else is as the package index has it.
"""

from pathlib import Path

from cluster.vllm_cpu import on_top

RAY = "2.60.0"
_PLUGIN = """\
def platform():
    return "sparkgen_ray.Platform"

def __getattr__(name):
    if name != "Platform":
        raise AttributeError(name)
    from vllm.platforms.cpu import CpuPlatform

    class Platform(CpuPlatform):
        ray_device_key = "GPU"

    return Platform
"""


def vllm_ray() -> Path:
    """The environment's bin folder; the first call installs the environment."""
    plugin = ("sparkgen_ray", _PLUGIN, "vllm.platform_plugins", "platform")
    return on_top(f"ray-{RAY}", (f"ray=={RAY}",), plugin)
