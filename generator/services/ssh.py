"""What SSH between the nodes needs: who they are by which names, and from where passwords count."""

from ipaddress import IPv4Network

from generator.site import Node, Site, Words

Peer = tuple[str, str, Words]


def peers(site: Site, node: Node) -> tuple[Peer, ...]:
    """Each other node: its name, its user, and the addresses and names of it that the node has."""
    return tuple(
        (other.name, other.user, _aliases(node, other)) for other in site.nodes if other is not node
    )


def _aliases(node: Node, other: Node) -> Words:
    own = [entry for entry in node.hosts if entry[1].partition(".")[0] == other.name]
    words = [word for address, name in own for word in (address, name)]
    return tuple(word for word in dict.fromkeys(words) if word != other.name)


def networks(node: Node) -> tuple[IPv4Network, ...]:
    """Where the node's people and the other nodes are."""
    management = [node.management.address.network] if node.management else []
    return tuple(dict.fromkeys([*management, *(i.address.network for i in node.interfaces)]))


def trusted(site: Site, node: Node) -> Words:
    """Addresses that are the other nodes', or of the fabric, where there is nobody else."""
    fabric = [str(interface.address.network) for interface in node.interfaces]
    others = [str(other.management.address.ip) for other in site.nodes if other.management]
    return tuple(dict.fromkeys([*fabric, *others]))
