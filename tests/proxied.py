"""A node in namespaces of its own, where nginx runs with the generated configuration."""

from pathlib import Path

from bundles import on_node

# A node's own /etc is read-only in the tests; the keys are written.
_WRITABLE = 'mount --bind "$0/etc/sparkgen" /etc/sparkgen && exec "$@"'

_MACHINE = """\
set -e
mount -t tmpfs tmpfs /run
mkdir -m 0700 /run/sparkgen-proxy /run/sparkgen-gateway
# What is below /tmp would be hidden.
if [ -n "$PROGRAM" ]; then mkdir /run/program && mount --bind "$PROGRAM" /run/program; fi
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/lib
mkdir -m 0700 /var/lib/sparkgen-gateway
ip link set lo up
for address; do ip address add "$address/24" dev lo; done
exec sleep infinity
"""


def writable(tree: Path, *argv: str) -> list[str]:
    """Prefix a program so that it is on the node, and may write its /etc/sparkgen."""
    return on_node(tree, "sh", "-c", _WRITABLE, str(tree), *argv)


def machine(tree: Path, *addresses: str) -> list[str]:
    """A program that holds the namespaces for as long as it runs."""
    return writable(tree, "unshare", "--net", "sh", "-c", _MACHINE, "sh", *addresses)


def entering(process: int) -> list[str]:
    """Prefix a program so that it runs where that one does."""
    return ["nsenter", "--target", str(process), "--mount", "--net"]


def is_up(process: int) -> bool:
    """Whether the namespaces are made."""
    return "sleep" in Path(f"/proc/{process}/comm").read_text()
