"""Bundles for tests to consume, of the example and golden sites, and the file trees of their nodes.

The bundles of examples are those in `out/`, if they are kept there. All others are built once per
test run: a golden case keeps only the files that it is about.

A tree is used as it would be on its node: it is copied with the modes in the manifest and mounted
over this machine's /etc and /opt for one process and its children.
"""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from draws import MANY
from programs import program, require, require_root
from valid_sites import valid_file
from waiting import PATIENCE

from generator.bundle.output import compare
from generator.bundle.plan import node_entries
from generator.bundle.render import render
from generator.bundle.writing import write
from generator.fabric.addressing import Cable, Port
from generator.pipeline import ValidReading
from generator.rules.facts import Facts
from generator.site import Member, Node, Part, Site
from generator.verify.namespaces import VirtualLink

TESTS = Path(__file__).parent
PROJECT = TESTS.parent
MANIFEST = "MANIFEST.json"
# A bundle, or a node's folder in one.
One = TypeVar("One")
# Environment variable with the folder of the bundles built in this test run.
BUILT = "SPARKGEN_BUILT_BUNDLES"

_OVERLAY = """\
set -e
for folder in etc opt; do
  mount -t overlay overlay -o "lowerdir=$0/$folder:/$folder" "/$folder"
done
exec "$@"
"""


@contextmanager
def _unchecked() -> Iterator[None]:
    """Read sites without rules: theirs are tested elsewhere, and take half of the time to read."""
    check = Facts.check
    Facts.check = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Facts.check = check  # type: ignore[method-assign]


@dataclass(frozen=True)
class Bundle:
    """A bundle on disk and the site file that it was built from."""

    name: str
    file: Path
    committed: Path | None = None

    @cached_property
    def folder(self) -> Path:
        """The bundle's folder: the committed one, or one built for this test run."""
        return self.committed or self._built()

    def _built(self) -> Path:
        folder = Path(os.environ[BUILT]) / self.name
        # All workers need it during collection: one builds it, and the others wait.
        with (folder.parent / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                reading = self._valid.reading
                tree = render(self.site, reading.sha256, texts=reading.texts)
                with TemporaryDirectory(dir=folder.parent) as work:
                    rendered = Path(work) / self.name
                    write(tree, rendered, compare(tree, rendered))
                    rendered.rename(folder)
        return folder

    @cached_property
    def _valid(self) -> ValidReading:
        with _unchecked():
            return valid_file(self.file)

    @property
    def site(self) -> Site:
        """The site that the bundle is built from."""
        return self._valid.site

    @property
    def part(self) -> Part:
        """What serves its only model, or its first one."""
        return self.site.parts[0]

    @cached_property
    def modes(self) -> dict[str, int]:
        """The mode of each file on a node, of which git keeps only the executable bit."""
        files: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text())["files"]
        return {path: int(entry["mode"], 8) for path, entry in files.items()}

    def copy(self, target: Path) -> dict[str, Path]:
        """Copies the trees of all nodes into `target`; returns them by node name."""
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
        """The site that the bundle is built from."""
        return self.bundle.site

    @property
    def node(self) -> Node:
        """The node that the folder is for."""
        return next(node for node in self.site.nodes if node.name == self.name)

    @property
    def part(self) -> Part:
        """What serves a model on the node, or the first that does."""
        return self.site.parts_of(self.name)[0][0]

    @property
    def member(self) -> Member:
        """The node as it serves there."""
        return self.site.parts_of(self.name)[0][1]

    @property
    def modes(self) -> dict[str, int]:
        """The mode of each of its files on the node, by path relative to the folder."""
        parts = ((path.partition("/"), mode) for path, mode in self.bundle.modes.items())
        return {rest: mode for (name, _, rest), mode in parts if name == self.name}

    @property
    def planned(self) -> set[tuple[str, int]]:
        """Its files and their modes, known without building the bundle, which takes long."""
        site, node = self.site, self.node
        files = {
            (part.place(entry.path), entry.mode)
            for entry in node_entries(site)
            for part, _ in entry.instances(site, node)
        }
        carriers = [job for job, _ in site.jobs_of(self.name)]
        carriers += [member for _, member in site.parts_of(self.name)]
        carried = (file for carrier in carriers for file in carrier.carried)
        files |= {(file.path[1:], 0o755 if file.is_executable else 0o644) for file in carried}
        limited = (program.name for program in node.other if program.oom_score is not None)
        files |= {(f"etc/systemd/system/{name}.service.d/sparkgen.conf", 0o644) for name in limited}
        return files | {("SHA256SUMS", 0o644)}

    def copy(self, target: Path) -> Path:
        """Copies the tree as it is on the node, with the secrets that an operator keeps there."""
        tree = target / self.name
        for path, mode in self.modes.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.path / path, tree / path)
            (tree / path).chmod(mode)
        for recorded in self.path.glob("*.yaml"):
            shutil.copyfile(recorded, tree / recorded.name)
        if secrets := self.secrets:
            lines = (f"{name}={value}\n" for name, value in secrets.items())
            (tree / "etc/sparkgen/secrets.env").write_text("".join(lines))
        return tree

    @property
    def command(self) -> list[str]:
        """The container's command, word by word."""
        return [word for words in self.member.container.command for word in words]

    @property
    def secrets(self) -> dict[str, str]:
        """Stand-ins for the secrets that the node needs."""
        return {name: f"secret-{name.lower()}" for name in self.site.secrets(self.node)}

    def __str__(self) -> str:
        return f"{self.bundle.name}/{self.name}"


def covering(folders: Sequence[One], parts: Callable[[One], set[object]]) -> list[One]:
    """A few of the folders, which together cover every part that occurs in any of them."""
    chosen: list[One] = []
    parts_of = {str(folder): parts(folder) for folder in folders}
    left = set[object]().union(*parts_of.values())
    while left:
        chosen.append(max(folders, key=lambda folder: len(left & parts_of[str(folder)])))
        left -= parts_of[str(chosen[-1])]
    return chosen


def representatives(folders: Sequence[One], parts: Callable[[One], set[object]]) -> Sequence[One]:
    """Those of `covering`; in a long run, all."""
    return covering(folders, parts) if MANY == 1 else folders


def on_node(tree: Path, *argv: str) -> list[str]:
    """Prefix for a program so that it sees the /etc and /opt of the node with this tree."""
    return ["unshare", "--mount", "sh", "-c", _OVERLAY, str(tree), *argv]


def links(cables: Sequence[Cable]) -> list[VirtualLink]:
    """Cables as the simulated fabric describes them."""
    return [
        VirtualLink(_plug(cable.a), _plug(cable.b))
        if isinstance(cable.b, Port)
        else VirtualLink(_plug(cable.a), None, cable.b.switch)
        for cable in cables
    ]


def _plug(port: Port) -> tuple[str, int]:
    return port.node, port.port


def composed(tree: Path) -> dict[str, Any]:
    """The engine's service, as Compose parses the file on the node with this tree."""
    return composed_service(tree, "sparkgen", "engine", "/opt/sparkgen/compose.yaml")


def composed_service(tree: Path, project_name: str, name: str, *options: str) -> dict[str, Any]:
    """The only service in a Compose file of the node; the options start with the file."""
    services = composed_services(tree, project_name, *options)
    assert services.keys() == {name}
    service: dict[str, Any] = services[name]
    return service


def composed_services(tree: Path, project_name: str, *options: str) -> dict[str, Any]:
    """The services in a Compose file of the node, by name."""
    require_root()
    require("mount", "unshare")
    compose = (program("docker-compose"), "--file", *options)
    done = subprocess.run(
        on_node(tree, *compose, "config", "--format", "json"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # The output is itself a Compose file, in which each $ is doubled.
    project = json.loads(done.stdout.replace("$$", "$"))
    assert project["name"] == project_name
    services: dict[str, Any] = project["services"]
    return services


def _bundles() -> Iterator[Bundle]:
    for manifest in sorted((PROJECT / "out").glob(f"*/{MANIFEST}")):
        file = json.loads(manifest.read_text())["site"]["file"]
        yield Bundle(manifest.parent.name, PROJECT / "sites" / file, manifest.parent)
    for file in sorted((PROJECT / "sites/more").glob("*.yaml")):
        yield Bundle(file.stem, file)
    for file in sorted((TESTS / "golden").glob("*/site.yaml")):
        yield Bundle(f"golden-{file.parent.name}", file)


BUNDLES = tuple(_bundles())
BY_NAME = {bundle.name: bundle for bundle in BUNDLES}
# The nodes of sites with a single engine, of sites with groups, and those on which no engine runs.
NODES: tuple[NodeFolder, ...]
IN_GROUPS: tuple[NodeFolder, ...]
IDLE: tuple[NodeFolder, ...]
# Nodes where Docker rather than Slurm runs the engine.
COMPOSED: tuple[NodeFolder, ...]


def __getattr__(name: str) -> tuple[NodeFolder, ...]:
    """The nodes of all bundles: deriving these takes longer than most chosen tests."""
    found = _FOLDERS.get(name)
    if found is None:
        raise AttributeError(name)
    globals()[name] = tuple(found())
    return tuple(globals()[name])


def _serving(has_groups: bool) -> Iterator[NodeFolder]:
    for bundle in BUNDLES:
        if bundle.site.parts and bool(bundle.site.groups) is has_groups:
            names = sorted(node.name for node in bundle.site.nodes)
            yield from (NodeFolder(bundle, name) for name in names if bundle.site.parts_of(name))


def _idle() -> Iterator[NodeFolder]:
    for bundle in BUNDLES:
        idle = (node for node in bundle.site.nodes if not bundle.site.parts_of(node.name))
        yield from (NodeFolder(bundle, node.name) for node in idle)


def _composed() -> Iterator[NodeFolder]:
    for folder in _serving(has_groups=False):
        if folder.member.container.image and not folder.part.engine.is_slurm_job:
            yield folder


_FOLDERS: Mapping[str, Callable[[], Iterator[NodeFolder]]] = {
    "NODES": lambda: _serving(has_groups=False),
    "IN_GROUPS": lambda: _serving(has_groups=True),
    "IDLE": _idle,
    "COMPOSED": _composed,
}
