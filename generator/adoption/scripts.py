"""What a script contains besides `docker run`: what it serves, the files and addresses it sets."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import dropwhile

from generator.adoption.command import find
from generator.adoption.docker import EXPORTS, variable
from generator.adoption.flow import commands
from generator.adoption.found import Container, Interface, Variable, Word
from generator.adoption.shell import expand
from generator.adoption.text import NAME, Text
from generator.catalogs.commands import starters, variables
from generator.records import replace
from generator.scaffold.outputs import is_address

# The beginnings of commands that serve, beside the engines' own.
_RUNS = (
    r"exec|sudo|nohup|env|time|setsid|numactl|taskset|uv|python[0-9.]*|mpirun|srun|ray|bash|sh"
    r"|timeout|nice|ionice|chrt|stdbuf|flock|systemd-run|systemd-inhibit|gosu|launch-cluster\.sh"
)
_BEFORE = re.compile(r"eval|if|then|else|do|!|\{|\S+\(\)|[^(\s]+\)")
# Of spark-vllm-docker.
_LAUNCHER = "launch-cluster.sh"
_IN_A_CONTAINER = re.compile(r"(?:.*/)?(?:docker|podman|docker-compose)")
# Variables that what engines run on reads.
_READ = "NCCL|UCX|GLOO|TP|OMPI_MCA|TORCH|PYTORCH|CUDA|HF|OMP|XDG|FLASHINFER|TRITON|RAY"
_HERE = re.compile(r"""[^#]*<<-?[ \t]*(["']?)(\w+)\1""")
# Longer lines don't set addresses.
_MAX_LINE = 400
_ADDRESS = re.compile(
    r"\bip[ \t]+(?:-\w+[ \t]+)*a(?:ddr(?:ess)?)?[ \t]+(?:add|replace)[ \t]+([^\s;|&]+)"
    r"(?:[ \t]+(?:brd|broadcast)[ \t]+\S+)?[ \t]+dev[ \t]+([\w.-]+)"
)
_PROFILE = re.compile(
    r"\bnmcli\b[^\n]*\bifname[ \t]+([\w.-]+)[^\n]*?\bip(?:v4\.addresses|4)[ \t]+[\"']?([\d./]+)"
)
_MTU = re.compile(
    r"\bip[ \t]+l(?:ink)?[ \t]+set[ \t]+(?:dev[ \t]+)?([\w.-]+)[^\n;|&]*?\bmtu[ \t]+(\d+)"
)


def serving(words: Sequence[Word], inside: Sequence[Container] = ()) -> Iterator[Container]:
    """The commands of a script that serve, also `inside` containers, with what it exports."""
    exported: list[Variable] = []
    options: dict[str, Word] = {}
    for whole in commands(words):
        command = list(dropwhile(lambda word: _BEFORE.fullmatch(word.text), whole)) or whole
        texts = [word.text for word in command[:8]]
        if texts[0] in EXPORTS:
            exported += [v for word in command for v in variable(word) if is_read(v.name)]
        elif activated := _activated(command):
            options = {"venv": activated}
        elif _may_serve(command):
            env = tuple(v for v in exported if {*v.value.around} <= {*command[0].around})
            own = Container("command", _image(command), env=env, options=options)
            around = (one for one in inside if "exec" in texts[:3] and one.name in texts)
            found = replace(next(around, own), words=tuple(command))
            if find(found, {}):
                yield found


def _activated(command: Sequence[Word]) -> Word | None:
    """The virtual environment that a command makes the shell's."""
    path = command[1].text if command[0].text in ("source", ".") and command[1:] else ""
    found = re.fullmatch(r"(/.+)/bin/activate", path)
    return replace(command[1], text=found[1]) if found else None


def started(words: Sequence[Word], env: tuple[Variable, ...]) -> Iterator[Container]:
    """The commands that a unit starts without a container, with its variables."""
    for command in commands(words):
        first = command[0]
        if found := re.fullmatch(r"ExecStart=[-@:+!]*(.+)", first.text):
            own = (Word(found[1], first.file, first.span), *command[1:])
            container = Container("unit", words=own, env=env)
            if find(container, {}):
                yield container


def exports(words: Sequence[Word]) -> Iterator[Variable]:
    """The variables that a script exports for NCCL, and for what runs on it."""
    for command in commands(words):
        # A variable before a command is exported only to that command.
        if len(command) > 1:
            named = (v for word in command for v in variable(word))
            yield from (v for v in named if is_read(v.name) and not v.value.around)


def files(text: Text, known: Mapping[str, str]) -> Iterator[tuple[str, range, Text]]:
    """The files that a script writes, each with the line that writes it, and its lines and end."""
    lines = text.text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        found = _HERE.match(line) if len(line) < _MAX_LINE else None
        last = text.next_line(found[2], number) if found else None
        if found and last is not None:
            body = "\n".join(lines[number:last]) + "\n"
            content = body if found[1] else expand(body, known)
            yield line.strip(), range(number, last + 1), Text(text.file, "\n" * number + content)
            number = last + 1


def lines(line: str, its: range, is_read: bool = False) -> dict[int, str]:
    """The lines of a file that a script writes, with what writes it; "" for what was read."""
    if re.match(r"[^<]*\b(ssh|(ba)?sh)\b", line) and not is_read:
        return {}
    return dict.fromkeys(its, "" if is_read else line) | {its[-1]: ""}


def interfaces(text: Text, words: Sequence[Word], known: Mapping[str, str]) -> Iterator[Interface]:
    """The interfaces to which a script gives addresses, with `ip` or `nmcli`."""
    own = [word.span for one in commands(words) if one[0].text != "echo" for word in one]
    executed = {line for span in own for line in range(span.line, span.end_line + 1)}
    mtus = {found[1]: text.word(found[2], *found.span(2)) for found in _found(text, _MTU)}
    given = [(m[2], m[1], m.span(1), m.span(2)) for m in _found(text, _ADDRESS)]
    given += [(m[1], m[2], m.span(2), m.span(1)) for m in _found(text, _PROFILE)]
    for name, value, where, named in given:
        address = expand(value.strip("\"'"), known)
        word = text.word(address, *where)
        if is_address(address) and word.span.line in executed:
            yield Interface(name, text.word(name, *named), (word,), mtus.get(name))


def _found(text: Text, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Matches in lines that a person wrote."""
    start = 0
    for line in text.text.split("\n"):
        if len(line) < _MAX_LINE:
            yield from pattern.finditer(text.text, start, start + len(line))
        start += len(line) + 1


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
    texts = [word.text for word in command[:-1]]
    return command[texts.index("-t") + 1] if "-t" in texts else None
