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
    orders = "; ".join([*RULES.values(), *OTHER_RULES])
    shown = "cat /etc/ufw/user.rules /etc/ufw/user6.rules; iptables -S; ip6tables -S"
    script = f"{{ {orders}; ufw --force enable; }} >/dev/null; {shown}"
    lines = with_ufw(tmp_path, script).splitlines()
    at = lines.index("-P INPUT DROP")
    own = [line for line in lines[:at] if re.match("-A ufw6?-user-input ", line)]
    kernel = {services.in_words(line) for line in lines[at:]}
    assert len(own) > 30
    assert {line.split()[1] for line in own} == {"ufw-user-input", "ufw6-user-input"}
    for line in own:
        assert services.in_words(line) in kernel, line
        other = re.sub(r"\d+(?=\D*$)|ACCEPT|DROP|REJECT|ufw6?-user-(limit|log)\S*|--set", "9", line)
        assert services.in_words(other) not in kernel, line


OTHER_RULES = (
    "ufw allow 60000:61000/udp",
    "ufw allow proto tcp from 10.1.0.0/16 to any port 80,443",
    "ufw allow in on lan0",
    "ufw allow to 10.0.0.1 port 53 comment 'two words'",
    "ufw allow proto esp from 10.2.0.1",
    "ufw reject 4445/udp",
    "ufw reject 4446/tcp",
    "ufw deny from 2001:db8::1",
    "ufw limit log 2222/tcp",
)
