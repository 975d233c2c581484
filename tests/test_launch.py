"""launch.sh starts what the unit starts, in the same container or without one."""

import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from bundles import NODES, NodeFolder, composed, on_node
from stand_ins import StandIns

HEAD = next(folder for folder in NODES if folder.bundle.name == "lab-mesh")


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)


def launch(tree: Path, *options: str) -> list[str]:
    # Not by its first line: where a shell is the engine's program, it has a stand-in.
    return on_node(tree, "/bin/bash", "/opt/sparkgen/launch.sh", *options)


# launch.sh in a container


@pytest.mark.parametrize("folder", NODES, ids=str)
def test_same_container_as_compose(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    tree = folder.copy(tmp_path)
    service = composed(tree)
    stand_ins.add("docker")
    assert stand_ins.run(*launch(tree)).returncode == 0
    options, image, command = docker_run(stand_ins.arguments("docker"))
    assert image == service["image"]
    assert command == service["command"]
    assert environment(tree, options.pop("--env-file")) == service["environment"]
    assert options == docker_options(service)


SWITCHES = {"--rm", "--init"}


def docker_run(arguments: list[str]) -> tuple[dict[str, list[str]], str, list[str]]:
    """The options, the image and the command of `docker run`, as Docker tells them apart."""
    run, *words = arguments
    assert run == "run"
    options: dict[str, list[str]] = defaultdict(list)
    while words[0].startswith("-"):
        option = words.pop(0)
        options[option] += [] if option in SWITCHES else [words.pop(0)]
    return {option: sorted(values) for option, values in options.items()}, words[0], words[1:]


def environment(tree: Path, files: list[str]) -> dict[str, str]:
    """Environment files as Docker reads them: nothing quoted, nothing expanded."""
    lines = [line for file in files for line in (tree / file[1:]).read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def docker_options(service: dict[str, Any]) -> dict[str, list[str]]:
    """A service of a Compose file as options of `docker run`."""
    (gpu,) = service["deploy"]["resources"]["reservations"]["devices"]
    options = {
        "--rm": [],
        "--init": [] if service["init"] else ["missing"],
        "--name": [service["container_name"]],
        "--network": [service["network_mode"]],
        "--ipc": [service["ipc"]],
        "--shm-size": [f"{int(service['shm_size']) >> 30}g"],
        "--cap-add": service["cap_add"],
        "--security-opt": service["security_opt"],
        "--device": [device["source"] for device in service.get("devices", [])],
        "--gpus": [str(gpu["count"])],
        "--ulimit": [f"{k}={v['soft']}:{v['hard']}" for k, v in service["ulimits"].items()],
        "--volume": [
            f"{volume['source']}:{volume['target']}{':ro' if volume.get('read_only') else ''}"
            for volume in service["volumes"]
        ],
        "--log-driver": [service["logging"]["driver"]],
        "--log-opt": [f"{key}={value}" for key, value in service["logging"]["options"].items()],
        "--entrypoint": service["entrypoint"],
    }
    return {
        option: sorted(values) for option, values in options.items() if values or option in SWITCHES
    }


# Serves until it is stopped by name; a signal is for the container, and passed on to it.
DOCKER = """\
#!/bin/bash
trap '' TERM INT
printf '%s\\0' "$@" >"$CALLS/$1"
[[ $1 == run ]] || exit 0
for _ in {1..200}; do
  [[ ! -e $CALLS/stop ]] || exit 0
  sleep 0.05
done
"""


def sleeps(process: int) -> bool:
    """Whether a process waits for something."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
    return after_name.split()[0] == "S"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_container(
    sent: signal.Signals, tmp_path: Path, stand_ins: StandIns
) -> None:
    stand_ins.add("docker", DOCKER)
    with subprocess.Popen(launch(HEAD.copy(tmp_path)), env=stand_ins.env) as launched:
        deadline = time.monotonic() + 10
        # bash loses a signal for as long as it is between starting docker and waiting for it.
        while not ((stand_ins.calls / "run").exists() and sleeps(launched.pid)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not (stand_ins.calls / "stop").exists()
        launched.send_signal(sent)
        assert launched.wait(10) == 128 + sent
    assert stand_ins.read("stop") == ["stop", "-t", "20", "sparkgen-engine"]


def test_status_is_that_of_the_engine(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("docker", '#!/bin/sh\necho "$1"\nexit 7\n')
    done = stand_ins.run(*launch(HEAD.copy(tmp_path)))
    assert (done.returncode, done.stdout) == (7, "run\n")


def test_unknown_option(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("docker")
    done = stand_ins.run(*launch(HEAD.copy(tmp_path), "--bear"))
    assert (done.returncode, done.stderr) == (2, "usage: launch.sh [--bare]\n")
    assert not list(stand_ins.calls.iterdir())


# launch.sh without a container


@pytest.mark.parametrize("folder", NODES, ids=str)
def test_bare(folder: NodeFolder, tmp_path: Path, stand_ins: StandIns) -> None:
    node, container = folder.node, folder.node.container
    program = container.entrypoint
    stand_ins.add(program)
    arguments = stand_ins.replaced(program, *launch(folder.copy(tmp_path), "--bare"))
    assert arguments == folder.command

    shown = stand_ins.environment(program)
    given = {k: v for k, v in node.env.items() if k not in container.cache_variables}
    of_the_shell = {name: shown[name] for name in ("PWD", "SHLVL", "_")}
    assert shown == stand_ins.env | given | folder.secrets | of_the_shell
