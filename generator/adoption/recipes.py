"""Recipes of sparkrun and of spark-vllm-docker, and the settings file of the latter."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap

import yaml

from generator.adoption.command import find
from generator.adoption.found import (
    GUESSED_PREFIX,
    FoundContainer,
    FoundInterface,
    FoundNode,
    FoundVariable,
    Word,
)
from generator.adoption.items import of_yaml
from generator.adoption.yaml_file import Yaml
from generator.capture import CaptureError
from generator.catalogs import commands
from generator.catalogs.engines.traits import Recipe
from generator.diagnostics import listed
from generator.hardware import FABRIC_HALVES
from generator.records import replace
from generator.scaffold.outputs import is_address

# Changes the container before it serves.
_CHANGES = ("mods", "pre_exec", "build_args", "builder_config")
# The prefix of spark-vllm-docker's settings that are passed to the container.
_PREFIX = "CONTAINER_"


def is_recipe(file: Yaml) -> bool:
    """Whether a YAML file is a recipe."""
    keys = ("model", "container", "command", "defaults")
    has = [file.get(file.root, key) is not None for key in keys]
    return file.get(file.root, "recipe_version") is not None or sum(has) > 2


def container(file: Yaml) -> FoundContainer:
    """The container that a recipe starts; raises CaptureError for an unknown engine."""
    defaults = dict(file.words(file.get(file.root, "defaults")))
    model = file.word(file.get(file.root, "model"))
    if model:
        defaults.setdefault("model", model)
    command = file.get(file.root, "command")
    runtime = file.word(file.get(file.root, "runtime"))
    known = commands.recipe(runtime.text if runtime else "")
    words: list[Word] = []
    if isinstance(command, yaml.ScalarNode):
        words = [own for word in file.script(command, {}) for own in _filled(word, defaults)]
    elif known:
        words = list(_words(known, defaults))
    env = tuple(starmap(FoundVariable, file.words(file.get(file.root, "env"))))
    executor = file.words(file.get(file.root, "executor_config"))
    options = {name.replace("restart_policy", "restart"): word for name, word in executor}
    image = file.word(file.get(file.root, "container"))
    is_changed = any(getattr(file.get(file.root, key), "value", None) for key in _CHANGES)
    mods = tuple(filter(None, map(file.word, file.items(file.get(file.root, "mods")))))
    found = FoundContainer(
        "recipe",
        image,
        tuple(words),
        env,
        options,
        is_changed=is_changed,
        is_launched=True,
        mods=mods,
        items=tuple(of_yaml(file, "recipe", owner="recipe")),
    )
    if runtime and known is None and find(found, {}) is None:
        why = f"it is a recipe for {runtime.text}, of which nothing is known here"
        raise CaptureError(
            why, f"the engines are {listed([r.runtime for r in commands.recipes()], 'and')}"
        )
    return found


def _filled(word: Word, defaults: Mapping[str, Word]) -> Iterator[Word]:
    """A word with the recipe's values filled in; a word that is only a value has the value's place.

    The values are filled in before a shell reads them: a list becomes as many words.
    """
    if (alone := re.fullmatch(r"\{(\w+)\}", word.text)) and alone[1] in defaults:
        own = defaults[alone[1]]
        is_list = re.fullmatch(r"[\w./:-]+( +[\w./:-]+)+", own.text)
        yield from (
            replace(own, text=text) for text in (own.text.split() if is_list else [own.text])
        )
        return

    def value(match: re.Match[str]) -> str:
        return defaults[match[1]].text if match[1] in defaults else match[0]

    text = re.sub(r"\{(\w+)\}", value, word.text)
    if "{{" in text:
        # Literal braces are doubled, as in Python's templates.
        text = text.replace("{{", "{").replace("}}", "}")
    yield Word(text, word.file, word.span, word.breaks)


def _words(recipe: Recipe, defaults: Mapping[str, Word]) -> Iterator[Word]:
    if model := defaults.get("model"):
        for text in recipe.start:
            yield Word(text, model.file, model.span)
        yield model
    for name, word in defaults.items():
        if name == "model" or word.text in ("false", "False"):
            continue
        flag = recipe.flags.get(name, name.replace("_", "-"))
        yield Word(f"--{flag}", word.file, word.span)
        if word.text not in ("true", "True"):
            yield word


def is_settings(variables: Sequence[FoundVariable]) -> bool:
    """Whether a file of NAME=VALUE lines is spark-vllm-docker's .env."""
    return bool({"CLUSTER_NODES", "ETH_IF", "IB_IF"} & {v.name for v in variables})


def settings(variables: Sequence[FoundVariable]) -> tuple[FoundContainer, list[FoundNode]]:
    """The content of that file: the container's variables, and the nodes.

    Their addresses are on the interface that it names: of the fabric, or of management.
    """
    values = {variable.name: variable.value for variable in variables}
    env = [
        FoundVariable(v.name.removeprefix(_PREFIX), v.value)
        for v in variables
        if v.name.startswith(_PREFIX)
    ]
    names = {"ETH_IF": "NCCL_SOCKET_IFNAME", "IB_IF": "NCCL_IB_HCA"}
    env += [FoundVariable(name, values[given]) for given, name in names.items() if given in values]
    interface, listed = values.get("ETH_IF"), values.get("CLUSTER_NODES")
    addresses = [part.strip() for part in listed.text.split(",")] if listed else []
    nodes = [
        _node(f"spark{number}", Word(address, listed.file, listed.span), interface)
        for number, address in enumerate(addresses, start=1)
        if listed and re.fullmatch(r"[0-9.]+", address)
    ]
    return FoundContainer("settings", env=tuple(env)), nodes


def _node(name: str, address: Word, interface: Word | None) -> FoundNode:
    """A node at an address, with a guessed prefix length."""
    if interface is None or interface.text not in FABRIC_HALVES:
        return FoundNode(name, management=address)
    known = replace(address, text=f"{address.text}/24", remark=GUESSED_PREFIX)
    if not is_address(known.text):
        return FoundNode(name)
    return FoundNode(name, (FoundInterface(interface.text, interface, (known,), has_link=True),))
