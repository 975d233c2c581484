"""The text types of a site file: what a host name, a subnet or an image looks like.

Every text that ends up in a generated file has a type in `schemas/text-types.yaml`, so that no
value can become syntax of a shell, a unit, YAML or a template.
"""

import ipaddress
import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from generator import precompiled
from generator.records import record
from generator.resources import SCHEMAS

Test = Callable[[str], bool]


@record
class TextType:
    """A text type: what it must be, in words, its pattern, and a check that no pattern can express.

    The pattern matches the whole text, and editors use it too: Python and JavaScript agree on it.
    """

    wanted: str
    pattern: str
    test: Test | None = None

    def fits(self, text: str) -> bool:
        """Whether a text is of this type."""
        matches = re.fullmatch(self.pattern, text) is not None
        return matches and (self.test is None or self.test(text))


def before_comment(value: str) -> str:
    """The part before a comment, whose sign may be one that YAML doesn't have."""
    return re.sub(r"(?<!\s)\s*+(#|//)(?=\s).*$", "", value)


def _address(text: str) -> bool:
    try:
        return _unicast(ipaddress.IPv4Address(text))
    except ValueError:
        return False


def _interface_address(text: str) -> bool:
    try:
        interface = ipaddress.IPv4Interface(text)
    except ValueError:
        return False
    network, address = interface.network, interface.ip
    inside = address not in (network.network_address, network.broadcast_address)
    return "/" in text and 8 <= network.prefixlen <= 30 and inside and _unicast(address)


def _subnet(text: str) -> bool:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return "/" in text and 8 <= network.prefixlen <= 30 and _unicast(network.network_address + 1)


def _unicast(address: ipaddress.IPv4Address) -> bool:
    special = address.is_multicast or address.is_loopback or address.is_unspecified
    return not special and address < ipaddress.IPv4Address("224.0.0.0")


def _has_words(text: str) -> bool:
    try:
        return bool(shlex.split(text))
    except ValueError:
        return False


def _cores(text: str) -> bool:
    ranges = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    return all(cores[0] <= cores[-1] for cores in ranges)


_TESTS: Mapping[str, Test] = {
    "address": _address,
    "interface_address": _interface_address,
    "subnet": _subnet,
    "printable": str.isprintable,
    "command": _has_words,
    "cpus": _cores,
}
TEXT_TYPES = {
    name: TextType(known["is"], known["pattern"], _TESTS.get(name))
    for name, known in precompiled.schema("text-types").items()
}

# What Compose, Docker, systemd and a shell read the same way in a file of NAME=VALUE lines,
# unquoted.
PLAIN_VALUE = TextType(
    "printable ASCII without quotes, '$', backslash, '#', '`' and spaces, and not empty",
    r"[!%&()*+,./0-9:;<=>?@A-Z\[\]^_a-z{|}~-]+",
)

# All text in a value of `engine.args`, including keys.
ARGUMENT_TEXT = TextType("printable ASCII", r"[ -~]*")


# What to do if an example doesn't help.
TEXT_HELP = {
    "environment_value": "write it on one line, in ASCII: JSON has \\u00e9 for other letters",
    "argument": "write a text, a list of texts, or a mapping for JSON, in ASCII",
    "setting": "write it in ASCII: JSON has \\u00e9 for other letters",
}


def text_type_of(name: str) -> TextType:
    """The type that a schema names; an unknown name is reported with its place there."""
    if name not in TEXT_TYPES:
        raise LookupError(f"{_place_in_schemas(name)}: there is no type of text '{name}'")
    return TEXT_TYPES[name]


def _place_in_schemas(name: str) -> str:
    """The file and the line of the first schema that has a name for `check_with`."""
    for path in sorted(SCHEMAS.glob("*.yaml")):
        text = path.read_text("utf-8")
        if found := re.search(rf"check_with:\s*{re.escape(name)}\b", text):
            return f"schemas/{path.name}:{text.count(chr(10), 0, found.start()) + 1}"
    return "schemas"


def text_fault(name: str, value: object) -> str:
    """What is wrong with a text that must be of the named type, or nothing."""
    text_type = text_type_of(name)
    if not isinstance(value, str) or text_type.fits(value):
        return ""
    if name == "interface_address" and (edge := _edge(value)):
        return f"is {edge}, not that of a node"
    return f"must be {text_type.wanted}"


def _edge(value: str) -> str:
    """How to describe an address with a prefix length that no node can have."""
    if not re.fullmatch(TEXT_TYPES["interface_address"].pattern, value):
        return ""
    interface = ipaddress.IPv4Interface(value)
    network = interface.network
    if not _unicast(interface.ip):
        kinds = ("loopback", "multicast", "unspecified", "reserved")
        return next((f"a {k} address" for k in kinds if getattr(interface.ip, f"is_{k}")), "")
    edges = {
        network.network_address: f"the address of the network {network} itself",
        network.broadcast_address: f"the broadcast address of {network}",
    }
    return edges.get(interface.ip, "")


def _host(text: str) -> str:
    return re.sub(r"[_. ]+", "-", text.strip().lower())


def _without_v(text: str) -> str:
    """Tags begin with a v, which is no part of the version; the b of llama.cpp's builds is."""
    return text.strip().lower().removeprefix("v")


def _gib(text: str) -> str:
    """112g for 112G, 112 GiB and 112gb."""
    found = re.fullmatch(r"([0-9]+) ?[gG]([iI]?[bB])?", text)
    return f"{found[1]}g" if found else ""


def _port(text: str) -> str:
    """spark2:p0 for SPARK2-P0, `spark2 p0` or spark2p0."""
    node = text[:-2].rstrip("-./_:@ ")
    is_port = node and text[-2:].lower() in ("p0", "p1")
    return f"{node}:{text[-2:].lower()}" if is_port else ""


def _with_prefix(text: str) -> str:
    try:
        return str(ipaddress.IPv4Interface(text if "/" in text else f"{text}/24"))
    except ValueError:
        return ""


def _network(text: str) -> str:
    """The subnet of an address; without a prefix length, trailing zeros determine it."""
    parts = text.split(".")
    zeros = next((n for n, part in enumerate(reversed(parts)) if part != "0"), len(parts))
    length = "" if "/" in text else f"/{32 - 8 * zeros}"
    try:
        return str(ipaddress.IPv4Interface(f"{text}{length}").network)
    except ValueError:
        return ""


_MEANT: dict[str, Callable[[str], str]] = {
    "domain": str.lower,
    "served_name": lambda text: text.lstrip("._/-").replace(" ", "-"),
    "endpoint": _port,
    "gib": _gib,
    "group_name": _host,
    "hostname": _host,
    "interface_address": _with_prefix,
    "model_name": str.lower,
    "nccl": _without_v,
    "node_name": _host,
    "rule": str.upper,
    "sha256": str.lower,
    "source_path": lambda text: text.removeprefix("./").rstrip("/"),
    "subnet": _network,
    "user": str.lower,
    "version": _without_v,
}


def valid_text(name: str, value: object) -> str:
    """The text of the named type that a near miss was meant to be, or nothing."""
    if name not in _MEANT or not isinstance(value, str) or before_comment(value) != value:
        return ""
    meant = _MEANT[name](value)
    return meant if TEXT_TYPES[name].fits(meant) else ""


def argument_fault(value: object) -> str:
    """Why a value of `engine.args` can't be an argument, or nothing.

    A list has words; a mapping becomes JSON, so it may be nested. All text is printable ASCII.
    """
    if isinstance(value, list) and not all(isinstance(item, str | bool) for item in value):
        return "must be a list of words; a mapping makes JSON"
    return setting_fault(value)


def setting_fault(value: object) -> str:
    """Why a value can't be part of JSON in printable ASCII, or nothing."""
    valid = all(ARGUMENT_TEXT.fits(text) for text in texts(value))
    return "" if valid else f"must be {ARGUMENT_TEXT.wanted}"


_FAULTS = {"argument": argument_fault, "setting": setting_fault}
# The names that `check_with` may have in a schema.
CHECKS = (*TEXT_TYPES, *_FAULTS)


def fault(name: str, value: object) -> str:
    """What is wrong with a value according to a named check of a schema, or nothing."""
    own = _FAULTS.get(name)
    return own(value) if own else text_fault(name, value)


def texts(value: object) -> Iterator[str]:
    """All text in a value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from (text for part in pair for text in texts(part))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
