"""A simulated node before its first install and after the uninstall: everything is as it was.

    PYTHONPATH=.:tests python tests/effects.py [--count N] [--seed N]

The real install.sh, ufw, systemd, netplan, networkd and sshd, in every state of ufw that people
leave it in: off and on, with each default policy and with rules that equal or overlap the
bundle's: 72 set-ups, or N drawn ones. Each has half of what people have done to a node besides,
drawn anew: users, masked units, another name, settings, and files of their own among ours. In each
the bundle is installed, its firewall turned on and confirmed, the address of the site's network
changed, the services dropped, that rolled back, and all uninstalled. Compared are ufw's rules,
status and policies, logins to sshd from management and from elsewhere, users and groups, units and
timers, links, addresses and routes, the kernel's settings, the machine's name, and all files of the
folders in which a bundle has some. It needs root, prints what differs, and mostly waits.
"""

import argparse
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

os.environ.setdefault("SPARKGEN_BUILT_BUNDLES", tempfile.mkdtemp())

from bundles import Bundle
from cluster import nodes, stack
from cluster.machines import Machine
from firewall_matrix import POLICIES, RULES, STATUS
from programs import require, require_root
from recabling import plug_in

from generator.verify.namespaces import MANAGEMENT, PROGRAMS

SITE = """\
version: 1
name: lab
user: root
nodes:
  - {name: spark1, management: {interface: enP7s7, address: 10.0.0.11/24}}
  - {name: spark2, management: {interface: enP7s7, address: 10.0.0.12/24}}
cabling: [{endpoints: [spark1:p0, spark2:p0]}]
"""
# Everything that has effects of its own; then other addresses; then nothing but the network.
FULL = f"""\
{SITE}services:
  {{firewall: true, guard: true, monitoring: true, ssh: true, power: {{clock_mhz: 2100}}}}
"""
VERSIONS = {
    "full": FULL,
    "changed": f"{FULL}topology: {{kind: direct, subnet_pool: 10.200.0.0/16}}\n",
    "bare": SITE,
}
# Who logs in from elsewhere is in a namespace of the node's own.
SSHD = """\
mkdir -p /run/sshd /run/keys && ssh-keygen -q -t ed25519 -N '' -f /run/keys/host
printf '%s\\n' 'HostKey /run/keys/host' 'AuthorizedKeysFile /var/keys/own.pub' 'PidFile none' \\
  'StrictModes no' 'UsePAM no' 'PermitRootLogin yes' 'LogLevel QUIET' >/run/keys/sshd_config
/usr/sbin/sshd -f /run/keys/sshd_config
ip netns add far && ip link add wan type veth peer name peer netns far
ip address add 203.0.113.1/24 dev wan && ip link set wan up
ip -n far address add 203.0.113.9/24 dev peer && ip -n far link set peer up
"""
SSH = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nConnectTimeout 1\nLogLevel QUIET\n"
FAR = "exec ip netns exec far ssh -F /var/keys/outside root@203.0.113.1 true"
STATE = r"""
echo '== ufw'; ufw show added; ufw status verbose; cat /etc/default/ufw; ls /etc/ufw
echo '== users'; getent passwd; getent group
echo '== units'; systemctl list-unit-files --no-legend --no-pager
systemctl list-units --all --plain --no-legend --no-pager '*.service' '*.timer' | tr --squeeze ' '
# A link's own address has a route once no other node is found to have it, a second or two later.
while ip -6 address show tentative | grep -q inet6; do sleep 0.1; done
echo '== links'; ip -o link | sed -E 's/ (state|qdisc|mode) .*//; s/^[0-9]+: //'
ip -4 -o address | sed -E 's/^[0-9]*: //; s/ *valid_lft.*//'
ip route show table all; ip rule
echo '== kernel'; sysctl --all 2>/dev/null | grep -E '^(net\.ipv4\.conf|vm\.)'
echo '== name'; uname -n; cat /etc/hostname /etc/hosts
echo '== files'; cd /etc
find sparkgen ssh sysctl.d netplan systemd/system fail2ban security profile.d \
  \( -type f -exec sha256sum {} + \) -o -printf '%M %U %p %l\n' 2>/dev/null | sort
find /opt /etc/nccl.conf -printf '%M %U %p %l\n' 2>/dev/null | sort
"""
# What people have done to a node, and what undoes it.
OWN = {
    "a user in a group": (
        "useradd --user-group own && groupadd spark-own && gpasswd -a own spark-own",
        "userdel own; groupdel spark-own",
    ),
    "a masked unit": ("systemctl mask lldpd.service", "systemctl unmask lldpd.service"),
    "a masked unit of the bundle's": (
        "systemctl mask fail2ban.service",
        "systemctl unmask fail2ban.service",
    ),
    "another name": (
        "hostname box-7 && echo box-7 >/etc/hostname",
        "hostname spark1 && echo spark1 >/etc/hostname",
    ),
    "a name from DHCP": (
        "hostname box-8 && rm /etc/hostname",
        "hostname spark1 && echo spark1 >/etc/hostname",
    ),
    "settings of all interfaces": (
        "sysctl -q net.ipv4.conf.all.arp_ignore=2 net.ipv4.conf.all.rp_filter=1",
        "sysctl -q net.ipv4.conf.all.arp_ignore=0 net.ipv4.conf.all.rp_filter=0",
    ),
    "settings of a port": (
        "sysctl -q net.ipv4.conf.enp1s0f0np0.arp_announce=1",
        "sysctl -q net.ipv4.conf.enp1s0f0np0.arp_announce=0",
    ),
    "files in our folders": (
        "mkdir -p /etc/sparkgen /opt/sparkgen/own && echo own >/etc/sparkgen/own.env"
        " && echo own >/opt/sparkgen/own/tool.sh",
        "rm -r /etc/sparkgen /opt/sparkgen",
    ),
    "a drop-in of sshd": (
        "cd /etc/ssh && mkdir -p sshd_config.d && echo 'MaxAuthTries 5' >sshd_config.d/10-own.conf",
        "rm /etc/ssh/sshd_config.d/10-own.conf",
    ),
    "a file of sysctl": (
        "echo 'vm.swappiness = 7' >/etc/sysctl.d/95-own.conf",
        "rm /etc/sysctl.d/95-own.conf",
    ),
    "a file of netplan": (
        "cd /etc/netplan && echo 'network: {version: 2, ethernets: {own0: {optional: true}}}'"
        " >90-own.yaml && chmod 600 90-own.yaml",
        "rm /etc/netplan/90-own.yaml",
    ),
    "a unit": (
        "printf '[Service]\\nExecStart=/bin/true\\n[Install]\\nWantedBy=multi-user.target\\n'"
        " >/etc/systemd/system/own.service && systemctl enable own.service",
        "systemctl disable own.service; rm /etc/systemd/system/own.service;"
        " systemctl daemon-reload",
    ),
    "a name in hosts": ("echo '10.9.8.7 own' >>/etc/hosts", "sed -i '/ own$/d' /etc/hosts"),
    "their own nccl.conf": ("echo NCCL_DEBUG=WARN >/etc/nccl.conf", "rm /etc/nccl.conf"),
}
LIFE = (
    "/var/full/install.sh --apply --no-confirm --set-hostname",
    "/opt/sparkgen/firewall.sh && /opt/sparkgen/firewall.sh --confirm",
    "/var/changed/install.sh --apply --no-confirm && /opt/sparkgen/firewall.sh --keep",
    "/var/bare/install.sh --apply --no-confirm",
    "/var/bare/install.sh --rollback",
    "/var/full/install.sh --uninstall",
)
ROWS = list(product(STATUS, POLICIES, RULES))


@contextmanager
def node(folder: Path) -> Iterator[tuple[Machine, Sequence[str]]]:
    """A node that has all versions of its folder, and the command by which its neighbor logs in."""
    require_root()
    require(*PROGRAMS, *nodes.PROGRAMS, "ufw", "iptables", "ssh-keygen")
    bundles = {}
    for name, text in VERSIONS.items():
        (folder / f"{name}.yaml").write_text(text)
        bundles[name] = Bundle(f"effects-{name}", folder / f"{name}.yaml")
    first = bundles["full"]
    tree = stack.prepared(first, first.site.nodes[0], folder)
    for name, bundle in bundles.items():
        shutil.copytree(bundle.folder / "spark1", tree / "var" / name)
    keys = tree / "var/keys"
    keys.mkdir()
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "own")]
    subprocess.run(argv, check=True)
    # The key is on the node at its own path, and in the tree for its neighbor.
    for place, name in ((keys, "inside"), (Path("/var/keys"), "outside")):
        (keys / name).write_text(f"IdentityFile {place}/own\n{SSH}")
    with stack.cabled(first, folder) as network, stack.Rack({"spark1": tree}, network) as rack:
        machine = rack.machines["spark1"]
        plug_in(network, "spark2", MANAGEMENT, "enp1s0f0np0")
        there = network.command("spark2")
        argv = ["ip", "address", "add", "10.0.0.12/24", "dev", MANAGEMENT]
        subprocess.run([*there, *argv], check=True)
        run(machine, SSHD)
        login = [*there, "ssh", "-F", str(keys / "inside"), "root@10.0.0.11"]
        assert logins(machine, login) == ["near: 0", "far: 0"]
        yield machine, login


def run(machine: Machine, script: str) -> str:
    """What a script prints on the node, where it succeeds."""
    done = machine.run("bash", "-c", script)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def logins(machine: Machine, login: Sequence[str]) -> list[str]:
    """The exit status of ssh from the management network, and from elsewhere."""
    near = subprocess.run([*login, "true"], capture_output=True)
    far = machine.run("sh", "-c", FAR)
    return [f"near: {near.returncode}", f"far: {far.returncode}"]


def state(machine: Machine, login: Sequence[str]) -> list[str]:
    """Everything that must come back."""
    return [*run(machine, STATE).splitlines(), *logins(machine, login)]


def tried(
    machine: Machine, login: Sequence[str], row: tuple[str, str, str], own: Sequence[str]
) -> list[str]:
    """What differs after a node's life that begins with one state of ufw."""
    status, policy, rule = row
    run(machine, f"ufw default {policy} incoming; {RULES[rule]}{STATUS[status]}")
    for done in own:
        run(machine, OWN[done][0])
    before = state(machine, login)
    for step in LIFE:
        run(machine, step)
    after = state(machine, login)
    for done in own:
        run(machine, f"{OWN[done][1]}; true")
    run(machine, "ufw --force reset; rm -f /etc/ufw/*.rules.2*; ufw default deny incoming")
    return list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]


def main() -> int:
    """Whether something was not restored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=len(ROWS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance, wrong = random.Random(asked.seed), 0
    rows = chance.sample(ROWS, asked.count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder) as (machine, login):
            for row in rows:
                own = chance.sample([*OWN], len(OWN) // 2)
                found = tried(machine, login, row, own)
                wrong += bool(found)
                print(
                    "\n".join([f"= {', '.join([*row, *own])}: {len(found)} lines differ", *found]),
                    flush=True,
                )
    print(f"{len(rows) - wrong} of {len(rows)} set-ups are as before")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
