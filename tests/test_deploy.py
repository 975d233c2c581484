"""deploy.sh with real ssh, sshd, rsync and sudo: a fault is one line, and a state of its node."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from programs import require, require_root
from test_operator import LAB_MESH
from waiting import PATIENCE

# One machine for all nodes. `good` may use sudo; `guest` needs a password, which is `open sesame`,
# and has a small disk.
_MACHINE = """\
set -e
T=$0
for place in /run /home /root; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /run/sshd /home/good /home/guest
mount -t tmpfs -o size=24k tmpfs /home/guest
for file in passwd shadow; do cp --archive "/etc/$file" "$T/"; done
for user in good:4241 guest:4242; do
  echo "${user%:*}:x:${user#*:}:65534::/home/${user%:*}:/bin/bash" >>"$T/passwd"
  echo "${user%:*}:$(openssl passwd -6 'open sesame'):20000:0:99999:7:::" >>"$T/shadow"
  chown "${user#*:}" "/home/${user%:*}"
done
printf '%s\\n' 'good ALL=(root) NOPASSWD: ALL' 'guest ALL=(root) ALL' >"$T/sudoers"
chmod 0440 "$T/sudoers"
for file in passwd shadow sudoers; do mount --bind "$T/$file" "/etc/$file"; done
ip link set lo up
/usr/sbin/sshd -f "$T/sshd_config" -E "$T/log"
python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 24)); time.sleep(600)' &
silent=$!
until : 2>/dev/null <>/dev/tcp/127.0.0.1/22; do sleep 0.05; done
until : 2>/dev/null <>/dev/tcp/127.0.0.1/24; do sleep 0.05; done
eval "$1"
status=0
"$T/my site/operator/deploy.sh" "${@:2}" <"$T/typed" || status=$?
kill "$silent" "$(</run/sshd.pid)"
exit "$status"
"""
_INSTALL = """\
#!/bin/bash
case $1 in
  --check) [[ -e ~/installed ]] || { echo "NODE: 1 files are new, 0 change, 0 go"; exit 1; } ;;
  --apply) touch ~/installed && echo "first, within 120 s: --confirm; else all is put back" ;;
esac
[[ $EUID == 0 ]]
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder() -> Iterator[Path]:
    require("ip", "mount", "openssl", "rsync", "ssh", "ssh-keygen", "sudo", "unshare")
    require_root()
    with tempfile.TemporaryDirectory(prefix="op", dir="/tmp") as folder:
        path = Path(folder)
        path.chmod(0o755)
        shutil.copytree(LAB_MESH.folder, path / "my site")
        for name in ("host", "own", "bare", "killed", "other"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path / name)]
            subprocess.run(argv, check=True)
        (path / "killing").mkdir()
        (path / "killing/rsync").write_text("#!/bin/bash\nkill -KILL $$\n")
        (path / "killing/rsync").chmod(0o755)
        keys = {"own": "/usr/bin:/bin", "bare": "/nowhere", "killed": f"{path}/killing:/usr/bin"}
        lines = [
            f'environment="PATH={folders}" {(path / f"{name}.pub").read_text()}'
            for name, folders in keys.items()
        ]
        (path / "keys").write_text("".join(lines))
        (path / "sshd_config").write_text(
            f"HostKey {path}/host\nStrictModes no\nUsePAM no\nPermitUserEnvironment yes\n"
            f"AuthorizedKeysFile {path}/keys\nLogLevel VERBOSE\nListenAddress 127.0.0.1\n"
        )
        for node in LAB_MESH.site.nodes:
            for file, text in (("install.sh", _INSTALL), ("verify.py", "#!/bin/sh\n")):
                (path / "my site" / node.name / file).write_text(text.replace("NODE", node.name))
        (path / "home").mkdir()
        yield path


@pytest.fixture
def deploy(folder: Path) -> Run:
    (folder / "known").write_text(f"127.0.0.1 {(folder / 'other.pub').read_text()}")

    def run(
        *arguments: str, options: str = "", before: str = "", user: str = "good", typed: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        own = "".join(f"  {option}\n" for option in options.format(folder).split("; ") if option)
        own += "" if "IdentityFile" in own else f"  IdentityFile {folder}/own\n"
        (folder / "my site/operator/ssh_config").write_text(
            f"Host spark3\n{own}Host spark1 spark2\n  IdentityFile {folder}/own\n"
            f"Host *\n  HostName 127.0.0.1\n  User {user}\n"
            "  IdentitiesOnly yes\n  ConnectTimeout 1\n"
            "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
        )
        (folder / "typed").write_text(typed)
        argv = ["unshare", "--mount", "--net", "bash", "-c", _MACHINE, str(folder), before]
        return subprocess.run(
            [*argv, *arguments],
            env={"HOME": str(folder / "home"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return run


def test_node_has_one_login_for_all_steps(deploy: Run, folder: Path) -> None:
    """And a new one to confirm, which shows that logins still work; nothing is left behind."""
    done = deploy("--apply")
    assert (done.returncode, done.stderr) == (0, "")
    assert "all match the bundle: spark2 spark3 spark1" in done.stdout
    log = (folder / "log").read_text()
    # All nodes are one machine here: it differs three times when it is looked at.
    assert log.count("Accepted publickey for good") == 2 * 3
    states = folder / "home/.local/state/sparkgen/lab-mesh"
    assert {path.name for path in states.iterdir()} == {"spark1", "spark2", "spark3"}
    assert {path.read_text().split("\t")[0] for path in states.iterdir()} == {"same"}


def test_password_is_entered_once_for_all_steps_of_all_nodes(deploy: Run, folder: Path) -> None:
    """After a typing mistake, too; without the password nothing happens as root."""
    room = "mount -o remount,size=90% /home/guest"
    done = deploy("--apply", user="guest", before=room, typed="open barley\nopen sesame\n")
    assert done.returncode == 0
    assert "all match the bundle: spark2 spark3 spark1" in done.stdout
    mistake = "spark2: sudo has not got the right password: run this again"
    assert done.stderr.split("\n") == ["", mistake, "", ""]
    assert (folder / "log").read_text().count("Accepted publickey for guest") == 2 * 3
    done = deploy("--run", user="guest", before=room, typed="open barley\n")
    assert done.returncode == 2
    assert done.stdout.count(": refused (") == 3


# What is wrong with spark3, the state in which it then is, and what is said about it.
FAULTS = {
    "new host key": (
        "StrictHostKeyChecking yes; UserKnownHostsFile {}/known",
        "unreachable",
        "its host key has changed: ",
    ),
    "unknown host key": ("StrictHostKeyChecking yes", "unreachable", "its host key is not trusted"),
    "wrong key": (
        "IdentityFile {}/other; BatchMode yes",
        "unreachable",
        "does not accept your key",
    ),
    "closed port": ("Port 23", "unreachable", "nothing answers at its port for SSH"),
    "no route": ("HostName 203.0.113.9", "unreachable", "there is no route to it"),
    "silence": ("Port 24", "unreachable", "it does not answer"),
    "no such name": ("HostName spark3.invalid", "unreachable", "its name has no address here"),
    "no rsync": ("IdentityFile {}/bare", "refused", "rsync is not installed"),
    "full disk": ("User guest", "refused", "its disk is full"),
    "others' files": ("User guest", "refused", "sparkgen-bundle there belongs to somebody else"),
    "no home": ("User guest", "refused", "its user has no home folder"),
    "noisy shell": ("User guest", "refused", "its shell prints something, or its sshd allows"),
    "sessions": ("Port 2200", "refused", "its sshd opens no further session"),
    "jump": ("ProxyJump nobody@127.0.0.1:23", "unreachable", "it or your jump host drops"),
    "password": ("User guest", "refused", "sudo needs a password, and there is no terminal"),
    "SFTP alone": ("Port 2200", "refused", "or its sshd allows SFTP alone"),
    "some commands": ("User guest", "refused", "its sudoers file does not let this user run"),
    "other commands without a password": ("User guest", "refused", "sudo needs a password"),
    "rsync killed there": ("IdentityFile {}/killed", "refused", "rsync ended there"),
}
ROOM = "mount -o remount,size=90% /home/guest"
GOOD = "good ALL=(root) NOPASSWD: ALL"
SUDOERS = f"printf '%s\\n' '{GOOD}' 'guest ALL=(root) {{}}' >/etc/sudoers"
BEFORE = {
    "others' files": "mkdir -m 0700 /home/guest/sparkgen-bundle",
    "no home": "umount /home/guest && rmdir /home/guest",
    "noisy shell": "echo 'echo Welcome' >/home/guest/.bashrc",
    "sessions": (
        'printf "%s\\n" "Port 2200" "MaxSessions 0" "PidFile none" '
        '| cat - "$T/sshd_config" >"$T/two"; /usr/sbin/sshd -f "$T/two"'
    ),
    "password": ROOM,
    "SFTP alone": (
        'printf "%s\n" "Port 2200" "ForceCommand internal-sftp" "PidFile none" '
        '| cat - "$T/sshd_config" >"$T/two"; /usr/sbin/sshd -f "$T/two"'
    ),
    "some commands": f"{ROOM}; {SUDOERS.format('NOPASSWD: ALL, !/home/guest/sparkgen-bundle/*')}",
    "other commands without a password": f"{ROOM}; {SUDOERS.format('NOPASSWD: /usr/bin/id')}",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_one_line_and_a_state(fault: str, deploy: Run) -> None:
    options, state, message = FAULTS[fault]
    done = deploy("--apply", options=options, before=BEFORE.get(fault, ""))
    assert done.returncode == 2
    about, last = done.stderr.splitlines()
    assert about.startswith("spark3: ")
    assert message in about
    assert last == "== nothing was installed: fix these, or leave them out with --skip: spark3"
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("spark3: "))
    assert line.startswith(f"spark3: {state} (")
    assert about.removeprefix("spark3: ") in line


# A rank that has served, and then notes all that it is told before its standard input ends.
_RANK = """\
#!/bin/bash
[[ $* == "--rehearse -" ]] || exit 0
echo '{"stage": "rehearsal", "status": "accepted"}'
mapfile -t told
echo "$EUID ${told[*]}" >>/opt/told
"""
_RANKS = 'mount -t tmpfs tmpfs /opt; mkdir /opt/sparkgen; cp "$T/rank" /opt/sparkgen/launch.sh'


@pytest.mark.parametrize(("user", "typed"), [("good", ""), ("guest", "open sesame\n")])
def test_ranks_are_told_that_the_head_has_served(
    user: str, typed: str, deploy: Run, folder: Path
) -> None:
    """And nobody is told the password but sudo, which reads it first if it wants one."""
    (folder / "rank").write_text(_RANK)
    (folder / "rank").chmod(0o755)
    noted = f"{_RANKS}; trap 'cp /opt/told \"$T/\"' EXIT"
    done = deploy("--rehearse", user=user, before=noted, typed=typed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"accepted"') == 3
    told = [line.split() for line in (folder / "told").read_text().splitlines()]
    assert told == [["0", "served"]] * 3


@pytest.mark.parametrize(("sent", "status"), [("TERM", 2), ("KILL", 137)])
def test_ranks_end_if_deploy_does(sent: str, status: int, deploy: Run, folder: Path) -> None:
    """However it ends: their standard input ends, too."""
    started = "mapfile -t told\n"
    script = _RANK.replace("accepted", "waits").replace(started, f"echo >>/opt/started\n{started}")
    (folder / "rank").write_text(script)
    (folder / "rank").chmod(0o755)
    until = 'until [[ $(grep -c "" /opt/{}) == 3 ]]; do sleep 0.1; done'
    kill = f'kill -{sent} "$(pgrep -of "$T/my site/operator/deploy.sh")"'
    before = (
        f"{_RANKS}; touch /opt/told /opt/started; ({until.format('started')}; {kill}) & "
        f"trap '{until.format('told')}; cp /opt/told \"$T/\"' EXIT"
    )
    done = deploy("--rehearse", before=before)
    assert done.returncode == status
    assert (folder / "told").read_text().split() == ["0"] * 3
