"""A job on its nodes, derived from the network that these nodes form."""

from collections.abc import Iterator, Mapping

from generator.derive import environment, files
from generator.derive.container import CAPABILITIES, SECURITY_OPTIONS, SHM_GIB, ULIMITS
from generator.jobs import LAUNCHERS
from generator.records import values
from generator.site import Mount, Node, Site, Variables, Words
from generator.site.job import FIRST_PORT, Job
from generator.sitefile.beside import Source
from generator.sitefile.declaration import DeclaredJob


def job(
    declared: DeclaredJob,
    network: Site,
    site: Site,
    sources: Mapping[str, Source],
    pins: Mapping[str, str],
) -> Job:
    """The job; `network` has its nodes alone, and `site` the engines that it may stop."""
    launcher, port = LAUNCHERS[declared.launcher], FIRST_PORT + declared.index
    nodes, command = network.nodes, declared.command
    lead = tuple(launcher.lead(network, declared.name))
    mounts = tuple(mount for mount in files.mounts(declared.files, network.head.name))
    return Job(
        **values(network),
        job=declared.name,
        launcher=declared.launcher,
        port=port,
        image=pins.get(declared.image, declared.image),
        venv=declared.venv,
        directory=declared.directory,
        rank={n.name: tuple(launcher.rank(network, n, port, command)) for n in nodes},
        lead=lead,
        options=tuple(_options(network, mounts)) if declared.image else (),
        environment={n.name: _environment(declared, n, network, port, bool(lead)) for n in nodes},
        mounts=mounts,
        carried=files.carried(declared.files, sources, network.head.name),
        stopped={node.name: tuple(_stopped(declared, site, node)) for node in nodes},
    )


def _environment(
    declared: DeclaredJob, node: Node, network: Site, port: int, is_led: bool
) -> tuple[Variables, ...]:
    """The network's variables; where no torchrun does, PyTorch's too; then the job's own."""
    ranks = {
        "RANK": str(node.rank),
        "WORLD_SIZE": str(len(network.nodes)),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": str(network.head.control.address),
        "MASTER_PORT": str(port),
    }
    own = {name: value for name, value in ranks.items() if is_led and name not in node.login}
    groups = [
        Variables("NCCL", node.nccl),
        Variables(environment.CONTROL_PLANE, node.login),
        Variables("the rank, as PyTorch reads it", own),
    ]
    return environment.with_overrides([g for g in groups if g.values], declared.env)


def _options(network: Site, mounts: tuple[Mount, ...]) -> Iterator[Words]:
    """Docker's options: those of an engine's container."""
    yield ("--shm-size", f"{SHM_GIB}g")
    for capability in CAPABILITIES:
        yield ("--cap-add", capability)
    for option in SECURITY_OPTIONS:
        yield ("--security-opt", option)
    for name, limit in ULIMITS.items():
        yield ("--ulimit", f"{name}={limit}:{limit}")
    if network.has_fabric:
        yield ("--device", "/dev/infiniband")
    for mount in mounts:
        flags = ",readonly" if mount.read_only else ""
        yield ("--mount", f"type=bind,source={mount.path},target={mount.inside}{flags}")


def _stopped(declared: DeclaredJob, site: Site, node: Node) -> Iterator[str]:
    for part, _ in site.parts_of(node.name):
        if not part.engine.is_slurm_job and (
            declared.stops is None or part.group in declared.stops
        ):
            yield f"{part.unit}.service"
