"""The real ufw in every state that people leave it in: after the firewall it is as it was before.

    PYTHONPATH=.:tests python tests/firewall_matrix.py

Off and on, with each default policy and with rules that equal or overlap the bundle's, it is
installed and removed, installed and not confirmed, or installed, changed and removed. It needs root
and takes some minutes; it prints what differs, and how many states there were.
"""

import os
import sys
import tempfile
from itertools import product
from pathlib import Path

os.environ.setdefault("SPARKGEN_BUILT_BUNDLES", tempfile.mkdtemp())

import test_services
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
# What happens between the two looks at ufw.
WAYS = {
    "removed": '"$S" >/dev/null; "$S" --remove >/dev/null',
    "not confirmed": '"$S" >/dev/null; "$S" --undo >/dev/null',
    "changed": (
        '"$S" --keep >/dev/null; echo "allow 8000/tcp" >"$R"; "$S" --keep >/dev/null; '
        '"$S" --remove >/dev/null; cp "$R.first" "$R"'
    ),
}
SCRIPT = """\
S=$T/opt/sparkgen/firewall.sh R=$T/etc/sparkgen/firewall.rules
cp "$R" "$R.first"
state() { ufw show added; ufw status verbose; cat /etc/default/ufw; ls /etc/ufw; }
cp -r /etc/ufw "$T/kept"; cp /etc/default/ufw "$T/policy"
while IFS=$'\\t' read -r name commands way; do
  eval "$commands" >/dev/null
  state >"$T/before"
  eval "$way"
  state >"$T/after"
  echo "= $name"
  diff "$T/before" "$T/after" || true
  ufw --force disable >/dev/null
  rm -r /etc/ufw/* && cp -r "$T/kept/." /etc/ufw; cp "$T/policy" /etc/default/ufw
done <"$T/set-ups"
"""


def main() -> int:
    """Whether a state was not restored."""
    rows = [
        (
            f"{status}, {policy}, {rule}, {way}",
            f"ufw default {policy} incoming; {RULES[rule]}{STATUS[status]}",
            WAYS[way],
        )
        for status, policy, rule, way in product(STATUS, POLICIES, RULES, WAYS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        prepared_firewall(path)
        for name, line in test_services.LOGGED_IN.items():
            (path / name).write_text(f"#!/bin/sh\n{line}\n")
            (path / name).chmod(0o755)
        (path / "set-ups").write_text("".join("\t".join(row) + "\n" for row in rows))
        env = {"T": folder, "PATH": f"{folder}:{test_services.PATH}"}
        output = with_ufw(path, SCRIPT, env, seconds=3600)
    lines = output.splitlines()
    wrong = [line for line in lines if not line.startswith("= ")]
    print("\n".join(lines if wrong else []))
    seen = len(lines) - len(wrong)
    print(f"{seen} of {len(rows)} states, {len(wrong)} lines differ")
    return int(bool(wrong) or seen < len(rows))


if __name__ == "__main__":
    sys.exit(main())
