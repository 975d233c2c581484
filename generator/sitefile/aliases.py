"""Words that people bring along from Compose, netplan, engines or launchers.

Some mean what the site format calls otherwise; others are for what nobody has to say here.
"""

from collections.abc import Collection, Iterable, Mapping

from generator.records import record, replace


@record
class OtherWord:
    """A key that is known from elsewhere: the rule that speaks of it, and what to write.

    `is_needless` says that the site is fine without it.
    """

    rule: str
    help: str
    is_needless: bool = True


_FABRIC = OtherWord(
    "SG101",
    "take it out: the fabric has no gateway, route or DNS, and sparkgen writes its netplan",
)
_GATEWAY = OtherWord(
    "SG101", "the fabric has none; that of the network of people goes under 'management'", False
)
_UNIT = OtherWord("SG101", "take it out: restarts have one owner, the systemd unit of the bundle")
_NETWORK = OtherWord("SG101", "take it out: containers are on the network of the host")
_PRIVILEGED = OtherWord(
    "SG713", "take it out: the bundle gives containers what RDMA asks for, and no more"
)
_RANKS = OtherWord(
    "SG101", "take it out: the order of 'nodes' gives the ranks, and the first one is the head"
)
_GUARD_ORDER = OtherWord("SG101", "write 'guard: {order: [GROUP, ...]}' under 'services'", False)
_SCRIPT = OtherWord(
    "SG101", "take it out: use 'args' for the engine's flags, and 'env' for variables"
)

# By key, in lower case and with '_' for '-'.
_KEYS: Mapping[str, OtherWord] = {
    "privileged": _PRIVILEGED,
    **dict.fromkeys(("cap_add", "devices", "security_opt"), replace(_PRIVILEGED, rule="SG101")),
    **dict.fromkeys(("gateway4", "nameservers", "routes", "dhcp4"), _FABRIC),
    "gateway": _GATEWAY,
    **dict.fromkeys(("restart", "restart_policy"), _UNIT),
    **dict.fromkeys(("network", "network_mode", "networks"), _NETWORK),
    **dict.fromkeys(("head", "master", "node_rank", "nnodes", "rank", "role"), _RANKS),
    **dict.fromkeys(("command", "entrypoint"), _SCRIPT),
    "guard_order": _GUARD_ORDER,
}


# By what the site format calls it, in the same section.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "args": ("arguments", "extra_args", "flags", "options"),
    "cabling": ("cables", "connections", "links"),
    "endpoints": ("between", "ends", "from", "to"),
    "env": ("environment", "environment_variables", "envs"),
    "image": ("container", "container_image", "docker_image"),
    "kind": ("type",),
    "name": ("host_name", "hostname", "id", "node"),
    "nodes": ("hosts", "machines", "members"),
    "subnet_pool": ("cidr", "network_pool", "pool", "subnet"),
    "tensor": ("tensor_parallel", "tensor_parallel_size", "tp", "tp_size"),
    "pipeline": ("pipeline_parallel", "pipeline_parallel_size", "pp", "pp_size"),
    "data": ("data_parallel", "data_parallel_size", "dp", "dp_size"),
    "context_length": ("context", "ctx_size", "max_context", "max_model_len"),
    "max_sequences": ("concurrency", "max_num_seqs", "max_seqs"),
}
# In another section, and how it is written there.
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "management: {address: ADDRESS/LENGTH}": ("address", "ip", "ip_address", "ipv4"),
    "parallel: {tensor: N}": _NAMES["tensor"],
    "parallel: {pipeline: N}": _NAMES["pipeline"],
    "parallel: {data: N}": _NAMES["data"],
    "context_length: N' under 'model": _NAMES["context_length"],
    "max_sequences: N' under 'model": _NAMES["max_sequences"],
}


def meant(word: str, known: Collection[str]) -> str:
    """The key among those that are known which has another name elsewhere, or nothing."""
    plain = word.lower().replace("-", "_")
    names = (name for name in known if plain in _NAMES.get(name, ()))
    return next(names, "") or choice(word, known, {})


def choice(word: str, known: Iterable[str], also: Mapping[str, Collection[str]]) -> str:
    """The choice that is called so, in whatever case, or `also`; or nothing."""
    return next((name for name in known if word.lower() in (name, *also.get(name, ()))), "")


def elsewhere(key: str) -> str:
    """How to write what has its place in another section, or nothing."""
    plain = key.lower().replace("-", "_")
    found = next((text for text, keys in _ELSEWHERE.items() if plain in keys), "")
    return f"write '{found}'" if found else ""


def said(key: str) -> OtherWord | None:
    """What is to be said of a key that is known from elsewhere."""
    return _KEYS.get(key.lower().replace("-", "_"))
