"""A Docker engine for each node, unpacked beside the tests, and images built on the spot."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from programs import program

from cluster.llama_cpp import cache

_PACKAGES = ("docker.io", "containerd", "runc")
_PROGRAMS = (
    "usr/sbin/dockerd",
    "usr/bin/docker",
    "usr/bin/docker-init",
    "usr/bin/containerd",
    "usr/bin/containerd-shim-runc-v2",
)
# What the scripts in the engine's container call.
_TOOLS = ("bash", "cat", "curl", "grep", "kill", "sed", "sh", "sleep", "timeout")

_UNIT = """\
[Unit]
DefaultDependencies=no
[Service]
Type=notify
ExecStart=/usr/bin/dockerd --iptables=false --bridge=none --data-root=/mnt/docker \\
  --add-runtime=clamped=/usr/bin/runc --default-runtime=clamped --cgroup-parent=/{group}
KillMode=mixed
"""

# A machine of namespaces may lack CAP_SYS_RESOURCE, and so may not raise the limits that the files
# ask for: they are made as high as they may be.
_RUNC = """\
#!/usr/bin/python3
import json, os, resource, sys
arguments = sys.argv[1:]
def clamp(process):
    for limit in process.get("rlimits", []):
        most = resource.getrlimit(getattr(resource, limit["type"]))[1]
        for key in ("soft", "hard"):
            if most != resource.RLIM_INFINITY:
                limit[key] = min(limit[key], most)
def rewrite(path, process):
    with open(path) as file:
        document = json.load(file)
    clamp(process(document))
    with open(path, "w") as file:
        json.dump(document, file)
if "create" in arguments:
    rewrite(arguments[arguments.index("--bundle") + 1] + "/config.json", lambda d: d["process"])
if "exec" in arguments and "--process" in arguments:
    rewrite(arguments[arguments.index("--process") + 1], lambda d: d)
os.execv("{runc}", ["runc", *arguments])
"""


def unpacked() -> Path:
    """Debian's Docker engine, fetched once and installed nowhere."""
    folder = cache() / "docker"
    if not (folder / "usr/sbin/dockerd").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(("apt-get", "download", *_PACKAGES), cwd=folder, check=True)
        for file in folder.glob("*.deb"):
            subprocess.run(("dpkg-deb", "--extract", str(file), str(folder)), check=True)
    return folder


def add_docker(tree: Path) -> None:
    """Give a prepared node a Docker engine with Compose, whose GPUs are a stand-in."""
    folder = unpacked()
    for path in _PROGRAMS:
        _link(folder / path, tree / "usr/bin" / Path(path).name)
    runc = next(
        path for path in (folder / "usr/sbin/runc", folder / "usr/bin/runc") if path.exists()
    )
    _script(tree / "usr/bin/runc", _RUNC.replace("{runc}", str(runc)))
    _script(tree / "usr/bin/nvidia-container-runtime-hook", "#!/bin/sh\n")
    plugins = tree / "usr/libexec/docker/cli-plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    _link(Path(program("docker-compose")), plugins / "docker-compose")
    (tree / "opt/units/docker.service").write_text(_UNIT.format(group=group(tree)))


def group(tree: Path) -> str:
    """The control group that a node's processes and containers are in."""
    return f"sparkgen-{os.getpid()}-{tree.name}"


def image(folder: Path, programs: Sequence[Path]) -> Path:
    """An archive for `docker import`: programs below /app, and what scripts call."""
    root = folder / "image"
    for file in programs:
        _copy(file, root / "app" / file.name)
    for name in _TOOLS:
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found, name
        _copy(Path(found), root / "usr/bin" / name)
        for library in _libraries(found):
            _copy(library, root / str(library).lstrip("/"))
    for link in ("bin", "lib", "lib64"):
        if not (root / link).exists():
            (root / link).symlink_to(f"usr/{link}")
    (root / "etc").mkdir()
    (root / "tmp").mkdir()
    archive = folder / "image.tar"
    subprocess.run(("tar", "-C", str(root), "-cf", str(archive), "."), check=True)
    return archive


def _link(source: Path, target: Path) -> None:
    """Have a file in the tree itself: a unit with a /tmp of its own does not see everything."""
    try:
        target.hardlink_to(source.resolve())
    except OSError:
        shutil.copy(source, target)


def _libraries(file: str) -> Iterator[Path]:
    for line in subprocess.run(("ldd", file), capture_output=True, text=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                yield Path(word)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(os.path.realpath(source), target)


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
