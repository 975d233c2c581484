"""What a script contains besides `docker run`: what it serves, the files and addresses it sets."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from generator.adoption.command import find, is_server
from generator.adoption.docker import EXPORTS, variable
from generator.adoption.flow import behind, commands
from generator.adoption.found import FoundContainer, FoundInterface, FoundVariable, Word
from generator.adoption.text import NAME
from generator.catalogs.commands import starters, variables
from generator.records import replace
from generator.scaffold.outputs import is_address

# The beginnings of commands that serve, beside the engines' own.
_RUNS = (
    r"exec|sudo|nohup|env|time|setsid|numactl|taskset|uv|python[0-9.]*|mpirun|srun|ray|bash|sh"
    r"|timeout|nice|ionice|chrt|stdbuf|flock|systemd-run|systemd-inhibit|gosu|launch-cluster\.sh"
)
# Of spark-vllm-docker.
_LAUNCHER = "launch-cluster.sh"
_IN_A_CONTAINER = re.compile(r"(?:.*/)?(?:docker|podman|docker-compose)")
# Variables that what engines run on reads.
_READ = "NCCL|UCX|GLOO|TP|OMPI_MCA|TORCH|PYTORCH|CUDA|HF|OMP|XDG|FLASHINFER|TRITON|RAY"


def serving(
    words: Sequence[Word], inside: Sequence[FoundContainer] = ()
) -> Iterator[FoundContainer]:
    """The commands of a script that serve, also `inside` containers, with what it exports."""
    exported: list[FoundVariable] = []
    options: dict[str, Word] = {}
    for whole in commands(words):
        command = behind(whole)
        texts = [word.text for word in command[:8]]
        if texts[0] in EXPORTS:
            exported += [v for word in command for v in variable(word) if is_read(v.name)]
        elif activated := _activated(command):
            options = {"venv": activated}
        elif _may_serve(command):
            # What is exported doesn't get into a container.
            given = exported if not _IN_A_CONTAINER.fullmatch(texts[0]) else ()
            env = tuple(v for v in given if {*v.value.around} <= {*command[0].around})
            own = FoundContainer("command", _image(command), env=env, options=options)
            around = (one for one in inside if "exec" in texts[:3] and one.name in texts)
            found = replace(next(around, own), words=tuple(command))
            if find(found, {}):
                yield found


def _activated(command: Sequence[Word]) -> Word | None:
    """The virtual environment that a command makes the shell's."""
    path = command[1].text if command[0].text in ("source", ".") and command[1:] else ""
    found = re.fullmatch(r"(/[^$`]+)/bin/activate", path)
    return replace(command[1], text=found[1]) if found else None


def started(words: Sequence[Word], env: tuple[FoundVariable, ...]) -> Iterator[FoundContainer]:
    """The commands that a unit starts without a container, with its variables."""
    for command in commands(words):
        first = command[0]
        if found := re.fullmatch(r"ExecStart=[-@:+!]*(.+)", first.text):
            own = (Word(found[1], first.file, first.span), *command[1:])
            container = FoundContainer("unit", words=own, env=env)
            if find(container, {}) or is_server(container):
                yield container


def exports(words: Sequence[Word]) -> Iterator[FoundVariable]:
    """The variables that a script exports for NCCL, and for what runs on it."""
    for command in commands(words):
        # A variable before a command is exported only to that command.
        if len(command) > 1:
            named = (v for word in command for v in variable(word))
            yield from (v for v in named if is_read(v.name) and not v.value.around)


def interfaces(words: Sequence[Word]) -> Iterator[FoundInterface]:
    """The interfaces to which a script gives addresses, with `ip` or `nmcli`."""
    mtus: dict[str, Word] = {}
    given: list[tuple[Word, Word]] = []
    for own in commands(words):
        after = {one.text: other for one, other in pairwise(own)}
        if own[0].text == "echo" or after.keys().isdisjoint(("ip", "nmcli")):
            continue
        name = after.get("dev", after.get("ifname", after.get("set", own[0])))
        said = (after[key] for key in ("add", "replace", "ipv4.addresses", "ip4") if key in after)
        given += [(name, word) for word in said if is_address(word.text)]
        mtus |= {name.text: after["mtu"]} if "mtu" in after else {}
    for name, address in given:
        yield FoundInterface(name.text, name, (address,), mtus.get(name.text))


def _may_serve(command: Sequence[Word]) -> bool:
    """Whether a command runs what it names, and doesn't just mention it."""
    first, second = command[0].text, command[1].text if len(command) > 1 else ""
    if _IN_A_CONTAINER.fullmatch(first):
        return second in ("exec", "compose")
    return bool(_runs().fullmatch(first))


@cache
def _runs() -> re.Pattern[str]:
    return re.compile(rf"(?:.*/)?(?:{'|'.join((_RUNS, *map(re.escape, starters())))})|{NAME}=.*")


def is_read(name: str) -> bool:
    """Whether engines, or what they run on, read a variable; others are the script's own."""
    return bool(_read().fullmatch(name))


@cache
def _read() -> re.Pattern[str]:
    return re.compile(rf"({'|'.join((_READ, *variables()))})_\w+")


def _image(command: Sequence[Word]) -> Word | None:
    """The image that spark-vllm-docker's launcher is to start."""
    if not command[0].text.endswith(_LAUNCHER):
        return None
    return next((image for option, image in pairwise(command) if option.text == "-t"), None)
