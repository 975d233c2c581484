"""The bundles that tests consume, those of the examples and of the goldens, and their nodes' trees.

A tree is used as on its node: a copy with the modes that the manifest states, laid over this
machine's /etc and /opt for one process and its children.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from programs import program, require, require_root

from generator.addressing import Cable, Port
from generator.pipeline import read_site
from generator.site import Node, Site
from generator.verify.namespaces import Link

TESTS = Path(__file__).parent
PROJECT = TESTS.parent
MANIFEST = "MANIFEST.json"
CHECKSUMS = "SHA256SUMS"

_OVERLAY = """\
set -e
for folder in etc opt; do
  mount -t overlay overlay -o "lowerdir=$0/$folder:/$folder" "/$folder"
done
exec "$@"
"""


@dataclass(frozen=True)
class Bundle:
    """A bundle on disk and the site file that it was built from."""

    name: str
    folder: Path
    file: Path

    @cached_property
    def site(self) -> Site:
        """The site that the bundle is to say."""
        reading = read_site(str(self.file), self.file.read_bytes())
        assert reading.site, reading.findings
        return reading.site

    @cached_property
    def modes(self) -> dict[str, int]:
        """The mode of each file on a node: git keeps no more of it than whether it is a script."""
        files: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text())["files"]
        return {path: int(entry["mode"], 8) for path, entry in files.items()}

    def copy(self, target: Path) -> dict[str, Path]:
        """The trees of all nodes below `target`, by the name of the node."""
        folders = (NodeFolder(self, node.name) for node in self.site.nodes)
        return {folder.name: folder.copy(target) for folder in folders}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class NodeFolder:
    """One node's folder in a bundle."""

    bundle: Bundle
    name: str

    @property
    def path(self) -> Path:
        """The folder in the bundle."""
        return self.bundle.folder / self.name

    @property
    def site(self) -> Site:
        """The site that the bundle is to say."""
        return self.bundle.site

    @property
    def node(self) -> Node:
        """The node that the folder is to say."""
        return next(node for node in self.site.nodes if node.name == self.name)

    def copy(self, target: Path) -> Path:
        """The tree as it is on the node, and what an operator keeps there besides: the secrets."""
        tree = target / self.name
        for path, mode in self.bundle.modes.items():
            name, _, rest = path.partition("/")
            if name == self.name:
                (tree / rest).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.bundle.folder / path, tree / rest)
                (tree / rest).chmod(mode)
        if secrets := self.secrets:
            lines = (f"{name}={value}\n" for name, value in secrets.items())
            (tree / "etc/sparkgen/secrets.env").write_text("".join(lines))
        return tree

    @property
    def command(self) -> list[str]:
        """The arguments of the container's program, word by word."""
        return [word for words in self.node.container.command for word in words]

    @property
    def secrets(self) -> dict[str, str]:
        """Stand-ins for the secrets that the site names."""
        return {name: f"secret-{name.lower()}" for name in self.site.engine.secrets}

    def __str__(self) -> str:
        return f"{self.bundle.name}/{self.name}"


def on_node(tree: Path, *argv: str) -> list[str]:
    """Prefix a program so that it sees /etc and /opt of the node whose tree this is."""
    return ["unshare", "--mount", "sh", "-c", _OVERLAY, str(tree), *argv]


def links(cables: Sequence[Cable]) -> list[Link]:
    """Cables as the simulated fabric has them."""
    return [
        Link(_plug(cable.a), _plug(cable.b) if isinstance(cable.b, Port) else None)
        for cable in cables
    ]


def _plug(port: Port) -> tuple[str, int]:
    return port.node, port.port


def composed(tree: Path) -> dict[str, Any]:
    """The engine's service, as Compose understands the file on the node whose tree this is."""
    return composed_service(tree, "sparkgen", "engine", "/opt/sparkgen/compose.yaml")


def composed_service(tree: Path, project_name: str, name: str, *options: str) -> dict[str, Any]:
    """The only service of a Compose file of the node; the options are the file and those after."""
    services = composed_services(tree, project_name, *options)
    assert services.keys() == {name}
    service: dict[str, Any] = services[name]
    return service


def composed_services(tree: Path, project_name: str, *options: str) -> dict[str, Any]:
    """The services of a Compose file of the node, by name."""
    require_root()
    require("mount", "unshare")
    compose = (program("docker-compose"), "--file", *options)
    done = subprocess.run(
        on_node(tree, *compose, "config", "--format", "json"),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # What is printed is a Compose file again, in which each $ stands twice.
    project = json.loads(done.stdout.replace("$$", "$"))
    assert project["name"] == project_name
    services: dict[str, Any] = project["services"]
    return services


def _bundles() -> Iterator[Bundle]:
    for manifest in sorted((PROJECT / "out").glob(f"*/{MANIFEST}")):
        folder = manifest.parent
        file = json.loads(manifest.read_text())["site"]["file"]
        yield Bundle(folder.name, folder, PROJECT / "sites" / file)
    for file in sorted((TESTS / "golden").glob("*/site.yaml")):
        yield Bundle(f"golden-{file.parent.name}", file.parent / "expected", file)


BUNDLES = tuple(_bundles())
NODES = tuple(
    NodeFolder(bundle, checksums.parent.name)
    for bundle in BUNDLES
    for checksums in sorted(bundle.folder.glob(f"*/{CHECKSUMS}"))
)
# Where Docker runs the engine, and not Slurm.
COMPOSED = tuple(folder for folder in NODES if not folder.site.engine.is_slurm_job)
