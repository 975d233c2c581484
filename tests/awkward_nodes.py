"""Awkward nodes, and broken ones: what install.sh and verify.py do there, a line for each.

    PYTHONPATH=.:tests python tests/awkward_nodes.py [--roots] [--states] [--only WORD] [--part K/N]

A root is a node before its first install. It is installed, installed again, rolled back, installed
and uninstalled, after which everything is as it was before; or it is refused, and unchanged. A
state is a healthy node to which something is done: a check of verify.py that was OK must then say
FAIL, or SKIP with the reason; and nothing may fail on a healthy node that is only unusual. All that
the tests hold one by one counts, and what is written here besides. It needs root, prints what each
did, and exits with 1 if something was not as it should be.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("SPARKGEN_BUILT_BUNDLES", tempfile.mkdtemp())

import test_awkward_nodes as awkward
import test_install
import test_unusual_nodes as unusual
import test_verify
import test_weights
from draws import part
from programs import program
from test_install import BACKUPS, LAB_MESH, fresh, live
from test_verify import (
    FAULTS,
    FIRST,
    MESH,
    SERVICE_STATES,
    SERVICES,
    SHARDS,
    SNAPSHOT,
    STATES,
    Machine,
    answer,
    container,
    in_kernel,
    log,
    machine,
    parsed,
    running,
    writes,
)
from waiting import PATIENCE

Make = Callable[[Path], object]


@dataclass(frozen=True)
class Root:
    """A node below a folder: what is done to it, how install.sh is called, and why it refuses.

    In shell lines, $R is the root, $B a copy of the node's folder, and "$@" install.sh with its
    arguments. `between` is done after the install.
    """

    make: Make = lambda root: None
    lines: str = ""
    call: str = '"$@"'
    between: str = ""
    refused: str = ""
    names: tuple[str, ...] = ("root",)


@dataclass(frozen=True)
class Alive:
    """A machine in namespaces of its own: the lines before install.sh, and why it refuses."""

    lines: str
    refused: str = ""


def everything(top: Path, root: Path) -> dict[str, tuple[object, ...]]:
    """Each path with its kind, mode, owner and content, but for the backups."""
    found: dict[str, tuple[object, ...]] = {}
    # mount keeps its own list in /run.
    own = (root / "var", root / "var/backups", root / BACKUPS, root / "run/mount")
    for path in top.rglob("*"):
        name = path.relative_to(top).as_posix()
        about, content = path.lstat(), ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = path.read_bytes().hex()
        names = os.listxattr(path, follow_symlinks=False)
        more = [(key, os.getxattr(path, key, follow_symlinks=False)) for key in names]
        if path not in own and not any(path.is_relative_to(one) for one in own[2:]):
            found[name] = (about.st_mode, about.st_uid, about.st_gid, content, *more)
    return found


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """The paths that are not as they were."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def held(
    root: Root | Alive, status: int, said: str, changed: Mapping[str, list[str]]
) -> tuple[bool, str]:
    """Whether a root was treated rightly, and what happened to it."""
    last = (said.strip().splitlines() or [""])[-1]
    differ = "; ".join(f"after {when}: {', '.join(p[:4])}" for when, p in changed.items() if p)
    if differ:
        return False, f"DIFFERS {differ} ({last})"
    if status == 0:
        return not root.refused, "installed, and restored"
    why = next((line for line in said.splitlines() if root.refused and root.refused in line), "")
    return bool(why), f"refused, and unchanged: {why or ' / '.join(said.splitlines()[-3:])}"


def of_root(case: Root, work: Path) -> tuple[bool, str]:
    """Go through the life of a node below a folder."""
    top = work / "base"
    top.joinpath(*case.names[:-2]).mkdir(parents=True)
    root = fresh(top.joinpath(*case.names), LAB_MESH.name).resolve()
    bundle = work / "bundle folder"
    subprocess.run(["cp", "--recursive", LAB_MESH.path, bundle], check=True)
    (work / "outside").mkdir()
    env = {**os.environ, "R": str(root), "B": str(bundle)}

    def call(lines: str, *action: str) -> subprocess.CompletedProcess[str]:
        script = [str(bundle / "install.sh"), "--root", str(root), *action] if action else []
        return subprocess.run(
            ["bash", "-c", lines, "bash", *script],
            env=env,
            cwd=work,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            start_new_session=True,
        )

    case.make(root)
    done = call(case.lines)
    assert done.returncode == 0, done.stderr
    before, changed = everything(top, root), dict[str, list[str]]()
    first = call(case.call, "--apply")
    if first.returncode:
        changed["refusal"] = differing(before, everything(top, root))
        return held(case, first.returncode, first.stdout + first.stderr, changed)
    steps = [first]
    if case.between:
        steps.append(call(case.between))
    else:
        steps += [call(case.call, "--apply"), call(case.call, "--rollback")]
        changed["rollback"] = differing(before, everything(top, root))
        steps.append(call(case.call, "--apply"))
    steps.append(call(case.call, "--uninstall"))
    changed["uninstall"] = differing(before, everything(top, root))
    said = "".join(step.stdout + step.stderr for step in steps)
    if worst := max(step.returncode for step in steps):
        return bool(case.refused) and case.refused in said, f"status {worst}: {said[-300:]}"
    return held(case, 0, said, changed)


IN_FORCE = (
    "{ ip -o link; ip -4 -o address; ip route show table all; ip -6 route; sysctl net.ipv4.conf; "
    "hostname; } 2>/dev/null | "
    "sed 's/ state .*//; s/NO-CARRIER,//; s/valid_lft.*//; s/expires.*//' | "
    "grep -v 'fe80\\|ff00\\|^ *$'"
)
LIFE = "$I --apply --no-confirm && $I --apply && $I --uninstall"


def alive(case: Alive, work: Path) -> tuple[bool, str]:
    """Go through the life of a machine."""
    node = fresh(work / "root", LAB_MESH.name)
    for folder in ("opt", "run", "var/backups"):
        (node / folder).mkdir(parents=True)
    for name in ("passwd", "group", "ld.so.cache", "alternatives"):
        argv = ["cp", "--recursive", "--no-dereference", f"/etc/{name}", node / "etc/"]
        subprocess.run(argv, check=True)
    before = everything(node, node)
    states = [f"{IN_FORCE} >/tmp/{when}.$$" for when in ("before", "after")]
    compared = "diff /tmp/before.$$ /tmp/after.$$ | sed 's/^/IN FORCE /'"
    life = f"status=0; {{ {LIFE}; }} || status=$?"
    lines = f"{case.lines} || exit 9\n{states[0]}\n{life}; {states[1]}; {compared}; rm /tmp/*.$$"
    done = live(node, f"{lines}; exit $status", folder=LAB_MESH)
    differ = [line for line in done.out.splitlines() if line.startswith("IN FORCE ")]
    changed = {"it all": [*differing(before, everything(node, node)), *differ]}
    return held(case, done.status, done.out + done.err, changed)


def lacking(name: str, refused: str = "") -> Root:
    """A node without a program."""
    lines = (
        'IFS=:; for folder in $PATH; do ln -s "$folder"/* outside/ 2>/dev/null; done; '
        f"rm -f outside/{name}; :"
    )
    return Root(lines=lines, call='PATH="$PWD/outside" "$@"', refused=refused)


def mounted(lines: str) -> str:
    """install.sh with something mounted at or below the root."""
    return f'unshare --mount sh -c \'{lines}; exec "$@"\' sh "$@"'


def files(found: Mapping[str, str]) -> Make:
    return lambda root: test_install.place_owners(root, found)


NOTHING_CHANGED = "nothing was changed"
FAILED = "failed"
# What the tests hold, each by itself.
ROOTS: dict[str, Root | Alive] = {
    **{f"named {n}": Root(names=name) for n, name in enumerate(awkward.NAMES, 1)},
    **{name: Root(make) for name, make in awkward.HOSTS.items()},
    **{
        name: Root(lambda root, make=make: ((root / "srv").mkdir(), make(root)))
        for name, make in awkward.OTHERS.items()
    },
    **{name: Root(make, refused="") for name, make in awkward.REFUSED.items()},
    **{
        f"owner {path}": Root(files({path: text}), refused=f"refused: /{path} is about ")
        for path, text in [*test_install.CLAIMING.items(), *test_install.CLAIMING_OF_NETPLAN]
    },
    **{f"no owner {p}": Root(files({p: text})) for p, text in test_install.OTHERS.items()},
    **{
        f"no owner {n} of netplan": Root(files({"etc/netplan/50-other.yaml": text}))
        for n, text in enumerate(test_install.OTHERS_OF_NETPLAN, 1)
    },
    **{name: Alive(lines) for name, lines in unusual.INSTALLED.items()},
    **{name: Alive(*told) for name, told in unusual.REFUSED.items()},
    **{name: Alive(*told) for name, told in test_install.IN_FORCE.items()},
}
for name in awkward.REFUSED:
    ROOTS[name] = Root(awkward.REFUSED[name], refused=": ")
# And what is tried here alone.
ROOTS |= {
    "hosts with NUL": Root(awkward.text("etc/hosts", b"127.0.0.1 localhost\n\0\n")),
    "hosts of a megabyte": Root(awkward.text("etc/hosts", b"10.9.9.9 other\n" * 70000)),
    "hosts with the names of an earlier bundle": Root(
        awkward.text("etc/hosts", b"127.0.0.1 a\n# begin sparkgen\n10.0.0.9 b\n# end sparkgen\n")
    ),
    "hosts with half of the markers": Root(
        awkward.text("etc/hosts", b"# begin sparkgen\n10.0.0.9 b\n"), refused="must have"
    ),
    "hosts as a mount": Root(
        call=mounted('mount --bind "$R/etc/hosts" "$R/etc/hosts"'), refused=FAILED
    ),
    "read-only root": Root(
        call=mounted('mount --bind "$R" "$R"; mount -o remount,bind,ro "$R"'),
        refused=NOTHING_CHANGED,
    ),
    "read-only /opt": Root(
        call=mounted('mkdir -p "$R/opt"; mount -t tmpfs -o ro none "$R/opt"'),
        lines='mkdir "$R/opt"',
        refused=FAILED,
    ),
    "read-only /var": Root(
        lines='mkdir -p "$R/var/backups"',
        call=mounted('mount -t tmpfs -o ro none "$R/var"'),
        refused=NOTHING_CHANGED,
    ),
    "full disk for backups": Root(
        lines='mkdir -p "$R/var/backups"',
        call=mounted('mount -t tmpfs -o size=8k none "$R/var/backups"'),
        refused=NOTHING_CHANGED,
    ),
    "full disk for files": Root(
        lines='mkdir -p "$R/opt"',
        call=mounted('mount -t tmpfs -o size=16k none "$R/opt"'),
        refused=FAILED,
    ),
    "no inodes": Root(
        lines='mkdir -p "$R/opt"',
        call=mounted('mount -t tmpfs -o nr_inodes=6 none "$R/opt"'),
        refused=FAILED,
    ),
    "full /tmp": Root(
        call=mounted('mount -t tmpfs -o size=8k none outside; export TMPDIR="$PWD/outside"'),
        refused=NOTHING_CHANGED,
    ),
    "backups: stray 9999-x": Root(lines=f'mkdir -p "$R/{BACKUPS}/9999-x"'),
    "backups: stray file 0007": Root(lines=f'mkdir -p "$R/{BACKUPS}"; touch "$R/{BACKUPS}/0007"'),
    "backups: stray folder of words": Root(lines=f'mkdir -p "$R/{BACKUPS}/by hand/0001"'),
    "backups: dangling link": Root(
        lines=f'mkdir -p "$R/{BACKUPS}"; ln -s nowhere "$R/{BACKUPS}/0003-x"'
    ),
    "backups: new left over": Root(lines=f'mkdir -p "$R/{BACKUPS}/new/before"'),
    "backups: 08 and 09": Root(lines=f'mkdir -p "$R/{BACKUPS}/0008-a" "$R/{BACKUPS}/0009-b"'),
    "somebody's *.sparkgen": Root(
        lines='echo mine >"$R/etc/hosts.sparkgen"; echo mine >"$R/etc/nccl.conf.sparkgen"'
    ),
    "nccl.conf edited afterwards": Root(between='echo NCCL_DEBUG=INFO >>"$R/etc/nccl.conf"'),
    "all files touched afterwards": Root(between='find "$R" -type f -exec touch {} +'),
    "folder of ours open to all": Root(
        lines='mkdir -p "$R/opt/sparkgen" "$R/etc/sparkgen"; chmod 0777 "$R"/*/sparkgen; '
        'chown 1000:1000 "$R/opt/sparkgen"; echo mine >"$R/opt/sparkgen/mine"'
    ),
    "folder of ours is a link": Root(
        lines='mkdir -p "$R/srv/x" "$R/opt"; ln -s ../srv/x "$R/opt/sparkgen"'
    ),
    "folder of ours is a file": Root(
        lines='mkdir -p "$R/opt"; echo mine >"$R/opt/sparkgen"', refused=": "
    ),
    "wants of systemd is a link": Root(
        lines='mkdir -p "$R/etc/systemd/system/other"; '
        'ln -s other "$R/etc/systemd/system/multi-user.target.wants"'
    ),
    "no netplan folder": Root(lines='rm -r "$R/etc/netplan"'),
    "no sysctl.d": Root(lines='rm -r "$R/etc/sysctl.d"'),
    "no nccl.conf": Root(lines='rm "$R/etc/nccl.conf"'),
    "hard link of nccl.conf": Root(lines='ln "$R/etc/nccl.conf" "$R/etc/nccl.other"'),
    "nccl.conf of somebody": Root(lines='chown 1000:1000 "$R/etc/nccl.conf"'),
    "nccl.conf with an attribute": Root(lines='setfattr -n user.a -v b "$R/etc/nccl.conf" || :'),
    "nccl.conf of tomorrow": Root(lines='touch --date tomorrow "$R/etc/nccl.conf"'),
    "nccl.conf with setuid": Root(lines='chmod 4755 "$R/etc/nccl.conf"'),
    "secrets that were there": Root(
        lines='mkdir -p "$R/etc/sparkgen"; echo A=1 >"$R/etc/sparkgen/secrets.env"'
    ),
    "name with a domain": Root(lines='echo spark1.lan >"$R/etc/hostname"'),
    "name of Windows": Root(
        lines="printf 'spark1\\r\\n' >\"$R/etc/hostname\"", refused="is called"
    ),
    "no name": Root(lines='rm "$R/etc/hostname"', refused="is called ''"),
    "CDI's units": Root(
        lines='mkdir -p "$R/usr/lib/systemd/system"; '
        'touch "$R/usr/lib/systemd/system/nvidia-cdi-refresh."{path,service}'
    ),
    "umask 077": Root(call='umask 077; "$@"'),
    "umask 000": Root(call='umask 000; "$@"'),
    "German": Root(call='LC_ALL=de_DE.UTF-8 LANGUAGE=de "$@"'),
    "Turkish": Root(call='LC_ALL=tr_TR.UTF-8 "$@"'),
    "no environment": Root(call='env -i "$@"'),
    "CDPATH": Root(
        call='export CDPATH="$PWD"; shift; cd /; "bundle folder/install.sh" "$@" 2>/dev/null || '
        'cd "$B/.." && CDPATH=. bash "bundle folder/install.sh" "$@"'
    ),
    "POSIXLY_CORRECT": Root(call='POSIXLY_CORRECT=1 "$@"'),
    "BASH_ENV that prints": Root(
        lines='echo "echo hello" >outside/env', call='BASH_ENV="$PWD/outside/env" "$@"'
    ),
    "GREP_COLORS and aliases": Root(call='GREP_OPTIONS=--color=always GREP_COLOR=1 "$@"'),
    "no TMPDIR": Root(call='TMPDIR=/nowhere "$@"', refused="mktemp: "),
    "closed input": Root(call='"$@" <&-'),
    "closed output": Root(call='"$@" >&-', refused=""),
    "full output": Root(call='"$@" >/dev/full', refused="No space left"),
    "few open files": Root(call='ulimit -n 12; "$@"', refused="Too many open files"),
    "no large files": Root(call='ulimit -f 1; "$@"', refused=": "),
    "deep folder as current one": Root(call='cd "$R/etc" && "$@"'),
    "current folder is gone": Root(call='mkdir gone && cd gone && rmdir ../gone && "$@"'),
    "bundle that nobody may write": Root(lines='chmod -R a-w "$B"'),
    "bundle of a stick without modes": Root(
        lines='find "$B" -type f -exec chmod 0644 {} +; chmod 0755 "$B"/*.py "$B/install.sh"'
    ),
    "owners.py without its mode": Root(lines='chmod 0644 "$B/owners.py"'),
    "install.sh without its mode": Root(lines='chmod 0644 "$B/install.sh"', call='bash "$@"'),
    "bundle of Windows": Root(
        lines='sed -i "s/$/\\r/" "$B/etc/sparkgen/hosts"', refused="copy it again"
    ),
    "bundle without checksums": Root(lines='rm "$B/SHA256SUMS"', refused="copy it again"),
    "bundle with a file less": Root(lines='rm "$B/etc/nccl.conf"', refused="copy it again"),
    "bundle with a file more": Root(lines='echo mine >"$B/etc/mine.conf"'),
    "bundle without conditions.sh": Root(lines='rm "$B/conditions.sh"', refused=": "),
    "bundle without node.env": Root(lines='rm "$B/etc/sparkgen/node.env"', refused=": "),
    "no python3": lacking("python3", refused="install python3"),
    "no lsattr": lacking("lsattr"),
    "no netplan": lacking("netplan", refused=""),
    "no pgrep": lacking("pgrep"),
    "started by dash": Root(call=f'{program("dash")} "$@"', refused="Illegal option"),
    "as another installer works": Root(
        lines=f'mkdir -p "$R/{BACKUPS}"',
        call=f'flock "$R/{BACKUPS}" sh -c \'exec "$@"\' sh "$@"',
        refused="another install.sh is at work",
    ),
    "IPv6 is off": Alive("sysctl -q net.ipv6.conf.all.disable_ipv6=1"),
    "no name for SSH_CONNECTION": Alive("export SSH_CONNECTION='nonsense'"),
    "management on a bridge": Alive(
        "ip link add br0 type bridge && ip link set enP7s7 master br0 && ip link set br0 up && "
        "ip address flush dev enP7s7 && ip address add 10.0.0.11/24 dev br0"
    ),
    "management on a macvlan": Alive(
        "ip link set enP7s7 up && ip link add m0 link enP7s7 type macvlan && "
        "ip address flush dev enP7s7 && ip address add 10.0.0.11/24 dev m0"
    ),
    "default route on a macvlan of a port": Alive(
        "ip link set enp1s0f0np0 up && ip link add m0 link enp1s0f0np0 type macvlan && "
        "ip address add 10.9.9.9/24 dev m0 && ip link set m0 up && "
        "ip route add default via 10.9.9.1",
        "refused: enp1s0f0np0 carries m0, which carries the default route",
    ),
    "bridge of Docker's": Alive("ip link add docker0 type bridge && ip link set docker0 up"),
    "tunnel as the default route": Alive(
        "ip link add tun0 type bridge && ip address add 10.8.0.2/24 dev tun0 && "
        "ip link set tun0 up && ip route add default dev tun0"
    ),
    "rule of one's own": Alive("ip rule add from 10.0.0.11 table 100"),
    "port with MTU 1500 and up": Alive("ip link set enp1s0f0np0 up mtu 1500"),
    "strict reverse path": Alive("sysctl -q net.ipv4.conf.all.rp_filter=1"),
    "address twice": Alive("ip address add 10.0.0.11/24 dev enp1s0f0np0 || :", "refused: "),
    "no SSH, at the console": Alive("unset SSH_CONNECTION"),
}


@dataclass(frozen=True)
class State:
    """What is done to a node on which verify.py finds nothing."""

    make: Callable[[Machine], object]
    folder: object = MESH
    runs: bool = True
    is_healthy: bool = False


def damaged(change: Callable[[Path], object]) -> Callable[[Machine], object]:
    """Damage the model."""
    return lambda m: change(m.tree / SNAPSHOT)


def blob(name: str, data: bytes) -> Callable[[Machine], object]:
    return damaged(lambda snapshot: (snapshot / name).resolve().write_bytes(data))


def swapped(snapshot: Path) -> None:
    one, other = ((snapshot / shard).resolve() for shard in SHARDS)
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def mounts(line: str) -> Callable[[Machine], object]:
    """Mount something else on the node."""

    def make(m: Machine) -> None:
        m.mounts = lambda: Machine.mounts(m) + line  # type: ignore[method-assign]

    return make


def instead(path: str, how: Callable[[Path], object]) -> Callable[[Machine], object]:
    """Something else in the place of a file."""

    def make(m: Machine) -> None:
        (m.tree / path).unlink()
        how(m.tree / path)

    return make


def users(login: str, docker: str = "") -> Callable[[Machine], object]:
    """The user of the operator's scripts, and who may use Docker."""

    def make(m: Machine) -> None:
        m.write("etc/passwd", f"{Path('/etc/passwd').read_text()}{login}\n")
        m.write("etc/group", f"{Path('/etc/group').read_text()}docker:x:999:{docker}\n")
        os.chown(m.write("run/docker.sock", "", 0o660), 0, 999)

    return make


def of_another_user(m: Machine) -> None:
    """Weights that somebody else has fetched."""
    for file in (m.tree / "home").rglob("*.blob"):
        os.chown(file, 1234, 1234)
        file.chmod(0o600)


def listening(*processes: int) -> Callable[[Machine], object]:
    """Who listens on the engine's port; the engine itself is process 1."""
    rows = (f'LISTEN 0 9 *:8000 *:* users:(("vllm",pid={one},fd=5))\\n' for one in processes)
    said = "".join(rows)

    def make(m: Machine) -> None:
        group = Path("/proc/1/cgroup").read_text().partition("\n")[0]
        m.answers["docker"]["'ps --no-trunc --quiet --filter name=^sparkgen-'"] = f"{group}\\n"
        m.answers["ss"]["*:8000"] = said

    return make


def hub_elsewhere(m: Machine) -> None:
    """The hub is a link to another disk."""
    hub = m.tree / "home/nvidia/.cache/huggingface/hub"
    hub.rename(m.tree / "srv/hub")
    hub.symlink_to("/srv/hub")


def nccl_of_somebody(m: Machine) -> None:
    """The container has another nccl.conf than the node."""
    mounts = test_verify.described(m, "healthy")["Mounts"]
    other = [{**one, "Source": one["Source"].replace("/etc/nccl", "/tmp/nccl")} for one in mounts]
    running(m, Mounts=other)


def cut_sums(m: Machine) -> None:
    file = m.tree / test_verify.BUNDLE / "SHA256SUMS"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))


IPTABLES = in_kernel(test_verify.UFW_RULES)
DROP_FIRST = IPTABLES.replace("-A INPUT", "-A INPUT -p tcp -j DROP\n-A INPUT", 1)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
OTHER_TABLE = """\
table inet mine {
\tchain in {
\t\ttype filter hook input priority 0; policy accept;
\t\ttcp dport 8000 drop
\t}
}
"""
VENV = next(folder for folder in test_verify.NODES if folder.part.engine.venv)
FIREWALLED = partial(State, folder=SERVICES, runs=False)
KERNEL = {
    "Xid 119": "NVRM: Xid (PCI:000f:01:00): 119, pid=1, Timeout after 6s of waiting for RPC",
    "Xid 95": "NVRM: Xid (PCI:000f:01:00): 95, pid=1, Uncontained ECC error",
    "GPU fallen off the bus": "NVRM: GPU at PCI:000f:01:00: GPU has fallen off the bus.",
    "XFS shut down": "XFS (nvme0n1p2): Corruption detected.  Shutting down filesystem",
    "NVMe gives up": "nvme nvme0: Device not ready; aborting reset, CSTS=0x1",
    "transmit queue": "mlx5_core 0000:01:00.0 enp1s0f0np0: NETDEV WATCHDOG: queue 0 timed out",
    "soft lockup": "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4711]",
    "hung task": "INFO: task python3:4711 blocked for more than 120 seconds.",
    "kernel panic of a module": "Internal error: Oops: 0000000096000006 [#1] SMP",
    "memory page": "Memory failure: 0x12345: recovery action for dirty page: Recovered",
    "command of the NIC": (
        "mlx5_core 0000:01:00.0: wait_func:1151:(pid 1): ACCESS_REG(0x805) timeout. "
        "Will cause a leak of a command resource"
    ),
    "transmit queue of the management network": (
        "r8127 0007:01:00.0 enP7s7: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5010 ms"
    ),
    "stall of RCU": "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "work queue": "BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 34s!",
    "NVMe that is reset": (
        "nvme nvme0: I/O tag 893 (137d) opcode 0x2 (I/O Cmd) QID 3 timeout, reset controller"
    ),
}
# What the kernel says on nodes that serve: their owners tell of them.
HARMLESS = {
    "driver without memory for a moment": (
        "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) "
        "returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359"
    ),
    "mailbox of PCIe": "pci 000f:01:00.0: DOE: [2c8] ABORT timed out",
    "corrected fault of PCIe": (
        "pcieport 0000:00:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer"
    ),
    "disk that was polled": "nvme nvme0: I/O tag 3 (1003) QID 5 timeout, completion polled",
}
OWN_STATES: dict[str, State] = {
    **{f"kernel: {name}": State(log(line)) for name, line in KERNEL.items()},
    **{f"healthy: {name}": State(log(of), is_healthy=True) for name, of in HARMLESS.items()},
    "healthy: next kernel with the driver": State(
        test_verify.next_kernel(f"{test_verify.MODULE} a\n"), is_healthy=True
    ),
    "healthy: kernel that GRUB does not start": State(
        lambda m: [
            test_verify.next_kernel("")(m),
            m.write("etc/default/grub", 'GRUB_DEFAULT="1>2"\n'),
        ],
        is_healthy=True,
    ),
    "rule for forwarding that the kernel has lost": FIREWALLED(
        writes(
            "etc/ufw/user.rules",
            f"{test_verify.UFW_RULES}-A ufw-user-forward -i enp1s0f0np0 -j ACCEPT\n",
        )
    ),
    "tables that nft does not list": FIREWALLED(lambda m: m.answers.update(nft={})),
    "shard of zeros": State(damaged(test_weights.zeros)),
    "shards in each other's place": State(damaged(swapped)),
    "pointer of LFS for a shard": State(blob(SHARDS[0], POINTER)),
    "pointer of LFS for the tokenizer": State(blob("tokenizer.json", POINTER)),
    "empty config.json": State(blob("config.json", b"")),
    "config.json that is a page of a proxy": State(blob("config.json", b"<html>login</html>\n")),
    "empty index": State(blob("model.safetensors.index.json", b"")),
    "ref that is empty": State(writes(test_verify.HUB_REF, "")),
    "ref to nowhere": State(writes(test_verify.HUB_REF, "f" * 40)),
    "shard that only others can read": State(damaged(lambda s: (s / SHARDS[1]).resolve().unlink())),
    "read-only /var": State(mounts("tmpfs /mnt/var tmpfs ro 0 0\n")),
    "empty mount over the hub": State(mounts("tmpfs /mnt/home/nvidia/.cache tmpfs ro 0 0\n")),
    "folder for a mounted file": State(instead("opt/sparkgen/health.py", Path.mkdir)),
    "folder for a file of the host": State(instead("etc/nccl.conf", Path.mkdir)),
    "pipe for a file": State(instead("opt/sparkgen/wait-fabric.sh", os.mkfifo)),
    "device for a file": State(
        instead("opt/sparkgen/launch.sh", lambda p: p.symlink_to("/dev/null"))
    ),
    "folder for /etc/hosts": State(instead("etc/hosts", Path.mkdir)),
    "no /etc/hosts": State(lambda m: (m.tree / "etc/hosts").unlink()),
    "list of checksums that is cut": State(cut_sums, runs=False),
    **{
        f"no module {name}": State(
            lambda m, name=name: (m.tree / test_verify.BUNDLE / f"opt/sparkgen/{name}.py").unlink(),
            SERVICES,
            runs=False,
        )
        for name in ("network", "services")
    },
    "container that restarts": State(container("State_Status", "restarting")),
    "container with all rights": State(container("HostConfig_Privileged", True)),
    "container with a network of its own": State(container("HostConfig_NetworkMode", "bridge")),
    "container with less shared memory": State(container("HostConfig_ShmSize", 1 << 26)),
    "container with another program": State(container("Config_Entrypoint", ["sleep"])),
    "container that shares memory": State(container("HostConfig_IpcMode", "shareable")),
    "clock of 1970": State(answer("timedatectl", "no\\n")),
    "interface without its driver": State(
        lambda m: [f.unlink() for f in (m.tree / f"sys-class/net/{FIRST.name}").iterdir()]
    ),
    "unit of another package": State(
        test_verify.unit_with("FragmentPath", "/usr/lib/systemd/system/sparkgen-engine.service")
    ),
    "driver that answers nothing": State(lambda m: m.answers.update({"nvidia-smi": {}})),
    "Docker that answers nothing": State(lambda m: m.answers.update(docker={}), runs=False),
    "Podman": State(
        lambda m: m.answers.update(docker={"'info --format {{json .SecurityOptions}}'": "{}\\n"}),
        runs=False,
    ),
    "drop before ufw's rules": FIREWALLED(answer("iptables", DROP_FIRST, "-S")),
    "another rule than ufw's": FIREWALLED(
        answer("iptables", IPTABLES.replace("-s 10.0.0.0/24", "-s 10.7.0.0/24"), "-S")
    ),
    "table of nft that drops": FIREWALLED(answer("nft", OTHER_TABLE, "'list ruleset'")),
    "port of ufw's rule": FIREWALLED(
        answer("iptables", IPTABLES.replace("--dport 22", "--dport 2222"), "-S")
    ),
    "wrong nccl.conf in the container": State(nccl_of_somebody),
    "restart policy by 'docker update'": State(
        container("HostConfig_RestartPolicy", {"Name": "always"})
    ),
    "generation_config.json that is cut": State(
        damaged(lambda s: (s / "generation_config.json").write_text('{"temperature": 0.7, "to'))
    ),
    "tokenizer_config.json that is a page of a proxy": State(
        damaged(lambda s: (s / "tokenizer_config.json").write_text("<html>login</html>"))
    ),
    "weights of another user": State(of_another_user, VENV, runs=False),
    "launch.sh of an earlier release": State(
        lambda m: m.edit("opt/sparkgen/launch.sh", "set -euo pipefail", "set -eu"), runs=False
    ),
    "engine started by hand on the port": State(listening(1, 99999999)),
    # Nothing is wrong with these.
    "healthy: engine that listens twice": State(listening(1, 1), is_healthy=True),
    "healthy: drop-in of the distribution": State(
        test_verify.unit_with("DropInPaths", "/usr/lib/systemd/system/service.d/10-abort.conf"),
        is_healthy=True,
    ),
    "healthy: another shell": State(
        users("nvidia:x:1000:1000::/home/nvidia:/usr/bin/zsh", "nvidia"), is_healthy=True
    ),
    "healthy: docker as the first group": State(
        users("nvidia:x:1000:999::/home/nvidia:/bin/bash"), is_healthy=True
    ),
    "healthy: names by multicast": State(
        writes("etc/nsswitch.conf", "hosts: files mdns4_minimal [NOTFOUND=return] dns\n"),
        is_healthy=True,
    ),
    "healthy: hub on another disk": State(hub_elsewhere, is_healthy=True),
    "healthy: VPN and two default routes": State(
        answer("ip", "default dev enP7s7\\n0.0.0.0/1 dev tun0\\n", "'-4 route show'"),
        is_healthy=True,
    ),
    "healthy: cable that was plugged in": State(
        log("mlx5_core 0000:01:00.0: Port module event: module 0, Cable plugged"), is_healthy=True
    ),
    "healthy: drop of one address before ufw's": FIREWALLED(
        answer("iptables", DROP_FIRST.replace("-p tcp -j", "-s 198.51.100.7/32 -j"), "-S"),
        is_healthy=True,
    ),
    "healthy: chain of Tailscale": FIREWALLED(
        answer("iptables", IPTABLES.replace("-A INPUT", "-A INPUT -j ts-input\n-A INPUT", 1), "-S"),
        is_healthy=True,
    ),
    "healthy: a file of one's own": State(writes("opt/sparkgen/own/mine", "x"), is_healthy=True),
    "healthy: another network": State(
        lambda m: m.answers["ip"].update(
            {"*": m.answers["ip"]["*"] + "9: wlP9s9    inet 192.168.7.5/24 brd x scope global\\n"}
        ),
        is_healthy=True,
    ),
    "healthy: name with a domain": State(writes("etc/hostname", "spark1.lan\n"), is_healthy=True),
    "healthy: names of one's own in hosts": State(
        lambda m: m.edit("etc/hosts", "127.0.0.1 localhost", "10.9.9.9 nas\n127.0.0.1 localhost"),
        is_healthy=True,
    ),
    "healthy: little swap": State(
        writes(
            "meminfo", test_verify.MEMORY.replace("SwapFree:        16777212", "SwapFree: 16000000")
        ),
        is_healthy=True,
    ),
    "healthy: more in the hub": State(
        lambda m: m.write(f"{Path(SNAPSHOT).parents[2]}/models--a--b/refs/main", "c"),
        is_healthy=True,
    ),
    "healthy: Xid of a program before the start": State(
        lambda m: answer(
            "journalctl",
            test_verify.KERNEL_LOG
            + "[    9.000000] spark1 kernel: NVRM: Xid (PCI:000f:01:00): 31, pid=1, MMU Fault\\n",
        )(m),
        is_healthy=True,
    ),
}
ALL_STATES: dict[str, State] = {
    **{
        f"{n}. {fault}": State(fault.make, fault.folder, runs=False)
        for n, fault in enumerate(FAULTS, 1)
    },
    **{name: State(make) for name, (_, _, make) in STATES.items()},
    **{
        f"service: {name}": State(make, SERVICES, runs=False)
        for name, (_, _, make) in SERVICE_STATES.items()
    },
    **OWN_STATES,
}


def of_state(case: State, work: Path) -> tuple[bool, str]:
    """What verify.py says of a node to which something was done."""
    host = machine(case.folder, work)  # type: ignore[arg-type]
    if case.runs:
        running(host)
    before = host.lines()
    case.make(host)
    after = parsed(host.run())
    status = {name: text.split()[0] for name, text in after.items()}
    was = {name: text.split()[0] for name, text in before.items()}
    order = ("OK", "SKIP", "FAIL")
    said = [
        name
        for name in sorted(after, key=lambda name: -order.index(status[name]))
        if after[name] != before.get(name) and order.index(status[name]) > (was.get(name) == "SKIP")
    ]
    if case.is_healthy:
        failing = [name for name in said if status[name] == "FAIL"]
        return not failing, f"no fault told{': '.join(['', *failing])}"
    if not said:
        return False, "ALL OK"
    found = f"{status[said[0]]} {said[0]}: {after[said[0]].partition(' ')[2][:90]}"
    return True, found + (f" (and {', '.join(said[1:])})" if said[1:] else "")


def tried(cases: Mapping[str, object]) -> Iterator[tuple[bool, str]]:
    """A line for each case, and whether it went as it should."""
    kinds: dict[type, Callable[..., tuple[bool, str]]] = {
        Root: of_root,
        Alive: alive,
        State: of_state,
    }
    for name, case in cases.items():
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            work = Path(folder)
            try:
                right, said = kinds[type(case)](case, work)
            except Exception:
                right, said = False, traceback.format_exc(limit=-2)[-400:]
            subprocess.run(["chattr", "-R", "-i", folder], capture_output=True, check=False)
        yield right, f"{'right' if right else 'WRONG'} {name}: {said}"


def main() -> int:
    """Whether anything was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roots", action="store_true")
    parser.add_argument("--states", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    asked = parser.parse_args()
    wrong = 0
    both = not asked.roots and not asked.states
    for what, cases, is_asked in (
        ("roots", ROOTS, asked.roots),
        ("states", ALL_STATES, asked.states),
    ):
        results = []
        names = part([name for name in cases if asked.only in name], asked.part)
        chosen = {name: cases[name] for name in names if is_asked or both}
        for right, line in tried(chosen):
            print(line, flush=True)
            results.append(right)
        print(f"{sum(results)} of {len(results)} {what} right", flush=True)
        wrong += len(results) - sum(results)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
