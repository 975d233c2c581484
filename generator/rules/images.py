"""Rules about images that are built on site, and about scripts that run before the engine."""

import re
from collections.abc import Iterator, Mapping
from itertools import dropwhile

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Data, Proposal, Replace, Severity
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.beside import Source
from generator.sitefile.declaration import DeclaredEngine


@rule("SG697", unless="SG691")
def mod_without_a_script(engine: DeclaredEngine, sources: Mapping[str, Source]) -> Faults:
    """A mod is a folder with a run.sh."""
    for index, mod in enumerate(engine.derived.mods if engine.derived else ()):
        if "run.sh" not in [file.path for file in sources[mod].files]:
            yield Fault(
                f"{mod} is not a folder with a run.sh",
                ("engine", "image", "mods", index),
                "name the folder that holds run.sh, or write a file under 'files'",
            )


@rule("SG698", unless="SG691")
def script_without_the_engine(engine: DeclaredEngine, sources: Mapping[str, Source]) -> Faults:
    """A script that prepares the container ends by starting the engine."""
    if not engine.prepare:
        return
    last = "".join(_lines(engine, sources)[-1:])
    if not re.fullmatch(_BECOMES_THE_ENGINE, last):
        yield Fault(
            f"{engine.prepare} does not end in 'exec \"$@\"'",
            ("engine", "prepare"),
            "write 'exec \"$@\"' as its last line: that starts the engine",
        )


@rule("SG699", Severity.WARNING, unless="SG691 SG698")
def script_that_downloads(engine: DeclaredEngine, sources: Mapping[str, Source]) -> Faults:
    """A script that prepares the container downloads nothing."""
    if not engine.prepare:
        return
    called = (name for line in _lines(engine, sources) for name in _commands(line))
    found = next((name for name in called if re.fullmatch(_FETCHING, name)), "")
    if found:
        yield Fault(
            f"{engine.prepare} calls {found} at every start, on every node",
            ("engine", "prepare"),
            "write it under 'run' of 'engine.image', as {name: NAME:TAG, from: IMAGE, run: [...]}",
        )


@rule("SG616")
def addition_of_another_engine(engine: DeclaredEngine) -> Faults:
    """An image gets only the additions that its engine needs for several nodes."""
    own = ENGINE_TRAITS[engine.name]
    for index, added in enumerate(engine.derived.adds if engine.derived else ()):
        path = ("engine", "image", "adds", index)
        if added != own.addition:
            other = next(one for one in ENGINE_TRAITS.values() if one.addition == added)
            yield Fault(f"'{added}' is for {other.title}", path, "remove it")
        elif own.commits is not None and own.commit(engine.version) is None:
            yield Fault(
                f"the commit of {own.title} {engine.version} is not known",
                path,
                "write the number of a build as 'engine.version', as 10776 for b10776",
            )


def with_added(engine: DeclaredEngine) -> tuple[str, Proposal]:
    """The image with the missing addition, as text to write and as an edit."""
    added = ENGINE_TRAITS[engine.name].addition
    name = f"{engine.name}-{added}:{engine.version.replace('+', '-')}"
    image: dict[str, Data] = {"name": name, "from": engine.image, "adds": [added]}
    text = f"'image: {{name: {name}, from: {engine.image}, adds: [{added}]}}'"
    return text, (Replace(("engine", "image"), image),)


_BECOMES_THE_ENGINE = r'(.*(&&|;)\s*)?exec\s+(.*\s)?"\$(@|\{@\})"(\s+#.*)?'
_FETCHING = r"(.*/)?(pip3?|apt|apt-get|wget|curl|git|uv)"
# Words that may precede the name of a command, and pure text: comments, and quotes without a
# command in them.
_BEFORE_IT = (
    r"if|then|else|do|while|until|time|exec|sudo|env|command|nice|xargs|timeout|!|"
    r"\w+=\S*|-\S+|[0-9]+[smh]?"
)
_TEXT = r"""'[^']*'|"[^"$`]*"|(^|\s)#.*"""


def _commands(line: str) -> Iterator[str]:
    """The names of the commands in a line of a script, and the modules that Python runs."""
    for part in re.split(r"\$\(|[;&|(){}`\"]+", re.sub(_TEXT, " x ", line)):
        words = list(dropwhile(lambda word: re.fullmatch(_BEFORE_IT, word), part.split()))
        yield from words[:1]
        if words[1:2] == ["-m"]:
            yield from words[2:3]


def _lines(engine: DeclaredEngine, sources: Mapping[str, Source]) -> list[str]:
    """The lines of the script that are not comments."""
    files = sources[engine.prepare].files if engine.prepare else ()
    text = files[0].data.decode(errors="replace") if files else ""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
