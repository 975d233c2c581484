"""Containers in what orchestrators and proxies read or print.

These are manifests of Kubernetes, the output of `docker inspect`, and llama-swap's configuration.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from generator.adoption import docker
from generator.adoption.compose import command_words, environment
from generator.adoption.found import FoundContainer, FoundVariable, Word
from generator.adoption.items import of_yaml
from generator.adoption.yaml_file import Yaml
from generator.records import replace
from generator.resources import rows

_PLACES = {
    option: place.split(".") for _, option, place, _ in rows("container-options") if place != "-"
}


def is_llama_swap(file: Yaml) -> bool:
    """Whether a YAML file is llama-swap's: models, each with the command that serves it."""
    return any(file.get(node, "cmd") for _, node in file.pairs(file.get(file.root, "models")))


def llama_swap(file: Yaml) -> Iterator[FoundContainer]:
    """A container, or a command without one, for each model."""
    known = {name: word.text for name, word in file.words(file.get(file.root, "macros"))}
    for name, node in file.pairs(file.get(file.root, "models")):
        command = file.get(node, "cmd")
        if isinstance(command, yaml.ScalarNode):
            words = list(file.script(command, known))
            started = list(docker.containers(words))
            env = tuple(environment(file, file.get(node, "env"), known))
            container = FoundContainer(name, words=tuple(words), env=env)
            for one in started or [container]:
                without = "cmd" if started else ""
                own = of_yaml(file, "llama-swap", without, one.owner, node)
                yield replace(one, items=(*one.items, *own))


def kubernetes(file: Yaml) -> Iterator[tuple[str, FoundContainer]]:
    """The containers of all pods that a manifest describes, each with its node, if that is told."""
    for pod in _pods(file, file.root):
        paths = {
            name.text: path
            for volume in file.items(file.get(pod, "volumes"))
            if (name := file.word(file.get(volume, "name")))
            and (path := file.word(file.get(volume, "hostPath", "path")))
        }
        pinned = (("nodeSelector", "kubernetes.io/hostname"), ("nodeName",))
        host = next(filter(None, (file.word(file.get(pod, *path)) for path in pinned)), None)
        for node in file.items(file.get(pod, "containers")):
            yield host.text if host else "", _of_pod(file, pod, node, paths)


def _pods(file: Yaml, node: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(file.get(node, "containers"), yaml.SequenceNode):
        yield node
    elif depth < 8:
        for child in (*(value for _, value in file.pairs(node)), *file.items(node)):
            yield from _pods(file, child, depth + 1)


def _of_pod(file: Yaml, pod: Any, node: Any, paths: Mapping[str, Word]) -> FoundContainer:
    env = tuple(
        FoundVariable(name.text, value)
        for item in file.items(file.get(node, "env"))
        if (name := file.word(file.get(item, "name")))
        and (value := file.word(file.get(item, "value")))
    )
    known = {one.name: one.value.text for one in env}
    words: list[Word] = []
    for key in ("command", "args"):
        shell = bool(words) and words[-1].text.endswith("c") and words[-1].text.startswith("-")
        words += command_words(file, file.get(node, key), known, shell)
    given = {
        "privileged": file.get(node, "securityContext", "privileged"),
        "pid": file.get(pod, "hostPID"),
        "user": file.get(node, "securityContext", "runAsUser"),
        "publish": file.get(node, "ports", 0, "hostPort"),
        "memory": file.get(node, "resources", "limits", "memory"),
    }
    mounts = [
        Word(f"{source.text}:{target.text}", target.file, target.span)
        for item in file.items(file.get(node, "volumeMounts"))
        if (name := file.word(file.get(item, "name")))
        and (target := file.word(file.get(item, "mountPath")))
        and (source := paths.get(name.text))
    ]
    name = file.word(file.get(node, "name"))
    title = name.text if name else "container"
    return FoundContainer(
        title,
        file.word(file.get(node, "image")),
        tuple(words),
        env,
        {key: word for key, value in given.items() if (word := file.word(value))},
        tuple(mounts),
        items=tuple(of_yaml(file, "kubernetes", owner=title, root=node)),
    )


def is_inspected(file: Yaml) -> bool:
    """Whether a file is what `docker inspect` printed."""
    return any(file.get(node, "HostConfig") for node in file.items(file.root))


def inspected(file: Yaml) -> Iterator[FoundContainer]:
    """The containers that `docker inspect` describes."""
    for node in file.items(file.root):
        given = {key: file.get(node, *path) for key, path in _PLACES.items()}
        words = [
            word
            for key in ("Entrypoint", "Cmd")
            for item in file.items(file.get(node, "Config", key))
            if (word := file.word(item))
        ]
        mounts = [
            Word(f"{source.text}:{target.text}", source.file, source.span)
            for item in file.items(file.get(node, "Mounts"))
            if (source := file.word(file.get(item, "Source")))
            and (target := file.word(file.get(item, "Destination")))
        ]
        options = {key: word for key, value in given.items() if (word := file.word(value))}
        # Docker writes 0, or nothing, for what is not limited.
        options = {key: word for key, word in options.items() if word.text not in ("0", "")}
        for inside, hosts in file.pairs(file.get(node, "HostConfig", "PortBindings")):
            address, port = (file.word(file.get(hosts, 0, key)) for key in ("HostIp", "HostPort"))
            if port:
                at = f"{address.text}:" if address and address.text else ""
                options["publish"] = Word(f"{at}{port.text}:{inside}", port.file, port.span)
        name = file.word(file.get(node, "Name"))
        title = name.text.lstrip("/") if name else "container"
        env = environment(file, file.get(node, "Config", "Env"), {})
        own = tuple(one for one in env if not docker.OF_IMAGES.fullmatch(f"{one.name}="))
        yield FoundContainer(
            title,
            file.word(file.get(node, "Config", "Image")),
            tuple(words),
            own,
            options,
            tuple(mounts),
            is_running=True,
            items=tuple(of_yaml(file, "inspect", owner=title, root=node)),
        )
