"""What a container gets of its node's disk, and which of it a site file can contain."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.adoption.draft import Draft
from generator.adoption.found import Container, Loss, Word
from generator.records import record
from generator.sitefile.text_types import TEXT_TYPES

# Mounted by sparkgen itself, or nothing that engines read files from.
_OF_THE_SYSTEM = re.compile(
    r"/(dev|sys|proc|run|tmp|var/run|var/cache/sparkgen|etc/sparkgen|opt/sparkgen(?!/files/))(/.*)?"
    r"|/etc/(nccl\.conf|localtime|timezone|hosts|resolv\.conf|passwd|group|shadow)"
)
_CACHE = re.compile(r".*(cache|huggingface|\.triton|\.tiktoken).*", re.IGNORECASE)


@record
class Mount:
    """A folder or a file of the node, and its place in the container."""

    source: str
    target: str
    word: Word

    def holds(self, path: str) -> bool:
        """Whether a path in the container is inside it."""
        return path == self.target or path.startswith(f"{self.target}/")

    def outside(self, path: str) -> str:
        """The path on the node for one in the container."""
        return self.source + path[len(self.target) :]


def mounts(container: Container) -> list[Mount]:
    """The mounts of a container, the most specific first."""
    found = [mount for word in container.mounts if (mount := _mount(word))]
    return sorted(found, key=lambda mount: -len(mount.target))


def outside(container: Container, path: str) -> str:
    """The path on the node of a container's path: the same, unless it is mounted elsewhere."""
    found = next((mount for mount in mounts(container) if mount.holds(path)), None)
    own = found.outside(path) if found else path
    return own if TEXT_TYPES["path"].fits(own) else path


def _has_extension(name: str) -> bool:
    """Whether a name ends like that of a file, perhaps with a version behind: lib.so.1.2."""
    parts = name.split(".")[1:]
    while parts and parts[-1].isdigit():
        parts.pop()
    return bool(parts) and re.fullmatch(r"(?=[0-9]*[a-z])[a-z0-9]{1,6}", parts[-1]) is not None


def fill(draft: Draft, container: Container) -> None:
    """Write the engine's files, and report those that a site file has no place for."""
    model = draft.get("model", "file") or draft.get("model", "source") or ""
    known = list(_texts(draft.get("engine", "args"))) + list(_texts(draft.get("engine", "env")))
    number = 0
    for mount in mounts(container):
        is_file = _has_extension(mount.target.rpartition("/")[2])
        is_named = any(mount.holds(part) for text in known for part in re.split(r"[:,;= ]", text))
        is_model = mount.source == model or model.startswith(f"{mount.source}/")
        if _OF_THE_SYSTEM.fullmatch(mount.target) or is_model or not (is_file or is_named):
            continue
        if not is_file and _CACHE.fullmatch(mount.target):
            continue
        if not all(TEXT_TYPES["path"].fits(path) for path in (mount.source, mount.target)):
            message = f"the mount {mount.source}: write it under 'engine.files' by its whole path"
            draft.losses.append(Loss(message, mount.word))
            continue
        draft.put(("engine", "files", number, "path"), mount.source, mount.word)
        if mount.target != mount.source:
            draft.put(("engine", "files", number, "target"), mount.target, mount.word)
        number += 1


def _mount(word: Word) -> Mount | None:
    """A mount in the syntax of `-v` or `--mount`."""
    text = word.text
    if re.match(r"(type|source|src|target|dst|destination)=", text):
        named = dict(part.partition("=")[::2] for part in text.split(","))
        source = named.get("source", named.get("src", ""))
        target = named.get("target", named.get("dst", named.get("destination", "")))
    else:
        source, _, rest = text.partition(":")
        target = rest.partition(":")[0]
    is_path = source.startswith(("/", ".", "~", "$", "__"))
    return Mount(source.rstrip("/"), target.rstrip("/"), word) if is_path and target else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
