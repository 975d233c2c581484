"""The roll-out as an Ansible inventory and playbook, beside deploy.sh."""

from generator.records import record
from generator.site.entry import OperatorEntry
from generator.site.service import Service


@record
class Ansible(Service):
    """What `ansible-playbook` is given; nodes need what Ansible itself does, which DGX OS has."""

    NAME = "ansible"
    KNOWS_GROUPS = False
    OPERATOR_ENTRIES = (
        OperatorEntry("operator/ansible/inventory.yaml"),
        OperatorEntry("operator/ansible/playbook.yaml", payload=True),
    )
