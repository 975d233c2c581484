"""A node in its own namespaces, in which nginx runs with the generated configuration."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import litellm_environment
from bundles import on_node
from programs import decline

LITELLM = litellm_environment.place()

# A node's /etc is read-only in the tests, but the keys have to be written.
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

_LITELLM = """\
mkdir /run/bin && cat >/run/bin/litellm <<'END' && chmod 755 /run/bin/litellm
#!/bin/sh
exec /run/program/bin/python3 -c 'from litellm import run_server; run_server()' "$@"
END
"""


def writable(tree: Path, *argv: str) -> list[str]:
    """Prefix for a program so that it runs on the node and may write to its /etc/sparkgen."""
    return on_node(tree, "sh", "-c", _WRITABLE, str(tree), *argv)


def machine(tree: Path, *addresses: str) -> list[str]:
    """A program that keeps the namespaces alive for as long as it runs."""
    return writable(tree, "unshare", "--net", "sh", "-c", _MACHINE, "sh", *addresses)


def holding(tree: Path, within: Sequence[str]) -> list[str]:
    """The same, in the network that a prefix enters."""
    return [*within, *writable(tree, "sh", "-c", _MACHINE, "sh")]


def require_litellm() -> None:
    """Continue only if the environment was created."""
    if not LITELLM.exists():
        decline("no LiteLLM: python tests/litellm_environment.py makes it")


def give_litellm(process: int) -> str:
    """Provide `litellm` in the namespaces; returns a search path that includes it."""
    subprocess.run([*entering(process), "sh", "-c", _LITELLM], check=True)
    return f"/run/bin:{os.environ['PATH']}"


def entering(process: int) -> list[str]:
    """Prefix for a program so that it runs in the namespaces of another."""
    return ["nsenter", "--target", str(process), "--mount", "--net"]


def is_up(process: int) -> bool:
    """Whether the namespaces exist yet."""
    return "sleep" in Path(f"/proc/{process}/comm").read_text()
