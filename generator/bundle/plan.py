"""What a bundle contains: every file, its mode, how a change of it is applied, and who has it.

The path of a template is the path of its file. What is the same on every node of every site is not
a template but payload, which is copied.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from generator.activation import (
    HOSTS,
    KV_CACHE,
    LOGIN,
    NETPLAN,
    NOTHING,
    RESTART,
    ROUTES,
    SYSCTL,
    UNIT,
    Activation,
)
from generator.bundle.cable_sheet import cable_sheet
from generator.bundle.payload import is_copied, original
from generator.catalogs.engines import module_name, names
from generator.services import GATEWAY, PROXY, SERVICES
from generator.site import FILES, RAW_ENV, Member, Node, Part, Site
from generator.site.entry import Entry, OperatorEntry, everywhere, of_engine, of_job, several
from generator.site.places import is_context as is_context
from generator.site.places import is_recorded as is_recorded
from generator.site.switch_setup import SwitchSetup

if TYPE_CHECKING:
    from generator.site.job import Job


def _has_fabric(site: Site, node: Node) -> bool:
    return bool(node.interfaces)


def _is_cabled(site: Site) -> bool:
    return site.has_fabric


def _has_alternatives(site: Site) -> bool:
    return any(part.alternatives for part in site.parts)


def _has_routes(site: Site, node: Node) -> bool:
    return bool(node.routes)


def _has_unit(site: Part, node: Member) -> bool:
    return not site.engine.is_slurm_job


def _is_launched(site: Part, node: Member) -> bool:
    return not site.engine.is_in_pyxis


def _is_composed(site: Part, node: Member) -> bool:
    return _is_launched(site, node) and not site.engine.venv


def _is_native(site: Part, node: Member) -> bool:
    return bool(site.engine.venv)


def _if_any(test: Callable[[Part, Member], object]) -> Callable[[Site, Node], bool]:
    """Nodes with an engine that passes a test."""
    return lambda site, node: any(test(*part) for part in site.parts_of(node.name))


_launches = _if_any(_is_launched)
_starts_in_order = _if_any(lambda part, member: member.starts_after)
_reads_models = _if_any(lambda part, member: True)
_has_secrets = _if_any(lambda part, member: part.engine.secrets)


def _is_tested(site: Site, node: Node) -> bool:
    return any(part.is_tested for part in (site, *(part for part, _ in site.parts_of(node.name))))


def _is_network(site: Site, node: Node) -> bool:
    return not site.parts and several(site, node)


def _runs_nothing(site: Site, node: Node) -> bool:
    return bool(node.interfaces) and not site.parts_of(node.name)


def _has_checked_service(site: Site, node: Node) -> bool:
    return not {"firewall", "ssh", PROXY, GATEWAY}.isdisjoint(site.services)


def _is_of_group(site: Part, node: Member) -> bool:
    return bool(site.group)


def _has_raw_values(site: Part, node: Member) -> bool:
    return site.place(RAW_ENV) in node.container.env_files


def _has_kv_offload(site: Site, node: Node) -> bool:
    return bool(site.kv_offloads(node))


def _has_job(site: Part, node: Member) -> bool:
    return several(site, node) or site.engine.is_slurm_job


def _has_jobs(site: Site, node: Node) -> bool:
    return bool(site.jobs_of(node.name))


def _started_by(launcher: str) -> "Callable[[Job, Node], bool]":
    """The first nodes of the jobs of a launcher."""
    return lambda job, node: job.launcher == launcher and node.is_head


def _reachable(site: Site, node: Node) -> Hashable:
    subnets = (interface.address.network for interface in node.interfaces)
    return *subnets, *(str(route.to) for route in node.routes)


def _forwarded(site: Site, node: Node) -> Hashable:
    return *(interface.name for interface in node.interfaces), *node.forwards


def _nccl(site: Site, node: Node) -> Hashable:
    return tuple(node.nccl.items())


def _runs(engine: str) -> Callable[[Site, Node], bool]:
    """Nodes where launch.sh starts that engine."""
    return _if_any(lambda part, node: _is_launched(part, node) and part.engine.name == engine)


def _preflight() -> Iterator[Entry]:
    """The scripts that ask an engine about its settings; those of one in Python have its name."""
    yield Entry("opt/sparkgen/preflight/answers.py", NOTHING, wanted=_launches, payload=True)
    yield Entry("opt/sparkgen/preflight/ask.sh", NOTHING, 0o755, _launches, payload=True)
    yield Entry("opt/sparkgen/preflight/describe.py", NOTHING, wanted=_launches, payload=True)
    for engine in names():
        path = f"opt/sparkgen/preflight/ask_{module_name(engine)}.py"
        if is_copied(f"node/{path}"):
            yield Entry(path, NOTHING, wanted=_runs(engine), payload=True)


def _mounts(name: str) -> Callable[[Site, Node], bool]:
    """Nodes whose container mounts that script."""
    inside = f"/opt/sparkgen/{name}"
    return _if_any(lambda part, node: inside in [mount.inside for mount in node.container.mounts])


_OF_EVERY_SITE = (
    # netplan wants no other user to read it: it may contain passwords.
    Entry("etc/netplan/40-cx7.yaml", NETPLAN, 0o600, _has_fabric),
    Entry("etc/nccl.conf", RESTART, alike=_nccl),
    Entry("etc/profile.d/sparkgen.sh", LOGIN),
    of_engine("etc/sparkgen/container.env", RESTART),
    of_engine("etc/sparkgen/engine.env", RESTART),
    of_engine("etc/sparkgen/engine.raw.env", RESTART, wanted=_has_raw_values),
    Entry("etc/security/limits.d/90-sparkgen.conf", LOGIN, wanted=_runs_nothing, alike=everywhere),
    Entry("etc/sparkgen/hosts", HOSTS, wanted=several, alike=_reachable),
    Entry("etc/sparkgen/node.env", NOTHING),
    of_engine("etc/sparkgen/node.env", NOTHING, wanted=_is_of_group),
    of_job("etc/sparkgen/job.env"),
    of_job("etc/sparkgen/job.node.env", wanted=_has_fabric),
    Entry("etc/sparkgen/nodes.env", NOTHING, wanted=several, alike=everywhere),
    Entry("etc/sysctl.d/90-sparkgen.conf", SYSCTL, wanted=_has_fabric, alike=_forwarded),
    of_engine("etc/systemd/system/sparkgen-engine.service", UNIT, wanted=_has_unit),
    Entry("etc/systemd/system/sparkgen-kv-cache.service", KV_CACHE, wanted=_has_kv_offload),
    Entry("etc/systemd/system/sparkgen-routes.service", ROUTES, wanted=_has_routes),
    of_engine("opt/sparkgen/compose.yaml", RESTART, wanted=_is_composed),
    of_job("opt/sparkgen/command.sh"),
    of_engine("opt/sparkgen/engine.sh", RESTART, wanted=_is_native),
    Entry("opt/sparkgen/follow.sh", RESTART, 0o755, _mounts("follow.sh"), payload=True),
    Entry("opt/sparkgen/health.py", RESTART, 0o644, _mounts("health.py"), payload=True),
    Entry("opt/sparkgen/health.sh", RESTART, 0o755, _mounts("health.sh"), payload=True),
    of_engine("opt/sparkgen/hostfile", NOTHING, wanted=several, alike=everywhere),
    Entry("opt/sparkgen/hostfile", NOTHING, wanted=_is_network, alike=everywhere),
    of_job("opt/sparkgen/hostfile", wanted=_started_by("mpi")),
    of_job("opt/sparkgen/job.sbatch", 0o755, _started_by("slurm")),
    Entry("opt/sparkgen/job.sh", NOTHING, 0o755, _has_jobs, payload=True),
    Entry("opt/sparkgen/kv-cache.sh", KV_CACHE, 0o755, _has_kv_offload, payload=True),
    Entry("opt/sparkgen/launch.sh", NOTHING, 0o755, _launches, payload=True),
    Entry("opt/sparkgen/llama.sh", RESTART, 0o755, _mounts("llama.sh"), payload=True),
    Entry("opt/sparkgen/mpi.sh", RESTART, 0o755, _mounts("mpi.sh"), payload=True),
    Entry("opt/sparkgen/nccl-test.sh", NOTHING, 0o755, _is_tested, payload=True),
    of_engine("opt/sparkgen/options.yaml", RESTART, 0o644, _mounts("options.yaml")),
    Entry("opt/sparkgen/network.py", NOTHING, wanted=several, payload=True),
    Entry("opt/sparkgen/node.py", NOTHING, payload=True),
    *_preflight(),
    Entry("opt/sparkgen/rank.sh", RESTART, 0o755, _mounts("rank.sh"), payload=True),
    Entry("opt/sparkgen/ray.sh", RESTART, 0o755, _mounts("ray.sh"), payload=True),
    Entry("opt/sparkgen/running.py", NOTHING, payload=True),
    Entry("opt/sparkgen/secrets.sh", RESTART, 0o755, _has_secrets, payload=True),
    Entry("opt/sparkgen/serve.py", RESTART, 0o644, _mounts("serve.py"), payload=True),
    of_engine("opt/sparkgen/serve.sbatch", NOTHING, 0o755, _has_job, alike=everywhere),
    Entry("opt/sparkgen/session.sh", RESTART, 0o755, _mounts("session.sh"), payload=True),
    Entry("opt/sparkgen/services.py", NOTHING, wanted=_has_checked_service, payload=True),
    of_engine("opt/sparkgen/ssh_config", RESTART, 0o644, _mounts("ssh_config")),
    of_engine("opt/sparkgen/sshd_config", RESTART, 0o644, _mounts("sshd_config")),
    Entry("opt/sparkgen/wait-engines.sh", NOTHING, 0o755, _starts_in_order, payload=True),
    Entry("opt/sparkgen/wait-fabric.sh", NOTHING, 0o755, _has_fabric, payload=True),
    Entry("opt/sparkgen/weights.py", NOTHING, 0o755, _reads_models, payload=True),
    # These remain in the copied folder: only etc and opt are installed.
    Entry("conditions.sh", NOTHING, payload=True),
    Entry("install.sh", NOTHING, 0o755, payload=True),
    Entry("owners.py", NOTHING, 0o755, _has_fabric, payload=True),
    Entry("verify.py", NOTHING, 0o755, payload=True),
)

# For the operator's machine.
_OPERATOR_OF_EVERY_SITE = (
    OperatorEntry("operator/airgap.sh", 0o755, payload=True),
    OperatorEntry("operator/cables.txt", made=cable_sheet, wanted=_is_cabled),
    OperatorEntry("operator/deploy.sh", 0o755, payload=True),
    OperatorEntry("operator/logins.sh", payload=True),
    OperatorEntry("operator/reasons.sh", payload=True),
    OperatorEntry("operator/site.env"),
    OperatorEntry("operator/ssh_config"),
    OperatorEntry("operator/switch.sh", 0o755, payload=True, wanted=_has_alternatives),
    OperatorEntry("operator/tunnels.sh", 0o755, payload=True),
)

README = "README.md"
REFERENCE = "REFERENCE.md"
PAGE = "index.html"
CABLING = "cabling.svg"
MEMORY = "memory.svg"
MANIFEST = "MANIFEST.json"
CHECKSUMS = "SHA256SUMS"
# The build file of an image; a group's is in a folder of its own.
DOCKERFILE = "operator/image/Dockerfile"
IMAGE_FACTS = "operator/image/image.env"
BUILD_IMAGE = "operator/image/build.sh"
# The folder for the user's own files in a node's folder.
CARRIED = f"{FILES[1:]}/"
# How soon the kernel ends a program beside the engine: a drop-in for its unit.
OOM_SCORE = "node/etc/systemd/system/program.service.d/sparkgen.conf"
# What starts a job from the operator's machine, in a folder for each.
JOB_FACTS = "jobs/job.env"
START_JOB = "jobs/start.sh"


def group_pages(group: Site) -> dict[str, str]:
    """The runbook and the reference of one group, each with its template."""
    page = f"operator/groups/{group.group}"
    return {f"{page}.md": "readme/group.md", f"{page}.reference.md": "readme/group_reference.md"}


def memory_picture(part: Site) -> str:
    """The picture of its nodes' memory, beside its page."""
    return f"operator/groups/{part.group}.svg" if part.group else MEMORY


def node_entries(site: Site) -> list[Entry]:
    """The files of the nodes' folders, including those of the requested services."""
    own = (entry for service in site.services.values() for entry in service.ENTRIES)
    return sorted([*_OF_EVERY_SITE, *own], key=lambda entry: entry.path)


def switch_template(setup: SwitchSetup) -> str:
    """The template of a switch's setup."""
    return "switches/routeros.rsc" if setup.title else "switches/checklist.md"


def operator_entries(site: Site) -> list[OperatorEntry]:
    """The files for the operator's machine."""
    own = (entry for service in site.services.values() for entry in service.OPERATOR_ENTRIES)
    return [entry for entry in (*_OPERATOR_OF_EVERY_SITE, *own) if entry.is_wanted(site)]


@cache
def payload() -> frozenset[str]:
    """All files of the payload, such as `node/verify.py` and `operator/tunnels.sh`."""
    services = SERVICES.values()
    own = (*_OF_EVERY_SITE, *(entry for service in services for entry in service.ENTRIES))
    all_operators = (_OPERATOR_OF_EVERY_SITE, *(s.OPERATOR_ENTRIES for s in services))
    operators = (entry.path for entries in all_operators for entry in entries if entry.payload)
    nodes = (original(f"node/{entry.path}") for entry in own if entry.payload)
    return frozenset([BUILD_IMAGE, START_JOB, *nodes, *operators])


@cache
def activations() -> Mapping[str, Activation]:
    """All activations by their words in a manifest, in the order in which they are carried out."""
    of_services = (entry for service in SERVICES.values() for entry in service.ENTRIES)
    entries = (*_OF_EVERY_SITE, *of_services)
    former = (activation for service in SERVICES.values() for activation in service.FORMER)
    found = (*(entry.activation for entry in entries), *former)
    return {activation.text: activation for activation in found}
