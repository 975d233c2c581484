"""The services that a site configures beside its engine, run by the programs they are for."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import draws
import pytest
import yaml
from bundles import BUNDLES, NODES, Bundle, NodeFolder, composed_services
from conftest import Command
from programs import program, require, require_root
from stand_ins import StandIns
from waiting import PATIENCE

from generator.services.firewall import rules
from generator.services.proxy import Proxy


def nodes_with(service: str) -> list[NodeFolder]:
    return [folder for folder in NODES if service in folder.site.services]


def ran(*argv: str) -> str:
    """The output of a program that succeeds."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# SSH


def daemon(folder: NodeFolder, tmp_path: Path, interactive: str) -> list[str]:
    """Sshd with its own drop-in, read before everything else, as in Ubuntu's main file."""
    require("sshd", "ssh-keygen")
    key = tmp_path / "host"
    ran("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    config = tmp_path / "sshd_config"
    drop_in = folder.path / "etc/ssh/sshd_config.d/40-sparkgen.conf"
    main = (
        f"HostKey {key}\nPasswordAuthentication yes\nKbdInteractiveAuthentication {interactive}\n"
    )
    config.write_text(f"Include {drop_in}\n{main}")
    return ["/usr/sbin/sshd", "-f", str(config)]


@pytest.mark.parametrize("interactive", ["yes", "no"])
@pytest.mark.parametrize("folder", nodes_with("ssh"), ids=str)
def test_sshd(folder: NodeFolder, interactive: str, tmp_path: Path) -> None:
    """Passwords only from nearby networks; what PAM requires stays as the machine has it."""
    require_root()
    Path("/run/sshd").mkdir(exist_ok=True)
    sshd = daemon(folder, tmp_path, interactive)
    assert ran(*sshd, "-t") == ""
    near = [str(interface.peers[0].address) for interface in folder.node.interfaces]
    if folder.node.management:
        near.append(str(folder.node.management.address.ip))
    for address in (*near, "203.0.113.9", "100.101.102.103", "fe80::1", "fd7a:115c:a1e0::1"):
        config = ran(*sshd, "-T", "-C", f"addr={address},user=nvidia,host=h,laddr=h,lport=22")
        allowed = "yes" if address in near else "no"
        assert f"\npasswordauthentication {allowed}\n" in config
        assert f"\nkbdinteractiveauthentication {interactive}\n" in config
        root = "without-password" if folder.node.user == "root" else "no"
        for setting in (f"permitrootlogin {root}", "maxauthtries 3", "logingracetime 20"):
            assert f"\n{setting}\n" in config


@pytest.mark.parametrize("folder", nodes_with("ssh"), ids=str)
def test_ssh_knows_a_node_by_all_its_names(folder: NodeFolder) -> None:
    require("ssh")
    config = str(folder.path / "etc/ssh/ssh_config.d/40-sparkgen.conf")
    for address, name in folder.node.hosts:
        node = name.partition(".")[0]
        for target in (address, name):
            done = subprocess.run(["ssh", "-G", "-F", config, target], capture_output=True)
            lines = done.stdout.decode().splitlines()
            known = f"hostkeyalias {node}" in lines and f"user {folder.node.user}" in lines
            assert known is (node != folder.name)


@pytest.mark.parametrize(
    "bundle", {f.bundle.name: f.bundle for f in nodes_with("ssh")}.values(), ids=str
)
def test_fail2ban(bundle: Bundle, tmp_path: Path) -> None:
    """All nodes have the same jail."""
    require("fail2ban-client")
    shutil.copytree("/etc/fail2ban", tmp_path / "fail2ban")
    folders = [NodeFolder(bundle, node.name) for node in bundle.site.nodes]
    [jail] = {(f.path / "etc/fail2ban/jail.d/sparkgen.conf").read_text() for f in folders}
    (tmp_path / "fail2ban/jail.d/sparkgen.conf").write_text(jail)
    client = ("fail2ban-client", "-c", str(tmp_path / "fail2ban"))
    done = subprocess.run([*client, "-t"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (
        0,
        ["OK: configuration test is successful"],
    )
    output = subprocess.run([*client, "-d"], capture_output=True, text=True).stdout
    assert "['set', 'sshd', 'maxretry', 5]" in output
    assert "'addignoreip'" in output
    for node in bundle.site.nodes:
        if node.management:
            assert f"'{node.management.address.ip}'" in output
    assert ("'addaction', 'ufw'" in output) is ("firewall" in bundle.site.services)


def test_keys_are_copied_once(tmp_path: Path) -> None:
    require("ssh-keygen")
    folder = next(f for f in nodes_with("ssh") if (f.path / "opt/sparkgen/ssh-keys.sh").exists())
    stand_ins = StandIns(tmp_path)
    stand_ins.add("ssh", '#!/bin/sh\n[ -e "$HOME/copied" ]\n')
    stand_ins.add("ssh-copy-id", '#!/bin/sh\necho "$@" >>"$HOME/copied"\n')
    script = str(folder.path / "opt/sparkgen/ssh-keys.sh")
    others = [node.name for node in folder.site.nodes if node.name != folder.name]
    for _ in range(2):
        done = stand_ins.run(script)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "".join(f"{name}: OK\n" for name in others)
    key = tmp_path / ".ssh/id_ed25519_sparkgen"
    assert (tmp_path / "copied").read_text() == f"-i {key}.pub {others[0]}\n"
    assert key.stat().st_mode & 0o777 == 0o600


# The real firewall: ufw in a namespace, with its own /etc/ufw and /run

_FIREWALL = """\
set -e
cp -r /etc/ufw "$0/ufw" && cp /etc/default/ufw "$0/default"
mount --bind "$0/ufw" /etc/ufw && mount --bind "$0/default" /etc/default/ufw
mount -t tmpfs tmpfs /run && mkdir /run/sshd
ip link set lo up
exec bash -euo pipefail -c "$1"
"""


def with_ufw(
    tmp_path: Path,
    script: str,
    env: Mapping[str, str] | None = None,
    seconds: float = PATIENCE,
) -> str:
    require("ip", "mount", "ss", "ufw", "unshare")
    require_root()
    done = subprocess.run(
        ["unshare", "--mount", "--net", "bash", "-c", _FIREWALL, str(tmp_path), script],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def added(text: str) -> set[str]:
    """The rules of `ufw show added` that have the comment."""
    lines = (line.removesuffix(" comment 'sparkgen'") for line in text.splitlines())
    return {line.removeprefix("ufw ") for line in lines if line.startswith("ufw ")}


# A head and a worker of each bundle: the rules of all workers are alike.
WALLED = [f for f in nodes_with("firewall") if f.node.rank < 2]


RULES = {str(folder): set(rules(folder.site, folder.node)) for folder in WALLED}
FULLEST = max(WALLED, key=lambda folder: len(RULES[str(folder)]))


@pytest.mark.parametrize("folder", WALLED, ids=str)
def test_rules_of_the_firewall(folder: NodeFolder, tmp_path: Path) -> None:
    """Those that ufw is told on each node; the tests below give them to the real one."""
    stand_ins = StandIns(tmp_path)
    for name in ("ss", "sshd", "ufw"):
        stand_ins.add(name, "#!/bin/sh\n")
    done = stand_ins.run(str(folder.path / "opt/sparkgen/firewall.sh"), "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    *allowed, default, enable = done.stdout.splitlines()
    assert set(allowed) == {f"ufw {rule} comment sparkgen" for rule in RULES[str(folder)]}
    assert (default, enable) == ("ufw default deny incoming", "ufw --force enable")


def test_ufw_shows_each_rule_as_it_was_added(tmp_path: Path) -> None:
    """The script recognizes its rules by their text; those of the fullest node follow below."""
    others = set().union(*RULES.values()) - RULES[str(FULLEST)]
    commands = "".join(f"ufw {rule} comment sparkgen >/dev/null\n" for rule in sorted(others))
    assert added(with_ufw(tmp_path, f"{commands}ufw show added")) == others


@pytest.mark.long
def test_firewall(tmp_path: Path) -> None:
    script = FULLEST.path / "opt/sparkgen/firewall.sh"
    wanted = RULES[str(FULLEST)]
    output = with_ufw(
        tmp_path,
        f"""
        ufw allow 4444/tcp >/dev/null
        ufw allow 5555/tcp comment sparkgen >/dev/null
        {script} --dry-run; echo ==; ufw show added; echo ==
        {script}; echo ==; ufw show added; ufw status verbose; echo ==
        {script}; echo ==; ufw show added; echo ==
        {script} --remove; echo ==; ufw show added
        """,
    )
    dry, untouched, _, first, again, second, _, last = output.split("==\n")
    assert {
        line.removeprefix("ufw ").removesuffix(" comment sparkgen") for line in dry.splitlines()
    } == {
        *wanted,
        "delete allow 5555/tcp",
        "default deny incoming",
        "--force enable",
    }
    assert added(untouched) == {"allow 4444/tcp", "allow 5555/tcp"}
    assert added(first) == added(second) == wanted | {"allow 4444/tcp"}
    assert "Status: active" in first
    assert "Default: deny (incoming), allow (outgoing)" in first
    assert "Rule" not in again
    assert added(last) == {"allow 4444/tcp"}


SSH = "from 10.0.0.0/24 to any port 22 proto tcp"
# What people have done with ufw before: an equal rule, with a comment, or with another action or
# logging, and other default policies.
SET_UPS = {
    "on, equal rule": f"ufw allow {SSH} comment admin; ufw --force enable",
    "on, limited and logged": f"ufw limit log {SSH}; ufw --force enable",
    "on, all rejected": f"ufw default reject incoming; ufw allow {SSH}; ufw --force enable",
    "on, all allowed": "ufw default allow incoming; ufw --force enable",
    "on, both families": "ufw allow in on lan; ufw limit 22/tcp; ufw --force enable",
    "on, an app and a comment": (
        "ufw allow OpenSSH; ufw allow 22 comment 'for sparkgen'; ufw --force enable"
    ),
    "off, equal rule": f"ufw default allow incoming; ufw allow {SSH}",
}
_AS_BEFORE = """\
state() { ufw show added; ufw status verbose; cat /etc/default/ufw; ls /etc/ufw; }
cp -r /etc/ufw "$T/kept"; cp /etc/default/ufw "$T/policy"
while IFS=$'\t' read -r name commands; do
  eval "$commands" >/dev/null
  state >"$T/before"
  "$T/opt/sparkgen/firewall.sh" >/dev/null
  during=$(ufw status verbose)
  "$T/opt/sparkgen/firewall.sh" --remove >/dev/null
  state >"$T/after"
  echo "$name: $(grep -cE '^(Status: active|Default: deny .incoming)' <<<"$during")"
  diff "$T/before" "$T/after" || true
  ufw --force disable >/dev/null
  cp -r "$T/kept/." /etc/ufw; cp "$T/policy" /etc/default/ufw
done <"$T/set-ups"
"""


def half(first: int) -> Mapping[str, str]:
    """Every second set-up, since ufw is slow; all of them in a long run."""
    names = list(SET_UPS)[first::2]
    return SET_UPS if draws.MANY > 1 else {name: SET_UPS[name] for name in names}


_UNDONE = _AS_BEFORE.replace("--remove >/dev/null", "--undo >/dev/null")
# Somebody is logged in, and systemd takes the timer.
PATH = os.environ["PATH"]
LOGGED_IN = {
    "ss": "echo 0 0 10.0.0.11:22 10.0.0.5:50000",
    "systemd-run": 'echo "$*" >>"$T/timers"',
    "systemctl": "exit 3",
}


@pytest.mark.long
@pytest.mark.drawn
def test_firewall_that_nobody_confirms_is_undone(tmp_path: Path) -> None:
    """Whatever ufw was before; a confirmed one stays, and later runs change only what differs."""
    before = half(0)
    script = prepared_firewall(tmp_path, before)
    for name, line in LOGGED_IN.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    env = {"T": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    output = with_ufw(tmp_path, _UNDONE, env)
    assert output.splitlines() == [f"{name}: 2" for name in before]
    timers = (tmp_path / "timers").read_text().splitlines()
    assert len(timers) == len(before)
    assert timers[0].endswith(f"--on-active=120 --timer-property=AccuracySec=1s {script} --undo")
    shutil.rmtree(tmp_path / "ufw")
    (tmp_path / "default").unlink()
    confirmed = f"{script} >/dev/null; {script} --confirm; {script} --undo; ufw status; ls /etc/ufw"
    output = with_ufw(tmp_path, confirmed, env)
    assert "Status: active" in output
    assert "undo-sparkgen" not in output


def prepared_firewall(tmp_path: Path, before: Mapping[str, str] = SET_UPS) -> Path:
    """The script, with two rules, and ways in which ufw is set up before."""
    script, listed = tmp_path / "opt/sparkgen/firewall.sh", tmp_path / "etc/sparkgen/firewall.rules"
    for path in (script, listed):
        path.parent.mkdir(parents=True)
    shutil.copy(FULLEST.path / "opt/sparkgen/firewall.sh", script)
    listed.write_text(f"# rules\nallow {SSH}\nallow in on enp1s0f0np0 from 10.100.0.0/24\n")
    set_ups = "".join(f"{name}\t{commands}\n" for name, commands in before.items())
    (tmp_path / "set-ups").write_text(set_ups)
    return script


@pytest.mark.long
@pytest.mark.drawn
def test_ufw_is_as_before_without_the_firewall(tmp_path: Path) -> None:
    """Rules that were there keep their action, logging and comment, and defaults come back."""
    before = half(1)
    prepared_firewall(tmp_path, before)
    output = with_ufw(tmp_path, _AS_BEFORE, {"T": str(tmp_path)})
    assert output.splitlines() == [f"{name}: 2" for name in before]


def test_firewall_stays_if_nobody_knows_how_ufw_was(tmp_path: Path) -> None:
    """Without its rules, the default that it has set would lock everybody out."""
    prepared_firewall(tmp_path)
    script = """\
S=$T/opt/sparkgen/firewall.sh
"$S" --keep >/dev/null
ufw show added >"$T/rules"
rm /etc/ufw/before-sparkgen
! "$S" --remove 2>"$T/said"
ufw show added | diff "$T/rules" - && cat "$T/said"
"""
    said = with_ufw(tmp_path, script, {"T": str(tmp_path)})
    assert "/etc/ufw/before-sparkgen, which tells how ufw was before, is gone: our" in said


# Echoes what it receives on three ports.
_SERVER = """\
import selectors, socket
waiting = selectors.DefaultSelector()
for port in (22, 8000, 9999):
    waiting.register(socket.create_server(("0.0.0.0", port)), selectors.EVENT_READ, True)
open("/run/ready", "w").close()
while True:
    for key, _ in waiting.select():
        if key.data:
            waiting.register(key.fileobj.accept()[0], selectors.EVENT_READ, False)
        elif data := key.fileobj.recv(99):
            key.fileobj.sendall(data)
        else:
            waiting.unregister(key.fileobj)
"""

_VISITORS = """\
plug() { # NAMESPACE INTERFACE ADDRESS ADDRESS-OF-THE-OTHER
  ip netns add "$1" && ip link add "$2" type veth peer name peer netns "$1"
  ip address add "$3" dev "$2" && ip link set "$2" up
  ip -n "$1" address add "$4" dev peer && ip -n "$1" link set peer up
}
plug fabric "$INTERFACE" "$FABRIC/24" "$PEER/24"
plug people enP7s7 "$MANAGEMENT/24" 10.0.0.99/24
plug far wan 203.0.113.1/24 203.0.113.9/24
await() { for _ in {1..100}; do [[ ! -e $1 ]] || return 0; sleep 0.05; done; return 1; }
python3 -c "$SERVER" >/dev/null 2>&1 &
server=$!
await /run/ready
cat >/run/session <<'END'
exec 3<>/dev/tcp/203.0.113.1/22
touch /run/in
until [[ -e /run/closed ]]; do sleep 0.05; done
echo hello >&3
read -r -t 5 answer <&3
echo "session: $answer"
END
ip netns exec far bash /run/session &
session=$!
await /run/in
"$SCRIPT" >/dev/null
touch /run/closed
wait "$session"
for port in 22 8000 9999; do
  for visit in "fabric $FABRIC" "people $MANAGEMENT" "far 203.0.113.1"; do
    read -r who where <<<"$visit"
    if ip netns exec "$who" timeout 1 bash -c ": </dev/tcp/$where/$port" 2>/dev/null; then
      echo "$who $port"
    fi
  done
done
kill "$server"
"""


def test_firewall_lets_in_only_what_it_should(tmp_path: Path) -> None:
    """Everything from the fabric; SSH and the API from management; and the open session."""
    folder = nodes_with("firewall")[0]
    node, half = folder.node, folder.node.interfaces[0]
    assert node.management
    env = {
        "SERVER": _SERVER,
        "SCRIPT": str(folder.path / "opt/sparkgen/firewall.sh"),
        "INTERFACE": half.name,
        "FABRIC": str(half.address.ip),
        "PEER": half.peers[0].address,
        "MANAGEMENT": str(node.management.address.ip),
    }
    assert set(with_ufw(tmp_path, _VISITORS, env).splitlines()) == {
        "session: hello",
        "fabric 22",
        "fabric 8000",
        "fabric 9999",
        "people 22",
        "people 8000",
        "far 22",
    }


# llama.cpp's workers, whose rule is in the engine's unit

WORKERS = [f for f in NODES if f.part.engine.name == "llama.cpp" and not f.node.is_head]
# Those with one link and port, whose rules are the same.
ALIKE: dict[tuple[object, int], list[NodeFolder]] = {}
for worker in WORKERS:
    ALIKE.setdefault((worker.member.link, worker.part.engine.ports["rpc"]), []).append(worker)


def iptables_commands(folder: NodeFolder) -> list[tuple[str, str, str]]:
    """The lines of the engine's unit: when, whether it may fail, and the command."""
    unit = (folder.path / "etc/systemd/system/sparkgen-engine.service").read_text()
    return re.findall(r"^(ExecSt\w+)=(-?)\+(/usr/sbin/iptables .*)$", unit, re.MULTILINE)


_RPC = """\
plug() { # NAMESPACE INTERFACE ADDRESS
  ip netns add "$1" && ip link add "$2" type veth peer name peer netns "$1"
  ip link set "$2" master lan up
  ip -n "$1" address add "$3" dev peer && ip -n "$1" link set peer up
}
ip link add lan type bridge && ip address add "$WORKER/24" dev lan && ip link set lan up
plug head one "$HEAD/24"
plug stranger two "$STRANGER/24"
python3 -c 'import os, socket
server = socket.create_server((os.environ["WORKER"], int(os.environ["PORT"])))
while True: server.accept()' &
server=$!
reach() { timeout 1 bash -c ": </dev/tcp/$WORKER/$PORT" 2>/dev/null && echo "$1"; }
export -f reach
reached() {
  echo "$1:"
  reach node || true
  for who in head stranger; do ip netns exec "$who" bash -c "reach $who" || true; done
}
until reach node >/dev/null; do sleep 0.1; done
ufw allow in on lan >/dev/null
for firewall in disable enable; do
  ufw --force "$firewall" >/dev/null
  eval "$START" && eval "$START"
  reached "$firewall started"
  eval "$STOP"
  reached "$firewall stopped"
done
kill "$server"
"""


@pytest.mark.parametrize("folders", ALIKE.values(), ids=lambda folders: str(folders[0]))
def test_only_the_head_reaches_a_worker(folders: list[NodeFolder], tmp_path: Path) -> None:
    """With ufw and without, while the engine runs, however often it was started."""
    require("iptables")
    folder = folders[0]
    link = folder.member.link
    assert link
    lines = iptables_commands(folder)
    assert all(iptables_commands(other) == lines for other in folders)
    start, stop = (
        "; ".join(
            f"{line} 2>/dev/null || true" if may else line for at, may, line in lines if at == kind
        )
        for kind in ("ExecStartPre", "ExecStopPost")
    )
    env = {
        "START": start,
        "STOP": stop,
        "WORKER": str(link.worker),
        "HEAD": str(link.head),
        "STRANGER": str(link.worker + 100),
        "PORT": str(folder.part.engine.ports["rpc"]),
    }
    output = with_ufw(tmp_path, _RPC, env).split()
    assert output == [
        *("disable", "started:", "node", "head"),
        *("disable", "stopped:", "node", "head", "stranger"),
        *("enable", "started:", "node", "head"),
        *("enable", "stopped:", "node", "head", "stranger"),
    ]


# Monitoring

SITES = {bundle.name: bundle for bundle in BUNDLES if "monitoring" in bundle.site.services}


@pytest.mark.parametrize("bundle", SITES.values(), ids=str)
def test_prometheus(bundle: Bundle, tmp_path: Path) -> None:
    require("promtool")
    config = bundle.folder / "operator/prometheus.yml"
    assert "SUCCESS" in ran("promtool", "check", "config", "--lint-fatal", str(config))
    alerts = bundle.folder / "operator/alerts.yml"
    assert "SUCCESS" in ran("promtool", "check", "rules", "--lint-fatal", str(alerts))
    jobs = {
        job["job_name"]: [target["targets"][0] for target in job["static_configs"]]
        for job in yaml.safe_load(config.read_text())["scrape_configs"]
    }
    proxy = Proxy.of(bundle.site)
    addresses = [node.address for node in bundle.site.nodes]
    # Alternatives that share a port are one target.
    apis = dict.fromkeys(part.engine.api.url.split("//")[1] for part in bundle.site.parts)
    # Under TLS by its name, which the certificate is for.
    url = proxy.url.split("//")[1] if proxy else ""
    engines = [url] * len(apis) if proxy else list(apis)
    assert jobs == {
        **({"engine": engines} if engines else {}),
        **({"proxy": [url]} if proxy else {}),
        "node": [f"{address}:9100" for address in addresses],
        "gpu": [f"{address}:9400" for address in addresses],
    }


@pytest.mark.parametrize("bundle", SITES.values(), ids=str)
def test_dashboard(bundle: Bundle, tmp_path: Path) -> None:
    """Prometheus understands every query."""
    require("promtool")
    board = json.loads((bundle.folder / "operator/dashboard.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = [{"record": f"query:{n}", "expr": query} for n, query in enumerate(queries)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    assert f"SUCCESS: {len(queries)} rules found" in ran("promtool", "check", "rules", str(file))


def test_alerts(tmp_path: Path) -> None:
    """A fault of PCIe is told at once; little power, only while there is work."""
    require("promtool")
    rules = SITES["golden-groups-gateway"].folder / "operator/alerts.yml"
    node, idle = 'site="a",node="spark1"', 'site="b",node="spark2"'
    series = {
        f'sparkgen_check_failed{{check="kernel-log",{node}}}': "1",
        f"DCGM_FI_DEV_POWER_USAGE{{{node}}}": "8+0x120",
        f"DCGM_FI_DEV_POWER_USAGE{{{idle}}}": "8+0x120",
        'sparkgen_proxy_running{site="a",engine="chat"}': "1+0x120",
        'sparkgen_proxy_running{site="b",engine="chat"}': "0+0x120",
    }
    summaries = {
        rule["alert"]: rule["annotations"]["summary"].replace("{{ $labels.node }}", "spark1")
        for group in yaml.safe_load(rules.read_text())["groups"]
        for rule in group["rules"]
    }
    labels = {"site": "a", "node": "spark1"}
    told = {
        "KernelFault": ("0m", labels | {"check": "kernel-log", "severity": "critical"}),
        "WorkWithoutPower": ("90m", labels | {"severity": "warning"}),
    }
    tests = [
        {
            "eval_time": time,
            "alertname": name,
            "exp_alerts": [{"exp_labels": own, "exp_annotations": {"summary": summaries[name]}}],
        }
        for name, (time, own) in told.items()
    ]
    file = tmp_path / "test.yml"
    given = [{"series": name, "values": values} for name, values in series.items()]
    case = {"interval": "1m", "input_series": given, "alert_rule_test": tests}
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "tests": [case]}))
    assert "SUCCESS" in ran("promtool", "test", "rules", str(file))


def test_group_is_up_if_one_of_its_alternatives_is(tmp_path: Path) -> None:
    """Alternatives that wait have ports of their own and are down, which is no fault."""
    require("promtool")
    folder = SITES["golden-groups-alternatives"].folder / "operator"
    board = json.loads((folder / "dashboard.json").read_text())
    [panel] = [panel for panel in board["panels"] if panel["title"] == "Targets"]
    [query] = [target["expr"] for target in panel["targets"]]
    jobs = yaml.safe_load((folder / "prometheus.yml").read_text())["scrape_configs"]
    [targets] = [job["static_configs"] for job in jobs if job["job_name"] == "engine"]
    series = []
    for target in targets:
        labels = {"job": "engine", "instance": target["targets"][0], **target["labels"]}
        # The pair was switched to the one at port 30000; the single node's engine died.
        value = 1 if labels["instance"].endswith(":30000") else 0
        shown = ",".join(f'{name}="{text}"' for name, text in labels.items())
        series.append({"series": f"up{{{shown}}}", "values": f"{value}"})
    samples = [
        {"labels": '{job="engine", node="spark1", group="chat"}', "value": 1},
        {"labels": '{job="engine", node="spark3", group="embed"}', "value": 0},
    ]
    expectation = {"expr": query, "eval_time": "0m", "exp_samples": samples}
    tests = {"tests": [{"input_series": series, "promql_expr_test": [expectation]}]}
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    assert len(series) == 3
    assert "SUCCESS" in ran("promtool", "test", "rules", str(file))


@pytest.mark.parametrize("folder", nodes_with("monitoring"), ids=str)
def test_exporters(folder: NodeFolder, tmp_path: Path) -> None:
    tree = folder.copy(tmp_path)
    address = folder.node.address
    services = composed_services(tree, "sparkgen-monitoring", "/opt/sparkgen/monitoring.yaml")
    assert services.keys() == {"node", "gpu"}
    node, gpu = services["node"], services["gpu"]
    assert f"--web.listen-address={address}:9100" in node["command"]
    assert node["volumes"][0]["source"] == "/"
    assert node["volumes"][0]["read_only"]
    assert gpu["environment"] == {"DCGM_EXPORTER_LISTEN": f"{address}:9400"}
    for service in (node, gpu):
        assert (service["restart"], service["network_mode"]) == ("no", "host")
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
        assert service["pids_limit"]


@pytest.mark.parametrize("folder", nodes_with("monitoring"), ids=str)
def test_node_compares_itself_with_its_bundle(folder: NodeFolder, tmp_path: Path) -> None:
    tree = folder.copy(tmp_path)
    assert (tree / "opt/sparkgen/verify.py").read_bytes() == (tree / "verify.py").read_bytes()
    units = tree / "etc/systemd/system"
    service = (units / "sparkgen-verify.service").read_text()
    exporter = composed_services(tree, "sparkgen-monitoring", "/opt/sparkgen/monitoring.yaml")
    (written,) = re.findall(r"--metrics (/var/lib/[a-z-]+)/", service)
    assert f"--collector.textfile.directory=/host{written}" in exporter["node"]["command"]
    assert f"StateDirectory={written.removeprefix('/var/lib/')}\n" in service
    # ufw creates its lock there even for a query.
    assert "ReadWritePaths=/run\n" in service
    # Only its timer starts it, and the timer starts with the exporters.
    assert "[Install]" not in service + (units / "sparkgen-verify.timer").read_text()
    wants = (units / "sparkgen-monitoring.service").read_text()
    assert " sparkgen-verify.timer\n" in wants


# Priority flow control


@pytest.mark.parametrize("folder", nodes_with("qos"), ids=str)
def test_dcb_accepts_its_commands(folder: NodeFolder) -> None:
    """No simulated interface has priorities: dcb takes the command, and the kernel declines.

    Before dcb replaces a mapping it asks the kernel, and fails without looking at the new one; so
    the commands are run as additions, too.
    """
    require("dcb", "ip", "unshare")
    require_root()
    unit = (folder.path / "etc/systemd/system/sparkgen-qos.service").read_text()
    commands = re.findall(r"^Exec(?:Start|Stop)=-?(.*)$", unit, re.MULTILINE)
    assert len(commands) == 4 * len(folder.node.interfaces)
    links = [f"ip link add {i.name} type veth" for i in folder.node.interfaces]
    accepted = [*commands, *(command.replace(" replace ", " add ") for command in commands)]
    lines = [*links, *(f"{command} || true" for command in accepted)]
    done = subprocess.run(
        ["unshare", "--net", "bash", "-ec", "\n".join(lines)], capture_output=True, text=True
    )
    assert done.returncode == 0
    declined = {f"Attribute {way}: Operation not supported" for way in ("read", "write")}
    assert set(done.stderr.splitlines()) <= declined


@pytest.mark.parametrize("bundle", BUNDLES, ids=str)
def test_nccl_marks_packets_of_the_paused_priority(bundle: Bundle) -> None:
    for node in bundle.site.nodes:
        assert node.nccl.get("NCCL_IB_TC") == ("106" if "qos" in bundle.site.services else None)


# Models

# The layouts of huggingface_hub's cache: until 1.31, and since 1.32, where a file of weights is a
# link to a store that all repositories share.
_HF = """\
#!/bin/bash
echo "$@" >>"$CALLS/hf"
cd "$HF_HUB_CACHE" && mkdir -p "models--${2/\\//--}"/{blobs,refs,snapshots/0a}
cd "models--${2/\\//--}" || exit
printf 0a >"refs/${4:-main}"
# A safetensors file: the size of its header, the header, and 8 bytes of data.
header='{"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}}'
weights() { printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%sweights\\n" "$header"; }
if [[ $SHARED ]]; then
  mkdir -p ../blobs/ab
  weights >../blobs/ab/abcd
  ln -sf ../../blobs/ab/abcd blobs/w
else
  weights >blobs/w
fi
echo half >blobs/x.incomplete
echo '{"metadata": {"total_size": 8}, "weight_map": {"a": "model.safetensors"}}' >blobs/i
ln -sf ../../blobs/i snapshots/0a/model.safetensors.index.json
ln -sf ../../blobs/w snapshots/0a/model.safetensors
"""
# The other nodes are folders that stand in for /home.
_SSH = """\
#!/bin/bash
while [[ $1 == -* ]]; do
  if [[ $1 == -l ]]; then shift; fi
  shift
done
mkdir -p "$PEERS/${1#*@}"
lay='mount --bind "$PEERS/$0" /home && exec bash -c "$1"'
exec unshare --mount bash -c "$lay" "${1#*@}" "${*:2}"
"""


@pytest.fixture
def fetching(tmp_path: Path) -> tuple[StandIns, NodeFolder, tuple[str, ...]]:
    """Stand-ins for the programs of models.sh, the node that runs it, and the command."""
    require("rsync", "unshare")
    heads = [f for f in nodes_with("models") if f.node.is_head]
    folder = next(f for f in heads if f.bundle.name == "golden-switch-services")
    stand_ins = StandIns(tmp_path)
    stand_ins.add("hf", _HF)
    stand_ins.add("ssh", _SSH)
    stand_ins.env |= {"PEERS": str(tmp_path / "peers"), "SHARED": ""}
    stand_ins.add("curl", _CURL)
    script = _with_short_vocabularies(folder.path, tmp_path) / "opt/sparkgen/models.sh"
    home = 'mkdir -p "$HOME/home" && mount --bind "$HOME/home" /home && exec "$0" "$@"'
    return stand_ins, folder, ("unshare", "--mount", "bash", "-c", home, str(script))


# A file that curl downloads contains its address.
_CURL = """\
#!/bin/bash
while (($#)); do
  [[ $1 != --output ]] || file=$2
  url=$1
  shift
done
echo "$url" >>"$CALLS/curl"
echo "$url" >"$file"
"""


def _with_short_vocabularies(node: Path, scratch: Path) -> Path:
    """The node's folder, with the checksums of what the stand-in for curl downloads."""
    copied = scratch / "node"
    shutil.copytree(node, copied)
    _shorten(copied / "etc/sparkgen/node.env")
    return copied


def _shorten(facts: Path) -> None:
    lines = facts.read_text().splitlines(keepends=True)
    for index, line in enumerate(lines):
        if line.startswith("VOCABULARY="):
            _, file, url = line.split()
            sum_of_url = sha256(f"{url}\n".encode()).hexdigest()
            lines[index] = f"VOCABULARY={sum_of_url} {file} {url}\n"
    facts.write_text("".join(lines))


MODEL = "openai/gpt-oss-120b"
HUB = "nvidia/.cache/huggingface/hub/models--openai--gpt-oss-120b"


@pytest.mark.parametrize("shared", ["", "yes"], ids=["blobs", "shared-blobs"])
def test_models_are_fetched_once_and_copied(
    shared: str,
    fetching: tuple[StandIns, NodeFolder, tuple[str, ...]],
    tmp_path: Path,
) -> None:
    stand_ins, folder, run = fetching
    stand_ins.env["SHARED"] = shared
    peers = tmp_path / "peers"

    done = stand_ins.run(*run)
    assert (done.returncode, done.stderr) == (0, "")
    others = [node for node in folder.site.nodes if not node.is_head]
    near = {peer.node: peer.address for peer in folder.node.interfaces[0].peers}
    assert done.stdout.splitlines() == [f"nvidia@{near[o.name]}: {MODEL}: OK" for o in others]
    revision = folder.part.model.revision
    called = (stand_ins.calls / "hf").read_text()
    unread = "--exclude original/* --exclude metal/*"
    assert called == f"download openai/gpt-oss-120b --revision {revision} {unread}\n"
    vocabularies = "nvidia/.cache/huggingface/tiktoken"
    fetched = (stand_ins.calls / "curl").read_text().split()
    assert [url.rsplit("/", 1)[-1] for url in fetched] == [
        "o200k_base.tiktoken",
        "cl100k_base.tiktoken",
    ]
    for other in others:
        copied = peers / near[other.name] / vocabularies
        assert {path.name: path.read_text().strip() for path in copied.iterdir()} == {
            url.rsplit("/", 1)[-1]: url for url in fetched
        }
        model = peers / near[other.name] / HUB
        assert not (model / "blobs/w").is_symlink()
        link = model / "snapshots/0a/model.safetensors"
        assert link.is_symlink()
        assert link.read_bytes().endswith(b"}weights\n")
        assert not (model / "blobs/x.incomplete").exists()

    # With the same size and time, by which rsync takes it for the same file.
    broken = peers / near[others[1].name] / HUB / "blobs/w"
    times = broken.stat().st_mtime_ns
    whole = broken.read_bytes()

    def damage() -> None:
        broken.write_bytes(whole.replace(b"weights", b"weighty"))
        os.utime(broken, ns=(times, times))

    damage()
    done = stand_ins.run(*run, "--offline")
    assert (done.returncode, done.stdout.count(": OK\n")) == (0, len(others))
    assert broken.read_bytes() == whole
    # Where copying changes nothing, it does not go on forever.
    damage()
    stand_ins.add("rsync", "#!/bin/sh\n")
    done = stand_ins.run(*run, "--offline")
    assert done.returncode == 1
    assert f"{near[others[1].name]}: {MODEL}: differs although it was copied twice" in done.stderr
    assert done.stdout.count(": OK\n") == len(others) - 1


def test_node_that_does_not_answer_keeps_no_other_waiting(
    fetching: tuple[StandIns, NodeFolder, tuple[str, ...]],
) -> None:
    """It is one line. rsync before 3.2.3, on either side, makes no folders itself."""
    stand_ins, folder, run = fetching
    gone, *others = (peer.address for peer in folder.node.interfaces[0].peers)
    says = f"ssh: connect to host {gone} port 22: No route to host"
    lost = f'[[ "$*" != *{gone}* ]] || {{ echo "{says}" >&2; exit 255; }}\n'
    shebang, rest = _SSH.split("\n", 1)
    stand_ins.add("ssh", f"{shebang}\n{lost}{rest}")
    old = '[[ "$*" != *--mkpath* ]] || { echo "rsync: --mkpath: unknown option" >&2; exit 1; }\n'
    stand_ins.add("rsync", f'#!/bin/bash\n{old}exec {program("rsync")} "$@"\n')
    done = stand_ins.run(*run)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"nvidia@{other}: {MODEL}: OK" for other in others]
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"nvidia@{gone}: vocabularies: there is no route to it: ")
    assert line.endswith("; then run models.sh again: what has arrived is kept")


def test_small_files_are_fetched_and_copied_without_weights(
    fetching: tuple[StandIns, NodeFolder, tuple[str, ...]], tmp_path: Path
) -> None:
    """Weights that are here already stay here, complete or not."""
    stand_ins, folder, run = fetching
    stand_ins.add("hf", _HF + "truncate -s 101M blobs/w\necho {} >snapshots/0a/config.json\n")
    done = stand_ins.run(*run, "--small")
    assert (done.returncode, done.stderr) == (0, "")
    called = (stand_ins.calls / "hf").read_text().split()
    excluded = [word for before, word in pairwise(called) if before == "--exclude"]
    assert {"original/*", "*.safetensors", "*.gguf"} <= {*excluded}
    near = {peer.node: peer.address for peer in folder.node.interfaces[0].peers}
    for other in (node for node in folder.site.nodes if not node.is_head):
        model = tmp_path / "peers" / near[other.name] / HUB
        assert (model / "snapshots/0a/config.json").read_text() == "{}\n"
        assert not (model / "blobs/w").exists()


def test_models_of_each_group_are_fetched_on_its_head(tmp_path: Path, sparkgen: Command) -> None:
    """With two groups on one node, both; a worker has no script."""
    require("rsync", "unshare")
    site = next(b for b in BUNDLES if b.name == "golden-groups-gateway").file.read_text()
    (tmp_path / "site.yaml").write_text(f"{site}  models: true\n")
    assert sparkgen("build", "site.yaml", cwd=tmp_path).code == 0
    bundle = tmp_path / "out/groups-gateway"
    assert not (bundle / "spark2/opt/sparkgen/models.sh").exists()
    head = 'mkdir -p "$HOME/home" && mount --bind "$HOME/home" /home && exec "$0" "$@"'
    for name, argv, copied, models in (
        ("spark1", (), ["nvidia@10.100.0.12"], ["openai/gpt-oss-120b"]),
        ("spark5", (), [], ["Qwen/Qwen3-Embedding-8B", "openai/gpt-oss-20b"]),
        ("spark5", ("--group", "coder"), [], ["openai/gpt-oss-20b"]),
    ):
        scratch = tmp_path / f"{name}-{len(argv)}"
        scratch.mkdir()
        stand_ins = StandIns(scratch)
        for stand_in, text in (("hf", _HF), ("ssh", _SSH), ("curl", _CURL)):
            stand_ins.add(stand_in, text)
        stand_ins.env |= {"PEERS": str(stand_ins.calls / "peers"), "SHARED": ""}
        folder = stand_ins.calls / "node"
        shutil.copytree(bundle / name, folder)
        for facts in (folder / "etc/sparkgen/groups").glob("*.node.env"):
            _shorten(facts)
        script = str(folder / "opt/sparkgen/models.sh")
        done = stand_ins.run("unshare", "--mount", "bash", "-c", head, script, *argv)
        assert (done.returncode, done.stderr) == (0, "")
        assert [line.split(":")[0] for line in done.stdout.splitlines() if ": OK" in line] == copied
        called = (stand_ins.calls / "hf").read_text().splitlines()
        assert [line.split()[1] for line in called] == models
    done = stand_ins.run("unshare", "--mount", "bash", "-c", head, script, "--group", "chat")
    assert (done.returncode, done.stderr) == (2, "models.sh: there is no group chat here\n")


@pytest.mark.parametrize("fault", ["blob", "store", "bytes", "cut", "no index", "refs"])
def test_incomplete_models_are_not_copied(
    fault: str,
    fetching: tuple[StandIns, NodeFolder, tuple[str, ...]],
    tmp_path: Path,
) -> None:
    stand_ins, _, run = fetching
    stand_ins.env["SHARED"] = "yes" if fault == "store" else ""
    assert stand_ins.run(*run).returncode == 0
    shutil.rmtree(tmp_path / "peers")
    hub = next(tmp_path.rglob(f"home/{HUB}"))
    messages = {
        "blob": "snapshots/0a/model.safetensors is a dangling link",
        "store": "blobs/w is a dangling link",
        "bytes": "snapshots/0a/model.safetensors.index.json lists 1 files with 8 bytes, "
        "which are not all here",
        "cut": "snapshots/0a/model.safetensors is damaged or not complete, by its own header",
        "no index": "snapshots/0a/model.safetensors is damaged or not complete, by its own header",
        "refs": "there is no snapshots/0b, which refs names",
    }
    if fault in ("cut", "no index"):
        (hub / "blobs/w").write_bytes((hub / "blobs/w").read_bytes()[:-1])
        if fault == "no index":
            (hub / "snapshots/0a/model.safetensors.index.json").unlink()
    elif fault == "refs":
        next((hub / "refs").iterdir()).write_text("0b")
    elif fault == "bytes":
        (hub / "blobs/w").write_text("weight\n")
    else:
        (hub / ("blobs/w" if fault == "blob" else "../blobs/ab/abcd")).unlink()
    done = stand_ins.run(*run, "--offline")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{hub.name}: {messages[fault]}\n" in done.stderr
    assert done.stderr.endswith(f"nothing was copied; fetch {MODEL} again with models.sh\n")
    assert not (tmp_path / "peers").exists()
