"""Slurm: the first node submits a batch job, whose srun starts a rank on each node."""

from collections.abc import Iterator

from generator.jobs import Launcher
from generator.site import Site, Words


class Slurm(Launcher):
    """A batch job that has its nodes to itself."""

    def lead(self, network: Site, job: str) -> Iterator[Words]:
        """The batch script, until it ends."""
        yield ("sbatch", "--wait", "--parsable", f"/opt/sparkgen/jobs/{job}/job.sbatch")


LAUNCHER = Slurm()
