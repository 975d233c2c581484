"""A node in its own namespaces, in which nginx runs with the generated configuration."""

from collections.abc import Sequence
from pathlib import Path

from bundles import on_node
from programs import UNPACKED, decline

# With njs, unpacked by .ci/run. In its container it has a user of its own.
NGINX_FOLDER = UNPACKED / "nginx"
NGINX = ("/run/nginx/nginx", "-c", "/opt/sparkgen/proxy/proxy.conf", "-g", "daemon off; user root;")

# A node's /etc is read-only in the tests, but the keys have to be written.
_WRITABLE = 'mount --bind "$0/etc/sparkgen" /etc/sparkgen && exec "$@"'

_MACHINE = """\
set -e
mount -t tmpfs tmpfs /run
mkdir -m 0700 /run/sparkgen-proxy
# What is below /tmp would be hidden.
mkdir /run/nginx && mount --bind "$NGINX" /run/nginx
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/lib
ip link set lo up
for address; do ip address add "$address/24" dev lo; done
exec sleep infinity
"""


def require_nginx() -> None:
    """Continue only if nginx with njs was unpacked."""
    if not (NGINX_FOLDER / "nginx").exists():
        decline("no nginx with njs beside the tests: .ci/run unpacks it")


def writable(tree: Path, *argv: str) -> list[str]:
    """Prefix for a program so that it runs on the node and may write to its /etc/sparkgen."""
    return on_node(tree, "sh", "-c", _WRITABLE, str(tree), *argv)


def machine(tree: Path, *addresses: str) -> list[str]:
    """A program that keeps the namespaces alive for as long as it runs."""
    return writable(tree, "unshare", "--net", *_holder(*addresses))


def holding(tree: Path, within: Sequence[str]) -> list[str]:
    """The same, in the network that a prefix enters."""
    return [*within, *writable(tree, *_holder())]


def _holder(*addresses: str) -> list[str]:
    return ["env", f"NGINX={NGINX_FOLDER}", "sh", "-c", _MACHINE, "sh", *addresses]


def entering(process: int) -> list[str]:
    """Prefix for a program so that it runs in the namespaces of another."""
    return ["nsenter", "--target", str(process), "--mount", "--net"]


def is_up(process: int) -> bool:
    """Whether the namespaces exist yet."""
    return "sleep" in Path(f"/proc/{process}/comm").read_text()
