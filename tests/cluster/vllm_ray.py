"""vLLM on the CPU with Ray, in an environment of its own on top of vllm_cpu.py's.

vLLM has no Ray resource name for CPUs and starts no rank on one: "current platform cpu does not
support ray". A plugin, like those for other vendors' devices, gives it the name of the devices that
`ray start --num-gpus=1` offers. Everything else is as the package index has it.
"""

import sys
from pathlib import Path

from cluster.llama_cpp import cache
from cluster.vllm_cpu import VERSION, add_plugin, run, vllm_cpu

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
    programs = vllm_cpu()
    folder = cache() / f"vllm-{VERSION}-ray-{RAY}"
    if not (folder / "installed").exists():
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        (site_packages,) = folder.glob("lib/python*/site-packages")
        (base_packages,) = programs.parent.glob("lib/python*/site-packages")
        (site_packages / "vllm.pth").write_text(f"{base_packages}\n")
        run(str(folder / "bin/python"), "-m", "pip", "install", f"ray=={RAY}")
        program = (programs / "vllm").read_text().split("\n", 1)[1]
        (folder / "bin/vllm").write_text(f"#!{folder}/bin/python\n{program}")
        (folder / "bin/vllm").chmod(0o755)
        add_plugin(site_packages, "sparkgen_ray", _PLUGIN, "vllm.platform_plugins", "platform")
        (folder / "installed").touch()
    return folder / "bin"
