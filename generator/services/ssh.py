"""SSH between the nodes: names, keys, and the networks from which passwords are accepted."""

from ipaddress import IPv4Network

from generator.activation import NOTHING, Activation, Scope
from generator.records import record
from generator.site import Node, Site, Words
from generator.site.entry import Entry, several
from generator.site.service import Service

_FAIL2BAN = "systemctl restart fail2ban"
_RELOAD = Activation(
    "reload sshd; restart fail2ban",
    Scope.SERVICE,
    step=_FAIL2BAN,
    first=_FAIL2BAN,
    gone=_FAIL2BAN,
    unit="fail2ban",
)

SshPeer = tuple[str, str, Words]


def peers(site: Site, node: Node) -> tuple[SshPeer, ...]:
    """Each other node: its name, its user, and its addresses and names that the node can reach."""
    return tuple(
        (other.name, other.user, _aliases(node, other)) for other in site.nodes if other is not node
    )


def _aliases(node: Node, other: Node) -> Words:
    own = [entry for entry in node.hosts if entry[1].partition(".")[0] == other.name]
    words = [word for address, name in own for word in (address, name)]
    return tuple(word for word in dict.fromkeys(words) if word != other.name)


def networks(node: Node) -> tuple[IPv4Network, ...]:
    """The networks of the node's users and of the other nodes."""
    management = [node.management.address.network] if node.management else []
    return tuple(dict.fromkeys([*management, *(i.address.network for i in node.interfaces)]))


def trusted(site: Site, node: Node) -> Words:
    """The addresses of the other nodes, or of the fabric, where nobody else is."""
    fabric = [str(interface.address.network) for interface in node.interfaces]
    others = [str(other.management.address.ip) for other in site.nodes if other.management]
    return tuple(dict.fromkeys([*fabric, *others]))


def _values(site: Site, node: Node) -> dict[str, object]:
    return {"peers": peers(site, node), "networks": networks(node), "trusted": trusted(site, node)}


@record
class Ssh(Service):
    """SSH between the nodes, and its hardening."""

    NAME = "ssh"
    PACKAGES = ("fail2ban",)
    ENTRIES = (
        Entry("etc/fail2ban/jail.d/sparkgen.conf", _RELOAD, values=_values),
        Entry("etc/ssh/ssh_config.d/40-sparkgen.conf", NOTHING, wanted=several, values=_values),
        Entry("etc/ssh/sshd_config.d/40-sparkgen.conf", _RELOAD, values=_values),
        Entry(
            "opt/sparkgen/ssh-keys.sh",
            NOTHING,
            0o755,
            lambda site, node: node.is_head and several(site, node),
            payload=True,
        ),
    )


SERVICE: type[Service] = Ssh
