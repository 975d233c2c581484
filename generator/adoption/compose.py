"""Containers from Compose files."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from generator.adoption.docker import passed
from generator.adoption.found import LEFT_EMPTY, FoundContainer, FoundVariable, Word
from generator.adoption.items import of_yaml
from generator.adoption.shell import expand, is_script_next
from generator.adoption.yaml_file import Yaml
from generator.records import replace
from generator.resources import rows

_OPTIONS = {key: option for key, option, *_ in rows("container-options") if key != "-"}


def is_compose(file: Yaml) -> bool:
    """Whether a YAML file is a Compose file."""
    return isinstance(file.get(file.root, "services"), yaml.MappingNode)


def containers(file: Yaml, known: Mapping[str, str]) -> Iterator[FoundContainer]:
    """Its services, with the values of known variables."""
    for name, node in file.pairs(file.get(file.root, "services")):
        if not isinstance(node, yaml.MappingNode):
            continue
        options = {
            option: word
            for key, option in _OPTIONS.items()
            if (word := file.word(file.get(node, *key.split(".")), known))
        }
        if port := file.word(file.get(node, "ports", 0), known):
            options["publish"] = port
        own = tuple(environment(file, file.get(node, "environment"), known))
        values = {**known, **{v.name: v.value.text for v in own}}
        entry = tuple(command_words(file, file.get(node, "entrypoint"), values))
        shell = bool(entry) and is_script_next(entry[-1].text, False)
        yield FoundContainer(
            name=name,
            image=file.word(file.get(node, "image"), known),
            words=(*entry, *command_words(file, file.get(node, "command"), values, shell)),
            env=own,
            options=options,
            mounts=tuple(_mounts(file, file.get(node, "volumes"), known)),
            env_files=tuple(_env_files(file, file.get(node, "env_file"), known)),
            items=tuple(of_yaml(file, "compose", owner=name, root=node)),
        )


def command_words(
    file: Yaml, node: Any, known: Mapping[str, str], shell: bool = False
) -> Iterator[Word]:
    """The words of a command; after a `shell` and its `-c`, those of its script."""
    if isinstance(node, yaml.ScalarNode):
        yield from file.script(node, known)
    for item in file.items(node):
        word = file.word(item, known)
        if word is None:
            continue
        if shell and isinstance(item, yaml.ScalarNode):
            # What Compose leaves to the container's shell, that shell expands.
            own = file.script(item, known)
            yield from (replace(word, text=expand(word.text, known)) for word in own)
        else:
            yield word
        shell = is_script_next(word.text, shell)


def environment(file: Yaml, node: Any, known: Mapping[str, str]) -> Iterator[FoundVariable]:
    """The variables of a mapping, or of a list of NAME=VALUE."""
    for name, value in file.pairs(node):
        if word := _value(file, value, known):
            is_passed = isinstance(value, yaml.ScalarNode) and value.tag.endswith(":null")
            yield passed(replace(word, text=name)) if is_passed else FoundVariable(name, word)
    for item in file.items(node):
        if word := _value(file, item, known):
            yield passed(word)


def _value(file: Yaml, node: Any, known: Mapping[str, str]) -> Word | None:
    word = file.word(node, known)
    is_empty = word is not None and word.text.rpartition("=")[2] == "" and "$" in str(node.value)
    return replace(word, remark=LEFT_EMPTY) if word and is_empty else word


def _env_files(file: Yaml, node: Any, known: Mapping[str, str]) -> Iterator[Word]:
    """The environment files, each given by its path or with further settings."""
    for item in [node, *file.items(node)]:
        if word := file.word(item, known) or file.word(file.get(item, "path"), known):
            yield word


def _mounts(file: Yaml, node: Any, known: Mapping[str, str]) -> Iterator[Word]:
    for item in file.items(node):
        if word := file.word(item, known):
            name, _, rest = word.text.partition(":")
            device = file.word(file.get(file.root, "volumes", name, "driver_opts", "device"), known)
            yield replace(word, text=f"{device.text}:{rest}") if device else word
        elif (source := file.word(file.get(item, "source"), known)) and (
            target := file.word(file.get(item, "target"), known)
        ):
            yield Word(f"{source.text}:{target.text}", source.file, source.span)
