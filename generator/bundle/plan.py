"""What a bundle contains: every file, its mode, how a change of it is applied, and who has it.

The path of a template is the path of its file. What is the same on every node of every site is not
a template but payload, which is copied.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

from generator import activation
from generator.activation import Activation
from generator.bundle.cable_sheet import cable_sheet
from generator.bundle.payload import is_copied, original
from generator.catalogs.engines import module_name, names
from generator.resources import rows
from generator.services import GATEWAY, PROXY, SERVICES
from generator.site import FILES, RAW_ENV, Member, Node, Part, Site
from generator.site.entry import Entry, OperatorEntry, several
from generator.site.places import is_context as is_context
from generator.site.places import is_recorded as is_recorded
from generator.site.switch_setup import SwitchSetup


def _if_any(test: Callable[[Part, Member], object]) -> Callable[[Site, Node], bool]:
    """Nodes with an engine that passes a test."""
    return lambda site, node: any(test(*part) for part in site.parts_of(node.name))


def _is_launched(part: Part, node: Member) -> bool:
    return not part.engine.is_in_pyxis


def _reachable(site: Site, node: Node) -> Hashable:
    subnets = (interface.address.network for interface in node.interfaces)
    return *subnets, *(str(route.to) for route in node.routes)


_CHECKED = {"firewall", "ssh", PROXY, GATEWAY}
# Which sites and nodes have a file, which parts and members, or which jobs and nodes.
_WANTED: Mapping[str, Callable[[Any, Any], bool]] = {
    "any engine": _if_any(lambda part, node: True),
    "cables": lambda site, node: bool(node.interfaces),
    "checked service": lambda site, node: not _CHECKED.isdisjoint(site.services),
    "container": lambda part, node: _is_launched(part, node) and not part.engine.venv,
    "first of mpi": lambda job, node: job.launcher == "mpi" and node.is_head,
    "first of slurm": lambda job, node: job.launcher == "slurm" and node.is_head,
    "group": lambda part, node: bool(part.group),
    "jobs": lambda site, node: bool(site.jobs_of(node.name)),
    "kv offload": lambda site, node: bool(site.kv_offloads(node)),
    "launched": _if_any(_is_launched),
    # All ranks have the same image.
    "launched head": _if_any(lambda part, node: _is_launched(part, node) and node.is_head),
    "nccl test": lambda site, node: (
        site.is_tested or any(part.is_tested for part, _ in site.parts_of(node.name))
    ),
    "no engine": lambda site, node: bool(node.interfaces) and not site.parts_of(node.name),
    "no engine of several": lambda site, node: not site.parts and several(site, node),
    "not first": _if_any(lambda part, node: node.starts_after),
    "raw values": lambda part, node: part.place(RAW_ENV) in node.container.env_files,
    "routes": lambda site, node: bool(node.routes),
    "secrets": _if_any(lambda part, node: part.engine.secrets),
    "several": several,
    "slurm or several": lambda part, node: several(part, node) or part.engine.is_slurm_job,
    "unit": lambda part, node: not part.engine.is_slurm_job,
    "venv": lambda part, node: bool(part.engine.venv),
}
_ALIKE: Mapping[str, Callable[[Site, Node], Hashable]] = {
    "forwarded": lambda site, node: (*(i.name for i in node.interfaces), *node.forwards),
    "nccl": lambda site, node: tuple(node.nccl.items()),
    "reachable": _reachable,
    "site": lambda site, node: None,
}


def _wanted(word: str, path: str) -> Callable[[Any, Any], bool] | None:
    """What decides who has a file."""
    if word == "mounted":
        inside = f"/{path}"
        return _if_any(lambda part, node: inside in [m.inside for m in node.container.mounts])
    return None if word == "-" else _WANTED[word]


def _runs(engine: str) -> Callable[[Site, Node], bool]:
    """Nodes where launch.sh starts that engine."""
    return _if_any(lambda part, node: _is_launched(part, node) and part.engine.name == engine)


_OF_EVERY_SITE = (
    *(
        Entry(
            path,
            getattr(activation, applied),
            int(mode, base=8),
            _wanted(wanted, path),
            _ALIKE.get(alike),
            payload=is_copied(f"node/{path}"),
            of_engine=each == "engine",
            of_job=each == "job",
        )
        for path, mode, applied, each, wanted, alike in rows("node-files")
    ),
    # What asks an engine in Python about its settings.
    *(
        Entry(path, activation.NOTHING, wanted=_runs(engine), payload=True)
        for engine in names()
        for path in [f"opt/sparkgen/preflight/ask_{module_name(engine)}.py"]
        if is_copied(f"node/{path}")
    ),
)

# For the operator's machine.
_OPERATOR_OF_EVERY_SITE = (
    OperatorEntry("operator/airgap.sh", 0o755, payload=True),
    OperatorEntry("operator/cables.txt", made=cable_sheet, wanted=lambda site: site.has_fabric),
    OperatorEntry("operator/deploy.sh", 0o755, payload=True),
    OperatorEntry("operator/logins.sh", payload=True),
    OperatorEntry("operator/reasons.sh", payload=True),
    OperatorEntry("operator/site.env"),
    OperatorEntry("operator/ssh_config"),
    OperatorEntry(
        "operator/switch.sh",
        0o755,
        payload=True,
        wanted=lambda site: any(part.alternatives for part in site.parts),
    ),
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
    former = (one for service in SERVICES.values() for one in service.FORMER)
    return {one.text: one for one in (*(entry.activation for entry in entries), *former)}
