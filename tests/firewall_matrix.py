"""The real ufw in every state that people leave it in: after the firewall it is as it was before.

    PYTHONPATH=.:tests python tests/firewall_matrix.py [--count N] [--seed N] [--part K/N]

Off and on, with each default policy and with rules that equal or overlap the bundle's: 72 set-ups,
or N drawn ones. In each the firewall is installed and removed, installed and not confirmed, and
installed, changed and removed. Before and after, ufw's rules, status, policies and files must be
the same, and so must the logins to a real sshd, over IPv4 and IPv6, from management, from the
fabric and from elsewhere. It needs root and takes some minutes, in which it mostly waits for the
kernel; so several set-ups are tried at once, each in its own namespaces. It prints what differs.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

os.environ.setdefault("SPARKGEN_BUILT_BUNDLES", tempfile.mkdtemp())

import test_services
from draws import part
from test_services import SSH, prepared_firewall, with_ufw

STATUS = {"off": "", "on": "; ufw --force enable"}
POLICIES = ("allow", "deny", "reject")
RULES = {
    "no rule": "true",
    "equal": f"ufw allow {SSH}",
    "equal, with a comment": f"ufw allow {SSH} comment admin",
    "limited": f"ufw limit {SSH}",
    "denied": f"ufw deny {SSH}",
    "logged": f"ufw allow log {SSH}",
    "wider": "ufw allow 22",
    "narrower": "ufw allow from 10.0.0.7 to any port 22 proto tcp",
    "profile": "ufw allow OpenSSH",
    "IPv6": "ufw allow from fd00::/64 to any port 22 proto tcp",
    "of the fabric": "ufw reject in on enp1s0f0np0 from 10.100.0.0/24",
    "of others": "ufw allow 4444/tcp comment sparkgen2; ufw route allow in on lan0 out on lan1",
}
# What happens between two looks at ufw.
WAYS = {
    "removed": '"$S" >/dev/null; "$S" --remove >/dev/null',
    "not confirmed": '"$S" >/dev/null; "$S" --undo >/dev/null',
    "changed": (
        '"$S" --keep >/dev/null; echo "allow 8000/tcp" >"$R"; "$S" --keep >/dev/null; '
        '"$S" --remove >/dev/null; cp "$R.first" "$R"'
    ),
}
# A name and the commands of each set-up.
ROWS = [
    (f"{status}, {policy}, {rule}", f"ufw default {policy} incoming; {RULES[rule]}{STATUS[status]}")
    for status, policy, rule in product(STATUS, POLICIES, RULES)
]
SCRIPT = """\
S=$T/opt/sparkgen/firewall.sh R=$T/etc/sparkgen/firewall.rules
cp "$R" "$R.first"
plug() { # NAMESPACE INTERFACE PREFIX
  ip netns add "$1" && ip link add "$2" type veth peer name peer netns "$1"
  ip address add "${3}1/24" dev "$2" && ip link set "$2" up
  ip -n "$1" address add "${3}9/24" dev peer && ip -n "$1" link set peer up
}
plug people lan 10.0.0. && plug fabric enp1s0f0np0 10.100.0. && plug far wan 203.0.113.
ip address add fd00::1/64 dev lan nodad && ip -n people address add fd00::9/64 dev peer nodad
ssh-keygen -q -t ed25519 -N "" -f "$T/key"
printf '%s\n' "HostKey $T/key" "AuthorizedKeysFile $T/key.pub" 'PidFile none' 'StrictModes no' \\
  'UsePAM no' 'PermitRootLogin yes' 'LogLevel QUIET' >"$T/sshd_config"
printf '%s\n' "IdentityFile $T/key" 'StrictHostKeyChecking no' 'UserKnownHostsFile /dev/null' \\
  "ConnectTimeout $WAIT" 'LogLevel QUIET' >"$T/ssh_config"
/usr/sbin/sshd -D -f "$T/sshd_config" &
trap 'kill $!' EXIT
login() { # NAMESPACE ADDRESS
  local is=out
  ! ip netns exec "$1" ssh -F "$T/ssh_config" "root@$2" true </dev/null || is=in
  echo "$*: $is"
}
state() {
  ufw show added; ufw status verbose; cat /etc/default/ufw; ls /etc/ufw
  login people 10.0.0.1; login people fd00::1
  login fabric 10.100.0.1; login far 203.0.113.1
}
state >"$T/bare"
# sshd is up, and reached from everywhere.
[[ $(grep -c ": in$" "$T/bare") == 4 ]] || { cat "$T/bare" >&2; exit 1; }
cp -r /etc/ufw "$T/kept"; cp /etc/default/ufw "$T/policy"
while IFS=$'\\t' read -r name commands <&3; do
  eval "$commands" >/dev/null
  state >"$T/before"
  while IFS=$'\\t' read -r title way <&4; do
    eval "$way"
    state >"$T/after"
    echo "= $name, $title: $(grep -c ": in$" "$T/after") of 4 log in"
    diff "$T/before" "$T/after" || true
  done 4<"$T/ways"
  ufw --force disable >/dev/null
  rm -r /etc/ufw/* && cp -r "$T/kept/." /etc/ufw; cp "$T/policy" /etc/default/ufw
done 3<"$T/set-ups"
"""


def tried(rows: Sequence[tuple[str, str]], seconds: int = 1) -> list[str]:
    """A line for each set-up and way, which begins with '= ', and what differs after it.

    A login without an answer fails after some seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        prepared_firewall(path)
        for name, line in test_services.LOGGED_IN.items():
            (path / name).write_text(f"#!/bin/sh\n{line}\n")
            (path / name).chmod(0o755)
        for file, lines in (("set-ups", rows), ("ways", WAYS.items())):
            (path / file).write_text("".join("\t".join(line) + "\n" for line in lines))
        env = {"T": folder, "WAIT": str(seconds), "PATH": f"{folder}:{test_services.PATH}"}
        return with_ufw(path, SCRIPT, env, seconds=3600).splitlines()


def main() -> int:
    """Whether a state was not restored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=len(ROWS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--at-once", type=int, default=4)
    asked = parser.parse_args()
    rows = part(random.Random(asked.seed).sample(ROWS, asked.count), asked.part)
    with ThreadPoolExecutor(asked.at_once) as pool:
        shares = [rows[first :: asked.at_once] for first in range(asked.at_once)]
        lines = [line for share in pool.map(tried, shares) for line in share]
    wrong = [line for line in lines if not line.startswith("= ")]
    print("\n".join(sorted(lines) if not wrong else lines))
    seen, expected = len(lines) - len(wrong), len(rows) * len(WAYS)
    print(f"{seen} of {expected} states, {len(wrong)} lines differ")
    return int(bool(wrong) or seen < expected)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as late:
        sys.exit(f"not through after {late.timeout} s")
