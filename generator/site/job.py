"""A job: nodes on which people start a program, as a site of their own."""

from collections.abc import Mapping

from generator.records import record
from generator.site import CarriedFile, Mount, Site, Variables, Words

# Where ranks meet, on the first node: 29600 for the first job of a site.
FIRST_PORT = 29600


@record
class Job(Site):
    """A program with one rank on each of its nodes.

    `rank` is what each node runs, by the node's name, and `lead` what the first node runs to start
    all ranks; it is empty if each node starts its own. Both are grouped as they are printed.
    `options` are those of Docker, if it has an `image`. `stopped` are the units that stop on a node
    meanwhile. `needed` must exist on the nodes.
    """

    job: str
    launcher: str
    port: int
    image: str
    venv: str
    directory: str
    rank: Mapping[str, tuple[Words, ...]]
    lead: tuple[Words, ...]
    options: tuple[Words, ...]
    environment: Mapping[str, tuple[Variables, ...]]
    mounts: tuple[Mount, ...]
    carried: tuple[CarriedFile, ...]
    stopped: Mapping[str, Words]

    @property
    def unit(self) -> str:
        """The name of its unit and container."""
        return f"sparkgen-job-{self.job}"

    @property
    def folder(self) -> str:
        """Its folder at the top of the bundle."""
        return f"jobs/{self.job}"

    @property
    def needed(self) -> Words:
        """The paths that must exist on its nodes."""
        own = () if self.image or not self.directory else (self.directory,)
        return (*own, *(mount.path for mount in self.mounts))

    def place(self, path: str) -> str:
        """The path of a file on its nodes, given that of its template."""
        folder, _, name = path.rpartition("/")
        if folder == "etc/sparkgen":
            return f"{folder}/jobs/{self.job}.{name.removeprefix('job.')}"
        return f"{folder}/jobs/{self.job}/{name}"
