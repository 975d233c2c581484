"""A Docker engine for each node, unpacked outside the system, and images built on the spot."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from programs import UNPACKED, program
from proxied import NGINX_FOLDER

from cluster.clock import add_clock
from cluster.llama_cpp import cache

PROGRAMS = ("dockerd", "docker", "docker-init", "containerd", "containerd-shim-runc-v2", "runc")
_PACKAGES = ("docker.io", "containerd", "runc", "tini")
# Programs that the scripts in the engine's container call.
_TOOLS = ("bash", "cat", "curl", "dirname", "grep", "kill", "ps", "sed", "sh", "sleep", "timeout")
# Parts of Python's library that no program here imports.
_UNUSED = ("dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "config-*")

# As in Debian's own units: containers outlive both daemons.
_LIVING = "KillMode=process\nDelegate=yes\nRestart=always\nRestartSec=2\n"
_UNITS = {
    "containerd.service": "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\n"
    f"ExecStart=/usr/bin/containerd --root=/mnt/docker/containerd\n{_LIVING}",
    "docker.service": "[Unit]\nDefaultDependencies=no\nWants=containerd.service\n"
    "After=containerd.service\n[Service]\nType=notify\n"
    "ExecStart=/usr/bin/dockerd --containerd=/run/containerd/containerd.sock \\\n"
    "  --iptables=false --bridge=none --data-root=/mnt/docker --cgroup-parent=/{group} \\\n"
    "  --exec-opt=native.cgroupdriver=cgroupfs \\\n"
    f"  --add-runtime=clamped=/usr/bin/runc --default-runtime=clamped\n{_LIVING}",
}

# A machine made of namespaces may lack CAP_SYS_RESOURCE, and so can't raise limits as the files
# ask; they are set as high as is allowed.
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


def fetch() -> None:
    """Fetch Debian's Docker engine and unpack it in the cache, without installing it."""
    if find("dockerd"):
        return
    folder = cache() / "docker"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(("apt-get", "download", *_PACKAGES), cwd=folder, check=True)
    for file in folder.glob("*.deb"):
        subprocess.run(("dpkg-deb", "--extract", str(file), str(folder)), check=True)


def find(name: str) -> str | None:
    """The path of a program, preferring the unpacked ones."""
    tops = (UNPACKED, cache() / "docker")
    folders = [str(top / folder) for top in tops for folder in ("usr/bin", "usr/sbin")]
    return shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))


def _found(name: str) -> Path:
    return Path(find(name) or program(name))


def add_docker(tree: Path) -> None:
    """Give a prepared node a Docker engine with Compose; its GPUs are a stand-in."""
    for name in PROGRAMS:
        if name != "runc":
            _link(_found(name), tree / "usr/bin" / name)
    _script(tree / "usr/bin/runc", _RUNC.replace("{runc}", str(_found("runc"))))
    _script(tree / "usr/bin/nvidia-container-runtime-hook", "#!/bin/sh\n")
    plugins = tree / "usr/libexec/docker/cli-plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    _link(Path(program("docker-compose")), plugins / "docker-compose")
    for name, text in _UNITS.items():
        (tree / "opt/units" / name).write_text(text.format(group=group(tree)))


def group(tree: Path) -> str:
    """The control group of a node's processes and containers."""
    return f"sparkgen-{os.getpid()}-{tree.name}"


def image(
    folder: Path,
    programs: Mapping[str, Path],
    python: bool = False,
    clock: bool = False,
    loaded: Iterable[str] = (),
) -> Path:
    """The only layer of an image: programs under /app, what scripts call, and optionally Python.

    `loaded` are libraries, and folders of plugins, that its programs load by themselves.
    """
    root = folder / "image"
    for name, file in programs.items():
        _copy(file, root / "app" / name)
        (root / "app" / name).chmod(0o755)
    (root / "etc").mkdir(parents=True)
    if clock:
        add_clock(root)
    for path in loaded:
        _add_loaded(path, root)
    return _archive(root, python)


def nginx_image(folder: Path) -> Path:
    """A layer with the nginx that is unpacked beside the tests."""
    root = folder / "image"
    shutil.copytree(NGINX_FOLDER, root / "opt/nginx", symlinks=True)
    (root / "usr/bin").mkdir(parents=True)
    _script(root / "usr/bin/nginx", '#!/bin/sh\nexec /opt/nginx/nginx "$@"\n')
    return _archive(root)


def tagged(layer: Path, name: str, folder: Path) -> Path:
    """An archive for `docker load` whose image declares a Spark's architecture.

    `docker import` would declare this machine's, which is what its programs are for in any case.
    """
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    layers = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    found = {"Env": ["PATH=/app:/usr/bin"]}
    config = {"architecture": "arm64", "os": "linux", "config": found, "rootfs": layers}
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    for part, content in (("config.json", config), ("manifest.json", manifest)):
        (folder / part).write_text(json.dumps(content))
    archive = folder / "tagged.tar"
    with tarfile.open(archive, "w") as tar:
        for part in ("config.json", "manifest.json"):
            tar.add(folder / part, part)
        tar.add(layer, "layer.tar")
    return archive


def _archive(root: Path, python: bool = False) -> Path:
    """An image from a folder that already holds its programs."""
    for name in (*_TOOLS, *(["python3"] if python else [])):
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found, name
        _add(found, root)
    if python:
        _add_library(Path("/usr/bin/python3").resolve().name, root)
    for link in ("bin", "lib", "lib64"):
        if not (root / link).exists():
            (root / link).symlink_to(f"usr/{link}")
    (root / "etc").mkdir(exist_ok=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    archive = root.with_suffix(".tar")
    subprocess.run(("tar", "-C", str(root), "-cf", str(archive), "."), check=True)
    shutil.rmtree(root)
    return archive


def _add(program: str, root: Path) -> None:
    """Copy a program of this machine, with the shared libraries that it loads."""
    _copy(Path(program), root / "usr/bin" / Path(program).name)
    for library in _libraries(program):
        _copy(library, root / str(library).lstrip("/"))


def _add_loaded(path: str, root: Path) -> None:
    """Copy a library or a folder of them, with the libraries that these load."""
    if Path(path).is_dir():
        shutil.copytree(path, root / path.lstrip("/"))
        _add_libraries(Path(path), root)
    else:
        _add(path, root)
        _copy(Path(path), root / path.lstrip("/"))


def _add_library(version: str, root: Path) -> None:
    """Copy the standard library of this machine's Python."""
    unused = shutil.ignore_patterns(*_UNUSED)
    shutil.copytree(f"/usr/lib/{version}", root / "usr/lib" / version, ignore=unused)
    _add_libraries(Path(f"/usr/lib/{version}/lib-dynload"), root)


def _add_libraries(folder: Path, root: Path) -> None:
    """Shared libraries that extension modules in a folder load from outside it."""
    modules = map(str, folder.rglob("*.so"))
    needed = {library for module in modules for library in _libraries(module)}
    for library in needed:
        if not library.resolve().is_relative_to(folder):
            _copy(library, root / str(library).lstrip("/"))


def _link(source: Path, target: Path) -> None:
    """Copy a file into the tree itself: a unit with a private /tmp can't see every path."""
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
