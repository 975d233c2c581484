"""What the runbook of a site is printed with, and whose parts it is made of.

Below `templates/readme` each topology, launcher, engine and service has a folder of its own. The
runbook takes the same part, such as `trouble.md.j2`, out of each folder that has it.
"""

from math import ceil
from typing import Any

from generator.bundle.diagram.mermaid import readable_graph
from generator.fit.assessment import held_share
from generator.fit.table import page
from generator.origin import Origin
from generator.records import record
from generator.services import models
from generator.site import Site

_GIGABITS_A_SECOND = 1

# Ports whose owners say who must reach them.
_DESCRIBED_PORTS = ("dashboard", "ray", "rpc", "ssh")


@record
class Download:
    """A model's size in GB, and how many minutes it takes at 1 Gb/s."""

    ORIGIN = Origin("model engine nodes", "what each rank holds, generator/fit/")

    gigabytes: int
    minutes: int


def runbook(site: Site) -> dict[str, Any]:
    """What the templates of the runbook are given beside the site; groups have their own pages."""
    of_all = {"owners": owners(site), "graph": readable_graph(site)}
    if site.groups:
        return {**of_all, "held": held(site)}
    return {
        **of_all,
        "memory": page(site.memory),
        "download": download(site),
        "copies": models.copies(site, site.head) if site.model.downloads else (),
        "described_ports": _DESCRIBED_PORTS,
    }


def held(site: Site) -> dict[str, dict[str, float]]:
    """By node and group, the share of memory that each engine holds where there are several."""
    return {
        node.name: {
            part.group: round(
                held_share(
                    part.engine.name, part.engine.memory_utilization, part.memory, node.name
                ),
                3,
            )
            for part, _ in site.parts_of(node.name)
        }
        for node in site.nodes
        if len(site.slots_of(node.name)) > 1
    }


def owners(site: Site) -> tuple[str, ...]:
    """The folders of what the site is made of, in the order of their parts in a section."""
    engine = (f"launchers/{site.engine.launcher}", f"engines/{site.engine.name}")
    return (
        f"topologies/{site.kind}",
        *(() if site.groups else engine),
        *(f"services/{name}" for name in site.services),
    )


def download(site: Site) -> Download | None:
    """What the files of the model and its draft have, None if that is not known."""
    if not site.memory or not site.memory.files_gb:
        return None
    gigabytes = ceil(site.memory.files_gb)
    return Download(gigabytes, ceil(gigabytes * 8 / _GIGABITS_A_SECOND / 60))
