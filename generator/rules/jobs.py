"""Rules about jobs: where they run, what starts them, and what stops meanwhile."""

from collections.abc import Mapping, Sequence

from generator.derive.environment import INTERFACE_VARIABLES, ORIGINS
from generator.diagnostics import Related, Severity, listed
from generator.fabric.addressing import Fabric
from generator.fabric.groups import gap
from generator.fabric.nccl import connections
from generator.fabric.subsets import group_kind, of_nodes
from generator.fabric.topologies import RING, TOPOLOGIES
from generator.grouping import grouped
from generator.rules.nodes import Nodes, called_alike, named, named_twice, unknown
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.beside import ReadBeside, Source
from generator.sitefile.declaration import DeclaredJob, Topology

Jobs = Sequence[DeclaredJob]
# What each rank has besides NCCL's variables.
_RANK = {*("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"), *INTERFACE_VARIABLES}
# The nodes of each group that serves; the only engine of a site has no name.
Serving = Mapping[str, Sequence[str]]

_LAUNCHERS = ("torchrun", "mpirun", "mpiexec", "srun", "sbatch")


@rule("SG280")
def duplicate_job(jobs: Jobs) -> Faults:
    """No two jobs have the same name."""
    return called_alike("job", jobs)


@rule("SG281", unless="SG201 SG203")
def node_of_a_job(jobs: Jobs, nodes: Nodes) -> Faults:
    """A job names nodes of the site, each once."""
    names = [node.name for node in nodes]
    for job in jobs:
        for index, name in enumerate(job.nodes):
            path = (*job.path, "nodes", index)
            if name not in names:
                free = [each for each in names if each not in job.nodes]
                yield unknown("node", name, path, free)
            elif name in job.nodes[:index]:
                yield named_twice(name, path, "a node is one rank: remove the second name")


@rule("SG282", unless="SG281")
def job_without_cables(jobs: Jobs, nodes: Nodes, fabric: Fabric, topology: Topology) -> Faults:
    """The nodes of a job are on one switch, at the ends of a cable, or a ring in cable order."""
    every = tuple(node.name for node in nodes)
    places = ((job, (*job.path, "nodes" if job.nodes else "name")) for job in jobs)
    alike = grouped((tuple(job.nodes or every), path) for job, path in places)
    for names, (path, *others) in alike.items():
        if len(names) < 2:
            continue
        also = tuple(Related("also", other) for other in others)
        if group_kind(fabric, names) is None:
            yield Fault(
                f"no cables connect {named(names)} with each other",
                path,
                "name nodes that are on one switch or at the ends of cables, or add a cable",
                related=also,
                nodes=names,
            )
            continue
        own = of_nodes(fabric, names)
        if connections(own, topology.rdma_halves).have_strangers and (
            missing := gap(names, own.pairs)
        ):
            along = TOPOLOGIES[RING].order(names, own.pairs)
            yield Fault(
                f"NCCL makes a ring of {named(names)}, and no cable joins {listed(missing, 'and')}",
                path,
                f"write 'nodes: [{', '.join(along)}]', the order of the cables"
                if along
                else "name a whole ring, or the nodes at the ends of one cable",
                related=also,
                nodes=names,
            )


@rule("SG283")
def launcher_in_a_command(jobs: Jobs) -> Faults:
    """The command of a job is what each rank runs, without what starts the ranks."""
    for job in jobs:
        program = job.command[0].rpartition("/")[2]
        if program in _LAUNCHERS or job.command[1:3] == ("-m", "torch.distributed.run"):
            yield Fault(
                f"'{program}' would start more ranks within each rank, which 'launcher' starts",
                (*job.path, "command"),
                "begin 'command' with the program that each rank runs",
            )


@rule("SG284", unless="SG281 SG240 SG241")
def stopped_group(jobs: Jobs, serving: Serving, nodes: Nodes) -> Faults:
    """A job stops groups of the site, and runs on all of their nodes."""
    for job in jobs:
        own = {*job.nodes} or {node.name for node in nodes}
        all_here = tuple(name for name, members in serving.items() if own & {*members})
        for index, name in enumerate(all_here if job.stops is None else job.stops):
            path = (*job.path, "stops", *(() if job.stops is None else (index,)))
            if name not in serving:
                known = [*filter(None, serving)]
                message, none = (
                    f"there is no group '{name}'",
                    "the site has none: write 'stops: true'",
                )
                yield unknown("group", name, path, known) if known else Fault(message, path, none)
            elif left := [each for each in serving[name] if each not in own]:
                yield Fault(
                    f"{name or 'the engine'} also serves on {named(left)}, where the job is not",
                    path,
                    "name all of its nodes in the job's 'nodes'",
                    nodes=tuple(left),
                )


@rule("SG285", Severity.WARNING)
def override_of_a_job(jobs: Jobs) -> Faults:
    """The environment of a job leaves alone what is derived from the cabling."""
    for job in jobs:
        for name in job.env:
            if name in _RANK or (name in ORIGINS and name.startswith("NCCL_")):
                yield to_remove(f"sparkgen sets {name} itself", (*job.path, "env", name))


@rule("SG286")
def file_of_a_job(jobs: Jobs, beside: ReadBeside) -> Faults:
    """The files of a job that lie next to the site file can be read."""
    for job in jobs:
        for file in job.files:
            source = beside(file.source) if file.source else Source()
            if source.fault or not (file.source or file.path):
                yield Fault(
                    source.fault or "the entry has neither 'source' nor 'path'",
                    (*job.path, "files", file.index),
                    source.help or "put it beside the site file, or write 'path:' and its place",
                )
