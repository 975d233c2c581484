"""The forms of text in a site file: what a host name, a subnet, an image looks like.

Every text that reaches a generated file has a form here, so that no value can become syntax of a
shell, a unit, YAML or a template.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Test = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of text: what it must be, in words, and whether a text is."""

    wanted: str
    test: Test


def _matches(pattern: str) -> Test:
    return re.compile(pattern).fullmatch


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
    network = interface.network
    inside = interface.ip not in (network.network_address, network.broadcast_address)
    return "/" in text and 1 <= network.prefixlen <= 30 and inside and _unicast(interface.ip)


def _subnet(text: str) -> bool:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return "/" in text and 1 <= network.prefixlen <= 30 and _unicast(network.network_address + 1)


def _unicast(address: ipaddress.IPv4Address) -> bool:
    special = address.is_multicast or address.is_loopback or address.is_unspecified
    return not special and address < ipaddress.IPv4Address("224.0.0.0")


def _printable(text: str) -> bool:
    return text.isprintable()


def _path(text: str) -> bool:
    parts = text.split("/")[1:]
    plain = re.fullmatch(r"(/[A-Za-z0-9._@+][A-Za-z0-9._@+-]*)+", text)
    return bool(plain) and "." not in parts and ".." not in parts


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_MODEL_ID = rf"{_NAME}/{_NAME}"
_WORD = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
_IMAGE = (
    r"[a-z0-9]+([._-][a-z0-9]+)*(:[0-9]{1,5})?(/[a-z0-9]+((\.|_{1,2}|-+)[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?"
)

FORMS = {
    "hostname": Form(
        "a host name: lower-case letters, digits and '-', at most 63",
        _matches(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"),
    ),
    "user": Form(
        "a login: lower-case letters, digits, '_' and '-', at most 32",
        _matches(r"[a-z_][a-z0-9_-]{0,31}"),
    ),
    "interface": Form(
        "an interface name: letters, digits, '.', '_' and '-', at most 15",
        _matches(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}"),
    ),
    "address": Form("an IPv4 address such as 10.0.0.1", _address),
    "interface_address": Form(
        "an IPv4 address with its prefix length, such as 10.0.0.11/24", _interface_address
    ),
    "subnet": Form(
        "an IPv4 subnet such as 192.168.177.0/24, without host bits, at most /30", _subnet
    ),
    "endpoint": Form(
        "NODE:p0 or NODE:p1, or SWITCH:PORT",
        _matches(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}:[A-Za-z0-9][A-Za-z0-9._/-]{0,30}"),
    ),
    "printable": Form("one line of printable text", _printable),
    "ascii": Form("one line of printable ASCII", _matches(r"[ -~]+")),
    "word": Form("one word of letters, digits, '.', '_', '/' and '-'", _matches(_WORD)),
    "served_name": Form("a name of letters, digits, '.', '_', '/' and '-'", _matches(_WORD)),
    "model_name": Form(
        "a model of the catalog, such as gpt-oss-120b",
        _matches(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?"),
    ),
    "model_source": Form(
        "a Hugging Face id OWNER/NAME, or an absolute path",
        lambda text: re.fullmatch(_MODEL_ID, text) or _path(text),
    ),
    "path": Form("an absolute path of letters, digits, '.', '_', '@', '+' and '-'", _path),
    "version": Form(
        "a version such as 0.19.0", _matches(r"[0-9]+(\.[0-9]+)*([.+-]?[a-z0-9]+([.-][a-z0-9]+)*)?")
    ),
    "image": Form("a container image such as vllm/vllm-openai:v0.19.0", _matches(_IMAGE)),
    "nccl": Form("a version such as 2.30.7", _matches(r"[0-9]+(\.[0-9]+)+(-[0-9]+)?")),
    "flag": Form(
        "a flag's full name without its dashes: letters, digits, '-', '_' and '.'",
        _matches(r"[A-Za-z0-9][A-Za-z0-9_.-]*"),
    ),
    "variable": Form(
        "a variable's name: letters, digits and '_'", _matches(r"[A-Za-z_][A-Za-z0-9_]*")
    ),
    "environment_value": Form(
        "printable ASCII without quotes, '$', backslash, '#', '`' and blanks, and not empty",
        _matches(r"[!%&()*+,./0-9:;<=>?@A-Z\[\]^_a-z{|}~-]+"),
    ),
    "rule": Form("a rule such as SG310", _matches(r"SG[0-9]{3}")),
}


def form_fault(name: str, value: object) -> str:
    """What is wrong with a text that must have the form of that name, or nothing."""
    form = FORMS[name]
    return f"must be {form.wanted}" if isinstance(value, str) and not form.test(value) else ""


def argument_fault(value: object) -> str:
    """What keeps a value of `engine.args` from being an argument, or nothing.

    A list holds words; a mapping becomes JSON, so it may nest. All text is printable ASCII.
    """
    if isinstance(value, list) and not all(isinstance(item, str | bool) for item in value):
        return "must be a list of words; a mapping makes JSON"
    faulty = any(not re.fullmatch(r"[ -~]*", text) for text in _texts(value))
    return "must be printable ASCII" if faulty else ""


def _texts(value: object) -> Iterator[str]:
    """All text in a value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from (text for part in pair for text in _texts(part))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
