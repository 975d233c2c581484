"""Lets nodes log in to each other as root, over a real sshd."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

PROGRAMS = ("/usr/sbin/sshd", "ssh", "ssh-keygen")

_FOLDER = "/etc/ssh/tests"
_SSHD = f"""\
HostKey {_FOLDER}/key
PidFile none
StrictModes no
UsePAM no
AuthorizedKeysFile {_FOLDER}/key.pub
PermitRootLogin yes
"""
_SSH = f"""\
IdentityFile {_FOLDER}/key
UserKnownHostsFile /dev/null
StrictHostKeyChecking no
LogLevel ERROR
"""
_UNIT = f"""\
[Unit]
DefaultDependencies=no
[Service]
RuntimeDirectory=sshd
ExecStart=/usr/sbin/sshd -D -e -f {_FOLDER}/sshd_config
Restart=always
"""


def add_logins(trees: Iterable[Path], folder: Path) -> None:
    """Give prepared nodes one key, both as host key and as the key that logs in."""
    key = folder / "key"
    argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    subprocess.run(argv, check=True)
    for tree in trees:
        target = tree / _FOLDER.lstrip("/")
        target.mkdir(parents=True)
        for file in (key, key.with_suffix(".pub")):
            (target / file.name).write_text(file.read_text())
            (target / file.name).chmod(0o600)
        (target / "sshd_config").write_text(_SSHD)
        (tree / "etc/ssh/ssh_config.d").mkdir()
        (tree / "etc/ssh/ssh_config.d/tests.conf").write_text(_SSH)
        (tree / "opt/units/logins.service").write_text(_UNIT)
        wants = tree / "opt/units/boot.target.wants"
        wants.mkdir(exist_ok=True)
        (wants / "logins.service").symlink_to("../logins.service")
