"""The checks: each runs a program on some files of a bundle, and reports its complaints.

A check is a generator of complaints, none for a valid bundle. It raises Missing for a program that
is not installed, and Nothing if the bundle has no such file.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple
from xml.etree import ElementTree

from generator.resources import words
from generator.verify.bundle import BundleFolder
from generator.verify.programs import Missing, compose, found, run

# Disables complaints about files that are long for the sake of readability.
LINT = "{extends: default, rules: {document-start: disable, line-length: disable}}"

# What the units of a bundle depend on: of the machine's own units only the names matter.
BASE_UNITS = {
    "docker.service": "[Service]\nExecStart=/usr/bin/docker\n",
    "basic.target": "[Unit]\n",
    "multi-user.target": "[Unit]\n",
    "network-online.target": "[Unit]\n",
    "shutdown.target": "[Unit]\n",
    "sysinit.target": "[Unit]\n",
}
_UNITS = "etc/systemd/system"
# Without it sshd does not even read its configuration.
_PRIVILEGE_SEPARATION = Path("/run/sshd")
_EXEC = re.compile(r"^Exec\w+=[-@:+!]*/(\S+)", re.MULTILINE)

Complaints = Iterator[str]


class Nothing(Exception):  # noqa: N818 (not an error: there is nothing to look at)
    """The bundle has no file for a check."""


class ProgramCheck(NamedTuple):
    """A check, and the name at the beginning of its line."""

    name: str
    what: str
    run: Callable[[BundleFolder, Path], Complaints]


def manifest(bundle: BundleFolder, work: Path) -> Complaints:
    """Every file exists, with the checksum and mode in the manifest."""
    yield from bundle.faults()


def checksums(bundle: BundleFolder, work: Path) -> Complaints:
    """`sha256sum --check` succeeds in each node's folder."""
    program = found("sha256sum")
    for node in bundle.nodes:
        options = ("--check", "--strict", "--quiet", "SHA256SUMS")
        yield from output_of(node, run(program, *options, cwd=bundle.path / node))


def yaml(bundle: BundleFolder, work: Path) -> Complaints:
    """Yamllint has no complaints."""
    for path in some(bundle.files("*.yaml") + bundle.files("*.yml")):
        argv = (sys.executable, "-m", "yamllint", "--strict", "-f", "parsable", "-d", LINT, path)
        yield from output_of("", run(*argv, cwd=bundle.path))


def documents(bundle: BundleFolder, work: Path) -> Complaints:
    """JSON, SVG and Python files have valid syntax."""
    for path in some([p for kind in ("json", "svg", "py") for p in bundle.files(f"*.{kind}")]):
        text = bundle.read(path)
        try:
            if path.endswith(".json"):
                json.loads(text)
            elif path.endswith(".svg"):
                ElementTree.fromstring(text)
            else:
                compile(text, path, "exec", dont_inherit=True)
        except (ValueError, SyntaxError) as error:
            yield f"{path}: {error}"


def shell(bundle: BundleFolder, work: Path) -> Complaints:
    """Each script can be parsed by its shell."""
    program = found("bash")
    for path in some([*scripts(bundle), *sourced(bundle)]):
        yield from output_of(path, run(program, "-n", path, cwd=bundle.path))


def shellcheck(bundle: BundleFolder, work: Path) -> Complaints:
    """Shellcheck at its strictest; scripts that nodes have in common are checked once."""
    program = found("shellcheck")
    paths = some([*scripts(bundle), *sourced(bundle)])
    once = {bundle.read(path): path for path in reversed(paths)}.values()
    options = ("--severity=style", "-f", "gcc")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda path: run(program, *options, path, cwd=bundle.path), once)
        yield from (line for each in done for line in output_of("", each))


def netplan(bundle: BundleFolder, work: Path) -> Complaints:
    """Netplan generates systemd-networkd's files from it, as it does at boot."""
    nodes = some([node for node in bundle.nodes if bundle.files(f"{node}/etc/netplan/*.yaml")])
    program = found("netplan")
    for node in nodes:
        tree = bundle.copy(node, work / "netplan")
        yield from output_of(node, run(program, "generate", "--root-dir", tree), str(tree))


def units(bundle: BundleFolder, work: Path) -> Complaints:
    """Systemd accepts every setting, and finds every program that a unit starts."""
    nodes = some([node for node in bundle.nodes if bundle.files(f"{node}/{_UNITS}/*")])
    program = found("systemd-analyze")
    for node in nodes:
        tree = bundle.copy(node, work / "units")
        on_a_machine(tree)
        files = unit_files(tree)
        options = (f"--root={tree}", "--man=no", "--recursive-errors=yes")
        done = run(program, "verify", *options, *(file.name for file in files))
        yield from output_of(node, done, str(tree))
        yield from (f"{node}: {line}" for file in files for line in unstartable(file, tree))


def on_a_machine(tree: Path) -> None:
    """Add the units and programs of the machine that the units of a node's tree need."""
    base, programs = tree / "usr/lib/systemd/system", tree / "usr/bin"
    base.mkdir(parents=True)
    for name, text in BASE_UNITS.items():
        (base / name).write_text(text)
    programs.mkdir()
    for name in words("machine-programs.txt"):
        (programs / name).touch(0o755)
    (tree / "usr/sbin").mkdir()
    for name in ("dcb", "iptables"):
        (tree / "usr/sbin" / name).touch(0o755)
    (tree / "bin").symlink_to("usr/bin")


def unit_files(tree: Path) -> list[Path]:
    """The units of a node's tree."""
    return sorted(file for file in (tree / _UNITS).iterdir() if file.is_file())


def unstartable(unit: Path, tree: Path) -> Complaints:
    """Missing programs: systemd-analyze looks only for the first of each kind."""
    for path in _EXEC.findall(unit.read_text()):
        file = tree / path
        if not file.is_file() or not file.stat().st_mode & 0o111:
            yield f"{unit.name}: /{path} is not of the bundle, or no program"


def containers(bundle: BundleFolder, work: Path) -> Complaints:
    """Compose accepts each file; secrets, which are only on the nodes, are left empty."""
    paths = some(
        [
            path
            for node in bundle.nodes
            for folder in ("", "groups/*/")
            for path in bundle.files(f"{node}/opt/sparkgen/{folder}*compose*.yaml")
        ]
    )
    program = compose()
    for path in paths:
        tree = bundle.copy(path.partition("/")[0], work / "compose")
        file = tree / path.partition("/")[2]
        at_its_place(file, tree)
        yield from output_of(path, run(*program, "--file", file, "config", "--quiet"), str(tree))


def at_its_place(file: Path, tree: Path) -> None:
    """Make a Compose file use environment files in the tree, since this machine has none."""
    text = file.read_text()
    for name in re.findall(r"^ +- (/etc/sparkgen/\S+\.env)$", text, re.MULTILINE):
        (tree / name[1:]).touch()
        text = text.replace(f"- {name}\n", f"- {json.dumps(str(tree / name[1:]))}\n")
    file.write_text(text)


def hostfiles(bundle: BundleFolder, work: Path) -> Complaints:
    """Open MPI maps a rank to each node of the hostfile, and starts nothing."""
    paths = some(
        [
            path
            for node in bundle.nodes[:1]
            for path in bundle.files(f"{node}/opt/sparkgen/hostfile")
        ]
        + bundle.files("*/opt/sparkgen/groups/*/hostfile")
    )
    program = found("mpirun")
    for path in paths:
        # Without this it refuses to run as root, as a CI container does.
        root = "--allow-run-as-root"
        ranks = sum(b"rank" in line for line in bundle.read(path).splitlines()[1:])
        job = ("--np", str(ranks), "--map-by", "ppr:1:node", "--bind-to", "none", "true")
        options = (root, "--do-not-launch", "--display-map", "--hostfile", bundle.path / path)
        done = run(program, *options, *job)
        # Only the map is needed; that nothing is launched counts as an error.
        if done.stdout.count("Data for node:") != ranks:
            yield f"{path}: not every node has a rank"
            yield from output_of(path, done)


def sshd(bundle: BundleFolder, work: Path) -> Complaints:
    """The SSH server accepts the drop-in for its configuration."""
    paths = some(bundle.files("*/etc/ssh/sshd_config.d/*.conf"))
    program, keygen = found("sshd"), found("ssh-keygen")
    if not _PRIVILEGE_SEPARATION.is_dir():
        raise Missing(str(_PRIVILEGE_SEPARATION))
    key = work / "host_key"
    run(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key)
    for path in paths:
        yield from output_of(
            path, run(program, "-t", "-h", key, "-f", (bundle.path / path).resolve())
        )


def ssh(bundle: BundleFolder, work: Path) -> Complaints:
    """The SSH client accepts the operator's configuration, for every node."""
    paths = some(bundle.files("operator/ssh_config"))
    program = found("ssh")
    for path in paths:
        for node in bundle.nodes:
            yield from output_of(
                path, run(program, "-G", "-F", path, node, cwd=bundle.path), quiet=True
            )


def prometheus(bundle: BundleFolder, work: Path) -> Complaints:
    """Prometheus accepts its configuration."""
    paths = some(bundle.files("*prometheus.yml"))
    program = found("promtool")
    for path in paths:
        options = ("check", "config", "--syntax-only", path)
        yield from output_of(path, run(program, *options, cwd=bundle.path), quiet=True)


CHECKS: Sequence[ProgramCheck] = (
    ProgramCheck("manifest", "files, checksums and modes", manifest),
    ProgramCheck("sha256sum", "each node's SHA256SUMS", checksums),
    ProgramCheck("yamllint", "YAML files", yaml),
    ProgramCheck("documents", "JSON, SVG and Python files", documents),
    ProgramCheck("bash", "bash -n over the scripts", shell),
    ProgramCheck("shellcheck", "the scripts", shellcheck),
    ProgramCheck("netplan", "netplan generate for each node", netplan),
    ProgramCheck("systemd", "systemd-analyze verify for each node", units),
    ProgramCheck("compose", "docker compose config for each node", containers),
    ProgramCheck("mpirun", "the hostfile's map of ranks", hostfiles),
    ProgramCheck("sshd", "sshd -t over its drop-ins", sshd),
    ProgramCheck("ssh", "ssh -G for each node", ssh),
    ProgramCheck("promtool", "the configuration of Prometheus", prometheus),
)


def scripts(bundle: BundleFolder) -> list[str]:
    """Executable files."""
    paths = (path for path in bundle.files("*") if bundle.read(path).startswith(b"#!"))
    return [path for path in paths if b"sh" in bundle.read(path).split(b"\n", 1)[0]]


def sourced(bundle: BundleFolder) -> list[str]:
    """Shell text that a login shell or another script reads, and so without a first line."""
    return [path for path in bundle.files("*.sh") if not bundle.read(path).startswith(b"#!")]


def some(items: Sequence[str]) -> list[str]:
    """The items, if there are any."""
    if not items:
        raise Nothing
    return list(items)


def output_of(
    subject: str, done: CompletedProcess[str], root: str = "", quiet: bool = False
) -> Complaints:
    """What a program that should be silent prints; a `quiet` one counts only if it fails."""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode or (lines and not quiet):
        prefix = f"{subject}: " if subject else ""
        for line in lines or [f"exit status {done.returncode}"]:
            yield prefix + (line.replace(f"{root}/", "") if root else line)
