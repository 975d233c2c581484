"""Keys that people bring along from Compose, netplan or a launcher, and why they are not needed."""

from collections.abc import Mapping

_FABRIC = "take it out: the fabric has no gateway, route or DNS, and sparkgen writes its netplan"
_GATEWAY = "the fabric has none; that of the network of people goes under 'management'"
_UNIT = "take it out: restarts have one owner, the systemd unit of the bundle"
_NETWORK = "take it out: containers are on the network of the host"
_PRIVILEGED = "take it out: the bundle gives containers what RDMA asks for, and no more"
_RANKS = "take it out: the order of 'nodes' gives the ranks, and the first one is the head"
_SCRIPT = "take it out: use 'args' for the engine's flags, and 'env' for variables"

# By key, in lower case and with '_' for '-': the rule that speaks, and what to write.
_KEYS: Mapping[str, tuple[str, str]] = {
    "privileged": ("SG713", _PRIVILEGED),
    **dict.fromkeys(("cap_add", "devices", "security_opt"), ("SG101", _PRIVILEGED)),
    **dict.fromkeys(("gateway4", "nameservers", "routes", "dhcp4"), ("SG101", _FABRIC)),
    "gateway": ("SG101", _GATEWAY),
    **dict.fromkeys(("restart", "restart_policy"), ("SG101", _UNIT)),
    **dict.fromkeys(("network", "network_mode", "networks"), ("SG101", _NETWORK)),
    **dict.fromkeys(("head", "master", "node_rank", "nnodes", "rank", "role"), ("SG101", _RANKS)),
    **dict.fromkeys(("command", "entrypoint"), ("SG101", _SCRIPT)),
}


def said(key: str) -> tuple[str, str] | None:
    """The rule and the help for a key that is known from elsewhere."""
    return _KEYS.get(key.lower().replace("-", "_"))
