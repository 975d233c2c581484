"""Open MPI: mpirun on the first node starts a rank on each node over SSH."""

from collections.abc import Iterator

from generator.jobs import Launcher
from generator.site import Site, Words


class Mpi(Launcher):
    """One MPI world whose own traffic keeps to the control plane, as NCCL carries the data."""

    def lead(self, network: Site, job: str) -> Iterator[Words]:
        """The world of all ranks."""
        control = str(network.head.control.network)
        yield ("mpirun",)
        yield ("--np", str(len(network.nodes)))
        yield ("--hostfile", f"/opt/sparkgen/jobs/{job}/hostfile")
        yield ("--map-by", "ppr:1:node")
        yield ("--bind-to", "none")
        yield ("--mca", "pml", "ob1")
        yield ("--mca", "btl", "tcp,self")
        yield ("--mca", "btl_tcp_if_include", control)
        yield ("--mca", "oob_tcp_if_include", control)
        yield ("--mca", "plm_rsh_args", "-o BatchMode=yes")
        yield ("--tag-output",)
        yield ("/opt/sparkgen/job.sh", job, "--rank")


LAUNCHER = Mpi()
