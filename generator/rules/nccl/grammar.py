"""NCCL's grammar for lists of interfaces and RoCE devices, and functions that its rules share."""

import re
from ipaddress import ip_network

from generator.catalogs.versions import Release, release
from generator.hardware import Half
from generator.settings.environment import Values
from generator.sitefile.declaration import DeclaredEngine

# The fault, what to write, and the intended value if it is known.
ValueFault = tuple[str, str, str]

HCAS = "NCCL_IB_HCA"
SOCKETS = (
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "TP_SOCKET_IFNAME",
    "UCX_NET_DEVICES",
    "OMPI_MCA_btl_tcp_if_include",
)
INTERFACES = (HCAS, *SOCKETS)


def release_of(engine: DeclaredEngine) -> Release:
    """The NCCL release in the image, as numbers to compare; empty if unknown."""
    return release(engine.nccl or "")


def is_subnet(text: str) -> bool:
    """Whether a text is an address with its prefix length."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def uses(values: Values, half: Half) -> bool:
    """Whether RDMA uses a half: all are used unless the site's own list says otherwise."""
    mark, names = marks(HCAS, values.get(HCAS))
    listed = [item.partition(":")[0] for item in names.split(",") if item]
    named = any(half.hca == n if "=" in mark else half.hca.startswith(n) for n in listed)
    return not listed or named != ("^" in mark)


def names_fault(name: str, value: str) -> ValueFault | None:
    """The fault of a list: `^` (all but) and `=` (exactly) are NCCL's own, and come first."""
    _, names = marks(name, value)
    if "=" in names or "^" in names:
        if name.startswith("NCCL_"):
            first = value[: len(value) - len(value.lstrip("=^"))]
            meant = "^" * ("^" in first) + "=" * ("=" in first)
            right = (meant or "=") + re.sub("[=^]", "", names)
            return (
                f"'^' and then '=' come once, before the whole list: '{value}'",
                f"write '{name}: {right}'",
                right,
            )
        right = re.sub("[=^]", "", value)
        return f"{name} takes no '=' or '^': only NCCL does", f"write '{name}: {right}'", right
    for item in names.split(",") if name == HCAS else ():
        if item and not re.fullmatch(r"[^:]+(:1?(:[0-9]*){0,2})?", item):
            right = f"{item.split(':')[0]}:1"
            return (
                f"'{item}' is not a RoCE device, or has a port other than 1",
                f"write '{right}'",
                value.replace(item, right, 1),
            )
    return None


def marks(name: str, value: str) -> tuple[str, str]:
    """The marks that precede a list of names, and the names."""
    if name == "UCX_NET_DEVICES" and value.startswith("^"):
        return "^", value[1:]
    if not name.startswith("NCCL_"):
        return "", value
    found = re.match(r"\^?=?", value)
    marks = found[0] if found else ""
    return marks, value.removeprefix(marks)
