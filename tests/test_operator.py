"""The operator's folder: ssh accepts its configuration, and its scripts do what they print."""

import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundles import BUNDLES, PROJECT, Bundle, representatives
from conftest import Bundle as Make
from programs import require
from waiting import PATIENCE, until

from generator.bundle.access import forwards
from generator.services.proxy import Proxy


def login_parts(bundle: Bundle) -> set[object]:
    """What the settings of ssh depend on: users, how nodes are reached, and how many there are."""
    nodes = bundle.site.nodes
    return {len(nodes), *((node.user, node.management is None) for node in nodes)}


LAB_MESH = next(bundle for bundle in BUNDLES if bundle.name == "lab-mesh")


# ssh_config


def understood(config: Path, host: str) -> dict[str, str]:
    """The options that ssh would use for a host."""
    require("ssh")
    done = subprocess.run(
        ["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


@pytest.mark.drawn
@pytest.mark.parametrize("bundle", representatives(BUNDLES, login_parts), ids=str)
def test_ssh_config(bundle: Bundle) -> None:
    for node in bundle.site.nodes:
        for alias in (node.name, f"{node.name}.{bundle.site.name}"):
            options = understood(bundle.folder / "operator/ssh_config", alias)
            assert options["user"] == node.user
            assert options["hostkeyalias"] == f"{node.name}.{bundle.site.name}"
            assert options["connecttimeout"] == "10"
            where = str(node.management.address.ip) if node.management else node.name
            assert options["hostname"] == where
            assert "proxyjump" not in options


def test_ssh_config_leaves_other_hosts_alone() -> None:
    options = understood(LAB_MESH.folder / "operator/ssh_config", "elsewhere")
    assert (options["hostname"], options["connecttimeout"]) == ("elsewhere", "none")


PAIR = PROJECT / "sites/pair-chatbot.yaml"


def test_node_on_the_fabric_alone_is_reached_through_the_head(bundle: Make, tmp_path: Path) -> None:
    site = tmp_path / "pair.yaml"
    text = PAIR.read_text()
    line = next(line for line in text.splitlines() if "10.0.0.12/24" in line)
    assert "management" in line
    site.write_text(text.replace(f"{line}\n", "") if line.lstrip()[0] != "-" else text)
    config = tmp_path / "ssh_config"
    config.write_text(bundle(site)["operator/ssh_config"].text)
    assert "proxyjump" not in understood(config, "spark1")
    options = understood(config, "spark2")
    assert options["proxyjump"] == "spark1"
    assert options["hostname"].startswith("10.100.0.")


# Forwards


@pytest.mark.parametrize("bundle", [b for b in BUNDLES if b.site.parts], ids=str)
def test_forwards(bundle: Bundle) -> None:
    site = bundle.site
    forwarded = forwards(site)
    ports = [forward.local for forward in forwarded]
    assert len(set(ports)) == len(ports)
    assert min(ports) >= 1024
    proxy = Proxy.of(site) if site.address else None
    first = (proxy.node, proxy.port) if proxy else (site.head.name, bundle.part.engine.api.port)
    assert (forwarded[0].node, forwarded[0].port) == first
    listens = proxy.listen if proxy else bundle.part.engine.api.listen
    assert forwarded[0].address in ("127.0.0.1", listens)
    assert {forward.node for forward in forwarded} == {node.name for node in site.nodes}
    listed = (bundle.folder / "operator/site.env").read_text()
    for forward in forwarded:
        there = f"{forward.node} {forward.address}:{forward.port}"
        assert f"\nFORWARD={forward.local} {there} {forward.title}\n" in listed


# Scripts


class Laptop:
    """The operator's machine: a copy of a bundle, a home, and the calls of its programs."""

    def __init__(self, folder: Path) -> None:
        # A path with a space in it, and one short enough for sockets.
        self.bundle, self.home = folder / "my site", folder / "home"
        self.programs, self.calls = folder / "programs", folder / "calls"
        shutil.copytree(LAB_MESH.folder, self.bundle)
        for path in (self.home, self.programs, self.calls):
            path.mkdir()
        path = f"{self.programs}:{os.environ['PATH']}"
        self.env = {"PATH": path, "HOME": str(self.home), "CALLS": str(self.calls)}

    def add(self, name: str, script: str) -> None:
        """Replace a program with this script."""
        (self.programs / name).write_text(f"#!/bin/bash\n{script}")
        (self.programs / name).chmod(0o755)

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the operator's folder from another directory."""
        argv = [str(self.bundle / "operator" / script), *arguments]
        return subprocess.run(
            argv, env=self.env, cwd=self.home, capture_output=True, text=True, timeout=PATIENCE
        )

    def recorded(self) -> list[str]:
        """How the programs were called, in order."""
        file = self.calls / "log"
        lines = SHARED.sub("", file.read_text()).splitlines() if file.exists() else []
        return [line for line in lines if "sudo -n " not in line]


@pytest.fixture
def laptop() -> Iterator[Laptop]:
    with tempfile.TemporaryDirectory(prefix="op", dir="/tmp") as folder:
        yield Laptop(Path(folder))


# deploy.sh

SSH = "ssh -F operator/ssh_config"
# What deploy.sh adds to the commands that it prints, so that a node has one login for all of them.
SHARED = re.compile(
    r" -o ControlMaster=auto -o ControlPath=/tmp/sparkgen\.\w+/%n -o ControlPersist=300"
)
PRINTED = [
    command
    for node in ("spark2", "spark3", "spark1")
    for command in (
        f"rsync --archive --checksum --delete --rsh={SSH} {node}/ {node}:sparkgen-bundle/",
        f"{SSH} -t {node} sudo sparkgen-bundle/install.sh --check",
    )
]

# And as it runs them: without a terminal, sudo reads the password that was entered here.
COMMANDS = [line.replace(" -t ", " ").replace(" sudo ", " sudo -S -p '' ") for line in PRINTED]

RECORD = 'echo "${0##*/} $*" >>"$CALLS/log"\n'
NODE = 'node=$(grep -oE "spark[0-9]" <<<"$*" | head -n 1)\n'
DIFFERS = '{ echo "$node: 3 files are new, 0 change, 0 go" && exit 1; }'


@pytest.fixture
def recording(laptop: Laptop) -> Laptop:
    for name in ("rsync", "ssh"):
        laptop.add(name, RECORD)
    return laptop


def test_deploy_prints(recording: Laptop) -> None:
    done = recording.run("deploy.sh")
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert shlex.split(first) == ["cd", str(recording.bundle)]
    assert [" ".join(shlex.split(line)) for line in lines] == PRINTED
    assert recording.recorded() == []


def test_deploy_does_what_it_prints(recording: Laptop) -> None:
    done = recording.run("deploy.sh", "--run")
    assert (done.returncode, done.stderr) == (0, "")
    assert recording.recorded() == COMMANDS


def test_deploy_of_some_nodes(recording: Laptop) -> None:
    assert recording.run("deploy.sh", "spark1", "spark3", "--run").returncode == 0
    assert recording.recorded() == COMMANDS[2:]


def test_deploy_says_what_is_not_installed_yet(recording: Laptop) -> None:
    recording.add("ssh", f"{RECORD}{NODE}[[ $* == *'spark2 sudo'* ]] || {DIFFERS}\n")
    done = recording.run("deploy.sh", "--run")
    assert done.returncode == 1
    assert recording.recorded() == COMMANDS
    assert done.stdout.splitlines()[-3:] == [
        "== do not match the bundle yet: spark3 spark1. To install, workers first: "
        "operator/deploy.sh --apply, or by hand",
        "ssh -F operator/ssh_config -t spark3 sudo sparkgen-bundle/install.sh --apply",
        "ssh -F operator/ssh_config -t spark1 sudo sparkgen-bundle/install.sh --apply",
    ]


def test_deploy_renames_machines(recording: Laptop) -> None:
    """A machine with another name refuses its node's folder unless it may take the new name."""
    recording.add("ssh", f"{RECORD}{NODE}[[ $* != *--check* ]] || {DIFFERS}\n")
    done = recording.run("deploy.sh", "--apply", "--set-hostname", "spark3")
    assert [call for call in recording.recorded() if "install.sh" in call][:2] == [
        f"{SSH} spark3 sudo -S -p '' sparkgen-bundle/install.sh --check --set-hostname",
        f"{SSH} spark3 sudo -S -p '' sparkgen-bundle/install.sh --apply --set-hostname",
    ]
    assert done.returncode == 0
    done = recording.run("deploy.sh", "--run", "--set-hostname", "spark3")
    assert done.stdout.endswith("spark3 sudo sparkgen-bundle/install.sh --apply --set-hostname\n")


@pytest.mark.parametrize(("program", "status"), [("rsync", 12), ("ssh", 255)])
def test_deploy_looks_at_all_nodes_and_installs_on_none_if_one_fails(
    program: str, status: int, recording: Laptop
) -> None:
    failing = f"[[ $* != *spark3* ]] || {{ echo no such luck >&2; exit {status}; }}\n"
    recording.add(program, RECORD + failing)
    for option in ("--run", "--apply"):
        done = recording.run("deploy.sh", option)
        assert done.returncode == 2
        assert "spark3: unreachable (" in done.stdout
        assert "spark3: no such luck\n" in done.stderr
    assert "nothing was installed: fix these, or leave them out with --skip: spark3" in done.stderr
    left = [call for call in COMMANDS if "spark3 sudo" not in call]
    assert recording.recorded() == left * 2


@pytest.mark.parametrize(("statuses", "status"), [("000", 0), ("030", 3), ("013", 1), ("310", 1)])
def test_deploy_has_each_node_ask_its_engine(statuses: str, status: int, recording: Laptop) -> None:
    """A refusal counts for more than an engine that could not be asked."""
    for node, ended in zip(LAB_MESH.site.nodes, statuses, strict=True):
        (recording.calls / node.name).write_text(ended)
    answer = f'{RECORD}{NODE}echo "{{}}"; exit $(<"$CALLS/$node")\n'
    recording.add("ssh", answer)
    done = recording.run("deploy.sh", "--check-engine")
    assert (done.returncode, done.stdout) == (status, "{}\n" * 3)
    asked = [f"{SSH} {n} /opt/sparkgen/launch.sh --check-engine" for n in DEPLOYED]
    assert recording.recorded() == asked
    assert recording.run("deploy.sh", "--check-engine", "spark3").stderr == "== spark3\n"


DEPLOYED = ("spark2", "spark3", "spark1")
SAYS = '{"stage": "rehearsal", "status": "%s"}\\n'
# A rank ends as the test says, or, if it does not, when it is told how the others went.
RANK = f"""\
[[ $* != *-O\\ exit* && $* == *--rehearse* ]] || exit 0
{RECORD}{NODE}if [[ -s $CALLS/$node ]]; then printf '{SAYS}' accepted; fi
if [[ -e $CALLS/$node && ! -s $CALLS/$node ]]; then printf '{SAYS}' refused; exit 1; fi
cat >"$CALLS/$node.told"
"""


@pytest.mark.parametrize(
    ("ends", "status", "told"),
    [(("spark1", "1"), 0, "\nserved\n"), (("spark1", ""), 1, "\n"), (("spark3", ""), 1, "\n")],
)
def test_deploy_rehearses_all_ranks_at_once(
    ends: tuple[str, str], status: int, told: str, recording: Laptop
) -> None:
    """Where one ends, all do; they are told whether the head has served."""
    name, says = ends
    (recording.calls / name).write_text(says)
    recording.add("ssh", RANK)
    done = recording.run("deploy.sh", "--rehearse")
    assert done.returncode == status, done.stderr
    called = [f"{SSH} {n} sudo -S -p '' /opt/sparkgen/launch.sh --rehearse -" for n in DEPLOYED]
    assert sorted(recording.recorded()) == sorted(called)
    others = [recording.calls / f"{n}.told" for n in DEPLOYED if n != name or says]
    assert {file.read_text() for file in others} == {told}
    assert ("refused" in done.stdout, "accepted" in done.stdout) == (bool(status), not status)


def test_deploy_rehearses_an_engine_on_all_of_its_nodes(recording: Laptop) -> None:
    recording.add("ssh", RANK)
    for words in (["spark1"], ["--skip", "spark2"]):
        done = recording.run("deploy.sh", "--rehearse", *words)
        assert (done.returncode, done.stdout) == (3, "")
        assert "the engine on spark2,spark3,spark1 starts on all of them or on none" in done.stderr
    assert recording.recorded() == []


def test_deploy_refuses_what_it_does_not_know(recording: Laptop) -> None:
    skipped = "--skip spark1 --skip spark2 --skip spark3"
    for words, message in (
        ("--run --rum", "usage: operator/deploy.sh"),
        ("--run spark9", "there is no node spark9"),
        ("--run --skip", "usage: operator/deploy.sh"),
        ("--status --apply", "deploy.sh: --status and --apply exclude each other"),
        ("--apply --check-engine", "deploy.sh: --apply and --check-engine exclude each other"),
        ("--status --set-hostname", "deploy.sh: --status and --set-hostname exclude each other"),
        ("--apply spark2 --skip spark2", "deploy.sh: spark2 is both named and left out"),
        (f"--apply {skipped}", "deploy.sh: all nodes are left out; nothing was done"),
    ):
        done = recording.run("deploy.sh", *words.split())
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(message)
    assert recording.recorded() == []


def test_deploy_with_rsync(laptop: Laptop) -> None:
    """A node is a folder here: it gets what was generated, and loses what was there before."""
    require("rsync")
    words = "while [[ $1 == -* ]]; do shift 2; done"
    laptop.add("ssh", f'{words}; cd "$CALLS/$1" && shift && exec bash -c "$*"\n')
    laptop.add("sudo", 'while [[ $1 == -* || ! $1 ]]; do shift; done; exec "$@"\n')
    for node in LAB_MESH.site.nodes:
        (laptop.bundle / node.name / "install.sh").write_text('#!/bin/sh\necho "checked $*"\n')
        (laptop.calls / node.name / "sparkgen-bundle").mkdir(parents=True)
        (laptop.calls / node.name / "sparkgen-bundle/old").touch()
    done = laptop.run("deploy.sh", "--run")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("checked --check\n") == 3
    for node in LAB_MESH.site.nodes:
        arrived, sent = laptop.calls / node.name / "sparkgen-bundle", laptop.bundle / node.name
        compared = subprocess.run(["diff", "--recursive", arrived, sent], capture_output=True)
        assert (compared.returncode, compared.stdout) == (0, b"")
        assert os.access(arrived / "verify.py", os.X_OK)


# A node whose files differ until they are installed. $CALLS/verify-NODE holds the faults that its
# verify.py finds; $CALLS/refuse says how many times confirmation fails to arrive.
_NODES = (
    RECORD
    + NODE
    + f"""\
case $* in
  *--check) [[ -e $CALLS/installed-$node ]] || {DIFFERS} ;;
"""
    + """\
  *--apply)
    touch "$CALLS/installed-$node"
    echo "first, within 120 s and over a new connection: --confirm; else all is put back"
    ;;
  *--confirm)
    left=$(cat "$CALLS/refuse" 2>/dev/null || echo 0)
    if ((left)); then echo $((left - 1)) >"$CALLS/refuse" && exit 255; fi
    ;;
  *verify.py*)
    faults=$(cat "$CALLS/verify-$node" 2>/dev/null)
    [[ $* != *--alone ]] || faults=$(grep -v '^FAIL  peers' <<<"$faults")
    [[ ! $faults ]] || { echo "$faults" && exit 1; }
    echo "$node: 40 OK, 0 FAIL, 1 SKIP"
    ;;
esac
"""
)


@pytest.fixture
def nodes(recording: Laptop) -> Laptop:
    recording.add("ssh", _NODES)
    recording.add("sleep", "#!/bin/sh\n")
    return recording


def installed(node: str) -> list[str]:
    """The calls that install a node."""
    run = f"{SSH} {node} sudo -S -p '' sparkgen-bundle/install.sh"
    return [f"{run} --apply", f"{run} --confirm", verified(node, " --alone")]


def verified(node: str, alone: str = "") -> str:
    """The call that checks a node, alone or as one of all."""
    return f"{SSH} {node} sparkgen-bundle/verify.py --before-start{alone}"


ORDER = ("spark2", "spark3", "spark1")
VERIFIED = [verified(node) for node in ORDER]
ALONE = [verified(node, " --alone") for node in ORDER]


def test_deploy_installs_node_by_node(nodes: Laptop) -> None:
    done = nodes.run("deploy.sh", "--apply")
    assert (done.returncode, done.stderr) == (0, "")
    steps = [step for node in ("spark2", "spark3", "spark1") for step in installed(node)]
    assert nodes.recorded() == [*COMMANDS, *steps, *VERIFIED]
    assert "all match the bundle: spark2 spark3 spark1" in done.stdout
    # The second time there is nothing to install.
    again = nodes.run("deploy.sh", "--apply")
    assert again.returncode == 0
    later = nodes.recorded()[len([*COMMANDS, *steps, *VERIFIED]) :]
    assert later == [*COMMANDS, *ALONE, *VERIFIED]


def test_deploy_stops_where_verify_finds_a_fault(nodes: Laptop) -> None:
    (nodes.calls / "verify-spark3").write_text("FAIL  driver  580.1. To do: update\n")
    done = nodes.run("deploy.sh", "--apply")
    assert done.returncode == 1
    assert nodes.recorded() == [*COMMANDS, *installed("spark2"), *installed("spark3")]
    assert "FAIL  driver  580.1. To do: update\n" in done.stdout
    assert done.stderr.splitlines() == [
        "== stopped at spark3: failed verify: FAIL  driver  580.1. To do: update; "
        "nothing was done on: spark1",
        "Fix it and run this again, or roll spark3 back:",
        "ssh -F operator/ssh_config -t spark3 sudo sparkgen-bundle/install.sh --rollback",
    ]
    # Again: spark3 has its files now, and still its fault. What was there before this run is no
    # longer one rollback away.
    before = len(nodes.recorded())
    done = nodes.run("deploy.sh", "--apply")
    assert done.returncode == 1
    assert nodes.recorded()[before:] == [*COMMANDS, *ALONE[:2]]
    last = "Fix it and run this again, or leave it out with --skip spark3"
    assert done.stderr.splitlines()[1:] == [last]
    # Nor does it let others go on that are named alone, or a look at it.
    before = len(nodes.recorded())
    done = nodes.run("deploy.sh", "--apply", "spark1")
    assert (done.returncode, nodes.recorded()[before:]) == (2, [])
    assert done.stderr.startswith("== stopped at spark3: failed verify: FAIL  driver")
    assert nodes.run("deploy.sh", "--run").returncode == 1
    assert "spark3: failed verify (" in nodes.run("deploy.sh", "--status").stdout
    # Left out, or mended, it does.
    assert nodes.run("deploy.sh", "--apply", "--skip", "spark3").returncode == 0
    (nodes.calls / "verify-spark3").unlink()
    assert nodes.run("deploy.sh", "--apply", "spark3").returncode == 0
    states = nodes.run("deploy.sh", "--status").stdout
    assert re.sub(r" \(.*\)", "", states) == "".join(f"{node}: same\n" for node in DEPLOYED)


def test_deploy_advises_no_rollback_of_what_was_not_installed(nodes: Laptop) -> None:
    """install.sh restores what was there when it fails, and sudo may not even start it."""
    words = {
        "refused": "refused: /etc/nccl.conf is a folder: see what made it",
        "restored": "install.sh: netplan apply failed\nall is as it was before 0001-x",
        "unfinished": "install.sh: failed. If it fails to put back\nthe rest is as it was before",
    }
    for state, said in words.items():
        failing = f"*--apply) echo {shlex.quote(said)} >&2; exit 2 ;;\n  *--never) "
        nodes.add("ssh", _NODES.replace("*--apply)", failing, 1))
        done = nodes.run("deploy.sh", "--apply")
        assert done.returncode == 2
        assert done.stderr.splitlines()[-2:] == [
            f"== stopped at spark2: {state}: {said.splitlines()[0]}; "
            "nothing was done on: spark3 spark1",
            "Fix it and run this again, or leave it out with --skip spark2",
        ]


def test_deploy_waits_with_peers_until_all_are_installed(nodes: Laptop) -> None:
    """On the first node no peer answers yet; at the end, a silent peer is a fault."""
    (nodes.calls / "verify-spark2").write_text("FAIL  peers p0.0         spark3 is silent\n")
    done = nodes.run("deploy.sh", "--apply")
    assert done.returncode == 1
    steps = [step for node in ("spark2", "spark3", "spark1") for step in installed(node)]
    assert nodes.recorded() == [*COMMANDS, *steps, *VERIFIED]
    assert "spark2: failed verify" in nodes.run("deploy.sh", "--status").stdout
    (nodes.calls / "verify-spark2").write_text("FAIL  peers p0.0  silent\nFAIL  clock  wrong\n")
    (nodes.calls / "installed-spark2").unlink()
    assert nodes.run("deploy.sh", "--apply", "spark2").returncode == 1


@pytest.mark.parametrize(("lost", "status"), [(7, 0), (8, 2)])
def test_deploy_confirms_over_new_connections(lost: int, status: int, nodes: Laptop) -> None:
    (nodes.calls / "refuse").write_text(str(lost))
    done = nodes.run("deploy.sh", "--apply", "spark2")
    assert done.returncode == status
    assert nodes.recorded()[2:].count(installed("spark2")[1]) == min(lost + 1, 8)
    assert ("reverted automatically" in done.stderr) is bool(status)


# airgap.sh, from an online machine to an offline node: docker and hf are stand-ins

_DOCKER = (
    RECORD
    + """\
case $1 in
  pull) touch "$CALLS/image-$(echo "${@: -1}" | tr /:@ ___)" ;;
  image)
    [[ -e $CALLS/image-$(echo "${@: -1}" | tr /:@ ___) ]] || exit 1
    if [[ $3 == --format ]]; then cat "$CALLS/architecture" 2>/dev/null || echo arm64; fi
    ;;
  save) echo "image ${@: -1}" >"$3" ;;
  load)
    read -r _ image <"$4"
    [[ $image == *@* ]] || touch "$CALLS/image-$(echo "$image" | tr /:@ ___)"
    ;;
esac
"""
)
# Huggingface_hub's cache layouts: until 1.31, and since 1.32, where a blob is a link to a store
# outside the repository, shared by all repositories.
_HF = (
    RECORD
    + """\
mkdir -p "$HF_HUB_CACHE/models--${2/\\//--}"/{blobs,refs,snapshots/0a}
cd "$HF_HUB_CACHE"/models--*
printf 0a >"refs/$4"
echo weights >blobs/w
if [[ $SHARED ]]; then
  mkdir -p ../blobs/ab
  mv blobs/w ../blobs/ab/abcd
  ln -sf ../../blobs/ab/abcd blobs/w
fi
if [[ $LOST ]]; then rm blobs/w; fi
ln -sf ../../blobs/w snapshots/0a/model.safetensors
"""
)
_CURL = (
    RECORD
    + """\
while [[ $1 != --output ]]; do shift; done
echo words >"$2"
"""
)


@pytest.fixture
def connected(laptop: Laptop) -> Laptop:
    """A bundle with a vocabulary beside its model, and nodes below the home."""
    for name, text in (("docker", _DOCKER), ("hf", _HF), ("curl", _CURL)):
        laptop.add(name, text)
    site, there = laptop.bundle / "operator/site.env", laptop.home / "node"
    words = hashlib.sha256(b"words\n").hexdigest()
    # This site's engine reads none.
    vocabulary = (
        f"VOCABULARY={words} o200k.tiktoken https://example.org/o200k.tiktoken\n"
        f"VOCABULARIES=spark1 {there}/tiktoken\n"
    )
    site.write_text(site.read_text().replace("/home/nvidia", str(there)) + vocabulary)
    return laptop


def fact(laptop: Laptop, name: str) -> list[list[str]]:
    lines = (laptop.bundle / "operator/site.env").read_text().splitlines()
    return [line.partition("=")[2].split() for line in lines if line.startswith(f"{name}=")]


def loaded(laptop: Laptop, disk: Path, node: str) -> subprocess.CompletedProcess[str]:
    argv = (str(disk / "airgap.sh"), "load", node)
    return subprocess.run(argv, env=laptop.env, capture_output=True, text=True)


@pytest.mark.parametrize("shared", ["", "yes"])
def test_airgap(shared: str, connected: Laptop, tmp_path: Path) -> None:
    """What a node needs of either layout survives a disk without symbolic links."""
    disk = tmp_path / "a disk"
    connected.env |= {"SHARED": shared, "LOST": ""}
    done = connected.run("airgap.sh", "save", str(disk))
    assert (done.returncode, done.stderr) == (0, "")
    assert not [path for path in disk.rglob("*") if path.is_symlink()]
    recorded = connected.recorded()
    # A second run fetches nothing.
    assert connected.run("airgap.sh", "save", str(disk)).returncode == 0
    assert connected.recorded() == recorded
    for image_file in connected.calls.glob("image-*"):
        image_file.unlink()
    shutil.rmtree(connected.home / ".cache")
    done = loaded(connected, disk, "spark1")
    assert (done.returncode, done.stderr) == (0, "")
    ((_, hub),) = (fields for fields in fact(connected, "HUB") if fields[0] == "spark1")
    ((source, revision),) = fact(connected, "MODEL")
    model = Path(hub) / f"models--{source.replace('/', '--')}"
    snapshot = model / "snapshots" / (model / "refs" / revision).read_text()
    assert (snapshot / "model.safetensors").read_text() == "weights\n"
    images = {image.translate(str.maketrans("/:@", "___")) for (image,) in fact(connected, "IMAGE")}
    assert {path.name for path in connected.calls.glob("image-*")} == {f"image-{i}" for i in images}
    ((_, folder),) = fact(connected, "VOCABULARIES")
    assert {path.read_text() for path in Path(folder).iterdir()} == {"words\n"}


def test_airgap_takes_nothing_that_is_not_whole(connected: Laptop, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    connected.env |= {"SHARED": "", "LOST": "yes"}
    done = connected.run("airgap.sh", "save", str(disk))
    assert done.returncode == 1
    assert "is incomplete: fetch it again" in done.stderr
    assert not (disk / "SHA256SUMS").exists()
    connected.env |= {"LOST": ""}
    assert connected.run("airgap.sh", "save", str(disk)).returncode == 0
    recorded = len(connected.recorded())
    for file in (next(disk.glob("models/*.tar")), next(disk.glob("images/*.tar"))):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        done = loaded(connected, disk, "spark1")
        assert done.returncode == 1
        assert "nothing was loaded" in done.stderr
        assert not (connected.home / "node").exists()
        # Saving again replaces what is damaged, and only that.
        done = connected.run("airgap.sh", "save", str(disk))
        assert done.returncode == 0
        assert done.stderr.splitlines() == [
            f"{file.relative_to(disk)} is damaged, or was not finished: it is written again"
        ]
        assert file.stat().st_size == len(whole)
    writing = [call.split()[:2] for call in connected.recorded()[recorded:]]
    assert [call for call in writing if call[1] in ("download", "save")] == [
        ["hf", "download"],
        ["docker", "save"],
    ]
    assert loaded(connected, disk, "spark1").returncode == 0


def test_airgap_refuses_an_image_of_another_machine(connected: Laptop, tmp_path: Path) -> None:
    (connected.calls / "architecture").write_text("amd64\n")
    done = connected.run("airgap.sh", "save", str(tmp_path / "disk"))
    assert done.returncode == 1
    assert "here is for amd64" in done.stderr


def test_airgap_knows_its_nodes(connected: Laptop, tmp_path: Path) -> None:
    connected.env |= {"SHARED": "", "LOST": ""}
    disk = tmp_path / "disk"
    assert connected.run("airgap.sh", "save", str(disk)).returncode == 0
    done = loaded(connected, disk, "spark9")
    assert (done.returncode, done.stderr) == (1, "airgap.sh: there is no node spark9 in lab-mesh\n")
    assert connected.run("airgap.sh", "safe", str(disk)).returncode == 2


# tunnels.sh


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def await_answer(port: int) -> None:
    until(lambda: answers(port))


@pytest.fixture
def sshd(laptop: Laptop) -> Iterator[Path]:
    """An ssh configuration for a server on this machine, which stands in for every node."""
    require("ssh", "ssh-keygen")
    server = shutil.which("sshd", path="/usr/sbin:/usr/bin") or ""
    require(server or "sshd")
    keys, port = laptop.home / "keys", free_port()
    keys.mkdir(mode=0o700)
    for name in ("host", "own"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)]
        subprocess.run(argv, check=True)
    config = keys / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {keys}/host\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {keys}/own.pub\nPermitRootLogin yes\nUsePAM no\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    text = "".join(
        f"Host {node.name}\n  HostName 127.0.0.1\n  Port {port}\n"
        f"  User {os.environ.get('USER', 'root')}\n  IdentityFile {keys}/own\n"
        f"  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
        for node in LAB_MESH.site.nodes
    )
    (laptop.bundle / "operator/ssh_config").write_text(text)
    with subprocess.Popen([server, "-D", "-e", "-f", str(config)]) as running:
        try:
            await_answer(port)
            yield laptop.bundle / "operator/ssh_config"
        finally:
            running.terminate()


@pytest.fixture
def served(laptop: Laptop) -> Iterator[tuple[int, int]]:
    """A web server in place of the nodes' APIs; the local ports of spark1's API and of spark2's."""
    target, ports = free_port(), []
    facts = laptop.bundle / "operator/site.env"
    text = facts.read_text()
    for forward in forwards(LAB_MESH.site):
        ports.append(free_port())
        line = f"\nFORWARD={forward.local} {forward.node} {forward.address}:{forward.port} "
        assert line in text
        text = text.replace(line, f"\nFORWARD={ports[-1]} {forward.node} 127.0.0.1:{target} ")
    facts.write_text(text)
    argv = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(target)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        try:
            await_answer(target)
            yield ports[0], ports[2]
        finally:
            server.terminate()


def test_tunnels(laptop: Laptop, sshd: Path, served: tuple[int, int]) -> None:
    api, other = served
    somebody_else = free_port()
    forward = f"{somebody_else}:127.0.0.1:{api}"
    argv = ["ssh", "-F", str(sshd), "-N", "-L", forward, "spark1"]
    with subprocess.Popen(argv) as foreign:
        try:
            await_answer(somebody_else)
            assert laptop.run("tunnels.sh", "status", "spark1").returncode == 1

            started = laptop.run("tunnels.sh", "start", "spark1")
            assert (started.returncode, started.stderr) == (0, "")
            assert started.stdout.splitlines()[0] == f"spark1: http://localhost:{api} API"
            assert answers(api)
            assert not answers(other)
            assert laptop.run("tunnels.sh", "start", "spark1").stdout == started.stdout

            status = laptop.run("tunnels.sh", "status")
            assert status.returncode == 1
            assert status.stdout == f"{started.stdout}spark2: down\nspark3: down\n"

            assert laptop.run("tunnels.sh", "start").returncode == 0
            assert answers(other)
            assert laptop.run("tunnels.sh", "status").returncode == 0

            stopped = laptop.run("tunnels.sh", "stop")
            assert stopped.stdout == "spark1: stopped\nspark2: stopped\nspark3: stopped\n"
            assert not answers(api)
            assert not answers(other)
            assert laptop.run("tunnels.sh", "stop", "spark1").stdout == "spark1: was not started\n"
            assert list((laptop.home / ".ssh").iterdir()) == []
            assert foreign.poll() is None
        finally:
            foreign.terminate()


def test_tunnel_to_a_port_that_is_taken(
    laptop: Laptop, sshd: Path, served: tuple[int, int]
) -> None:
    api, other = served
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", api))
        listener.listen()
        started = laptop.run("tunnels.sh", "start", "spark1", "spark2")
    try:
        assert started.returncode == 1
        assert "spark1: not started\n" in started.stderr
        assert answers(other)
    finally:
        laptop.run("tunnels.sh", "stop")


def test_tunnels_after_a_cut(laptop: Laptop, sshd: Path, served: tuple[int, int]) -> None:
    """What a connection leaves behind when its machine is switched off does not get in the way."""
    try:
        laptop.run("tunnels.sh", "start", "spark1")
        (left,) = (laptop.home / ".ssh").iterdir()
        kept = laptop.home / "kept"
        os.link(left, kept)
        laptop.run("tunnels.sh", "stop")
        kept.rename(left)
        assert laptop.run("tunnels.sh", "status", "spark1").returncode == 1
        assert laptop.run("tunnels.sh", "start", "spark1").returncode == 0
        assert answers(served[0])
    finally:
        assert laptop.run("tunnels.sh", "stop", "spark1").stdout == "spark1: stopped\n"


def test_tunnels_refuse_what_they_do_not_know(laptop: Laptop) -> None:
    for arguments in ([], ["restart"], ["start", "spark9"]):
        done = laptop.run("tunnels.sh", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "there is no node spark9 in lab-mesh\n"
