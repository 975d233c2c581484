"""Rules about what `engine.env` tells NCCL, and the programs that share its interfaces."""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, ip_network

from generator.addressing import Fabric
from generator.declaration import DeclaredEngine, DeclaredNode, Topology
from generator.diagnostics import Severity, did_you_mean, listed
from generator.hardware import HALVES, PORTS, RJ45, Half
from generator.nccl_catalog import (
    LATEST,
    NEVER,
    REPLACED,
    Release,
    is_ours,
    is_patched,
    nearest,
    parameter,
)
from generator.rules.environment import RING_NCCL, version_tuple
from generator.rules.registry import Fault, rule

_DERIVED = "take it out: sparkgen derives it for each node"

# --- which names NCCL reads ---------------------------------------------------------------------


@rule("SG410")
def unknown_variable(engine: DeclaredEngine) -> Iterator[Fault]:
    """A variable of NCCL is one that the NCCL in the image reads.

    NCCL ignores a variable that it does not know, without a word.

    Source: the names that NCCL's own code reads (schemas/nccl-parameters.tsv).

    Bad:
        engine:
          nccl: 2.30.7
          env:
            NCCL_IB_TOS: 106

    Good:
        engine:
          nccl: 2.30.7
          env:
            NCCL_IB_TC: 106
    """
    if _is_covered(engine):
        yield from _unknown(engine, f"NCCL {engine.nccl} has no")


@rule("SG411", Severity.WARNING)
def variable_of_no_known_version(engine: DeclaredEngine) -> Iterator[Fault]:
    """A variable of NCCL is one that some NCCL is known to read.

    This is SG410 where the NCCL in the image is not said, patched, or newer than 2.30.7. A patched
    build has names of its own: there only what looks misspelt is told.

    Bad:
        engine:
          env:
            NCCL_IB_HCAS: =rocep1s0f0:1

    Good:
        engine:
          env:
            NCCL_DEBUG: INFO
    """
    if _is_covered(engine):
        return
    yield from _unknown(engine, f"no NCCL up to {_written(LATEST)} has the")
    for name in engine.env:
        known = parameter(name) if is_ours(name) else None
        if known and known.last < LATEST:
            yield _given_up(name, known.last)


@rule("SG412", unless="SG401")
def variable_of_another_version(engine: DeclaredEngine) -> Iterator[Fault]:
    """A variable of NCCL is one that the release in the image reads, not an earlier or later one.

    Source: the names that NCCL's own code reads (schemas/nccl-parameters.tsv).

    Bad:
        engine:
          nccl: 2.20.5
          env:
            NCCL_IB_ADDR_RANGE: 10.100.0.0/16

    Good:
        engine:
          nccl: 2.30.7
          env:
            NCCL_IB_ADDR_RANGE: 10.100.0.0/16
    """
    if engine.nccl is None or not _is_covered(engine):
        return
    release = version_tuple(engine.nccl)
    for name in engine.env:
        known = parameter(name) if is_ours(name) else None
        if known and release > known.last:
            yield _given_up(name, known.last)
        elif known and release < known.first:
            yield Fault(
                f"NCCL {engine.nccl} has no {name} yet: {_written(known.first)} is the first",
                _path(name),
                "take it out, or use an image with that NCCL",
                at_key=True,
            )


def _is_covered(engine: DeclaredEngine) -> bool:
    """Whether the catalog says which variables the image's NCCL reads."""
    return bool(engine.nccl) and not engine.nccl_patched and _release(engine) <= LATEST


def _release(engine: DeclaredEngine) -> Release:
    return version_tuple(engine.nccl or "")


def _unknown(engine: DeclaredEngine, which: str) -> Iterator[Fault]:
    for name in engine.env:
        if not is_ours(name) or parameter(name) or (engine.nccl_patched and is_patched(name)):
            continue
        message, near = f"{which} variable {name}", nearest(name)
        if name in NEVER:
            help_text = NEVER[name]
        elif is_patched(name):
            message = f"only patched builds of NCCL read {name}"
            help_text = "take it out, or write 'nccl: {version: VERSION, patched: true}'"
        elif near:
            help_text = f"did you mean '{near}'?"
        elif engine.nccl_patched:
            continue
        else:
            help_text = "take it out; NCCL's user guide lists its environment variables"
        yield Fault(message, _path(name), help_text, at_key=True)


def _given_up(name: str, last: Release) -> Fault:
    new = REPLACED.get(name)
    return Fault(
        f"NCCL reads {name} no more" + (f": {_written(last)} was the last" if last else ""),
        _path(name),
        f"write {new}, which took its place" if new else "take it out",
        at_key=True,
    )


def _written(release: Release) -> str:
    return ".".join(map(str, release))


def _path(name: str) -> tuple[str, ...]:
    return ("engine", "env", name)


# --- values -------------------------------------------------------------------------------------

# Bounds of whole numbers; -1 and -2 leave the choice to NCCL.
_RANGES = {
    "NCCL_CROSS_NIC": (0, 2),
    "NCCL_CUMEM_ENABLE": (-2, 1),
    "NCCL_CUMEM_HOST_ENABLE": (-1, 1),
    "NCCL_IB_DISABLE": (0, 1),
    "NCCL_IB_FIFO_TC": (-1, 255),
    "NCCL_IB_GID_INDEX": (-1, 255),
    "NCCL_IB_MERGE_NICS": (0, 1),
    "NCCL_IB_PCI_RELAXED_ORDERING": (0, 2),
    "NCCL_IB_QPS_PER_CONNECTION": (1, 128),
    "NCCL_IB_RETRY_CNT": (0, 7),
    "NCCL_IB_ROCE_VERSION_NUM": (1, 2),
    "NCCL_IB_SL": (-1, 15),
    "NCCL_IB_SPLIT_DATA_ON_QPS": (0, 1),
    "NCCL_IB_SUBNET_AWARE_ROUTING": (0, 1),
    "NCCL_IB_SUBNET_PREFIX_LEN": (1, 32),
    "NCCL_IB_TC": (-1, 255),
    "NCCL_IB_TIMEOUT": (0, 31),
    "NCCL_IB_USE_INLINE": (0, 1),
    "NCCL_IGNORE_CPU_AFFINITY": (0, 1),
    "NCCL_NVLS_ENABLE": (0, 2),
    "NCCL_OOB_NET_ENABLE": (0, 1),
    "NCCL_P2P_DISABLE": (0, 1),
    "NCCL_RUNTIME_CONNECT": (0, 1),
    "NCCL_SHM_DISABLE": (0, 1),
}
_FAMILIES = "AF_INET AF_INET6"
# Words, where a value is one of them, or a list.
_WORDS = {
    "NCCL_ALGO": "Tree Ring CollNet CollNetDirect CollNetChain NVLS NVLSTree PAT",
    "NCCL_DEBUG": "VERSION WARN INFO ABORT TRACE",
    "NCCL_DEBUG_SUBSYS": "INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC ALLOC_HOST CALL PROXY NVLS "
    "BOOTSTRAP REG PROFILE RAS DESTROY ALL",
    "NCCL_IB_ADDR_FAMILY": _FAMILIES,
    "NCCL_LAUNCH_MODE": "PARALLEL GROUP",
    "NCCL_P2P_LEVEL": "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS 0 1 2 3 4 5",
    "NCCL_PROTO": "LL LL128 Simple",
    "NCCL_SOCKET_FAMILY": _FAMILIES,
}
_LISTS = ("NCCL_ALGO", "NCCL_DEBUG_SUBSYS", "NCCL_PROTO")
# An algorithm or protocol may be for one function: `allreduce:ring`.
_FUNCTIONS = "AllGather AllReduce Broadcast Reduce ReduceScatter"
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_FLAG_WORDS = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_Said = tuple[str, str]


@rule("SG413", not_beside="SG410 SG411 SG412")
def value_of_a_variable(engine: DeclaredEngine) -> Iterator[Fault]:
    """A value of NCCL's is one that it can take.

    Others are cut, read as something else, or make it fail when nodes connect. Whole numbers are
    read with `strtoll` and base 0: `010` is 8, `4M` is 4, and `true` is 0.

    Source: NCCL, src/misc/param.cc, src/misc/utils.cc and src/transport/net_ib; a queue pair has 5
    bits
    for the timeout and 3 for retries.

    Bad:
        engine:
          env:
            NCCL_IB_TIMEOUT: 1000

    Good:
        engine:
          env:
            NCCL_IB_TIMEOUT: 22
    """
    for name, value in engine.env.items():
        said = _value_fault(name, value, engine)
        if said:
            yield Fault(said[0], _path(name), said[1])


def _value_fault(name: str, value: str, engine: DeclaredEngine) -> _Said | None:
    known = parameter(name) if is_ours(name) else None
    if name in _RANGES or (known and known.is_integer):
        return _integer_fault(name, value)
    if name in _WORDS:
        return _words_fault(name, value)
    if name in _INTERFACES:
        return _names_fault(name, value)
    if name == "NCCL_NET":
        return _network_fault(value, engine)
    if name == "NCCL_IB_ADDR_RANGE" and not _is_subnet(value):
        return f"'{name}: {value}' is no subnet", "write ADDRESS/LENGTH, such as 10.100.0.0/16"
    return None


def _integer_fault(name: str, value: str) -> _Said | None:
    low, high = _RANGES.get(name, (None, None))
    wanted = "write a whole number" if low is None else f"write a number from {low} to {high}"
    found = _INTEGER.match(value)
    read = _strtoll(found[0]) if found else 0
    octal = found and re.match(r"[+-]?0[0-9]", value)
    if not found or found[0] != value or octal:
        return f"{name} is a whole number, and NCCL reads '{value}' as {read}", (
            _number_help(value) or wanted
        )
    if low is not None and high is not None and not low <= read <= high:
        if name == "NCCL_IB_TIMEOUT":
            wanted += "; 20, the default, waits 4.096 us x 2^20, some 4 s"
        return f"'{name}: {value}' is out of range: {low} to {high}", wanted
    return None


def _strtoll(text: str) -> int:
    """A whole number as C reads it where the base is 0."""
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-").lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    return sign * int(digits, base)


def _number_help(value: str) -> str:
    if value.isdigit():
        return f"write {int(value)}"
    if value.lower() in _FLAG_WORDS:
        return f"write {_FLAG_WORDS[value.lower()]}"
    size = re.fullmatch(r"([1-9][0-9]*)([KMG])(i?B)?", value.upper().replace("IB", "iB"))
    return f"write {int(size[1]) * _SIZES[size[2]]}" if size else ""


def _words_fault(name: str, value: str) -> _Said | None:
    known = {word.upper(): word for word in _WORDS[name].split()}
    words = re.split(r"[\^,;:]+", value) if name in _LISTS else [value]
    functions = _FUNCTIONS.split() if name in _LISTS else []
    for word in filter(None, words):
        if word.upper() not in {*known, *map(str.upper, functions)}:
            guess = did_you_mean(word, known.values())
            choices = f"one of: {', '.join(known.values())}"
            return f"{name} has no '{word}'", f"{choices}; {guess}" if guess else choices
    return None


def _network_fault(value: str, engine: DeclaredEngine) -> _Said | None:
    """A network of NCCL's own, unless a plugin may bring another."""
    plugin = engine.env.get("NCCL_NET_PLUGIN", "none") != "none" or engine.nccl_patched
    if plugin or value.lower() in ("ib", "socket") or value.lower().startswith("ibext"):
        return None
    return f"NCCL has no network '{value}' of its own", (
        "write IB, which is RoCE as well, or name its plugin in NCCL_NET_PLUGIN"
    )


def _is_subnet(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


# --- interfaces and RoCE devices ----------------------------------------------------------------

_HCAS = "NCCL_IB_HCA"
_SOCKETS = (
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "TP_SOCKET_IFNAME",
    "UCX_NET_DEVICES",
    "OMPI_MCA_btl_tcp_if_include",
)
_INTERFACES = (_HCAS, *_SOCKETS)
_HARDWARE = tuple(Half(port, half) for port in PORTS for half in HALVES)
_OTHER_KIND = {half.interface: half.hca for half in _HARDWARE} | {
    half.hca: half.interface for half in _HARDWARE
}


def _names_fault(name: str, value: str) -> _Said | None:
    """The grammar: `^` (all but) and `=` (exactly) stand first, for the whole list, in NCCL's."""
    _, names = _marks(name, value)
    if "=" in names or "^" in names:
        if name.startswith("NCCL_"):
            first = value[: len(value) - len(value.lstrip("=^"))]
            meant = "^" * ("^" in first) + "=" * ("=" in first)
            return (
                f"'^' and then '=' stand once, before the whole list: '{value}'",
                f"write '{name}: {meant or '='}{re.sub('[=^]', '', names)}'",
            )
        return f"only NCCL knows '=' and '^', {name} does not", (
            f"write '{name}: {re.sub('[=^]', '', value)}'"
        )
    for item in names.split(",") if name == _HCAS else ():
        if item and not re.fullmatch(r"[^:]+(:1?(:[0-9]*){0,2})?", item):
            return f"'{item}' is no RoCE device, or has a port other than 1", (
                f"write '{item.split(':')[0]}:1'"
            )
    return None


def _marks(name: str, value: str) -> tuple[str, str]:
    """What stands before a list of names, and the names."""
    if name == "UCX_NET_DEVICES" and value.startswith("^"):
        return "^", value[1:]
    if not name.startswith("NCCL_"):
        return "", value
    found = re.match(r"\^?=?", value)
    marks = found[0] if found else ""
    return marks, value.removeprefix(marks)


def _listed_names(engine: DeclaredEngine, names: Iterable[str]) -> Iterator[tuple[str, str, bool]]:
    """Variable, name, and whether it is a prefix; lists of what not to take are left alone."""
    for variable in names:
        marks, items = _marks(variable, engine.env.get(variable, ""))
        if not marks.startswith("^"):
            prefix = variable.startswith("NCCL_") and not marks
            for item in filter(None, items.split(",")):
                yield variable, item.split(":")[0], prefix


class _Names:
    """The interfaces and RoCE devices of a node that have an address."""

    def __init__(self, node: DeclaredNode, fabric: Fabric, alone: bool) -> None:
        own = fabric.interfaces[node.name]
        management = node.management
        self.node = node.name
        self.hcas = {i.hca for i in own}
        self.fabric = {i.name for i in own}
        self.interfaces = self.fabric | ({management.interface} if management else set())
        self.interfaces |= {"lo"} if alone else set()
        self.addresses: list[IPv4Address] = [i.address.ip for i in own]
        self.addresses += [management.address.ip] if management else []

    def of(self, variable: str) -> set[str]:
        """What a variable may name."""
        if variable == "UCX_NET_DEVICES":
            return self.interfaces | self.hcas | {"all"}
        return self.hcas if variable == _HCAS else self.interfaces

    def has(self, variable: str, name: str, prefix: bool) -> bool:
        """Whether a name, or a subnet in place of one, is the node's."""
        if "/" in name:
            return _is_subnet(name) and any(
                address in ip_network(name, strict=False) for address in self.addresses
            )
        return bool(_matching(name, self.of(variable), prefix))


def _matching(name: str, known: Iterable[str], prefix: bool) -> list[str]:
    return sorted(k for k in known if k == name or (prefix and k.startswith(name)))


def _all_names(nodes: Sequence[DeclaredNode], fabric: Fabric) -> list[_Names]:
    return [_Names(node, fabric, len(nodes) == 1) for node in nodes]


def _hardware_names(variable: str) -> set[str]:
    """The names that DGX OS gives, cabled or not."""
    hcas = {half.hca for half in _HARDWARE}
    interfaces = {half.interface for half in _HARDWARE} | {RJ45}
    if variable == "UCX_NET_DEVICES":
        return hcas | interfaces
    return hcas if variable == _HCAS else interfaces


@rule("SG414", unless="SG307 SG601 SG602", not_beside="SG413")
def name_without_address(
    engine: DeclaredEngine, nodes: Sequence[DeclaredNode], fabric: Fabric
) -> Iterator[Fault]:
    """An interface or RoCE device that is named has an address on every node.

    Else NCCL finds none, or one with a link-local GID, and hangs or fails at `ibv_modify_qp`. DGX
    OS names devices after their place: rocep1s0f0, never mlx5_0, and enP2p1s0f0np0 with a capital
    P.

    Source: docs.nvidia.com/dgx/dgx-spark, "Spark clustering"; NCCL, src/transport/net_ib/init.cc.

    Bad:
        engine:
          env:
            NCCL_IB_HCA: mlx5_0

    Good:
        engine:
          env:
            NCCL_DEBUG: INFO
    """
    own = _all_names(nodes, fabric)
    said: set[str] = set()
    for variable, name, prefix in _listed_names(engine, _INTERFACES):
        lacking = [names.node for names in own if not names.has(variable, name, prefix)]
        if not lacking or variable in said:
            continue
        said.add(variable)
        known = _hardware_names(variable).union(*(names.of(variable) for names in own))
        yield _missing_name(variable, name, prefix, lacking, known, len(nodes))


def _missing_name(
    variable: str, name: str, prefix: bool, lacking: list[str], known: set[str], count: int
) -> Fault:
    who = _who(lacking, count)
    if "/" in name:
        return Fault(f"{who} an address in '{name}'", _path(variable), _DERIVED)
    if _matching(name, known, prefix):
        return Fault(
            f"{who} an address on '{name}'",
            _path(variable),
            f"name one that has, on every node, or {_DERIVED}",
        )
    if name in _OTHER_KIND:
        kind = "RoCE devices" if variable == _HCAS else "interfaces"
        return Fault(
            f"{variable} takes {kind}, and '{name}' is none",
            _path(variable),
            f"write {_OTHER_KIND[name]}, or {_DERIVED}",
        )
    lower = {word.lower(): word for word in known}
    if name.lower() in lower:
        right = lower[name.lower()]
        return Fault(
            f"there is no '{name}': upper and lower case matter",
            _path(variable),
            f"did you mean '{right}'?",
        )
    if re.fullmatch(r"mlx[45]_[0-9]+", name):
        devices = listed((half.hca for half in _HARDWARE), "and")
        return Fault(
            f"DGX OS has no '{name}'", _path(variable), f"its devices are {devices}; {_DERIVED}"
        )
    guess = did_you_mean(name, known)
    return Fault(
        f"{who} an address on '{name}' that the site file knows of",
        _path(variable),
        f"{guess} Or {_DERIVED}" if guess else _DERIVED,
    )


def _who(lacking: Sequence[str], count: int) -> str:
    """`spark1 and spark3 do not have`; many nodes are counted."""
    if len(lacking) == count > 1:
        return "no node has"
    shown = listed(lacking, "and")
    if len(lacking) > 3:
        shown = f"{lacking[0]} and {len(lacking) - 1} other nodes"
    return f"{shown} {'does' if len(lacking) == 1 else 'do'} not have"


@rule("SG415", unless="SG307 SG601 SG602", not_beside="SG413 SG414")
def name_that_is_a_prefix(
    engine: DeclaredEngine, nodes: Sequence[DeclaredNode], fabric: Fabric
) -> Iterator[Fault]:
    """A name for NCCL is exact, or the beginning of one name alone.

    Without a leading `=` NCCL takes every interface or device whose name begins like that.

    Source: NCCL, `matchIfList` (src/misc/utils.cc).

    Bad:
        engine:
          env:
            NCCL_IB_HCA: rocep1s0f

    Good:
        engine:
          env:
            NCCL_IB_HCA: =rocep1s0f0:1,roceP2p1s0f0:1
    """
    own = _all_names(nodes, fabric)
    for variable, name, prefix in _listed_names(engine, (_HCAS, "NCCL_SOCKET_IFNAME")):
        known = _hardware_names(variable).union(*(names.of(variable) for names in own))
        found = _matching(name, known, prefix)
        if len(found) > 1:
            yield Fault(
                f"without '=' NCCL takes '{name}' for a prefix of {listed(found, 'and')}",
                _path(variable),
                f"write '=' and whole names, or {_DERIVED}",
            )


@rule("SG416", not_beside="SG413")
def fabric_left_aside(engine: DeclaredEngine, fabric: Fabric) -> Iterator[Fault]:
    """Where there are cables, NCCL uses them.

    Kept off RoCE it takes sockets: about 2 GB/s in place of about 24 were measured. DGX OS ships an
    /etc/nccl.conf that does so; sparkgen's takes its place.

    Source: NCCL, src/transport/net_ib/init.cc (`NCCL_IB_DISABLE`) and src/plugin/net.cc
    (`NCCL_NET`).

    Bad:
        engine:
          env:
            NCCL_IB_DISABLE: 1

    Good:
        engine:
          env:
            NCCL_IB_DISABLE: 0
    """
    if not fabric.cables:
        return
    off = {"NCCL_IB_DISABLE": ("1", "0"), "NCCL_NET": ("socket", "IB")}
    for name, (value, right) in off.items():
        if engine.env.get(name, "").lower() == value:
            yield Fault(
                f"'{name}: {engine.env[name]}' keeps NCCL off the fabric, on slow sockets",
                _path(name),
                f"take it out, or write {right}",
            )


@rule("SG417", unless="SG307 SG601 SG602", not_beside="SG413 SG414 SG415")
def fabric_socket_on_a_ring(
    engine: DeclaredEngine, nodes: Sequence[DeclaredNode], fabric: Fabric, topology: Topology
) -> Iterator[Fault]:
    """On a ring, sockets take the management network.

    Each fabric interface of a ring reaches one peer, and bootstrap has to reach all of them.

    Source: NVIDIA, dgx-spark-playbooks, connect-three-sparks.

    Bad:
        topology:
          kind: ring
        engine:
          env:
            GLOO_SOCKET_IFNAME: enp1s0f0np0

    Good:
        topology:
          kind: ring
        engine:
          env:
            GLOO_SOCKET_IFNAME: enP7s7
    """
    if topology.kind != "ring":
        return
    on_fabric = set[str]().union(*(names.fabric for names in _all_names(nodes, fabric)))
    for variable, name, prefix in _listed_names(engine, _SOCKETS):
        if _matching(name, on_fabric, prefix):
            management = nodes[0].management
            right = management.interface if management else RJ45
            mark = "=" if variable.startswith("NCCL_") else ""
            yield Fault(
                f"on a ring '{name}' reaches one peer, and {variable} needs one that reaches all",
                _path(variable),
                f"write '{variable}: {mark}{right}', or {_DERIVED}",
            )


# --- settings that do no good -------------------------------------------------------------------

_GPU_DIRECT = re.compile(
    r"NCCL_(NET_GDR_\w+|GDRCOPY_\w+|GDR_FLUSH_DISABLE|DMABUF_ENABLE|IB_DATA_DIRECT)"
)
# From here on NCCL finds the GID itself.
_FINDS_GIDS = (2, 21)
_DEADLOCK, _FIXED = (2, 28, 9), (2, 29, 3)


@rule("SG418", Severity.WARNING, not_beside="SG410 SG411 SG412 SG413")
def gpu_direct(engine: DeclaredEngine) -> Iterator[Fault]:
    """Nothing is set for GPUDirect RDMA, which GB10 does not have.

    Neither nvidia-peermem nor dma-buf nor GDRCopy work: memory of the GPU can't be reached
    coherently by PCIe devices. NCCL logs "GPU Direct RDMA Disabled" and goes on, as it should.

    Source: NVIDIA, forums.developer.nvidia.com/t/348787.

    Bad:
        engine:
          env:
            NCCL_NET_GDR_LEVEL: 5

    Good:
        engine:
          env:
            NCCL_DEBUG: INFO
    """
    for name in engine.env:
        if _GPU_DIRECT.fullmatch(name):
            yield Fault(
                f"{name} has no effect: there is no GPUDirect RDMA on GB10",
                _path(name),
                "take it out",
                at_key=True,
            )


@rule("SG419", Severity.WARNING, not_beside="SG410 SG411 SG412 SG413")
def pinned_gid(engine: DeclaredEngine, topology: Topology) -> Iterator[Fault]:
    """The GID index is left to NCCL.

    The place of an address in a device's GID table differs between devices and nodes, and moves
    when netplan is applied again. From 2.21 on NCCL finds the right one by family and RoCE version.

    Source: NCCL, `ncclIbGetGidIndex` (src/transport/net_ib/connect.cc).

    Bad:
        engine:
          env:
            NCCL_IB_GID_INDEX: 3

    Good:
        engine:
          env:
            NCCL_IB_ADDR_RANGE: 10.100.0.0/16
    """
    value = engine.env.get("NCCL_IB_GID_INDEX", "-1")
    if value == "-1" or (engine.nccl and _release(engine) < _FINDS_GIDS):
        return
    yield Fault(
        f"a GID index of {value} is not the same address on every device, and moves",
        _path("NCCL_IB_GID_INDEX"),
        f"take it out; where one must be chosen, 'NCCL_IB_ADDR_RANGE: {topology.subnet_pool}' "
        "does it by address",
    )


@rule("SG420", Severity.WARNING, not_beside="SG413")
def unmerged_ports(engine: DeclaredEngine) -> Iterator[Fault]:
    """From NCCL 2.30.7 on, ports stay merged.

    The listener offers the GIDs of merged ports, and a peer picks by subnet. Unmerged, it offers
    one, which may be that of the port that leads to somebody else. Older forks for rings needed it.

    Source: NCCL, src/transport/net_ib/connect.cc.

    Bad:
        engine:
          nccl: 2.30.7
          env:
            NCCL_IB_MERGE_NICS: 0

    Good:
        engine:
          nccl: 2.30.7
          env:
            NCCL_IB_MERGE_NICS: 1
    """
    merged = engine.env.get("NCCL_IB_MERGE_NICS", "1") != "0"
    if engine.nccl and not merged and _release(engine) >= RING_NCCL:
        yield Fault(
            f"NCCL {engine.nccl} finds a peer's port best among merged ones",
            _path("NCCL_IB_MERGE_NICS"),
            "take it out: it was for builds before 2.30.7",
        )


@rule("SG421", Severity.WARNING, unless="SG401")
def version_that_deadlocks(engine: DeclaredEngine) -> Iterator[Fault]:
    """The NCCL in the image is none that can deadlock on AArch64.

    2.28.9 and 2.29.2 can; 2.29.3 is the first without the fault. A deadlock that is reported for
    2.30.7
    (issue 2334) is not told: no release is known to be without it, and a ring needs that one.

    Source: NVIDIA/nccl issue 2353.

    Bad:
        engine:
          nccl: 2.28.9

    Good:
        engine:
          nccl: 2.29.3
    """
    if engine.nccl and not engine.nccl_patched and _DEADLOCK <= _release(engine) < _FIXED:
        yield Fault(
            f"NCCL {engine.nccl} can deadlock on this CPU",
            ("engine", "nccl"),
            "use an image with NCCL 2.29.3 or newer",
        )
