"""The values that the runbook is rendered with, and the folders of its parts.

Below `templates/readme`, each topology, launcher, engine and service has a folder of its own. The
runbook takes the same part, such as `trouble.md.j2`, from each folder that has it.
"""

from collections.abc import Iterator
from math import ceil
from typing import Any

from generator.fit.assessment import held_share
from generator.fit.table import page
from generator.records import record
from generator.services import models
from generator.site import Node, Part, Site


@record
class Download:
    """A model's size in GB, and how many minutes it takes at 1 Gb/s."""

    gigabytes: int
    minutes: int


def runbook(site: Site) -> dict[str, Any]:
    """The values for the runbook's templates besides the site; groups have their own pages."""
    part, times, several = site.serving, site.times, len(site.nodes) > 1
    values = {
        "page": "site" if part else "groups" if site.groups else "network",
        "owners": owners(site),
        "address": site.address,
        "several": several,
        "every": every(site),
        "head_interfaces": " ".join(interface.name for interface in site.cabled.interfaces),
        "traffic_seconds": 10 + 10 * (2 if site.both_halves else 1),
        "start_minutes": times.load // 60,
        "stop_minutes": times.stop // 60,
    }
    if part is None:
        return values | {"shared": tuple(shared_memory(site))}
    return values | {
        "key": part.engine.key,
        "memory": page(part.memory),
        "download": download(part),
        "copies": models.copies(part, part.head) if part.model.downloads else (),
        # Described by their owners, who know which machines must reach them.
        "described_ports": ("dashboard", "ray", "rpc", "ssh"),
        # A dead rank is noticed, the head exits, and everything starts again.
        "restart_minutes": (times.step + times.restart + 60) // 60,
    }


def every(site: Site) -> str:
    """All nodes of a site or a group, in a sentence."""
    if len(site.nodes) > 1:
        return "every node of the group" if site.group else "every node"
    return f"`{site.head.name}`" if site.group else "the node"


@record
class MemoryShares:
    """A node with several engines: how much memory each takes, as text, and the total."""

    node: str
    engines: str
    together: float


def shared_memory(site: Site) -> Iterator[MemoryShares]:
    """The nodes that several engines share; of engines that take turns, the largest counts."""
    for node in site.nodes:
        slots = site.slots_of(node.name)
        if len(slots) > 1:
            together = sum(max(_held(part, node) for part in parts) for parts in slots)
            engines = (" or ".join(_taken(part, node) for part in parts) for parts in slots)
            yield MemoryShares(node.name, ", ".join(engines), round(together, 3))


def _held(part: Part, node: Node) -> float:
    engine = part.engine
    return round(held_share(engine.name, engine.memory_utilization, part.memory, node.name), 3)


def _taken(part: Part, node: Node) -> str:
    held = _held(part, node)
    more = " with its reserve" if held > part.engine.memory_utilization else ""
    return f"{part.group} ({held}{more})"


def owners(site: Site) -> tuple[str, ...]:
    """The template folders of the site's parts, in the order in which they appear in a section."""
    engine = site.serving.engine if site.serving else None
    return (
        f"topologies/{site.kind}",
        *((f"launchers/{engine.launcher}", f"engines/{engine.name}") if engine else ()),
        *(f"services/{name}" for name in site.services),
    )


def download(part: Part) -> Download | None:
    """The size of the files of the model and its draft model, None if not known."""
    if not part.memory or not part.memory.files_gb:
        return None
    gigabytes = ceil(part.memory.files_gb)
    return Download(gigabytes, ceil(gigabytes * 8 / 60))
