"""nccl-test.sh runs one rank per node, and reports whether NCCL uses RoCE and how fast it is."""

import shlex
import subprocess
from pathlib import Path

import pytest
from bundles import BY_NAME, links, on_node
from programs import require
from stand_ins import StandIns

from generator.bundle.render import render
from generator.pipeline import read_site
from generator.site import Site
from generator.verify.namespaces import PROGRAMS, VirtualFabric, fabric

SCRIPT, BINARY = "/opt/sparkgen/nccl-test.sh", "all_reduce_perf"


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    result = StandIns(tmp_path)
    result.env["ALL_REDUCE_PERF"] = str(result.programs / BINARY)
    return result


# The output of the ranks

ROCE = """\
spark1:812:812 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]
spark1:812:812 [0] NCCL INFO Using network IB
"""
SOCKET = """\
spark1:812:812 [0] NCCL INFO NET/IB : No device found.
spark1:812:812 [0] NCCL INFO NET/Socket : Using [0]enP7s7:10.0.0.11<0>
spark1:812:812 [0] NCCL INFO Using network Socket
"""
SPEED = "# Avg bus bandwidth    : {}\n"
FAST = SPEED.format("22.0937")


def on_head(stand_ins: StandIns, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of lab-mesh's head."""
    return stand_ins.run(*on_node(BY_NAME["lab-mesh"].copy(folder)["spark1"], SCRIPT))


@pytest.mark.parametrize(
    ("printed", "status", "verdict"),
    [
        (ROCE + FAST, 0, "OK: 22.0937 GB/s"),
        (ROCE + SPEED.format("10.0"), 0, "OK: 10.0 GB/s"),
        (ROCE + SPEED.format("9.99"), 1, "FAIL: 9.99 GB/s of bus bandwidth, expected at least 10"),
        (ROCE, 1, "FAIL: no GB/s"),
        (SOCKET + FAST, 1, "FAIL: NCCL does not use RoCE"),
        (ROCE + SOCKET + FAST, 1, "FAIL: NCCL does not use RoCE"),
        (FAST, 1, "FAIL: NCCL does not use RoCE"),
    ],
)
def test_verdict(
    printed: str, status: int, verdict: str, tmp_path: Path, stand_ins: StandIns
) -> None:
    (stand_ins.calls / "printed").write_text(printed)
    stand_ins.add("mpirun", '#!/bin/sh\ncat "$CALLS/printed"\n')
    stand_ins.add(BINARY)
    done = on_head(stand_ins, tmp_path)
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(printed)
    assert (done.stdout.removeprefix(printed) + done.stderr).startswith(verdict)


def test_failure_of_mpirun(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("mpirun", "#!/bin/sh\nexit 3\n")
    stand_ins.add(BINARY)
    assert on_head(stand_ins, tmp_path).returncode == 3


def test_missing_binary(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("mpirun")
    done = on_head(stand_ins, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"there is no {stand_ins.programs}/{BINARY};")
    assert not stand_ins.called("mpirun")


# The real MPI, over the simulated fabric

# Sums over all ranks, as the real one does before it uses a GPU.
ALL_REDUCE = """\
#!/usr/bin/python3
import ctypes, socket
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
world, integer, total = (
    ctypes.byref(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{name}"))
    for name in ("comm_world", "int", "op_sum")
)
one, ranks, rank = ctypes.c_int(1), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Allreduce(ctypes.byref(one), ctypes.byref(ranks), 1, integer, total, world)
print(f"rank {rank.value} of {ranks.value} on {socket.gethostname()}", flush=True)
if rank.value == 0:
    print("NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE")
    print("# Avg bus bandwidth    : 99.0", flush=True)
mpi.MPI_Finalize()
"""

# Replaces ssh: a shell on the node with that address.
REMOTE = """\
#!/bin/bash
host=$1
shift
case $host in
{cases}
esac
exit 255
"""


def remote(site: Site, running: VirtualFabric) -> str:
    cases = (
        f'{node.control.address}) exec {shlex.join(running.command(node.name, "sh", "-c"))} "$*" ;;'
        for node in site.nodes
    )
    return REMOTE.format(cases="\n".join(cases))


@pytest.mark.parametrize("name", ["pair-chatbot", "lab-mesh", "rack-switch"])
def test_one_rank_a_node(name: str, tmp_path: Path, stand_ins: StandIns) -> None:
    require(*PROGRAMS, "mpirun")
    site, trees = BY_NAME[name].site, BY_NAME[name].copy(tmp_path)
    management = {node.name: str(node.management.address) for node in site.nodes if node.management}
    stand_ins.add(BINARY, ALL_REDUCE)
    stand_ins.env |= {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_agent": "remote",
    }
    with fabric(trees, links(site.cables), tmp_path, management) as running:
        stand_ins.add("remote", remote(site, running))
        head = site.head.name
        done = stand_ins.run(*running.command(head, *on_node(trees[head], SCRIPT)))
    assert done.returncode == 0, done.stdout + done.stderr
    ranks = {line for line in done.stdout.splitlines() if line.startswith("rank ")}
    assert ranks == {f"rank {node.rank} of {len(site.nodes)} on {node.name}" for node in site.nodes}
    assert done.stdout.splitlines()[-1].startswith("OK: 99.0 GB/s")


@pytest.mark.parametrize("release", ["2.30.7", "2.30.7-1"])
def test_documented_tag(release: str) -> None:
    file = BY_NAME["lab-mesh"].file
    raw = file.read_bytes().replace(b"nccl: 2.30.7", f"nccl: {release}".encode())
    site = read_site(file.name, raw).site
    assert site
    tree = render(site, "")
    assert "\nTEST_NCCL=2.30.7-1\n" in tree["spark1/etc/sparkgen/node.env"].text
    head = tree["spark1/opt/sparkgen/nccl-test.sh"].text
    assert "--branch \"v$(sed -n 's/^TEST_NCCL=//p' /etc/sparkgen/node.env)\"" in head
