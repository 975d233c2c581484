"""Containers from `docker run` lines in scripts and units."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from generator.adoption.found import FoundContainer, FoundVariable, Item, Word
from generator.records import replace
from generator.resources import words

_SWITCHES = frozenset(words("docker-switches.txt"))
# What a script inserts before the image, by its name or its form.
_IS_OPTIONS = re.compile(
    r"(?i)\$\{?\w*(args?|opts?|options|flags?|extra|envs?|mounts?|volumes?|devices?)\}?|\$\{\w+(\[[@*]\]|:\+).*"
)
# What images set for what they contain.
OF_IMAGES = re.compile(r"(LD_LIBRARY_PATH|TORCH_CUDA_ARCH_LIST|(PYTHON(?!HASHSEED)|UV_)\w*)=.*")
EXPORTS = ("export", "declare")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def containers(words: Sequence[Word]) -> Iterator[FoundContainer]:
    """The containers that a script starts."""
    for number, word in enumerate(words):
        if word.text.endswith("run_cluster.sh"):
            yield from _under_ray(words[number + 1 :])
        if word.text in ("run", "create") and _is_client(words[max(number - 2, 0) : number]):
            yield container(words[number + 1 :])


def _is_client(words: Sequence[Word]) -> bool:
    """Whether the words before `run` are Docker's client, or one with the same options."""
    texts = [word.text.rpartition("/")[2] for word in words]
    if texts[-1:] == ["container"]:
        texts.pop()
    return texts[-1:] != [] and texts[-1] in ("docker", "podman", "nerdctl")


def _under_ray(words: Sequence[Word]) -> Iterator[FoundContainer]:
    """What vLLM's run_cluster.sh starts from an image, an address, a role, a folder and options."""
    given = list(takewhile(lambda word: not word.breaks, words))
    if len(given) > 3:
        image, address, role, cache, *options = given
        mount = (replace(cache, text=t) for t in ("-v", f"{cache.text}:/root/.cache/huggingface"))
        start = (replace(role, text=text) for text in ("ray", "start", role.text))
        found = container([*options, *mount, image, *start])
        item = Item("address", address.text, (address,), "docker", found.owner)
        yield replace(found, items=(*found.items, item))


def container(words: Sequence[Word]) -> FoundContainer:
    """The container of the words after `run`."""
    options: dict[str, Word] = {}
    env: list[FoundVariable] = []
    mounts: list[Word] = []
    files: list[Word] = []
    items: list[Item] = []
    rest = takewhile(lambda word: not word.breaks, words)
    image = None
    for word in rest:
        if _IS_OPTIONS.fullmatch(word.text):
            items.append(Item(word.text, word.text, (word,), "docker"))
            continue
        if not word.text.startswith("-"):
            image = word
            break
        name, equals, value = word.text.lstrip("-").partition("=")
        argument = replace(word, text=value) if equals else word
        if not equals and name not in _SWITCHES:
            argument = next(rest, word)
        flag = word.text.partition("=")[0]
        value = "" if argument is word else argument.text
        items.append(Item(flag, value, (word, argument), "docker"))
        if name in ("e", "env"):
            env.append(passed(argument))
        elif name in ("v", "volume", "mount"):
            mounts.append(argument)
        elif name == "env-file":
            files.append(argument)
        else:
            options.setdefault(name, argument)
    command = tuple(rest)
    parts = {"image": (image,) if image else (), "command": command}
    items += [
        Item(what, " ".join(w.text for w in own), own, "docker")
        for what, own in parts.items()
        if own
    ]
    entry = tuple(word for word in (options.get("entrypoint"),) if word and word.text)
    name = options["name"].text if "name" in options else ""
    found = FoundContainer(name, image, (*entry, *command), tuple(env), options, tuple(mounts))
    items = [replace(item, owner=found.owner) for item in items]
    return replace(found, env_files=tuple(files), items=tuple(items))


def variable(word: Word) -> Iterator[FoundVariable]:
    """The variable that a word NAME=VALUE sets; without a value it is the shell's."""
    if found := _VARIABLE.fullmatch(word.text):
        yield FoundVariable(found[1], replace(word, text=found[2]))


def passed(word: Word) -> FoundVariable:
    """The variable that a word NAME=VALUE or NAME gives to a container."""
    shell = f"${word.text.lstrip('$')}"
    return next(variable(word), FoundVariable(word.text, replace(word, text=shell)))
