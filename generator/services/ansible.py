"""Deployment by an Ansible inventory and playbook, as an alternative to deploy.sh."""

from collections.abc import Mapping

from generator.records import record
from generator.site import Site
from generator.site.entry import OperatorEntry
from generator.site.service import Service


@record
class Ansible(Service):
    """The input of `ansible-playbook`; nodes need only what Ansible requires, which DGX OS has."""

    NAME = "ansible"
    OPERATOR_ENTRIES = (
        OperatorEntry("operator/ansible/inventory.yaml"),
        OperatorEntry("operator/ansible/playbook.yaml", payload=True),
    )

    @staticmethod
    def started(site: Site) -> Mapping[str, tuple[Site, ...]]:
        """The groups that are started on each node; of those that take turns, the active one."""
        return {
            node.name: tuple(
                part
                for part, _ in site.parts_of(node.name)
                if site.groups and part.is_active and not part.engine.is_slurm_job
            )
            for node in site.nodes
        }


SERVICE: type[Service] = Ansible
