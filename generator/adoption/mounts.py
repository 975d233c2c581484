"""What a container gets of its node's disk, and which of it a site file can contain."""

import re
from collections.abc import Sequence

from generator.adoption.draft import Draft
from generator.adoption.found import FoundContainer, Item, Word
from generator.records import record
from generator.sitefile.defaults import default
from generator.sitefile.text_types import TEXT_TYPES, texts

# Mounted by sparkgen itself, or by Docker in every container.
_OF_THE_SYSTEM = re.compile(
    r"/(dev|sys|proc|var/cache/sparkgen|etc/sparkgen|opt/sparkgen(?!/files/))(/.*)?"
    r"|/etc/(nccl\.conf|hosts|resolv\.conf)"
)
_USUAL = re.compile(
    r"((~|%h|/root|/home/(?P<user>[a-z_][a-z0-9_-]*)|\$(HOME|\{HOME\}))/\.cache|/var/cache/sparkgen)/huggingface"
)
# Beside the Compose file or the script.
_BESIDE = re.compile(r"(?:\.|\$PWD|\$\{PWD\}|\$\(pwd\))/([A-Za-z0-9_-][A-Za-z0-9._/-]{0,200})")
_CACHE = re.compile(r".*(cache|huggingface|\.triton|\.tiktoken).*", re.IGNORECASE)


@record
class FoundMount:
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


def mounts(container: FoundContainer) -> list[FoundMount]:
    """The mounts of a container, the most specific first."""
    found = [mount for word in container.mounts if (mount := _mount(word))]
    return sorted(found, key=lambda mount: -len(mount.target))


def outside(container: FoundContainer, path: str) -> str:
    """The path on the node of a container's path: the same, unless it is mounted elsewhere.

    It is no whole path if only a shell knows it, as for `~/models`.
    """
    return next((own.outside(path) for own in mounts(container) if own.holds(path)), path)


def is_inside(container: FoundContainer, path: str) -> bool:
    """Whether a path is one of the container itself, in which nothing mounts it."""
    is_own = container.image is not None and path.startswith("/")
    return is_own and not any(own.holds(path) for own in mounts(container))


def fill(draft: Draft, container: FoundContainer) -> None:
    """Write the engine's files, and report those that a site file has no place for."""
    models = list(texts(draft.get("model")))
    args = [*models, *texts(draft.get("engine", "args"))]
    known = [*args, *texts(draft.get("engine", "env"))]
    for mount in mounts(container):
        if _is_hub(container, mount):
            if mount.source != mount.target and _is_named(mount, args[len(models) :]):
                # Beside the hub's own place, at which the site mounts it.
                _settle(draft, mount, True)
            continue
        with draft.ending(Item(mount.target, mount.source, (mount.word,))):
            if any(f"{model}/".startswith(f"{mount.source}/") for model in models):
                draft.settle("model")
            elif _is_cache(mount) and not _is_named(mount, args):
                draft.same("a cache, which sparkgen has too")
            else:
                _settle(draft, mount, _is_named(mount, known))


def _is_hub(container: FoundContainer, mount: FoundMount) -> bool:
    homes = {v.value.text.rstrip("/") for v in container.env if v.name == "HF_HOME"}
    return mount.target in homes or mount.target.endswith("/huggingface")


def in_hub(container: FoundContainer, path: str) -> bool:
    """Whether a path in the container is that of the mounted folder of models."""
    return any(_is_hub(container, own) and own.holds(path) for own in mounts(container))


def hub(draft: Draft, container: FoundContainer) -> None:
    """Write the hub's folder on the nodes, from its mount or, outside containers, a variable."""
    hubs = [(m.target, m.source, m.word) for m in mounts(container) if _is_hub(container, m)]
    given = {v.name: v.value for v in container.env if container.image is None}
    if own := given.get("HF_HUB_CACHE", given.get("HF_HOME")):
        hubs.append(("the folder of models", own.text.rstrip("/").removesuffix("/hub"), own))
    for what, path, word in hubs:
        with draft.ending(Item(what, path, (word,))):
            _folder(draft, path, word)


def _folder(draft: Draft, path: str, word: Word) -> None:
    """Write the folder of models, unless it is the user's own."""
    found = _USUAL.fullmatch(path)
    user = draft.get("defaults", "user") or default("user")
    if found and found["user"] in (None, user):
        draft.same("sparkgen's own folder of models")
    elif found and not draft.get("defaults", "user"):
        draft.put(("defaults", "user"), found["user"], word)
    elif TEXT_TYPES["path"].fits(path):
        draft.put(("model", "cache"), path, word)
    else:
        draft.lose("the folder of models: write its whole path as 'model.cache'", word)


def _is_cache(mount: FoundMount) -> bool:
    is_of_the_system = _OF_THE_SYSTEM.fullmatch(mount.target)
    return bool(_CACHE.fullmatch(mount.target)) and not (is_of_the_system or _is_file(mount))


def _is_named(mount: FoundMount, known: Sequence[str]) -> bool:
    return any(mount.holds(part) for text in known for part in re.split(r"[:,;= ]", text))


def _is_file(mount: FoundMount) -> bool:
    """Whether a name ends like that of a file, perhaps with a version behind: lib.so.1.2."""
    parts = mount.target.rpartition("/")[2].split(".")[1:]
    while parts and parts[-1].isdigit():
        parts.pop()
    return bool(parts) and re.fullmatch(r"(?=[0-9]*[a-z])[a-z0-9]{1,6}", parts[-1]) is not None


def _settle(draft: Draft, mount: FoundMount, is_named: bool) -> None:
    """Write one mount among the engine's files, or say why not."""
    if _OF_THE_SYSTEM.fullmatch(mount.target):
        draft.same("sparkgen mounts it, or every container has it")
    elif is_named and (beside := _BESIDE.fullmatch(mount.source)) and ".." not in beside[1]:
        path = ("engine", "files", len(draft.get("engine", "files") or []))
        why = "the place of this folder or file: copy it beside the site file"
        draft.put((*path, "source"), beside[1], mount.word, why)
        draft.put((*path, "target"), mount.target, mount.word)
    elif not all(TEXT_TYPES["path"].fits(path) for path in (mount.source, mount.target)):
        draft.lose("its whole path is not stated: see 'engine.files' and 'model'", mount.word)
    elif not (is_named or _is_file(mount)):
        draft.lose("no setting names it: write it under 'engine.files' if it is needed", mount.word)
    else:
        path = ("engine", "files", len(draft.get("engine", "files") or []))
        draft.put((*path, "path"), mount.source, mount.word)
        if mount.target != mount.source:
            draft.put((*path, "target"), mount.target, mount.word)


def _mount(word: Word) -> FoundMount | None:
    """A mount in the syntax of `-v` or `--mount`."""
    text = word.text
    if re.match(r"(type|source|src|target|dst|destination)=", text):
        named = dict(part.partition("=")[::2] for part in text.split(","))
        source = named.get("source", named.get("src", ""))
        target = named.get("target", named.get("dst", named.get("destination", "")))
    else:
        source, _, rest = text.partition(":")
        target = rest.partition(":")[0]
    return FoundMount(source.rstrip("/"), target.rstrip("/"), word) if source and target else None
