"""Units of systemd and Quadlet: the containers that they start, and the files that they name."""

import re
from collections.abc import Iterator, Mapping

from generator.adoption import docker
from generator.adoption.found import FoundContainer, FoundVariable, Word
from generator.adoption.items import of_entries
from generator.adoption.shell import shell_words
from generator.adoption.text import Text
from generator.records import replace
from generator.resources import rows

_UNIT = re.compile(r"(?m)^\[(Service|Container)\][ \t]*$")
# Quadlet's keys, and podman's options for them.
_OPTIONS = {key: option for _, option, _, key in rows("container-options") if key != "-"}


def is_unit(text: str) -> bool:
    """Whether a text is a unit of a service, or of a container."""
    return _UNIT.search(text) is not None


def environment(text: Text) -> Iterator[FoundVariable]:
    """The variables that a unit sets."""
    for word in _words(text, "Environment"):
        yield from docker.variable(word)


def named(text: Text) -> Iterator[tuple[str, Word]]:
    """The files that a unit starts or gives to a program that it starts: Compose, a script."""
    file = r"[-@:+!]*(.*/[\w.@-]+\.(?:ya?ml|sh|py)|.*/[\w.@-]*(?:start|serve|run)[\w.@-]*)"
    for word in _words(text, "ExecStart"):
        if found := re.fullmatch(file, word.text):
            yield found[1], word


def start(text: Text) -> Word | None:
    """What a unit starts."""
    found = re.search(r"(?m)^ExecStart=.*", text.text)
    return text.word(found[0], *found.span()) if found else None


def quadlet(text: Text) -> Iterator[FoundContainer]:
    """The container of a Quadlet file."""
    entries: dict[str, list[Word]] = {}
    for item in of_entries(text, "quadlet"):
        section, _, key = item.what.partition(".")
        if section == "Container":
            entries.setdefault(key, []).append(item.place)
    if "Image" not in entries:
        return
    env = tuple(environment(text))
    known = {one.name: one.value.text for one in env}
    words = [*_words(text, "Entrypoint", known), *_words(text, "Exec", known)]
    given = docker.container([*_words(text, "PodmanArgs"), entries["Image"][0]]).options
    own = {name: entries[key][0] for key, name in _OPTIONS.items() if key in entries}
    options = {**given, **own}
    container = FoundContainer(
        options["name"].text if "name" in options else "container",
        entries["Image"][0],
        tuple(words),
        env,
        options,
        tuple(entries.get("Volume", ())),
        env_files=tuple(entries.get("EnvironmentFile", ())),
    )
    items = of_entries(text, "quadlet", container.owner)
    yield replace(container, items=tuple(items))


def _words(text: Text, key: str, known: Mapping[str, str] = {}) -> Iterator[Word]:
    """The words of all values of a key."""
    for item in of_entries(text, "unit"):
        if item.what.endswith(f".{key}"):
            span = item.place.span
            start, end = (span.line, span.column), (span.end_line, span.end_column)
            yield from shell_words(text, text.offset(*start), text.offset(*end), known, False)
