#!/usr/bin/env python3
"""A Docker whose only container is a process of the node: enough for `launch.sh --rehearse`.

It takes the command, the environment and the changed facts from the files that it is given, and
checks the health each time that it is asked for the state.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

HOME = Path("/dev/shm/process-docker")


def environment() -> dict[str, str]:
    """The environment of the container."""
    lines = Path("/etc/sparkgen/engine.env").read_text().splitlines()
    own = dict(line.split("=", 1) for line in lines if line and line[0] != "#")
    return {**os.environ, **own, "SPARKGEN_FACTS": str(HOME / "container.env")}


def compose(words: list[str]) -> None:
    """Keep the changes, which are in the last file, and the facts that they mount."""
    *_, file = (Path(after) for word, after in pairwise(words) if word == "--file")
    (HOME / "changes").write_text(file.read_text())
    for name in ("container.env", "health.py"):
        # Only the head has a check.
        if (file.parent / name).exists():
            (HOME / name).write_text((file.parent / name).read_text())


def start() -> None:
    """Start the process, whose status is kept when it ends."""
    engine = json.loads((HOME / "changes").read_text())["services"]["engine"]
    argv = [word.replace("$$", "$") for word in (*engine["entrypoint"], *engine["command"])]
    (HOME / "status").unlink(missing_ok=True)
    script = f'"$@" >{HOME}/log 2>&1; echo $? >{HOME}/status'
    process = subprocess.Popen(
        ["bash", "-c", script, "container", *argv],
        env=environment(),
        start_new_session=True,
        # Or whoever waits for the end of what this prints would wait for the engine's.
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (HOME / "process").write_text(str(process.pid))


def state() -> str:
    """Its state as Docker tells it."""
    ended = HOME / "status"
    if ended.exists():
        return json.dumps([{"State": {"Running": False, "ExitCode": int(ended.read_text())}}])
    asked = subprocess.run(
        ["python3", str(HOME / "health.py")], env=environment(), capture_output=True, text=True
    )
    health = {"Status": "starting" if asked.returncode else "healthy", "Log": []}
    return json.dumps([{"State": {"Running": True, "Health": health}}])


def remove() -> None:
    """End the process with all that it has started."""
    with suppress(OSError, ValueError):
        os.killpg(int((HOME / "process").read_text()), signal.SIGKILL)


def main(words: list[str]) -> None:
    """Do what Docker would."""
    HOME.mkdir(exist_ok=True)
    match words[0]:
        case "compose":
            compose(words)
        case "start":
            start()
        case "rm":
            remove()
        case "container":
            print(state())
        case "logs":
            print((HOME / "log").read_text(errors="replace"))
        case "image":
            print("example.org/vllm@sha256:1")
        case _:
            sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
