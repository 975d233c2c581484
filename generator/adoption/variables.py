"""The engine's variables: which a site file keeps, and what becomes of each of the others."""

import re
from collections.abc import Collection, Mapping, Sequence

from generator.adoption.cables import FoundCabling
from generator.adoption.command import Command
from generator.adoption.draft import Draft
from generator.adoption.found import LEFT_EMPTY, REMOVED, Ended, FoundVariable, Item, ItemEnd
from generator.adoption.text import is_open
from generator.catalogs.commands import version_variables
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog, versions
from generator.catalogs.nccl import is_ours
from generator.catalogs.vocabularies import VARIABLE
from generator.derive import environment
from generator.diagnostics import KeyPath
from generator.hardware import FABRIC_HALVES, HALVES, Half

_INTERFACES = re.compile(
    r"(.*_SOCKET_IFNAME|UCX_NET_DEVICES|MN_IF_NAME|OMPI_MCA_btl_tcp_if_include)"
)
_OWN_ADDRESS = re.compile(
    r"(MASTER_ADDR|MASTER_PORT|HOST_IP|NODE_IP|HEAD_IP|RAY_NODE_IP_ADDRESS|RAY_ADDRESS"
    r"|RAY_OVERRIDE_NODE_IP_ADDRESS|NODE_RANK|RANK|WORLD_SIZE|LOCAL_RANK|NNODES|LOCAL_IP)"
)
# Variables that the system sets in every container, and shells in every process.
_SYSTEM = re.compile(
    r"(PATH|HOME|HOSTNAME|TERM|PWD|SHLVL|OLDPWD|LANG|LC_\w+|DEBIAN_FRONTEND|CUDA_VERSION"
    r"|NVIDIA_\w+|SLURM_\w+|NV_\w+|NVARCH|GPG_KEY|NCCL_VERSION)"
)
_SECRET = re.compile(r"(?i)(^|_)(TOKEN|API_?KEY|KEY|SECRET|PASSWORD|PASSWD)$")
_HUB = ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TRANSFORMERS_CACHE")
_USUAL = {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_NET_PLUGIN": "none"}
_USUAL |= {"NCCL_IB_SUBNET_AWARE_ROUTING": "1"}
_DERIVED = "sparkgen derives it from the cables"
_ALONE = "one node needs no fabric"


def write(
    draft: Draft,
    site: Draft,
    cabling: FoundCabling,
    variables: Mapping[str, Sequence[FoundVariable]],
    head: Command | None,
) -> None:
    """Write variables that sparkgen would not set itself, or would set differently.

    What only some nodes have belongs to these nodes, in the site's draft.
    """
    secrets = _secrets(draft, head)
    order = [wired.node.name for wired in cabling.nodes]
    done = {word for one in draft.ended for word in one.item.words}
    kept: dict[str, dict[str, FoundVariable]] = {name: {} for name in order}
    for node in order:
        for variable in variables.get(node, ()):
            if variable.value in done:
                continue
            if end := _end(variable, cabling, secrets):
                draft.ended.append(end)
            else:
                kept[node][variable.name] = variable
    known = [own for name, own in kept.items() if variables.get(name)]
    numbers = {node["name"]: number for number, node in enumerate(site.data["nodes"])}
    for name in sorted({name for own in known for name in own}):
        is_shared = len({own[name].value.text if name in own else None for own in known}) == 1
        for node in order:
            if found := kept[node].get(name):
                path: KeyPath = ("nodes", numbers[node], "env", name)
                target, path = (draft, ("engine", "env", name)) if is_shared else (site, path)
                with target.ending(_item(found)):
                    target.put(path, str(found.value.text), found.value)


def _item(variable: FoundVariable) -> Item:
    return Item(variable.name, variable.value.text, (variable.value,))


def _end(variable: FoundVariable, cabling: FoundCabling, secrets: Collection[str]) -> Ended | None:
    """What becomes of a variable that the site file does not keep; None for all others."""
    name, text, item = variable.name, variable.value.text, _item(variable)
    if name in secrets and text:
        return Ended(item, ItemEnd.SITE, ("engine", "secrets"))
    if name in version_variables() or _SYSTEM.fullmatch(name):
        return Ended(item, ItemEnd.OTHER, why="the image or the system reads it")
    if name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") and text == "1":
        return Ended(item, ItemEnd.DEFAULT, why="nothing is downloaded while it serves")
    if is_ours(name) and variable.value.remark == LEFT_EMPTY:
        return Ended(item, ItemEnd.DEFAULT, why=f"{LEFT_EMPTY}: NCCL has a default for it")
    if text == REMOVED or _SECRET.search(name):
        why = "a key: write its name under 'engine.secrets' if the engine reads it"
        why = "the capture left out its value" if text == REMOVED else why
        return Ended(item, ItemEnd.LOST, why=why)
    if _OWN_ADDRESS.fullmatch(name) or name in _set_anyway():
        return Ended(item, ItemEnd.DEFAULT, why="sparkgen sets it for each node")
    if is_open(text):
        return Ended(item, ItemEnd.LOST, why="only the shell knows its value")
    if not _is_derived(name, text, cabling):
        return None
    if cabling.is_open:
        return Ended(item, ItemEnd.LOST, why=f"{_DERIVED}, which nothing states")
    return Ended(item, ItemEnd.DEFAULT, why=_ALONE if cabling.is_alone else _DERIVED)


def unread(item: Item) -> Ended:
    """The end of a variable that no engine of the site gets."""
    name = item.what
    newest = (catalog(engine, versions(engine)[-1]) for engine in ENGINE_TRAITS)
    known = [one for one in newest if one and one.prefix and name.startswith(one.prefix)]
    why = "'engine.env' holds variables of engines that sparkgen does not set itself"
    if _INTERFACES.fullmatch(name) or name in ("NCCL_IB_HCA", *_USUAL, *dict(environment.ORIGINS)):
        why = _DERIVED
    elif _OWN_ADDRESS.fullmatch(name) or name in _set_anyway():
        why = "sparkgen sets it for each node"
    elif _SECRET.search(name):
        why = "a key: see 'engine.secrets'"
    elif is_open(item.value):
        why = "only the shell knows its value"
    elif known and not any(name in one.variables for one in known):
        why = "the newest release does not read it: it may be the script's own"
    return Ended(item, ItemEnd.LOST, why=why)


def _set_anyway() -> set[str]:
    """The variables that sparkgen sets, whatever the site says."""
    of_engines = (
        name
        for traits in ENGINE_TRAITS.values()
        for name in (*traits.caches, traits.address_variable, *traits.replaced_variables)
    )
    return {VARIABLE, *environment.CACHES, *_HUB, *of_engines} - {""}


def _is_derived(name: str, text: str, cabling: FoundCabling) -> bool:
    """Whether a value is the one that follows from the cables."""
    if _USUAL.get(name) == text:
        return True
    if _INTERFACES.fullmatch(name) and _names_interfaces(text, cabling):
        return True
    if name == "NCCL_IB_HCA":
        every = {Half(p, h).hca for p in _cabled(cabling) for h in HALVES}
        return _devices_in(text) == every or is_by_half(text, cabling) or cabling.is_alone
    if cabling.is_alone and name == "NCCL_IB_DISABLE":
        return text == "1"
    more = ("NCCL_NET_PLUGIN", "NCCL_IB_SUBNET_AWARE_ROUTING")
    return cabling.is_alone and (name in more or name in dict(environment.ORIGINS.items()))


def _names_interfaces(text: str, cabling: FoundCabling) -> bool:
    """Whether a value names existing interfaces; the first of them counts."""
    parts = [part for part in text.lstrip("=").split(",") if part]
    cabled = {Half(p, h).interface for w in cabling.nodes for p, h in w.halves}
    cabled |= {Half(p, 0).interface for (_, p), _ in cabling.cables} if not cabled else set()
    others = {i.name for w in cabling.nodes for i in w.node.interfaces} - {*FABRIC_HALVES}
    known = cabled | others | {"enP7s7"} | {FABRIC_HALVES[name].hca for name in cabled}
    return bool(parts) and all(part.partition(":")[0] in known for part in parts)


def is_by_half(text: str, cabling: FoundCabling) -> bool:
    """Whether a value names the first half of each cabled port, and no other."""
    return _devices_in(text) == {Half(p, 0).hca for p in _cabled(cabling)}


def _devices_in(text: str) -> set[str]:
    return {part.partition(":")[0] for part in text.lstrip("=").split(",") if part}


def _cabled(cabling: FoundCabling) -> set[int]:
    return {p for w in cabling.nodes for p in w.ports} or {p for (_, p), _ in cabling.cables}


def _secrets(draft: Draft, command: Command | None) -> set[str]:
    """Write the names of keys; the runbook says where their values belong."""
    if command is None:
        return set()
    known = {"HF_TOKEN", "RAY_AUTH_TOKEN", ENGINE_TRAITS[command.engine].api_key or ""}
    listed = list(draft.get("engine", "secrets") or [])
    for variable in command.container.env:
        if variable.name in known and variable.value.text and variable.name not in listed:
            listed.append(variable.name)
            draft.origins["engine", "secrets"] = variable.value
    if listed:
        draft.put(("engine", "secrets"), listed)
    return {*listed}
