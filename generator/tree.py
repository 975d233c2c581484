"""A bundle in memory: every file's text, its mode, and what a change of it needs on the node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class Change(StrEnum):
    """What must be done on a node when a file of it changes."""

    NOTHING = "nothing"
    HOSTS = "merge into /etc/hosts"
    LOGIN = "next login"
    SYSCTL = "sysctl --system"
    NETPLAN = "netplan apply, links drop; then restart the engine"
    RESTART = "restart the engine"
    WEB_UI = "systemctl daemon-reload, then restart the web UI"
    # The engine that runs is left alone: what a unit says counts from its next start.
    UNIT = "systemctl daemon-reload; counts from the next start"
    GUARD = "systemctl daemon-reload, then restart the guard"
    FIREWALL = "run firewall.sh"
    SSH = "reload sshd; restart fail2ban"
    MONITORING = "systemctl daemon-reload, then restart the exporters"
    QOS = "systemctl daemon-reload, then restart priority flow control"
    DROP_IN = "systemctl daemon-reload"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a bundle; `path` is relative to the bundle, with slashes."""

    path: str
    text: str
    mode: int
    change: Change

    @property
    def data(self) -> bytes:
        """The bytes on disk."""
        return self.text.encode()

    @property
    def sha256(self) -> str:
        """The checksum of the bytes, in hexadecimal."""
        return sha256(self.data).hexdigest()

    @property
    def executable(self) -> bool:
        """Whether the file is a script to run: all of a mode that git keeps."""
        return bool(self.mode & 0o100)


Tree = Mapping[str, File]


def tree(files: Iterable[File]) -> Tree:
    """Files by path, in the order of their paths."""
    return {file.path: file for file in sorted(files, key=lambda file: file.path)}
