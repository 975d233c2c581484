"""A real mpirun starts the ranks of every MPI world over real SSH, as the scripts specify."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from bundles import BUNDLES, NODES, Bundle, NodeFolder, links, on_node
from programs import require, require_root
from waiting import PATIENCE, until

from generator.site import Node
from generator.verify import namespaces
from generator.verify.namespaces import VirtualFabric, fabric


def _has_mpi(bundle: Bundle) -> bool:
    parts = bundle.site.parts
    return bool(parts and bundle.site.workers) and parts[0].engine.launcher == "mpi"


WORLDS = {b.name: b for b in BUNDLES if _has_mpi(b)}
PAIR, RING = WORLDS["golden-trtllm-mpi-direct"], WORLDS["golden-trtllm-mpi-ring"]
WORKERS = [n for n in NODES if n.bundle.name in WORLDS and not n.node.is_head]
PROGRAMS = (*namespaces.PROGRAMS, "mount", "mpirun", "ssh", "sshd", "ssh-keygen", "unshare")

# A container without an image: it has its own /run and process IDs, temporary files exist, and its
# first process passes signals on and takes all others with it. The ID under which this machine
# knows a process is recorded.
CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "init")
INIT = r"""#!/bin/bash
mount -t tmpfs tmpfs /run
read -r number _ </proc/self/stat
echo "$number" >"$CALLS/container.$(hostname)"
"$@" &
trap 'kill "$!"' TERM
wait "$!"
wait "$!"
"""
IMAGE = {"OF_THE_IMAGE": 'it\'s a "variable" $HOME', "HOME": "/root", "TMPDIR": "/run"}

# Like the real ones: the launcher of rank 0 runs the server without MPI's variables and with its
# arguments split at spaces, and keeps running as long as its engine does, even without a server.
LAUNCHER = r"""#!/bin/bash
rank=${OMPI_COMM_WORLD_RANK:?}
env --null >"$CALLS/environment.$rank"
task="$*"
if ((rank == 0)); then
  (
    for name in $(compgen -e); do
      case $name in OMPI_* | PMIX_* | UCX_*) unset "$name" ;; esac
    done
    $task
  ) &
fi
read -r number _ </proc/self/stat
echo "$number" >"$CALLS/rank.$rank"
exec /bin/sleep 60
"""
SERVER = r"""#!/bin/bash
env --null >"$CALLS/environment.server"
printf '%s\0' "$@" >"$CALLS/arguments"
read -r number _ </proc/self/stat
echo "$number" >"$CALLS/server"
exec /bin/sleep 60
"""

# The scripts' own pauses, shortened.
BLINK = "#!/bin/sh\nexec /bin/sleep 0.2\n"

# Variables that MPI and the shells set on the way.
ON_THE_WAY = re.compile(r"(OMPI|PMIX|PRTE)_\w+|(IPATH|HFI)_NO_BACKTRACE|_|PWD|OLDPWD|SHLVL")


@dataclass(frozen=True)
class World:
    """The nodes of a site in namespaces, with what their containers would be given."""

    bundle: Bundle
    nodes: VirtualFabric
    trees: Mapping[str, Path]
    programs: Path
    calls: Path

    def start(self, node: Node) -> "subprocess.Popen[str]":
        """Run the node's container command with the environment that Docker gives it."""
        folder = NodeFolder(self.bundle, node.name)
        argv = on_node(
            self.trees[node.name],
            *CONTAINER,
            *(node.container.entrypoint, *folder.command),
        )
        return subprocess.Popen(
            self.nodes.command(node.name, *argv),
            env=self.environment | node.env | folder.secrets,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the image."""
        path = f"{self.programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "CALLS": str(self.calls)} | IMAGE

    def expected(self, node: Node) -> dict[str, str]:
        """The contents of files on a node."""
        return node.env | NodeFolder(self.bundle, node.name).secrets

    def read(self, record: str) -> dict[str, str]:
        """An environment that a stand-in has recorded."""
        text = (self.calls / f"environment.{record}").read_text()
        return dict(line.split("=", 1) for line in text.split("\0")[:-1])

    def process(self, record: str) -> int:
        """The ID of a process, once it runs."""
        file = self.calls / record
        until(lambda: file.exists() and bool(file.read_text()))
        return int(file.read_text())

    def left(self) -> list[str]:
        """Processes on the nodes."""
        found = []
        for node in self.trees:
            argv = ("ip", "netns", "pids", self.nodes.namespace(node))
            found += subprocess.run(argv, capture_output=True, text=True).stdout.split()
        return found


@contextmanager
def world(bundle: Bundle, work: Path) -> Iterator[World]:
    require(*PROGRAMS)
    require_root()
    site, trees = bundle.site, bundle.copy(work)
    make_keys(bundle, trees)
    programs, calls = work / "programs", work / "calls"
    programs.mkdir()
    calls.mkdir()
    scripts = {
        "init": INIT,
        "sleep": BLINK,
        "trtllm-llmapi-launch": LAUNCHER,
        "trtllm-serve": SERVER,
    }
    for name, script in scripts.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    management = {n.name: str(n.management.address) for n in site.nodes if n.management}
    with fabric(trees, links(site.cables), work, management) as nodes:
        yield World(bundle, nodes, trees, programs, calls)


def make_keys(bundle: Bundle, trees: Mapping[str, Path]) -> None:
    """As the README describes: one key per node, and the public keys where they are trusted."""
    site, public = bundle.site, {}
    for name, tree in trees.items():
        folder = tree / "etc/sparkgen/mpi"
        folder.mkdir()
        make_key(folder, name)
        public[name] = (folder / "key.pub").read_text()
    port = site.engine.ports["ssh"]
    known = [f"[{n.control.address}]:{port} {public[n.name]}" for n in site.workers]
    (trees[site.head.name] / "etc/sparkgen/mpi/known_hosts").write_text("".join(known))
    for node in site.workers:
        file = trees[node.name] / "etc/sparkgen/mpi/authorized_keys"
        file.write_text(public[site.head.name])


def make_key(folder: Path, name: str) -> None:
    argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / "key")
    subprocess.run(argv, check=True)


@contextmanager
def running(world: World) -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    """All containers of a world, workers first, until every rank has been running for a while."""
    with ExitStack() as stack:
        site, started = world.bundle.site, {}
        for node in site.start_order:
            started[node.name] = stack.enter_context(world.start(node))
        try:
            for rank in range(len(site.nodes)):
                world.process(f"rank.{rank}")
            world.process("server")
            yield started
        finally:
            for process in started.values():
                process.kill()


@pytest.mark.parametrize("bundle", WORLDS.values(), ids=str)
def test_every_rank_has_the_environment_of_its_node(bundle: Bundle, tmp_path: Path) -> None:
    with world(bundle, tmp_path) as lab, running(lab):
        for node in bundle.site.nodes:
            shown, expected = lab.read(str(node.rank)), lab.expected(node)
            assert expected.items() <= shown.items()
            rest = {
                k: v for k, v in shown.items() if k not in expected and not ON_THE_WAY.fullmatch(k)
            }
            assert rest == lab.environment
            assert shown["OMPI_COMM_WORLD_SIZE"] == str(len(bundle.site.nodes))


@pytest.mark.parametrize("bundle", WORLDS.values(), ids=str)
def test_server_is_given_the_flags(bundle: Bundle, tmp_path: Path) -> None:
    head = bundle.site.head
    with world(bundle, tmp_path) as lab, running(lab):
        arguments = (lab.calls / "arguments").read_text().split("\0")[:-1]
        words = NodeFolder(bundle, head.name).command
        assert words[:3] == ["/opt/sparkgen/mpi.sh", "trtllm-llmapi-launch", "trtllm-serve"]
        assert arguments == words[3:]
        shown = lab.read("server")
        assert shown["HF_HUB_CACHE"] == head.env["HF_HUB_CACHE"]
        assert not [name for name in shown if name.startswith(("OMPI_", "PMIX_", "UCX_"))]


def ended(lab: World, started: Mapping[str, "subprocess.Popen[str]"]) -> str:
    """The output of all containers, once each has failed by itself and nothing is left running."""
    output = ""
    for name, process in started.items():
        out, _ = process.communicate(timeout=PATIENCE)
        output += out
        assert process.returncode, f"{name} ended as if all were well:\n{out}"
    until(lambda: lab.left() == [])
    return output


@pytest.mark.parametrize(
    ("bundle", "record", "sent"),
    [
        (PAIR, "server", "KILL"),
        (PAIR, "rank.0", "TERM"),
        (PAIR, "rank.1", "KILL"),
        (PAIR, "container.spark1", "KILL"),
        (PAIR, "container.spark2", "KILL"),
        (RING, "server", "TERM"),
        (RING, "container.spark2", "KILL"),
    ],
    ids=str,
)
def test_dead_rank_ends_all(bundle: Bundle, record: str, sent: str, tmp_path: Path) -> None:
    with world(bundle, tmp_path) as lab, running(lab) as started:
        subprocess.run(("kill", f"-{sent}", str(lab.process(record))), check=True)
        output = ended(lab, started)
    # mpirun ends with the rank, and on a busy machine before that is noticed.
    assert "the server has ended with status" in output or record != "server"


@pytest.mark.parametrize("bundle", [PAIR, RING], ids=str)
def test_stop(bundle: Bundle, tmp_path: Path) -> None:
    """The head's container is stopped, as by `docker stop`; the others then fail."""
    with world(bundle, tmp_path) as lab, running(lab) as started:
        name = bundle.site.head.name
        subprocess.run(("kill", str(lab.process(f"container.{name}"))), check=True)
        head = started.pop(name)
        assert "has ended, and with it" not in head.communicate(timeout=PATIENCE)[0]
        output = ended(lab, started)
    assert all(f"rank {node.rank} has ended" in output for node in bundle.site.workers)


def test_worker_stops_on_a_signal(tmp_path: Path) -> None:
    """A worker's rank ends because it is stopped, which is no failure of it; the head's is."""
    with world(PAIR, tmp_path) as lab, running(lab) as started:
        head, worker = (started[node.name] for node in PAIR.site.nodes)
        subprocess.run(("kill", str(lab.process("container.spark2"))), check=True)
        assert "rank 1 has ended" not in worker.communicate(timeout=PATIENCE)[0]
        assert worker.returncode == 0
        head.communicate(timeout=PATIENCE)
        assert head.returncode
        until(lambda: lab.left() == [])


def hurried(lab: World) -> None:
    """Make every mpi.sh wait for only a second."""
    patient = f"JOIN_SECONDS={lab.bundle.site.times.join}\n"
    for tree in lab.trees.values():
        facts = tree / "etc/sparkgen/container.env"
        assert patient in facts.read_text()
        facts.write_text(facts.read_text().replace(patient, "JOIN_SECONDS=1\n"))


def test_head_without_workers_gives_up(tmp_path: Path) -> None:
    with world(PAIR, tmp_path) as lab:
        hurried(lab)
        with lab.start(PAIR.site.head) as head:
            out, _ = head.communicate(timeout=PATIENCE)
    assert out.startswith("spark2 (10.0.0.22:2300) does not answer within 1 s")
    assert head.returncode == 1


def test_worker_without_head_gives_up(tmp_path: Path) -> None:
    with world(PAIR, tmp_path) as lab:
        hurried(lab)
        with lab.start(PAIR.site.workers[0]) as worker:
            out, _ = worker.communicate(timeout=PATIENCE)
    assert "spark1 has started no rank within 1 s" in out
    assert worker.returncode == 1


@pytest.mark.parametrize("name", ["spark1", "spark2"])
def test_without_keys(name: str, tmp_path: Path) -> None:
    node = next(node for node in PAIR.site.nodes if node.name == name)
    with world(PAIR, tmp_path) as lab:
        shutil.rmtree(lab.trees[name] / "etc/sparkgen/mpi")
        with lab.start(node) as process:
            out, _ = process.communicate(timeout=PATIENCE)
    assert out == "there is no /etc/sparkgen/mpi/key; the README says how to create it\n"
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("node", "file", "complaint"),
    [
        ("spark2", "authorized_keys", "Permission denied (publickey)"),
        ("spark1", "known_hosts", "Host key verification failed"),
    ],
)
def test_wrong_key(node: str, file: str, complaint: str, tmp_path: Path) -> None:
    with world(PAIR, tmp_path) as lab, ExitStack() as stack:
        trusted = lab.trees[node] / "etc/sparkgen/mpi" / file
        make_key(tmp_path, "stranger")
        replaced = re.sub("ssh-ed25519 .*", (tmp_path / "key.pub").read_text(), trusted.read_text())
        trusted.write_text(replaced)
        worker = stack.enter_context(lab.start(PAIR.site.workers[0]))
        head = stack.enter_context(lab.start(PAIR.site.head))
        out, _ = head.communicate(timeout=PATIENCE)
        assert head.returncode
        assert complaint in out
        assert not list(lab.calls.glob("rank.*"))
        worker.kill()


# sshd_config


@pytest.mark.parametrize("folder", WORKERS, ids=str)
def test_sshd_takes_its_configuration(folder: NodeFolder, tmp_path: Path) -> None:
    require_root()
    require("sshd", "ssh-keygen")
    tree = folder.copy(tmp_path)
    (tree / "etc/sparkgen/mpi").mkdir()
    make_key(tree / "etc/sparkgen/mpi", folder.name)
    sshd = ("/usr/sbin/sshd", "-f", "/opt/sparkgen/sshd_config")
    script = 'mount -t tmpfs tmpfs /run && mkdir /run/sshd && "$@" -t && exec "$@" -T'
    argv = on_node(tree, "sh", "-c", script, "sh", *sshd)
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    settings = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    address, port = folder.node.control.address, folder.part.engine.ports["ssh"]
    assert settings["listenaddress"] == f"{address}:{port}"
    assert settings["allowusers"] == "root"
    assert settings["authenticationmethods"] == "publickey"
    assert settings["forcecommand"] == "/opt/sparkgen/session.sh"
    assert settings["disableforwarding"] == "yes"
    for refused in ("passwordauthentication", "kbdinteractiveauthentication", "permittty"):
        assert settings[refused] == "no"
