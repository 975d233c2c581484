"""Alternatives: what a site with them means, and the script that switches between them."""

import json
import signal
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml
from bundles import IN_GROUPS, PROJECT
from stand_ins import StandIns
from test_verify import machine, unit
from waiting import PATIENCE

from generator.bundle.render import render
from generator.capture import Capture
from generator.drift import drift
from generator.pipeline import read_site
from generator.site import Site

GOLDEN = PROJECT / "tests/golden/groups-alternatives/site.yaml"


def site_of(text: str = GOLDEN.read_text()) -> Site:
    site = read_site("site.yaml", text.encode()).site
    assert site
    return site


# A node is a folder of states, one file per unit; each line of FAULTS is something that fails.
SSH = """\
#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 != -[Fo] ]] || shift; shift; done
export NODE=$1 && shift
echo "$NODE: $*" >>"$CALLS/log"
fault() { [[ $FAULTS == *$'\\n'"$1"$'\\n'* ]]; }
! fault "unreachable $NODE" || exit 255
cd "$CALLS/$NODE" || exit 255
case $* in
  *"systemctl stop"*) step=stop ;;
  *"systemctl start"*) step=start ;;
  *) step=ask ;;
esac
if fault "TERM at $step on $NODE"; then kill -TERM "$PPID"; fi
! fault "refused $step on $NODE" || exit 1
exec bash -c "$*"
"""
SYSTEMCTL = """\
#!/bin/bash
verb=$1 && shift
fault() { [[ $FAULTS == *$'\\n'"$1"$'\\n'* ]]; }
units=() shown=()
for word; do [[ $word == -* ]] || units+=("$word"); done
for word; do [[ $word != --property=* ]] || shown+=("${word#*=}"); done
for unit in "${units[@]}"; do
  # With all that waits for it, and before it does anything.
  if fault "KILL at $verb of $unit on $NODE"; then kill -KILL 0; fi
  read -r state <"$unit"
  enabled=disable
  [[ ! -e $unit.enabled ]] || read -r enabled <"$unit.enabled"
  case $verb in
    show)
      if [[ " $* " == *" --value "* ]]; then
        echo "$state"
      else
        for property in "${shown[@]}"; do
          case $property in
            ActiveState) echo "ActiveState=$state" ;;
            UnitFileState) echo "UnitFileState=${enabled}d" ;;
          esac
        done
      fi
      ;;
    stop) echo inactive >"$unit" ;;
    enable | disable) echo "$verb" >"$unit.enabled" ;;
    start) if fault "failing $unit on $NODE"; then echo failed; else echo active; fi >"$unit" ;;
    reset-failed) ;;
    *) exit 1 ;;
  esac
done
"""
# Asks for the password, if there is one, each time, as sudo does without a terminal.
SUDO = """\
#!/bin/bash
password=
[[ ! -e $CALLS/$NODE/password ]] || read -r password <"$CALLS/$NODE/password"
if [[ $1 == -n ]]; then
  [[ $password ]] || exit 0
  echo 'sudo: a password is required' >&2 && exit 1
fi
[[ $1 == -S && $2 == -p && ! $3 ]] && shift 3 || exit 2
if [[ $password ]]; then
  read -r word
  [[ $word == "$password" ]] || { echo 'sudo: 1 incorrect password attempt' >&2 && exit 1; }
fi
exec "$@"
"""
VERIFY = """\
#!/bin/bash
fault() { [[ $FAULTS == *$'\\n'"$1"$'\\n'* ]]; }
case $1 in
  --ready) ! fault "without $2 on $NODE" ;;
  --serves) read -r state <"sparkgen-engine-$2" && [[ $state == active ]] && ! fault "silent $2" ;;
  *) exit 2 ;;
esac
"""
NODES = ("spark1", "spark2")
NAMES = ("chat", "coder", "tiny")
HEAD = next(f for f in IN_GROUPS if str(f) == "golden-groups-alternatives/spark1")


@cache
def operator_files() -> dict[str, str]:
    """The operator's files of the site, which wait only briefly: stand-ins start at once."""
    tree = render(site_of(), "")
    names = ("switch.sh", "logins.sh", "reasons.sh", "site.env", "ssh_config")
    return {name: tree[f"operator/{name}"].text.replace(" 2100\n", " 15\n") for name in names}


class Cluster:
    """Two nodes, each of which runs one of three engines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        stand_ins = StandIns(folder)
        self.calls, self.env = stand_ins.calls, stand_ins.env
        for name, text in (("ssh", SSH), ("systemctl", SYSTEMCTL)):
            stand_ins.add(name, text)
        stand_ins.add("sudo", SUDO)
        stand_ins.add("sleep", "#!/bin/sh\nexit 0\n")
        for node in NODES:
            (self.calls / node / "sparkgen-bundle").mkdir(parents=True)
            verify = self.calls / node / "sparkgen-bundle/verify.py"
            verify.write_text(VERIFY)
            verify.chmod(0o755)
            for name in NAMES:
                (self.calls / node / f"sparkgen-engine-{name}").write_text("inactive\n")
        operator = folder / "my site/operator"
        operator.mkdir(parents=True)
        for name, text in operator_files().items():
            (operator / name).write_text(text)
        self.script = operator / "switch.sh"
        self.run_on(NODES, "chat")

    def run_on(self, nodes: Sequence[str], name: str) -> None:
        """Let an engine be running and enabled."""
        for node in nodes:
            (self.calls / node / f"sparkgen-engine-{name}").write_text("active\n")
            (self.calls / node / f"sparkgen-engine-{name}.enabled").write_text("enable\n")

    def switch(
        self, *words: str, faults: Sequence[str] = (), typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        (self.calls / "log").write_text("")
        return subprocess.run(
            ["bash", str(self.script), *words],
            env={**self.env, "FAULTS": "\n".join(["", *faults, ""])},
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,
        )

    def running(self, node: str) -> set[str]:
        return {n for n in NAMES if self._is(node, f"sparkgen-engine-{n}", "active")}

    def enabled(self, node: str) -> set[str]:
        return {n for n in NAMES if self._is(node, f"sparkgen-engine-{n}.enabled", "enable")}

    def _is(self, node: str, name: str, state: str) -> bool:
        file = self.calls / node / name
        return file.exists() and file.read_text() == f"{state}\n"

    def done(self) -> list[str]:
        """The actions on each node, without mere queries."""
        lines = (self.calls / "log").read_text().splitlines()
        return [line for line in lines if "sudo -S" in line and "systemctl" in line]

    def has_run(self, name: str) -> bool:
        """Whether all nodes run one engine, start it at boot, and run no other."""
        return all(self.running(n) == self.enabled(n) == {name} for n in NODES)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_switch(cluster: Cluster) -> None:
    done = cluster.switch("coder")
    assert (done.returncode, done.stderr) == (0, "")
    assert cluster.has_run("coder")
    assert "'active: coder'" in done.stdout
    stops = "systemctl stop sparkgen-engine-chat sparkgen-engine-tiny"
    assert [line for line in cluster.done() if "stop" in line] == [
        f"{node}: sudo -S -p '' sh -c '{stops}'" for node in ("spark1", "spark2")
    ]
    starts = [line.partition(":")[0] for line in cluster.done() if "start --no-block" in line]
    assert starts == ["spark2", "spark1"]
    assert cluster.switch("chat").returncode == 0
    assert cluster.has_run("chat")


@pytest.mark.parametrize("fault", ["", "refused stop on spark1"])
def test_gateway_drains_what_stops(cluster: Cluster, fault: str) -> None:
    """Before it stops; afterwards it gets requests again, even if the switch fails."""
    env = cluster.script.with_name("site.env")
    env.write_text(env.read_text() + "GATEWAY_NODE=spark3\n")
    (cluster.calls / "spark3").mkdir()
    assert cluster.switch("coder", faults=[fault]).returncode == bool(fault)
    log = (cluster.calls / "log").read_text().splitlines()
    asked = [line for line in log if "proxy.sh" in line or "systemctl stop" in line]
    script = "spark3: sudo -S -p '' sh -c '/opt/sparkgen/proxy.sh"
    assert asked[0] == f"{script} drain chat'"
    assert f"{script} undrain chat'" in asked[2:]


def test_running_alternative_is_left_alone(cluster: Cluster) -> None:
    done = cluster.switch("chat")
    assert (done.returncode, done.stdout) == (0, "chat serves already\n")
    assert not cluster.done()


def test_list(cluster: Cluster) -> None:
    cluster.run_on(NODES[:1], "coder")
    (cluster.calls / "spark1/sparkgen-engine-chat").write_text("failed\n")
    done = cluster.switch(faults=["unreachable spark2"])
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "one of: chat coder tiny",
        "  spark2: does not answer",
        "  spark1: coder; chat coder starts at boot",
        "  not complete: operator/switch.sh coder runs coder on all nodes, now and at boot; "
        "any of the names will do",
    ]
    assert cluster.switch("coder").returncode == 0
    assert cluster.switch().stdout.splitlines() == [
        "one of: chat coder tiny",
        "  spark2: coder",
        "  spark1: coder",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cdoer"], "there is no alternative cdoer; choose one of: chat coder tiny"),
        (["--now"], "usage: operator/switch.sh"),
        (["chat", "coder"], "usage: operator/switch.sh"),
        (["embed"], "there is no alternative embed"),
    ],
)
def test_wrong_name(cluster: Cluster, words: list[str], message: str) -> None:
    done = cluster.switch(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (cluster.calls / "log").read_text()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("without coder on spark1", "not on spark1; nothing was changed"),
        ("unreachable spark2", "spark2 does not answer; nothing was changed"),
    ],
)
def test_nothing_stops_unless_all_is_present(cluster: Cluster, fault: str, message: str) -> None:
    done = cluster.switch("coder", faults=[fault])
    assert done.returncode == 1
    assert message in done.stderr
    assert not cluster.done()
    assert cluster.has_run("chat")


@pytest.mark.parametrize(
    "fault",
    [
        "failing sparkgen-engine-coder on spark1",
        "failing sparkgen-engine-coder on spark2",
        "silent coder",
        "TERM at stop on spark1",
        "TERM at start on spark2",
    ],
)
def test_failed_start_goes_back(cluster: Cluster, fault: str) -> None:
    done = cluster.switch("coder", faults=[fault])
    assert done.returncode == 1
    assert "chat serves again; coder does not" in done.stderr
    assert cluster.has_run("chat")


@pytest.mark.parametrize(
    ("passwords", "typed", "fault"),
    [
        (("one", "one"), "one\n", ""),
        (("one", "two"), "two\none\n", ""),
        (("", "two"), "two\n", ""),
        (("one", "two"), "two\none\n", "silent coder"),
    ],
)
def test_password_is_asked_for_once_and_before_anything_stops(
    passwords: tuple[str, str], typed: str, fault: str, cluster: Cluster
) -> None:
    for node, password in zip(NODES, passwords, strict=True):
        (cluster.calls / node / "password").write_text(password)
    done = cluster.switch("coder", faults=[fault], typed=typed)
    assert done.returncode == bool(fault)
    assert cluster.has_run("chat" if fault else "coder")
    assert not any(password in (cluster.calls / "log").read_text() for password in ("one", "two"))


def test_wrong_password_changes_nothing(cluster: Cluster) -> None:
    for node in NODES:
        (cluster.calls / node / "password").write_text("one")
    done = cluster.switch("coder", typed="two\n")
    assert (done.returncode, cluster.done()) == (1, [])
    assert "sudo refuses; nothing was changed" in done.stderr
    assert cluster.has_run("chat")


@pytest.mark.parametrize("step", ["stop", "start"])
def test_node_that_refuses(cluster: Cluster, step: str) -> None:
    """It refuses to switch back, too: the script says so, and another call repairs it."""
    done = cluster.switch("coder", faults=[f"refused {step} on spark1"])
    assert done.returncode == 1
    assert "neither coder nor chat serves" in done.stderr
    assert cluster.switch("chat").returncode == 0
    assert cluster.has_run("chat")


# What a switch from chat to coder changes on a node, in its order.
CHANGES = (
    *(f"stop of sparkgen-engine-{name}" for name in ("chat", "tiny")),
    *(f"disable of sparkgen-engine-{name}" for name in ("chat", "tiny")),
    *(f"{verb} of sparkgen-engine-coder" for verb in ("enable", "reset-failed", "start")),
)


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("change", CHANGES)
def test_killed_in_between(cluster: Cluster, change: str, node: str) -> None:
    """The list shows whether the switch is half done, and a command that completes it."""
    done = cluster.switch("coder", faults=[f"KILL at {change} on {node}"])
    assert done.returncode == -signal.SIGKILL
    *_, last = cluster.switch().stdout.splitlines()
    assert last.startswith("  not complete: operator/switch.sh ") != cluster.has_run("chat")
    name = last.split()[3] if "not complete" in last else "coder"
    again = cluster.switch(name)
    assert again.returncode == 0, again.stderr
    assert cluster.has_run(name)
    assert "not complete" not in cluster.switch().stdout


def test_engine_that_would_not_start_at_boot(cluster: Cluster) -> None:
    """It runs everywhere; another one is enabled on a node."""
    file = cluster.calls / "spark1/sparkgen-engine-coder.enabled"
    file.write_text("enable\n")
    (cluster.calls / "spark1/sparkgen-engine-chat.enabled").write_text("disable\n")
    assert "  spark1: chat; coder starts at boot" in cluster.switch().stdout.splitlines()
    assert cluster.switch("chat").returncode == 0
    assert cluster.has_run("chat")


def test_failed_start_with_nothing_to_go_back_to(cluster: Cluster) -> None:
    for node in NODES:
        (cluster.calls / node / "sparkgen-engine-chat").write_text("inactive\n")
    done = cluster.switch("coder", faults=["silent coder"])
    assert done.returncode == 1
    assert "nothing else ran before; coder is stopped" in done.stderr
    assert not any(cluster.running(node) for node in NODES)


def test_failed_way_back(cluster: Cluster) -> None:
    done = cluster.switch("coder", faults=["silent coder", "silent chat"])
    assert done.returncode == 1
    assert "neither coder nor chat serves" in done.stderr


def test_first_installation_enables_the_active_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/hostname").write_text("spark1\n")
    script = HEAD.copy(tmp_path) / "install.sh"
    argv = ["bash", str(script), "--apply", "--root", str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    wants = root / "etc/systemd/system/multi-user.target.wants"
    enabled = {path.name for path in wants.iterdir() if "engine" in path.name}
    assert enabled == {"sparkgen-engine-chat.service"}


@pytest.mark.parametrize(
    ("active", "enabled", "states"),
    [
        ("chat", "chat", {"chat": "OK", "coder": "OK", "tiny": "OK"}),
        ("coder", "coder", {"chat": "SKIP", "coder": "OK", "tiny": "OK"}),
        ("coder", "chat", {"chat": "FAIL", "coder": "FAIL", "tiny": "OK"}),
        ("none", "chat", {"chat": "FAIL", "coder": "OK", "tiny": "OK"}),
    ],
)
def test_verify_reports_alternatives(
    active: str, enabled: str, states: dict[str, str], memory: Path
) -> None:
    on = machine(HEAD, memory)
    on.answers["systemctl"] = {"*": unit("inactive", "disabled")}
    for name in NAMES:
        service = f"sparkgen-engine-{name}"
        is_enabled = "enabled" if name == enabled else "disabled"
        state = "active" if name == active else "inactive"
        on.answers["systemctl"] |= {
            f"'show --property=ActiveState --value {service}'": f"{state}\\n",
            f"'show --property='*' {service}'": unit(state, is_enabled),
            f"'is-enabled {service}'": f"{is_enabled}\\n",
        }
    found = on.lines()
    units = {name: text.split()[0] for name, text in found.items() if "unit engine" in name}
    assert units == {f"unit engine-{name}": word for name, word in states.items()}


@pytest.mark.parametrize(
    ("active", "enabled", "expected"),
    [
        ("chat", "chat", []),
        ("coder", "coder", ["sparkgen-engine-coder.service runs in place of"]),
        (
            "coder",
            "chat",
            [
                "sparkgen-engine-coder.service runs in place of",
                "sparkgen-engine-chat.service starts at boot, and",
                "sparkgen-engine-coder.service is not started at boot",
            ],
        ),
        ("none", "chat", ["sparkgen-engine-chat.service is inactive"]),
    ],
)
def test_capture_records_alternatives(active: str, enabled: str, expected: list[str]) -> None:
    blocks = [
        f"Id=sparkgen-engine-{name}.service\n"
        f"ActiveState={'active' if name == active else 'inactive'}\n"
        f"UnitFileState={'enabled' if name == enabled else 'disabled'}\n"
        for name in NAMES
    ]
    capture = Capture("spark1", "spark1.tar.gz", {"commands/units.txt": "\n".join(blocks)})
    found = [
        remark
        for remark in drift(site_of(), [capture], None).differences
        if remark.rule == "SG866" and "there is no unit" not in remark.message
    ]
    assert [
        remark.message.partition(": ")[2][: len(text)]
        for remark, text in zip(found, expected, strict=True)
    ] == expected


def test_verify_checks_whether_an_alternative_could_start(memory: Path) -> None:
    on = machine(HEAD, memory)
    assert on.run("--ready", "nobody").returncode == 2
    there = on.run("--ready", "chat")
    faults = [line for line in there.stdout.splitlines() if line.startswith("FAIL")]
    # Its other files are where a site with one engine has them.
    assert all("vocabularies" in fault for fault in faults)
    lacking = on.run("--ready", "coder").stdout
    assert "FAIL  model coder" in lacking
    assert "image coder" in lacking
    assert "chat" not in lacking
    on.answers["systemctl"]["'is-active sparkgen-engine-chat'"] = "active\\n"
    assert on.run("--serves", "chat").returncode == 1
    healthy = '[{"State": {"Running": true, "Health": {"Status": "healthy"}}}]'
    on.answers["docker"]["'inspect sparkgen-engine-chat'"] = healthy
    assert on.run("--serves", "chat").returncode == 0
    assert on.run("--serves", "coder").returncode == 1


def test_verify_compares_the_engine_of_each_group(memory: Path) -> None:
    """With the Compose file and the environment of its own group, which names the command."""
    on = machine(HEAD, memory)
    on.answers["systemctl"]["'show --property=ActiveState --value sparkgen-engine-chat'"] = "active"
    for name, found in (("chat", "OK "), ("coder", "FAIL applied, not restarted: ")):
        file = f"opt/sparkgen/groups/{name}/compose.yaml"
        described = yaml.safe_load((on.tree / file).read_text().replace("$$", "$"))
        service = described["services"]["engine"]
        about = {
            "Id": name,
            "State": {"Running": True},
            "Config": {"Image": service["image"], "Cmd": service["command"][name == "coder" :]},
        }
        inspected = json.dumps([about]).replace("\\", "\\\\")
        on.answers["docker"][f"'inspect sparkgen-engine-{name}'"] = inspected
        line = on.lines()[f"running {name}"]
        assert line.startswith(found), line
    assert line.endswith("sudo systemctl restart sparkgen-engine-coder")
