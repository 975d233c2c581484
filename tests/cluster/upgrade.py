"""Carries out a site's change on its nodes, in the order that `sparkgen diff` prints as JSON."""

import itertools
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waiting import PATIENCE, until

from cluster.machines import Machine
from cluster.pairs import ENGINE

# The action for each step, by its text and the folder of the new bundle.
Action = Callable[[Machine, str, Path], None]


def carry_out(
    machines: Mapping[str, Machine],
    review: Mapping[str, Any],
    bundle: Path,
    others: Mapping[str, Action] | None = None,
) -> None:
    """Carry out each step of a site's review; a step without a known action is an error."""
    actions = {**_ACTIONS, **(others or {})}
    for text, node in steps(review):
        (action,) = (action for start, action in actions.items() if text.startswith(start))
        action(machines[node], text, bundle / node)


def steps(review: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The steps in order, each with its node."""
    for step in review["order"]:
        for text in str(step["step"]).split("; "):
            for node in step["nodes"]:
                yield text, node


def _build(machine: Machine, _: str, folder: Path) -> None:
    """Run on the head, which copies to the others."""
    image = folder.parent / "operator/image"
    if f"NODE={folder.name}\n" in (image / "image.env").read_text():
        _run(machine, f"rsync --archive --checksum --delete {image}/ /var/image/")
        _run(machine, "/var/image/build.sh")


def _copy(machine: Machine, _: str, folder: Path) -> None:
    _run(machine, f"rsync --archive --checksum --delete {folder}/ /var/bundle/")


def _install(machine: Machine, text: str, _: Path) -> None:
    confirms = "--confirm" in text
    _run(machine, f"/var/bundle/install.sh --apply{'' if confirms else ' --no-confirm'}")
    if confirms:
        _run(machine, "/var/bundle/install.sh --confirm")


def _command(command: str = "") -> Action:
    return lambda machine, text, _: _run(machine, command or text)


def _engine(verb: str) -> Action:
    return lambda machine, text, _: _run(machine, f"systemctl {verb} {unit(text)}")


def unit(text: str) -> str:
    """The unit of the engine that a step is about, or of the only one."""
    found = re.match(r"\w+ the engine of ([\w-]+)", text)
    return f"{ENGINE}-{found[1]}" if found else ENGINE


def _run(machine: Machine, command: str) -> None:
    done = machine.run(*shlex.split(command))
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def _await(machine: Machine, text: str, folder: Path) -> None:
    """Poll the engine's health, at the address that the bundle has for it."""
    del text
    files = [folder / "etc/sparkgen/node.env", *folder.glob("etc/sparkgen/groups/*.node.env")]
    facts = "".join(file.read_text() for file in files)
    for url in re.findall(r"^HEALTH_URL=(\S+)", facts, re.MULTILINE):
        until(lambda url=url: machine.run("curl", "-sf", f"{url}/health").returncode == 0)


_ACTIONS: Mapping[str, Action] = {
    "build and load the image first": _build,
    "copy the folder": _copy,
    "stop the engine": _engine("stop"),
    "install.sh --apply": _install,
    "check the fabric": _command("/opt/sparkgen/wait-fabric.sh 60"),
    "start the engine": _engine("start"),
    "wait until these serve": _await,
    "systemctl ": _command(),
    "/opt/sparkgen/": _command(),
}


class Downtime:
    """How long no completion succeeded, with a node asking all the while."""

    def __init__(self, serves: Callable[[], bool]) -> None:
        self._serves = serves
        self._answered: list[float] = [time.monotonic()]
        self._is_over = threading.Event()

    @property
    def seconds(self) -> float:
        """The longest time between two answers."""
        times = self._answered
        return max(later - sooner for sooner, later in itertools.pairwise(times))

    def ask(self) -> None:
        """Ask until it is over, and once more."""
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(0.2)
            if self._serves():
                self._answered.append(time.monotonic())

    def end(self) -> None:
        self._is_over.set()


@contextmanager
def measured(serves: Callable[[], bool], patience: float = PATIENCE) -> Iterator[Downtime]:
    """Measure while a change is carried out, and until a completion succeeds again."""
    downtime = Downtime(serves)
    thread = threading.Thread(target=downtime.ask)
    thread.start()
    try:
        yield downtime
        until(serves, patience)
    finally:
        downtime.end()
        thread.join()
