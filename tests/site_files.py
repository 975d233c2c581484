"""Hypothesis strategies for site files: valid ones of every kind, and valid ones that were damaged.

A valid site may have warnings, but no errors. Each network has its own first octet, so that no two
overlap by chance.
"""

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, lru_cache
from ipaddress import IPv4Interface, IPv4Network
from random import Random
from typing import Any, NamedTuple

import yaml
from hypothesis import strategies as st
from test_hostile import NASTY, everywhere

from generator import catalogs
from generator.models.architecture import known_shape
from generator.pipeline import Reading, read_site
from generator.sitefile.beside import Source, SourceFile, nothing_beside

SiteFile = dict[str, Any]
Draw = st.DrawFn

KINDS = ("single", "direct", "ring", "switch")
FIRST_HOST = 11
_SHORTEST_CONTEXT = 64

# 10 belongs to the default pool, 127 to the loopback interface.
_OCTETS = tuple(octet for octet in range(1, 224) if octet not in (10, 127))
_PORTS = ("p0", "p1")
# Names that YAML could misread, the longest name, and one that looks like the name of a port half.
_NAMES = ("0", "1e3", "0x1f", "no", "null", "true", "spark", "spark-p0-h0", "x" * 63)
# Not all of Unicode, because building that table takes seconds.
_LETTERS = st.characters(codec="ascii")
_WORD = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,20}", fullmatch=True, alphabet=_LETTERS)
_NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,12}", fullmatch=True, alphabet=_LETTERS)
_HOST_NAME = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True, alphabet=_LETTERS)
_NODE_NAME = st.sampled_from(_NAMES) | _HOST_NAME
_PATH = st.from_regex(
    r"(/[A-Za-z0-9_@+][A-Za-z0-9._@+-]{0,9}){1,4}", fullmatch=True, alphabet=_LETTERS
)
_USER = st.from_regex(r"[a-z_][a-z0-9_-]{0,10}", fullmatch=True, alphabet=_LETTERS)
_ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)
_PRINTABLE = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=60)
_UNQUOTED = st.text(
    "".join(sorted(set(string.printable) - set("\"'$\\#`" + string.whitespace))),
    min_size=1,
    max_size=20,
)


def _mapping(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with a subset of these keys."""
    return st.fixed_dictionaries({}, optional=optional)


# Those that every site may enable: qos needs a switch.
_SERVICES = ["web_ui", "monitoring", "firewall", "ssh", "models", "guard", "ansible"]

# Memory is the same on all nodes.
_EXTRAS = _mapping(
    description=_PRINTABLE,
    user=_USER,
    defaults=_mapping(
        user=_USER,
        memory_gb=st.sampled_from([64, 128]),
        visible_gib=st.floats(32, 128),
        management=_mapping(interface=st.just("enP7s7")),
    ),
    services=st.dictionaries(st.sampled_from(_SERVICES), st.booleans()),
)
_LABEL = _ASCII.filter(bool)
_CABLE_SETTINGS = st.one_of(
    _mapping(kind=st.just("dac"), length_m=st.floats(0.1, 5), label=_LABEL),
    _mapping(kind=st.just("aoc"), length_m=st.floats(0.1, 100), label=_LABEL),
)
_MODEL_SETTINGS = _mapping(
    served_name=_WORD,
    aliases=st.lists(_WORD, min_size=1, max_size=3),
    revision=_WORD,
    max_sequences=st.integers(1, 1000),
    kv_cache_dtype=st.sampled_from(["auto", "fp8", "fp8_e4m3"]),
    cache=_PATH,
)
_DIGEST = "@sha256:" + "0123456789abcdef" * 4
_OWN_IMAGES = ["localhost:5000/a__b/c:_-.", "own__b--c.d", f"vllm{_DIGEST}", "vllm"]
_IMAGE = st.sampled_from(["vllm/vllm-openai:v0.33.0", *_OWN_IMAGES])
_NCCL = st.sampled_from(["2.30.7", "2.31.0", {"version": "2.28.9", "patched": True}])
# Variables that sparkgen never sets itself, with every kind of value.
_ENVIRONMENT: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.from_regex(r"X_[A-Za-z0-9_]{0,20}", fullmatch=True, alphabet=_LETTERS)
    | st.sampled_from(["http_proxy", "_"]),
    st.sampled_from(["0755", "no", "=", "~", "22:22", "a:True", "{{x}}", "%n", "-1"])
    | _UNQUOTED
    | st.integers(-(10**9), 10**9)
    | st.booleans(),
    max_size=3,
) | _mapping(NCCL_DEBUG=st.sampled_from(["INFO", "WARN"]), NCCL_IB_TC=st.integers(0, 255))
# Text that no engine reads as the name of a file, which would have to be provided.
_NO_FILE = _ASCII.filter(lambda text: not re.search(r"(^|[^A-Za-z0-9])/|\.[a-z0-9]+$", text))
_OWN_VARIABLES = st.dictionaries(
    st.from_regex(r"Z_[A-Za-z0-9_]{0,20}", fullmatch=True, alphabet=_LETTERS),
    _NO_FILE | st.integers(),
    max_size=2,
)
_CONTAINER = _mapping(
    memory=st.integers(16, 128).map("{}g".format),
    shm=st.integers(1, 64).map("{}g".format),
    ulimits=_mapping(nofile=st.integers(1024, 10**6), memlock=st.just(-1)),
    devices=st.just(["/dev/uinput"]),
    hardened=st.booleans(),
)
_FILES = st.lists(
    _mapping(target=st.just("/mnt/tables"), sha256=st.just("0" * 64)).map(
        lambda keys: {"path": "/srv/tables"} | keys
    ),
    min_size=1,
    max_size=1,
)
_SECRETS = st.lists(
    st.from_regex(r"Y_[A-Za-z0-9_]{0,20}", fullmatch=True, alphabet=_LETTERS) | st.just("HF_TOKEN"),
    max_size=3,
    unique=True,
)
_SCALAR = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)
_OBJECT = st.dictionaries(
    _ASCII,
    st.recursive(
        _SCALAR | _NO_FILE,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_ASCII, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
# A word that begins with a dash would be a flag.
_WORDS = st.lists(_ASCII.filter(lambda word: word[:1] != "-"), min_size=1, max_size=3)
_ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "chat-template": _NO_FILE,
        "kv-cache-metrics-sample": st.floats(0.01, 1),
        "default-chat-template-kwargs": _OBJECT,
        "enable-prefix-caching": st.booleans(),
        "logits-processors": _WORDS,
        "max-num-batched-tokens": st.integers(1024, 10**6),
        "middleware": _WORDS,
        "override-generation-config": _OBJECT,
    },
)


class _Shape(NamedTuple):
    """What decides how a model can be split; no KV heads mean latent, no experts a dense model."""

    layers: int
    heads: int
    kv_heads: int | None
    experts: int


class _Plan(NamedTuple):
    """Cables as written in a site file, and how many hosts the smallest of their subnets has."""

    cabling: list[dict[str, Any]]
    hosts: int


@st.composite
def site_files(draw: Draw, kinds: Sequence[str] = KINDS) -> SiteFile:
    """Valid sites of these kinds."""
    kind = draw(st.sampled_from(kinds))
    counts = {"single": [1], "direct": [2], "ring": [3, 3, 4, 5, 6, 8]}
    count = draw(st.sampled_from(counts.get(kind, range(2, 13))))
    is_long = kind == "ring" and count > 3
    ray = not is_long and draw(st.booleans())
    octets = iter(draw(st.lists(st.sampled_from(_OCTETS), min_size=20, max_size=20, unique=True)))
    names = draw(st.lists(_NODE_NAME, min_size=count, max_size=count, unique=True))
    topology = draw(_topologies(kind, next(octets), is_long))
    managed = kind == "ring" or topology.get("control_plane") == "management"
    management = draw(_managements(count, next(octets), managed and kind != "single", ray))
    cabling, most = draw(_cablings(names, topology, octets, ray))
    hosts = draw(_hosts(count, most))
    model, shape = draw(_catalog_models() | _own_models(count))
    nodes = [
        {"name": name} | address | host | draw(_mapping(env=_OWN_VARIABLES))
        for name, address, host in zip(names, management, hosts, strict=True)
    ]
    file = {
        "version": 1,
        "name": draw(_NODE_NAME),
        "nodes": nodes,
        **({"cabling": cabling} if cabling else {}),
        "topology": topology,
        "model": model | draw(_MODEL_SETTINGS),
        "engine": draw(_engines(kind, count, shape, ray)),
        **draw(_EXTRAS),
    }
    if free := free_ports(file) if kind in ("direct", "switch") else ():
        uplinks = draw(st.lists(st.sampled_from(free), max_size=2, unique=True))
        topology |= {"uplinks": uplinks} if uplinks else {}
    file["model"] |= draw(_speculations(file)) | draw(_offloads(file))
    if "name" not in file["model"] or _has_room(file):
        return file
    return _with_a_model_of_any_size(file, shape)


def _has_room(file: SiteFile) -> bool:
    """Whether a model of known size fits the nodes, and its format fits the split."""
    found = {finding.rule for finding in reading_of(written(file)).findings}
    return not found & {"SG509", "SG520", "SG532", "SG537", "SG538", "SG556"}


@lru_cache(maxsize=8)
def reading_of(raw: bytes) -> Reading:
    """The reading of a drawn site, cached because both drawing the site and its test need it."""
    return read_site("site.yaml", raw, beside)


def _with_a_model_of_any_size(file: SiteFile, shape: "_Shape") -> SiteFile:
    """The same site with a model of unknown size that is split in the same way."""
    architecture = {
        "layers": shape.layers,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads or shape.heads,
        **({"experts": shape.experts} if shape.experts else {}),
    }
    model = {key: value for key, value in file["model"].items() if key != "name"}
    return file | {"model": {"source": "example/x", "architecture": architecture} | model}


# The files that drawn sites refer to.
PREPARE = "files/prepare.sh"
_SCRIPT = SourceFile("", b'#!/bin/bash\nexec "$@"\n', is_executable=True)


def beside(path: str) -> Source:
    return Source((_SCRIPT,)) if path == PREPARE else nothing_beside(path)


def _topologies(kind: str, octet: int, is_long: bool) -> st.SearchStrategy[dict[str, Any]]:
    """The pool has room for six subnets, enough for a ring of three or two ports of a switch."""
    planes = ("management",) if kind == "ring" else ("management", "fabric")
    return st.fixed_dictionaries(
        {"kind": st.just(kind)},
        optional={
            "subnet_pool": _networks(octet, 8, 20 if is_long else 21).map(str),
            **({"routes": st.just(True)} if is_long else {}),
            "mtu": st.integers(1280, 9216),
            "control_plane": st.sampled_from(planes),
            "renderer": st.sampled_from(["networkd", "NetworkManager"]),
            "halves": st.sampled_from(["both", "first"]),
            "rdma_halves": st.sampled_from(["both", "first"]),
        },
    )


def _networks(octet: int, shortest: int, longest: int) -> st.SearchStrategy[IPv4Network]:
    """Networks within `octet.0.0.0/8`, by prefix length."""
    return st.builds(
        lambda rest, prefix: IPv4Network(((octet << 24) + rest, prefix), strict=False),
        st.integers(0, 2**24 - 1),
        st.integers(shortest, longest),
    )


@st.composite
def _managements(
    draw: Draw, count: int, octet: int, needed: bool, same: bool
) -> list[dict[str, Any]]:
    """Each node's address in one network; some nodes have none, unless it is needed."""
    network = draw(_networks(octet, 8, 28))
    number = st.integers(1, min(network.num_addresses - 2, 1000))
    numbers = draw(st.lists(number, min_size=count, max_size=count, unique=True))
    interfaces = st.sampled_from(["enP7s7", "wlP9s9", "br-lan", "eth0.100"])
    shared = {"interface": draw(interfaces)} if same else {}
    interface = (
        st.just(shared) if same else st.fixed_dictionaries({}, optional={"interface": interfaces})
    )
    return [
        {"management": {"address": f"{network[number]}/{network.prefixlen}"} | draw(interface)}
        if needed or draw(st.booleans())
        else {}
        for number in numbers
    ]


@st.composite
def _hosts(draw: Draw, count: int, most: int) -> list[dict[str, int]]:
    """Each node's host number, explicit or not; all are explicit where defaults would not fit."""
    counted = range(FIRST_HOST, FIRST_HOST + count)
    fits = most >= counted[-1]
    free = [n for n in range(1, most + 1) if not (fits and n in counted)]
    numbers = draw(st.lists(st.sampled_from(free), min_size=count, max_size=count, unique=True))
    return [{} if fits and draw(st.booleans()) else {"host": number} for number in numbers]


@st.composite
def _cablings(
    draw: Draw,
    names: Sequence[str],
    topology: Mapping[str, Any],
    octets: Iterator[int],
    same: bool,
) -> _Plan:
    """Cables in any order and direction; `same` uses the same port at both ends."""
    kind = topology["kind"]
    links = draw(_links(kind, names, same))
    shared = [ends[0][1] if kind == "switch" else number for number, ends in enumerate(links)]
    subnets, most = draw(_subnets(kind, len(names), topology, sorted(set(shared)), octets))
    cabling = [
        {"endpoints": draw(st.permutations([":".join(end) for end in ends]))}
        | (draw(_addressed(kind, subnets[group])) if group in subnets else {})
        | draw(_CABLE_SETTINGS)
        for group, ends in zip(shared, links, strict=True)
    ]
    for group in {group for group in subnets if shared.count(group) > 1}:
        # On a switch they have to be given only once.
        first = shared.index(group)
        for number, cable in enumerate(cabling):
            if shared[number] == group and number != first and draw(st.booleans()):
                del cable["subnets"]
    return _Plan(cabling, most)


@st.composite
def _addressed(draw: Draw, kind: str, subnets: list[str]) -> dict[str, Any]:
    """A cable's subnets, or, without a switch, the addresses of its two ends in each of them."""
    if kind == "switch" or draw(st.booleans()):
        return {"subnets": subnets}
    pairs = []
    for network in map(IPv4Network, subnets):
        hosts = st.integers(1, network.num_addresses - 2)
        ends = draw(st.lists(hosts, min_size=2, max_size=2, unique=True))
        pairs.append([f"{network[end]}/{network.prefixlen}" for end in ends])
    return {"addresses": pairs}


@st.composite
def _speculations(draw: Draw, file: SiteFile) -> dict[str, Any]:
    """Methods that need no draft model, which every drawn version supports."""
    if draw(st.booleans()) or "pipeline" in file["engine"]["parallel"]:
        return {}
    tokens = draw(st.integers(1, 8))
    ngram = {"method": "ngram", "tokens": tokens, "config": {"prompt_lookup_max": tokens}}
    # No published image contains its package.
    suffix = {"method": "suffix", "config": {"suffix_decoding_min_token_prob": 0.1}}
    is_own = file["engine"].get("image", "").partition(":")[0] != "vllm/vllm-openai"
    return {"speculative": draw(st.sampled_from([ngram, suffix] if is_own else [ngram]))}


@st.composite
def _offloads(draw: Draw, file: SiteFile) -> dict[str, Any]:
    """A KV cache on disk, if a replica runs on one node and leaves memory for its buffer."""
    engine, sizes = file["engine"], file["engine"]["parallel"]
    left = (1 - engine.get("memory_utilization", 0.8)) * file.get("defaults", {}).get(
        "visible_gib", 58
    )
    is_split = sizes.get("tensor", 1) * sizes.get("pipeline", 1) > 1
    cannot = is_split or "0.33" not in engine["version"] or left < 10
    cannot = cannot or engine.get("args", {}).get("enable-prefix-caching") is False
    if cannot or draw(st.booleans()):
        return {}
    # LMCache does not store states, which models of the catalog may have.
    connectors = ["native", "lmcache"] if "architecture" in file["model"] else ["native"]
    return {
        "kv_offload": {
            "path": "/srv/kv",
            "gib": draw(st.integers(1, 4000)),
            "buffer_gib": 1,
            "connector": draw(st.sampled_from(connectors)),
        }
    }


@st.composite
def _links(
    draw: Draw, kind: str, names: Sequence[str], same: bool
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """The two ends of each cable; on a switch, the node's end comes first."""
    if kind == "single":
        return []
    if kind == "direct":
        a, b = names
        ports = draw(st.permutations(_PORTS))
        others = ports if same else draw(st.permutations(_PORTS))
        links = [((a, p), (b, q)) for p, q in zip(ports, others, strict=True)]
        return links[: draw(st.integers(1, 2))]
    if kind == "ring":
        # With four or more nodes, the cables follow the ranks.
        turn = names if len(names) > 3 else draw(st.permutations(names))
        ring = [((a, "p0"), (b, "p1")) for a, b in zip(turn, [*turn[1:], turn[0]], strict=True)]
        return draw(st.permutations(ring))
    switch, word = draw(_NAME.filter(lambda name: name not in names)), draw(_WORD)
    ports = draw(st.sampled_from([_PORTS, *((port,) for port in _PORTS)]))
    ends = draw(st.permutations([(name, port) for name in names for port in ports]))
    return [(end, (switch, f"{word}{number}")) for number, end in enumerate(ends)]


@st.composite
def _subnets(
    draw: Draw,
    kind: str,
    count: int,
    topology: Mapping[str, Any],
    groups: Sequence[Any],
    octets: Iterator[int],
) -> tuple[dict[Any, list[str]], int]:
    """Subnets for some groups of cables, and the number of hosts that fit into each of them.

    All subnets of a ring have the same prefix length: the pool's, if any of them comes from it.
    """
    explicit = [group for group in groups if draw(st.booleans())]
    longest = 32 - (count + 2).bit_length() if kind == "switch" else 32 - (count + 1).bit_length()
    shortest = 8
    if kind == "ring":
        pooled = len(explicit) < len(groups)
        shortest = longest = 24 if pooled else draw(st.integers(shortest, longest))
    halves = 1 if topology.get("halves") == "first" else 2
    networks = {
        group: [draw(_networks(next(octets), shortest, longest)) for _ in range(halves)]
        for group in explicit
    }
    sizes = [network.num_addresses - 2 for subnets in networks.values() for network in subnets]
    return {group: list(map(str, subnets)) for group, subnets in networks.items()}, min(
        [254, *sizes]
    )


@cache
def _catalog() -> tuple[str, ...]:
    """The models that every drawn version serves, so none with one of DeepSeek's own attentions."""
    return tuple(name for name in catalogs.checkpoint_names() if not _is_sparse(name))


def _is_sparse(name: str) -> bool:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    kind = checkpoint.architecture.facts.get("model_type") or ""
    return known_shape(checkpoint).indexer is not None or kind.startswith("deepseek_v4")


@st.composite
def _catalog_models(draw: Draw) -> tuple[dict[str, Any], _Shape]:
    name = draw(st.deferred(lambda: st.sampled_from(_catalog())))
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    known = checkpoint.architecture
    latent = known.facts.get("attention", {}).get("kv_replicated", False)
    context = st.integers(_SHORTEST_CONTEXT, checkpoint.max_context or 10**6)
    model = draw(
        st.fixed_dictionaries({"name": st.just(name)}, optional={"context_length": context})
    )
    return model, _Shape(
        known.layers, known.heads, None if latent else known.kv_heads, known.experts or 0
    )


@st.composite
def _own_models(draw: Draw, count: int) -> tuple[dict[str, Any], _Shape]:
    """Models outside the catalog, with at least one layer more than there are nodes."""
    layers, experts = draw(st.integers(count + 1, 200)), draw(st.sampled_from([0, 8, 128]))
    # Each KV head serves the same number of attention heads.
    kv_heads = draw(st.integers(1, 16))
    heads = kv_heads * draw(st.integers(1, 128 // kv_heads))
    architecture = {"layers": layers, "heads": heads, "kv_heads": kv_heads}
    source = draw(st.builds("{}/{}".format, _NAME, _NAME) | _PATH)
    model = {
        "source": source,
        "architecture": architecture | ({"experts": experts} if experts else {}),
    }
    return model, _Shape(layers, heads, kv_heads, experts)


@st.composite
def _engines(draw: Draw, kind: str, count: int, shape: _Shape, ray: bool) -> dict[str, Any]:
    layouts = list(_layouts(count, shape))
    if kind == "ring" and count > 3:
        layouts = [sizes for sizes in layouts if count in (sizes["tensor"], sizes["pipeline"])]
    sizes = draw(st.sampled_from(layouts))
    expert = {} if shape.experts == 0 else draw(_mapping(expert=st.booleans()))
    required = {
        "name": st.just("vllm"),
        "version": st.sampled_from(["0.19.0", "0.33.0", "0.20.0rc1", "0.33.0.post1"]),
        "image": _IMAGE,
        "parallel": st.just({name: size for name, size in sizes.items() if size > 1} | expert),
    }
    optional = {
        "bind": st.sampled_from(["management", "fabric", "all", "local"]),
        "memory_utilization": st.floats(0.05, 0.92, exclude_max=True),
        "args": _ARGUMENTS,
        "env": _ENVIRONMENT,
        "secrets": _SECRETS,
        "container": _CONTAINER,
        "files": _FILES,
        "prepare": st.just(PREPARE),
    }
    if ray:
        required |= {"launcher": st.just("ray"), "image": st.sampled_from(_OWN_IMAGES)}
    else:
        optional["launcher"] = st.just("native")
    (required if kind == "ring" else optional)["nccl"] = _NCCL
    engine = draw(st.fixed_dictionaries(required, optional=optional))
    if draw(st.sampled_from([False] * 5 + [True])):
        of_containers = ("image", "container", "files", "prepare")
        engine = {key: value for key, value in engine.items() if key not in of_containers}
        engine["venv"] = draw(_PATH)
    return engine | draw(_ports(_port_names(sizes, ray)))


def _layouts(count: int, shape: _Shape) -> Iterator[dict[str, int]]:
    """The sizes that split a model of that shape over the given number of nodes."""
    divisors = [n for n in range(1, count + 1) if count % n == 0]
    for tensor in divisors:
        if shape.heads % tensor:
            continue
        kv_heads = shape.kv_heads or 1
        if kv_heads % tensor and tensor % kv_heads:
            continue
        for pipeline in (n for n in divisors if count % (tensor * n) == 0):
            data = count // (tensor * pipeline)
            dense = shape.experts == 0 and data > 1 and tensor * pipeline > 1
            if not dense and pipeline <= shape.layers:
                yield {"tensor": tensor, "pipeline": pipeline, "data": data}


def _port_names(sizes: Mapping[str, int], ray: bool) -> tuple[str, ...]:
    """Ports that are opened besides the API's."""
    if ray:
        return "ray", "dashboard"
    if sizes["tensor"] * sizes["pipeline"] == 1 and sizes["data"] > 1:
        return ("data_parallel_rpc",)
    return ("master",) if max(sizes.values()) > 1 else ()


@st.composite
def _ports(draw: Draw, names: Sequence[str]) -> dict[str, Any]:
    """Distinct ports, none of which is a default port or one of Ray's worker ports."""
    number = st.integers(1024, 6000) | st.integers(30000, 65535)
    api, *others = draw(st.lists(number, min_size=3, max_size=3, unique=True))
    ports = {name: port for name, port in zip(names, others, strict=False) if draw(st.booleans())}
    return draw(_mapping(port=st.just(api), ports=st.just(ports)))


def with_a_node_more(site: SiteFile) -> SiteFile:
    """A switch site with another node and its cables appended."""
    site = deepcopy(site)
    nodes = site["nodes"]
    names = [node["name"] for node in nodes]
    taken = {node.get("host", FIRST_HOST + index) for index, node in enumerate(nodes)}
    new: dict[str, Any] = {
        "name": next(name for name in map("new{}".format, range(13)) if name not in names),
        "host": next(number for number in range(1, 255) if number not in taken),
    }
    if all("management" in node for node in nodes):
        used = [IPv4Interface(node["management"]["address"]) for node in nodes]
        free = next(
            ip for ip in used[0].network.hosts() if ip not in [interface.ip for interface in used]
        )
        address = f"{free}/{used[0].network.prefixlen}"
        new["management"] = nodes[0]["management"] | {"address": address}
    ends = (end.split(":") for cable in site["cabling"] for end in cable["endpoints"])
    ports = sorted({port for name, port in ends if name in names})
    nodes.append(new)
    site["cabling"] += [
        {"endpoints": [f"{new['name']}:{port}", f"a-switch:{port}"]} for port in ports
    ]
    site["engine"]["parallel"] = {"pipeline": len(nodes)}
    for key in ("speculative", "kv_offload"):
        site["model"].pop(key, None)
    site["engine"].pop("ports", None)
    return site


def free_ports(site: SiteFile) -> list[str]:
    """The node ports that have no cable."""
    used = {end for cable in site["cabling"] for end in cable["endpoints"]}
    used |= set(site["topology"].get("uplinks", ()))
    ports = [f"{node['name']}:{port}" for node in site["nodes"] for port in _PORTS]
    return [port for port in ports if port not in used]


def with_all_ports(site: SiteFile) -> SiteFile:
    """A switch or direct-link site with cables for each node's free ports appended."""
    site = deepcopy(site)
    site["topology"].pop("uplinks", None)
    free = free_ports(site)
    if site["topology"]["kind"] == "direct":
        site["cabling"].append({"endpoints": free})
    else:
        site["cabling"] += [{"endpoints": [end, f"a-switch:{i}"]} for i, end in enumerate(free)]
    return site


def with_a_node_renamed(site: SiteFile, index: int, name: str) -> SiteFile:
    """The site with one of its nodes renamed, including in the cables."""
    site = deepcopy(site)
    old = site["nodes"][index]["name"]
    site["nodes"][index]["name"] = name
    for cable in site["cabling"]:
        ends = (end.split(":") for end in cable["endpoints"])
        cable["endpoints"] = [f"{name if end == old else end}:{port}" for end, port in ends]
    return site


def rearranged(value: Any, dice: Random) -> Any:
    """The same data with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = dice.sample(list(value), len(value))
        return {key: rearranged(value[key], dice) for key in keys}
    return [rearranged(item, dice) for item in value] if isinstance(value, list) else value


# Replacement values: text, numbers, and values that are not scalars.
_REPLACEMENTS = (
    st.sampled_from([*NASTY, "7", "10.0.0.0/24", "0.0.0.0/1", "spark:p0", "spark", "SG609"])
    | st.integers()
    | st.sampled_from([10**18, -(10**30), 10**400])
    | st.floats()
    | st.booleans()
    | st.none()
    | st.text(max_size=5)
    | st.sampled_from([[], {}, [[]], [{}], {"": ""}])
)


@st.composite
def changed_site_files(draw: Draw) -> SiteFile:
    """Sites with values removed, replaced, renamed, repeated or moved."""
    site = deepcopy(draw(site_files()))
    for _ in range(draw(st.integers(1, 4))):
        places = list(everywhere(site))
        if not places:
            break
        place, key = draw(st.sampled_from(places))
        other, its_key = draw(st.sampled_from(places))
        new = deepcopy(draw(_REPLACEMENTS | st.just(other[its_key])))
        match draw(st.sampled_from(["delete", "repeat", "rename", "replace"])):
            case "delete":
                del place[key]
            case "repeat" if isinstance(place, list):
                place.insert(key, deepcopy(place[key]))
            case "rename" if isinstance(place, dict):
                place[draw(st.sampled_from([*NASTY, f"{key}x", key[1:]]))] = place.pop(key)
            case _:
                place[key] = new
    return site


# Text that is special to YAML, or meaningless.
_PIECES = st.binary(max_size=4) | st.sampled_from(
    [
        *"[]{},:?-|>&*!%@'\"#~\\\n\r\t\x00\x85\u2028\ufeffé\U0001f600",
        *("\n\t", "\n- ", ": ", "? ", "\n---\n", "\n...\n", "%YAML 9.9\n", "\\u202e"),
        *("<<: *a", "&a ", "*a", "*b", "&a [*a]", "!!int ", "!!python/none"),
    ]
).map(str.encode)


@st.composite
def damaged_texts(draw: Draw) -> bytes:
    """Text of sites that was cut, overwritten or duplicated at any place."""
    raw = written(draw(site_files()), flow=draw(st.booleans()))
    for _ in range(draw(st.integers(1, 4))):
        place = st.integers(0, len(raw))
        start, end = sorted((draw(place), draw(place)))
        lines = raw.splitlines(keepends=True) or [b""]
        match draw(st.sampled_from(["truncate", "cut", "insert", "double", "repeat a line"])):
            case "truncate":
                raw = raw[:end]
            case "cut":
                raw = raw[:start] + raw[end:]
            case "insert":
                raw = raw[:start] + draw(_PIECES) + raw[start:]
            case "double":
                raw = raw[:end] + raw[start:]
            case _:
                lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(lines)))
                raw = b"".join(lines)
    return raw


def written(site: SiteFile, flow: bool = False) -> bytes:
    """The site as YAML in block style, or as JSON, which is YAML too."""
    if flow:
        return json.dumps(site, ensure_ascii=False).encode()
    return yaml.dump(
        site, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000
    ).encode(errors="surrogatepass")


class _Dumper(yaml.CSafeDumper):
    """Quotes scalars that YAML 1.1, which PyYAML writes, and 1.2 could read differently."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = re.fullmatch(r"[A-Za-z][\w./:-]*\w|\d+(\.\d+){2,}(/\d+)?", text, re.ASCII)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)
