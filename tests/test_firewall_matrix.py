"""One set-up of ufw, drawn from those that firewall_matrix.py tries by hand."""

import random
import re
import sys
from pathlib import Path

import pytest
from firewall_matrix import ROWS, RULES, WAYS, tried
from node_programs import loaded
from test_services import prepared_firewall, with_ufw


@pytest.mark.long
def test_ufw_and_logins_are_as_before() -> None:
    row = random.choice(ROWS)
    lines = tried([row], seconds=5)
    assert [line for line in lines if not line.startswith("= ")] == [], row
    assert len(lines) == len(WAYS)


def test_rules_in_the_kernel_are_those_of_ufw(tmp_path: Path) -> None:
    """verify.py finds each rule that ufw wrote, and misses each that is another one."""
    loaded("node/verify.py")
    services = sys.modules["services"]
    prepared_firewall(tmp_path)
    usual = [RULES[name] for name in ("logged", "wider", "narrower", "profile")]
    orders = "; ".join([*usual, *OTHER_RULES])
    script = f"{{ {orders}; ufw --force enable; }} >/dev/null; cat /etc/ufw/user.rules; iptables -S"
    lines = with_ufw(tmp_path, script).splitlines()
    own = [line for line in lines if line.startswith("-A ufw-user-input ") and "ACCEPT" in line]
    kernel = {services.in_words(line) for line in lines[lines.index("-P INPUT DROP") :]}
    assert len(own) > 10
    for line in own:
        assert services.in_words(line) in kernel, line
        assert services.in_words(re.sub(r"\d+(?=\D*$)|ACCEPT", "9", line)) not in kernel, line


OTHER_RULES = (
    "ufw allow 60000:61000/udp",
    "ufw allow proto tcp from 10.1.0.0/16 to any port 80,443",
    "ufw allow in on lan0",
    "ufw allow to 10.0.0.1 port 53 comment 'two words'",
    "ufw allow proto esp from 10.2.0.1",
)
