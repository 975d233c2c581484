"""launch.sh starts what the unit starts, in the same container or without one."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundles import (
    COMPOSED,
    IN_GROUPS,
    NODES,
    NodeFolder,
    composed,
    composed_service,
    covering,
    on_node,
    representatives,
)
from stand_ins import StandIns
from tables import of_each
from waiting import PATIENCE, until

from generator.site import GIVEN_SECRETS, Container

HEAD = next(folder for folder in NODES if folder.bundle.name == "lab-mesh")


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)


def launch(tree: Path, *options: str) -> list[str]:
    # Not run by its shebang: where a shell is the engine's program, it has a stand-in.
    return on_node(tree, "/bin/bash", "/opt/sparkgen/launch.sh", *options)


# launch.sh in a container

# Records each call, and what only lasts as long as it. A container serves until it is stopped by
# name; the client passes signals on to it.
DOCKER = """\
#!/bin/bash
trap '' TERM INT
printf '%s\\0' "$@" >"$CALLS/$1"
case $1 in
  compose)
    cat "$SECRETS" >"$CALLS/secrets"
    cp "${SECRETS%/*}/ask.yaml" "$CALLS" 2>/dev/null
    [[ -z ${UNMADE:-} ]] || { printf 'one\\n%s\\n' "$UNMADE" >&2; exit 1; }
    exit 0 ;;
  image)
    if [[ $DIGEST ]]; then echo "example.org/vllm@$DIGEST"; exit; fi
    echo 'no "image" here' >&2
    exit 1 ;;
  start)
    [[ -z ${ANSWER:-} ]] || echo "$ANSWER"
    [[ -z ${STATUS:-} ]] || exit "$STATUS"
    for _ in {1..1200}; do
      [[ ! -e $CALLS/stop ]] || exit 0
      sleep 0.05
    done ;;
  container)
    if [[ $4 == *ExitCode* ]]; then echo "${EXITED:-$STATUS}"; else echo "${RUNNING:-false}"; fi ;;
esac
"""
FILE = "/opt/sparkgen/compose.yaml"


def about(folder: NodeFolder) -> set[object]:
    engine = folder.part.engine
    return {engine.name, engine.launcher, bool(engine.secrets)}


def contents(folder: NodeFolder) -> set[object]:
    """What the engine's container is made from: words of its command, variables, mounts, limits."""
    container, engine = folder.member.container, folder.part.engine
    limits = (container.shm_size_gib, container.memory_gib, container.cpus, container.stop_seconds)
    rest = (container.image, container.entrypoint, limits, container.devices, container.health)
    own = {*folder.command, *folder.member.env.items(), *engine.secrets, *map(str, rest)}
    return {*own, *map(str, container.mounts), *container.ulimits.items()}


# Every word, variable and mount that any container has is in one of these.
VARIED = covering(COMPOSED, contents)


@pytest.mark.parametrize("folder", VARIED, ids=str)
def test_compose_has_the_derived_container(folder: NodeFolder, tmp_path: Path) -> None:
    assert composed(folder.copy(tmp_path)) == derived(folder)


@of_each(lambda: COMPOSED)
def test_every_node_has_its_own_command(folder: NodeFolder) -> None:
    """As YAML says it, which takes less time than to ask Compose about all nodes."""
    text = (folder.path / "opt/sparkgen/compose.yaml").read_text().replace("$$", "$")
    engine = yaml.load(text, yaml.CSafeLoader)["services"]["engine"]
    container = folder.member.container
    assert (engine["image"], engine["entrypoint"]) == (container.image, [container.entrypoint])
    assert engine["command"] == folder.command
    assert engine["shm_size"] == f"{container.shm_size_gib}gb"
    assert [volume["target"] for volume in engine["volumes"]] == [
        m.inside for m in container.mounts
    ]


@pytest.mark.parametrize("folder", covering(COMPOSED, about), ids=str)
def test_launch_starts_the_container_of_compose(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the unit does, but with a file of secrets that is not root's, and that does not stay."""
    tree = folder.copy(tmp_path)
    stand_ins.add("docker", DOCKER)
    stand_ins.env["STATUS"] = "0"
    assert stand_ins.run(*launch(tree)).returncode == 0
    created = ["compose", "--file", FILE, "up", "--no-start", "--force-recreate"]
    assert stand_ins.read("compose") == created
    assert stand_ins.read("start") == ["start", "--attach", "sparkgen-engine"]
    assert stand_ins.read("rm") == ["rm", "--force", "sparkgen-engine"]
    given = (stand_ins.calls / "secrets").read_text().splitlines()
    own = folder.part.engine.secrets
    assert given == [f"{name}={value}" for name, value in folder.secrets.items() if name in own]
    monkeypatch.setenv("SECRETS", "/given")
    sources = {volume["target"]: volume["source"] for volume in composed(tree)["volumes"]}
    assert sources.get(GIVEN_SECRETS) == ("/given" if own else None)


def test_container_that_runs_is_left_alone(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("docker", DOCKER)
    stand_ins.env["RUNNING"] = "true"
    done = stand_ins.run(*launch(HEAD.copy(tmp_path)))
    assert done.returncode == 125
    assert done.stderr == "launch.sh: sparkgen-engine is running; stop it first\n"
    assert {path.name for path in stand_ins.calls.iterdir()} == {"container"}


def derived(folder: NodeFolder) -> dict[str, Any]:
    """The engine's service, as Compose defines it."""
    container, image = folder.member.container, folder.part.image_build
    return {
        "container_name": "sparkgen-engine",
        "image": container.image,
        **({"labels": {"sparkgen.build": image.inputs}} if image else {}),
        "entrypoint": [container.entrypoint],
        "command": folder.command,
        "environment": folder.member.env,
        "volumes": [
            {"type": "bind", "source": mount.path, "target": mount.inside}
            | ({"read_only": True} if mount.read_only else {})
            | {"bind": {"create_host_path": True} if mount.may_be_made else {}}
            for mount in container.mounts
        ],
        "network_mode": "host",
        "ipc": "private",
        "shm_size": str(container.shm_size_gib << 30),
        **({"mem_limit": str(container.memory_gib << 30)} if container.memory_gib else {}),
        **({"cpuset": container.cpus} if container.cpus else {}),
        **({"cap_drop": ["ALL"]} if folder.bundle.name == "golden-direct-container" else {}),
        "cap_add": ["IPC_LOCK"],
        "security_opt": ["no-new-privileges:true"],
        "deploy": {"resources": {"reservations": {"devices": [RESERVED]}}, "placement": {}},
        "ulimits": {
            name: {"soft": limit, "hard": limit} for name, limit in container.ulimits.items()
        },
        "init": True,
        "restart": "no",
        "stop_grace_period": duration(container.stop_seconds),
        "healthcheck": healthcheck(container),
        "logging": {"driver": "local", "options": {"max-size": "50m", "max-file": "5"}},
    } | devices(container)


GPU = {"driver": "nvidia", "device_ids": ["all"]}
RESERVED = GPU | {"capabilities": ["gpu"]}


def devices(container: Container) -> dict[str, Any]:
    """Without devices, Compose omits the key."""
    paths = container.devices
    device = [{"source": path, "target": path, "permissions": "rwm"} for path in paths]
    return {"devices": device} if device else {}


def healthcheck(container: Container) -> dict[str, Any]:
    health = container.health
    if health is None:
        return {"disable": True}
    return {
        "test": list(health.test),
        "start_period": duration(health.start_seconds),
        "interval": duration(health.interval_seconds),
        "timeout": duration(health.timeout_seconds),
        "retries": health.retries,
    }


def duration(seconds: int) -> str:
    """Seconds, in Compose's format."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_container(
    sent: signal.Signals, tmp_path: Path, stand_ins: StandIns
) -> None:
    stand_ins.add("docker", DOCKER)
    with subprocess.Popen(launch(HEAD.copy(tmp_path)), env=stand_ins.env) as launched:
        until((stand_ins.calls / "start").exists)
        assert not (stand_ins.calls / "stop").exists()
        launched.send_signal(sent)
        assert launched.wait(PATIENCE) == 128 + sent
    assert stand_ins.read("stop") == ["stop", "-t", "20", "sparkgen-engine"]


# The image is being pulled: there is no container yet, and the client ends with the signal.
FETCHING = """\
#!/bin/bash
printf '%s\\0' "$@" >"$CALLS/$1"
[[ $1 == compose ]] && exec sleep 3600
exit 1
"""
# The shell is sent a signal before it knows the client's number, and waits when that has ended.
TOO_EARLY = "[[ $BASH_COMMAND != client=* ]] || kill -TERM $$"
SLOW_TO_WAIT = "[[ $BASH_COMMAND != wait* ]] || /bin/sleep 0.3"


@pytest.mark.parametrize("trap", [TOO_EARLY, f"{TOO_EARLY}; {SLOW_TO_WAIT}"])
def test_signal_before_the_client_is_known_is_not_lost(
    trap: str, tmp_path: Path, stand_ins: StandIns
) -> None:
    stand_ins.add("docker", FETCHING)
    (tmp_path / "trap").write_text(f"set -T\ntrap '{trap}' DEBUG\n")
    stand_ins.env["BASH_ENV"] = str(tmp_path / "trap")
    done = stand_ins.run(*launch(HEAD.copy(tmp_path)))
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")


def test_exit_status_of_the_engine_is_passed_on(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("docker", DOCKER)
    stand_ins.env["STATUS"] = "7"
    assert stand_ins.run(*launch(HEAD.copy(tmp_path))).returncode == 7
    # If Docker does not start the container, its client ends as an engine does that fails.
    stand_ins.env |= {"STATUS": "1", "EXITED": "128"}
    assert stand_ins.run(*launch(HEAD.copy(tmp_path))).returncode == 128


def test_unknown_option(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("docker")
    done = stand_ins.run(*launch(HEAD.copy(tmp_path), "--bear"))
    assert (done.returncode, done.stderr) == (
        2,
        "usage: launch.sh [--group NAME] "
        "[--bare | --check | --check-engine | --rehearse [-] | --describe-engine | --create]\n",
    )
    assert not list(stand_ins.calls.iterdir())


# launch.sh --check-engine

ANSWER = '{"stage": "arguments", "status": "accepted"}'


@pytest.fixture
def of_docker(stand_ins: StandIns) -> StandIns:
    stand_ins.add("docker", DOCKER)
    stand_ins.env |= {"STATUS": "0", "DIGEST": "sha256:1", "ANSWER": ANSWER}
    return stand_ins


def changed(tree: Path, stand_ins: StandIns) -> dict[str, Any]:
    """What Compose makes of the container that is asked."""
    _, _, file, _, name, _, _, *verb = stand_ins.read("compose")
    assert (file, verb) == (FILE, ["up", "--no-start", "--force-recreate"])
    (tree / "opt/ask.yaml").write_text((stand_ins.calls / "ask.yaml").read_text())
    more = ("--project-name", name, "--file", "/opt/ask.yaml")
    return composed_service(tree, name, "engine", FILE, *more)


def asked(tree: Path, stand_ins: StandIns, *group: str) -> tuple[int, list[dict[str, Any]], str]:
    done = stand_ins.run(*launch(tree, *group, "--check-engine"))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr


@pytest.mark.parametrize("folder", covering(COMPOSED, about), ids=str)
def test_engine_is_asked_in_its_own_container(
    folder: NodeFolder, tmp_path: Path, of_docker: StandIns
) -> None:
    """The same image, mounts and arguments, but no network, no secrets and another name."""
    tree, container, engine = folder.copy(tmp_path), folder.member.container, folder.part.engine
    (start, answer, end), errors = asked(tree, of_docker)[1:]
    assert errors == ""
    assert (of_docker.calls / "secrets").read_text() == ""
    assert of_docker.read("start") == ["start", "--attach", "sparkgen-engine-check"]
    preflight = "/opt/sparkgen/preflight"
    mount = {"type": "bind", "source": preflight, "target": preflight, "read_only": True}
    expected = composed(tree)
    assert changed(tree, of_docker) == expected | {
        "container_name": "sparkgen-engine-check",
        "network_mode": "none",
        "pull_policy": "never",
        "entrypoint": ["bash", f"{preflight}/ask.sh", engine.name, container.entrypoint],
        "volumes": [*expected["volumes"], mount],
    }
    assert answer["status"] == "accepted"
    assert end == {"stage": "end", "status": "accepted"}
    assert start == {
        "stage": "start",
        "site": folder.site.name,
        "group": "",
        "node": folder.name,
        "engine": engine.name,
        "version": engine.version,
        "image": container.image,
        "digest": "sha256:1",
        "settings": start["settings"],
    }


@pytest.mark.parametrize(("ended", "status"), [(0, 0), (1, 1), (3, 3), (2, 3), (125, 3), (139, 3)])
def test_only_the_engine_refuses(
    ended: int, status: int, tmp_path: Path, of_docker: StandIns
) -> None:
    of_docker.env["STATUS"] = str(ended)
    found, lines, _ = asked(HEAD.copy(tmp_path), of_docker)
    assert found == status
    unasked = {"stage": "end", "status": "could not ask", "why": f"it ended with status {ended}"}
    assert (lines[-1] == unasked) == (ended != status)


def test_engine_without_a_container_to_be_asked_in(tmp_path: Path, of_docker: StandIns) -> None:
    """Compose also ends with 1, which here is no refusal."""
    of_docker.env["UNMADE"] = 'service "engine":\tno such device'
    status, lines, _ = asked(HEAD.copy(tmp_path), of_docker)
    why = "there is no container for it: service 'engine': no such device"
    assert (status, lines[1:]) == (3, [{"stage": "end", "status": "could not ask", "why": why}])


def test_engine_whose_command_is_unknown(tmp_path: Path, of_docker: StandIns) -> None:
    tree = HEAD.copy(tmp_path)
    (tree / "opt/sparkgen/running.py").write_text("raise SystemExit(1)")
    status, lines, _ = asked(tree, of_docker)
    assert (status, lines[1]["why"]) == (3, "its command can't be read")


def test_image_that_is_not_here_is_not_fetched(tmp_path: Path, of_docker: StandIns) -> None:
    of_docker.env["DIGEST"] = ""
    status, lines, _ = asked(HEAD.copy(tmp_path), of_docker)
    assert (status, lines[-1]["why"]) == (3, "no 'image' here")
    assert not (of_docker.calls / "compose").exists()


def test_image_is_asked_to_describe_its_engine(tmp_path: Path, of_docker: StandIns) -> None:
    tree = HEAD.copy(tmp_path)
    done = of_docker.run(*launch(tree, "--describe-engine"))
    assert done.returncode == 0
    service = changed(tree, of_docker)
    facts = [f"image={HEAD.node.container.image}", "digest=sha256:1"]
    asking = ["bash", "/opt/sparkgen/preflight/ask.sh", "--describe", "vllm", *facts]
    assert (service["entrypoint"], service["command"]) == (asking, [])
    assert service["network_mode"] == "none"
    of_docker.env["DIGEST"] = ""
    done = of_docker.run(*launch(tree, "--describe-engine"))
    assert (done.returncode, done.stdout, done.stderr) == (3, "", 'no "image" here\n')


def test_checksum_is_that_of_the_settings(tmp_path: Path, of_docker: StandIns) -> None:
    """Comments don't count, and every setting does."""
    tree = HEAD.copy(tmp_path)

    def checksum() -> str:
        return str(asked(tree, of_docker)[1][0]["settings"])

    file = tree / "etc/sparkgen/engine.env"
    before = checksum()
    file.write_text("# another comment\n" + file.read_text())
    assert checksum() == before
    file.write_text(file.read_text() + "VLLM_LOGGING_LEVEL=DEBUG\n")
    assert checksum() != before


def test_all_engines_of_a_node_are_asked(tmp_path: Path, of_docker: StandIns) -> None:
    folder = next(f for f in IN_GROUPS if str(f) == "golden-groups-one-node/spark1")
    tree = folder.copy(tmp_path)
    of_docker.env["STATUS"] = "1"
    status, lines, _ = asked(tree, of_docker)
    assert status == 1
    groups = [line["group"] for line in lines if line["stage"] == "start"]
    assert groups == sorted(part.group for part in folder.site.parts)
    assert asked(tree, of_docker, "--group", groups[0])[1] == lines[:2]


# launch.sh and the secrets

SECRETIVE = {folder.part.engine.title: folder for folder in COMPOSED if folder.part.engine.secrets}
NO_VALUE = ("", "NAME=", "NAME= ", 'NAME=""', "NAME=''", "NAME=$", "NAME=#", "NAME=\r")
WITHOUT_VALUE = (*NO_VALUE, "#NAME=secret", "name=secret", "NAMES=secret", "NAME=secret\nNAME=")


@pytest.mark.parametrize("option", [(), ("--bare",), ("--check",)], ids=str)
@pytest.mark.parametrize("line", WITHOUT_VALUE)
@pytest.mark.parametrize("folder", SECRETIVE.values(), ids=SECRETIVE.keys())
def test_secret_without_value(
    folder: NodeFolder, line: str, option: tuple[str, ...], tmp_path: Path, stand_ins: StandIns
) -> None:
    tree, name = folder.copy(tmp_path), folder.part.engine.secrets[-1]
    secrets = tree / "etc/sparkgen/secrets.env"
    assignment = f"{name}=secret-{name.lower()}\n"
    assert assignment in secrets.read_text()
    secrets.write_text(secrets.read_text().replace(assignment, line.replace("NAME", name) + "\n"))
    stand_ins.add("docker")
    stand_ins.add(folder.member.container.entrypoint)
    done = stand_ins.run(*launch(tree, *option))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"secrets.env has no value for {name}: sudoedit" in done.stderr
    assert "secret-" not in done.stderr
    assert not list(stand_ins.calls.iterdir())


@pytest.mark.parametrize("option", [(), ("--bare",), ("--check",)], ids=str)
@pytest.mark.parametrize("folder", SECRETIVE.values(), ids=SECRETIVE.keys())
def test_missing_secrets_file(
    folder: NodeFolder, option: tuple[str, ...], tmp_path: Path, stand_ins: StandIns
) -> None:
    tree = folder.copy(tmp_path)
    stand_ins.add("docker")
    stand_ins.add(folder.member.container.entrypoint)
    (tree / "etc/sparkgen/secrets.env").write_text("")
    done = stand_ins.run(*launch(tree, *option))
    assert done.returncode == 1
    assert f"has no value for {' '.join(folder.part.engine.secrets)}: " in done.stderr
    (tree / "etc/sparkgen/secrets.env").unlink()
    done = stand_ins.run(*launch(tree, *option))
    assert done.returncode == 1
    assert done.stderr.startswith("cannot read /etc/sparkgen/secrets.env, with the values of ")
    assert not list(stand_ins.calls.iterdir())


@pytest.mark.parametrize("folder", COMPOSED, ids=str)
def test_unit_asks_for_the_secrets_first(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    tree = folder.copy(tmp_path)
    unit = (tree / "etc/systemd/system/sparkgen-engine.service").read_text()
    first = next(line for line in unit.splitlines() if line.startswith("ExecStartPre="))
    check = "ExecStartPre=/opt/sparkgen/launch.sh --check"
    assert (first == check) == bool(folder.part.engine.secrets)
    if first == check:
        done = stand_ins.run(*launch(tree, "--check"))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# A container has its secrets below /run. The last line shows what a program there is given.
_HANDED = """\
mount -t tmpfs tmpfs /run && mkdir -m 700 /run/sparkgen-engine && cd /opt/sparkgen
./secrets.sh --prepare /run/sparkgen-engine/secrets || exit
stat -c %a /run/sparkgen-engine/secrets
mount --bind /dev/null /etc/sparkgen/secrets.env
exec env -i PATH="$PATH" names=own file=own ./secrets.sh env
"""


@pytest.mark.parametrize("folder", SECRETIVE.values(), ids=SECRETIVE.keys())
def test_engine_gets_only_its_own_secrets(folder: NodeFolder, tmp_path: Path) -> None:
    """It gets no other service's secrets, and loses no variable, whatever its name."""
    tree, names = folder.copy(tmp_path), folder.part.engine.secrets
    with (tree / "etc/sparkgen/secrets.env").open("a") as file:
        file.write(f"{names[0]}=a $word=`of` \\ many \nWEBUI_ADMIN_PASSWORD=another\n")
    done = subprocess.run(on_node(tree, "sh", "-c", _HANDED), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    mode, *lines = done.stdout.splitlines()
    env = dict(line.partition("=")[::2] for line in lines)
    assert mode == "444"
    values = folder.secrets | {names[0]: "a $word=`of` \\ many "}
    assert {name: env.get(name) for name in names} == {name: values[name] for name in names}
    assert env.keys() - {"PWD", "SHLVL", "_"} == {"PATH", "names", "file", *names}


# Says which devices it has found, and shows with which variables it reads a Compose file.
_WITH_CDI = """\
#!/bin/bash
if [[ $1 == info ]]; then echo "$FOUND"; exit; fi
[[ $1 != compose ]] || env --null >"$CALLS/docker.environment"
"""


@pytest.mark.parametrize("found", ["", "nvidia.com/gpu=0 nvidia.com/gpu=all "])
@pytest.mark.parametrize("option", [(), ("--create",)], ids=str)
def test_gpu_is_requested_through_cdi(
    found: str,
    option: tuple[str, ...],
    tmp_path: Path,
    stand_ins: StandIns,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With CDI, a container keeps its GPU; without it, Docker does not have such a device."""
    stand_ins.add("docker", _WITH_CDI)
    stand_ins.env["FOUND"] = found
    tree = HEAD.copy(tmp_path)
    assert stand_ins.run(*launch(tree, *option)).returncode == 0
    for name, value in stand_ins.environment("docker").items():
        if name.startswith("GPU"):
            monkeypatch.setenv(name, value)
    (device,) = composed(tree)["deploy"]["resources"]["reservations"]["devices"]
    wanted = {"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]} if found else GPU
    assert device == wanted | {"capabilities": ["gpu"]}


# launch.sh without a container


def command_parts(folder: NodeFolder) -> set[object]:
    """The engine with its program, the options, and the variables: each has values of one kind."""
    options = {word.partition("=")[0] for word in folder.command if word.startswith("-")}
    started = (folder.part.engine.name, folder.member.container.entrypoint)
    return {started, *options, *folder.member.env}


@pytest.mark.drawn
@pytest.mark.parametrize("folder", representatives(VARIED, command_parts), ids=str)
def test_engine_without_a_container(
    folder: NodeFolder, tmp_path: Path, stand_ins: StandIns
) -> None:
    node, container = folder.node, folder.member.container
    program = container.entrypoint
    stand_ins.add(program)
    arguments = stand_ins.replaced(program, *launch(folder.copy(tmp_path), "--bare"))
    assert arguments == folder.command

    shown = stand_ins.environment(program)
    variables = {k: v for k, v in node.env.items() if not v.startswith("/var/cache/sparkgen/")}
    of_the_shell = {name: shown[name] for name in ("PWD", "SHLVL", "_")}
    # What is secret the engine is handed by secrets.sh, which a shell has to run.
    assert shown == stand_ins.env | variables | of_the_shell


def test_scripts_without_a_container_know_their_group(tmp_path: Path, stand_ins: StandIns) -> None:
    """In its container, each group has its facts where the only engine of a node has them."""
    folder = next(f for f in IN_GROUPS if str(f) == "golden-groups-one-node/spark1")
    tree = folder.copy(tmp_path)
    for part in folder.site.parts:
        program = part.head.container.entrypoint
        stand_ins.add(program)
        done = stand_ins.run(*launch(tree, "--group", part.group, "--bare"))
        assert done.returncode == 0, done.stderr
        facts = stand_ins.environment(program)["SPARKGEN_FACTS"]
        assert facts == part.place("/etc/sparkgen/container.env")
        assert (tree / facts.lstrip("/")).exists()


NAMES = ("name", "program", "arguments", "variables", "line", "client", "status", "REPLY")


def test_variable_of_any_name_is_for_the_engine(tmp_path: Path, stand_ins: StandIns) -> None:
    """None of them is one of the script's own, which would start something else."""
    tree = HEAD.copy(tmp_path)
    variables = dict.fromkeys(NAMES, "echo")
    with (tree / "etc/sparkgen/engine.env").open("a") as file:
        file.writelines(f"{name}={value}\n" for name, value in variables.items())
    program = HEAD.node.container.entrypoint
    stand_ins.add(program)
    assert stand_ins.replaced(program, *launch(tree, "--bare")) == HEAD.command
    assert variables.items() <= stand_ins.environment(program).items()
