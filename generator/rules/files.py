"""Rules about files that the engine needs besides the model."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import PurePosixPath

from generator import catalogs
from generator.derive.environment import ENGINE_CACHE, NCCL_CONF
from generator.derive.files import home
from generator.diagnostics import Add, KeyPath, Proposal, Related, Replace, listed, removal
from generator.records import record
from generator.rules.nodes import Nodes, unknown
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.beside import Source
from generator.sitefile.declaration import (
    FILES,
    DeclaredEngine,
    DeclaredFile,
    DeclaredModel,
    DeclaredNode,
)
from generator.sitefile.text_types import TEXT_TYPES

_FILES: KeyPath = ("engine", "files")
# Virtual file systems of the kernel and the container, and the sockets that make anyone who can
# write to them root on the node.
_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock")
_NO_FILES = ("/dev", "/proc", "/sys", *_SOCKETS)

# Rules about the flag or the variable itself.
_FLAG_FAULTS = (
    "SG602 SG604 SG620 SG621 SG630 SG631 SG632 SG633 SG634 SG635 SG636 SG637 SG638 SG639 SG640 "
    "SG641 SG642 SG643 SG644 SG645 SG646 SG647 SG648"
)


def _path(file: DeclaredFile, *keys: str) -> KeyPath:
    return (*_FILES, file.index, *keys)


@rule("SG690")
def entry_without_a_file(engine: DeclaredEngine) -> Faults:
    """An entry of `files` states where its file is: next to the site file, or on the nodes."""
    for file in engine.files:
        if not file.source and not file.path:
            yield Fault(
                "the entry names no file: it has neither 'source' nor 'path'",
                _path(file),
                "write 'source:' and a path beside the site file, or 'path:' and one on the nodes",
            )


@rule("SG691")
def source_that_cannot_be_read(engine: DeclaredEngine, sources: Mapping[str, Source]) -> Faults:
    """A source is a file, or a folder of files, in or below the site file's folder."""
    for path, named in _of_images(engine):
        if fault := sources[named].fault:
            yield Fault(fault, path, sources[named].help or _HAVE_IT)
    for file in engine.files:
        if not file.source:
            continue
        source = sources[file.source]
        if source.fault:
            yield Fault(source.fault, _path(file, "source"), source.help or _HAVE_IT)
        elif file.sha256 and source.is_folder:
            yield to_remove(
                "a checksum is that of one file, and this is a folder",
                _path(file, "sha256"),
                "remove it: the manifest of the bundle has one for each file",
            )
        elif file.sha256 and (now := sha256(source.files[0].data).hexdigest()) != file.sha256:
            yield Fault(
                f"{file.source} has another checksum",
                _path(file, "sha256"),
                f"if the file is the right one, write {now}",
            )


def _of_images(engine: DeclaredEngine) -> Iterator[tuple[KeyPath, str]]:
    """The sources of a derived image, and the script that prepares the container."""
    if engine.prepare:
        yield ("engine", "prepare"), engine.prepare
    if image := engine.derived:
        for index, (source, _) in enumerate(image.copies):
            yield ("engine", "image", "files", index, "source"), source
        for index, mod in enumerate(image.mods):
            yield ("engine", "image", "mods", index), mod


_HAVE_IT = "put it beside the site file, or write 'path:' for a file that lies on the nodes"


@rule("SG692")
def two_files_at_one_place(engine: DeclaredEngine, model: DeclaredModel, nodes: Nodes) -> Faults:
    """No two files have the same path in the container."""
    yield from _same_places(engine)
    for file in engine.files:
        for node in nodes:
            taken = [NCCL_CONF, ENGINE_CACHE, *_of_the_model(model, node)]
            if file.is_on(node.name) and (hit := _within(file.inside, taken)):
                where = "" if file.inside == hit else f"is inside {hit}, which "
                yield _taken(file, f"{file.inside} {where}is mounted already")
                break
        else:
            is_carried = _within(file.inside, [FILES]) and file.inside != FILES
            if _within(file.inside, _OWN) and not is_carried:
                yield _taken(file, f"{file.inside} is among what sparkgen mounts itself")
            elif file.target and any(_within(own, [file.target]) for own in (*_OWN, ENGINE_CACHE)):
                yield _taken(file, f"{file.inside} would hide what sparkgen mounts in it")


# The parts of a bundle that the container sees: facts, scripts and secrets.
_OWN = ("/etc/sparkgen", "/opt/sparkgen", "/run/sparkgen-engine")


def _taken(file: DeclaredFile, message: str) -> Fault:
    key = "target" if file.target else "path" if file.path else "source"
    help_text = (
        "leave the entry out" if file.path and not file.target else "give it another 'target'"
    )
    return Fault(message, _path(file, key), help_text)


def _same_places(engine: DeclaredEngine) -> Faults:
    for file in engine.files:
        for other in engine.files[: file.index]:
            if file.nodes and other.nodes and not set(file.nodes) & set(other.nodes):
                continue
            key = "target" if file.target else "path" if file.path else "source"
            if _within(file.inside, [other.inside]) or _within(other.inside, [file.inside]):
                yield Fault(
                    f"{file.inside} is taken by another entry of 'files'"
                    if file.inside == other.inside
                    else f"of {file.inside} and {other.inside}, one is inside the other",
                    _path(file, key),
                    "give it a 'target' of its own",
                    related=(Related("the other one", _path(other)),),
                )
                break
            if file.source != other.source and file.place == other.place:
                yield Fault(
                    f"{file.source} and {other.source} are both carried to {file.place}",
                    _path(file, "source"),
                    "rename one of them",
                    related=(Related("the other one", _path(other)),),
                )
                break


@rule("SG693", unless="SG201")
def file_of_an_unknown_node(engine: DeclaredEngine, nodes: Nodes) -> Faults:
    """The nodes of an entry are nodes of the site."""
    names = [node.name for node in nodes]
    for file in engine.files:
        for index, name in enumerate(file.nodes):
            if name not in names:
                yield unknown("node", name, (*_path(file, "nodes"), index), names)


@rule("SG694")
def not_a_file(engine: DeclaredEngine) -> Faults:
    """A file is a regular file or a folder, not a device, a socket or a file of the kernel."""
    for file in engine.files:
        for key, place in (("path", file.path), ("target", file.target)):
            if place and _within(place, _NO_FILES):
                yield Fault(
                    f"{place} is no file to mount: it is a device, a socket or the kernel's",
                    _path(file, key),
                    "write it under 'devices' of 'engine.container'"
                    if place.startswith("/dev/")
                    else "remove it: who may ask Docker is root on the node"
                    if place in _SOCKETS
                    else "remove it: the container has its own",
                    proposals=removal(_path(file)),
                )


@record
class _Named:
    """A path that an argument or variable names, its place in the site file, and the nodes."""

    path: str
    key: KeyPath
    text: str
    nodes: tuple[str, ...]


@rule("SG695", unless="SG605 SG632 SG633 SG634", suppressed_by=f"SG402 SG413 {_FLAG_FAULTS}")
def path_that_is_not_in_the_container(
    engine: DeclaredEngine, model: DeclaredModel, nodes: Nodes
) -> Faults:
    """A file that an argument or a variable names is in the container."""
    reported: set[str] = set()
    # Without a container, all of the node's folders are visible.
    for named in () if engine.venv else _named(engine):
        if named.path in reported:
            continue
        having = [node for node in nodes if not named.nodes or node.name in named.nodes]
        missing = [node.name for node in having if not _is_there(named.path, engine, model, node)]
        if missing:
            reported.add(named.path)
            yield _uncovered(named, engine, missing if len(missing) < len(having) else [])


@rule("SG696", suppressed_by=_FLAG_FAULTS)
def relative_path(engine: DeclaredEngine) -> Faults:
    """A file that an argument names has its full path."""
    # A script, a mod or an image of one's own may put the file into the working directory.
    derived, is_own = engine.derived, catalogs.is_of_ones_own(engine.image, engine.version)
    may_have = is_own or engine.prepare or (derived and (derived.mods or derived.run))
    for name, key, text in () if may_have else _flag_texts(engine):
        if is_relative_file(name, text):
            source = text.removeprefix("./").removeprefix("~/")
            yield Fault(
                f"the engine won't find '{text}': it is not an absolute path",
                key,
                f"write '{FILES}/{source.removeprefix('files/')}', and the file under 'files'",
                proposals=_carry(engine, key, source),
            )


def is_relative_file(name: str, text: str) -> bool:
    """Whether the value of a flag is a file in the image's working directory."""
    return "." in text and bool(re.fullmatch(_RELATIVE, text)) and _is_read(name)


# The extension distinguishes a file from a name, an id or an inline template.
_RELATIVE = (
    r"(\./|~/)?([A-Za-z0-9._@+-]+/)*[A-Za-z0-9._@+-]+"
    r"\.(jinja2?|json|ya?ml|toml|py|so(\.[0-9]+)*|pem|crt|key|txt|csv|model)"
)
# Words in the names of settings that are not files to read: outputs, URL paths, files of a
# repository, or imports. vLLM takes `module.attribute` as middleware and `module:Class` as a logits
# processor.
_NO_READER = (
    r"(?i)(^|[-_])(cache|tmp|tmpdir|temp|logs?|dumps?|profil\w*|traces?|output|out|save|records?|"
    r"storage|workspace|state|debug|crash|metrics|uds|sock(et)?|endpoints?|url|uri|routes?|prefix|"
    r"root[-_]path|hf[-_](file|repo)|middleware|logits[-_]processors?|cls)([-_]|$)"
)
# The search path of programs, whose folders need not exist, and what PyTorch and FlashInfer create.
_NOT_READ = ("PATH", "TORCH_EXTENSIONS_DIR", "FLASHINFER_CUBIN_DIR", "FLASHINFER_LOGDEST")
_OF_IMAGES = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ssl", "/etc/pki", "/etc/hosts"),
    *("/opt", "/app", "/workspace", "/vllm-workspace", "/sgl-workspace", *_NO_FILES),
)
# Folders that the base images of published images put into /opt.
_OF_MAKERS = tuple(
    f"/opt/{name}"
    for name in (
        *("amazon", "conda", "env", "hpcx", "mellanox", "nvidia", "openmpi", "pytorch", "rh"),
        *("tensorrt", "tritonserver", "uv", "venv"),
    )
)
_TEMPORARY = ("/tmp", "/run", "/var/tmp")


# Settings of templates and sampling: words for the model, such as Qwen's /no_think.
_FOR_MODELS = (
    r"(default[-_])?chat[-_]template[-_]kwargs|override[-_]generation[-_]config|"
    r"(\w+[-_])*sampling[-_](params|defaults)|stop"
)


def _is_read(name: str) -> bool:
    """Whether the setting may name a file that is read, rather than one that is written."""
    if re.fullmatch(_FOR_MODELS, name.partition(".")[0]):
        return False
    return re.search(_NO_READER, name) is None or "config" in name.lower()


def _named(engine: DeclaredEngine) -> Iterator[_Named]:
    """All absolute paths that the engine is told to read."""
    flags = ((*found, ()) for found in _flag_texts(engine))
    variables = ((each.name, each.path, each.value, each.nodes) for each in engine.environment)
    for name, key, text, nodes in (*flags, *variables):
        if name in _NOT_READ or "/" not in text or not _is_read(name):
            continue
        for part in _parts(text):
            if TEXT_TYPES["path"].fits(part) and not _is_of_the_image(part, engine):
                yield _Named(part, key, text, nodes)


def _flag_texts(engine: DeclaredEngine) -> Iterator[tuple[str, KeyPath, str]]:
    """All texts in the values of flags: the flag, its key and the text."""
    for setting in engine.settings:
        for keys, text in _texts(setting.value, ()):
            yield setting.name, setting.path(*keys), text


def _parts(text: str) -> Iterator[str]:
    """The items of a list, as variables have it, without any `NAME=`; or the texts in JSON."""
    if text.startswith(("{", "[")):
        try:
            yield from (part for _, inner in _texts(json.loads(text), ()) for part in _parts(inner))
        except (ValueError, RecursionError):
            return
    elif "://" not in text:
        yield from (part.rpartition("=")[2] for part in re.split(r"[:,; ]", text))


def _texts(value: object, key: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """All texts in a value, each with the key that a finding would point at."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if _is_read(str(name)):
                yield from _texts(item, (*key, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*key, index))


def _is_of_the_image(path: str, engine: DeclaredEngine) -> bool:
    """Whether the image may have the path, or it is created while the engine runs."""
    is_made = bool(_within(path, _TEMPORARY)) and not PurePosixPath(path).suffix
    if not engine.prepare and catalogs.image(engine.image) and _within(path, ["/opt"]):
        return bool(_within(path, _OF_MAKERS))
    return is_made or (bool(_within(path, _OF_IMAGES)) and not _within(path, [FILES]))


def _is_there(path: str, engine: DeclaredEngine, model: DeclaredModel, node: DeclaredNode) -> bool:
    given = [file.inside for file in engine.given_files if file.is_on(node.name)]
    given += [target for _, target in engine.derived.copies] if engine.derived else []
    return bool(_within(path, [*given, *_of_the_model(model, node), ENGINE_CACHE, NCCL_CONF]))


def _of_the_model(model: DeclaredModel, node: DeclaredNode) -> list[str]:
    """The node's paths that are mounted for the model."""
    drafts = model.speculative.source if model.speculative else None
    cache = model.cache or f"{home(node.user)}/.cache/huggingface"
    return [
        cache,
        *(path for path in (model.source, model.file, drafts) if path and path[0] == "/"),
    ]


def _within(path: str, folders: Sequence[str]) -> str:
    """The folder that contains the path or equals it, or nothing."""
    return next((f for f in folders if path == f or path.startswith(f"{f}/")), "")


def _uncovered(named: _Named, engine: DeclaredEngine, missing: Sequence[str]) -> Fault:
    where = f" on {listed(missing, 'and')}" if missing else ""
    return Fault(
        f"{named.path} is not in the container{where}: it has the image, the model and 'files'",
        named.key,
        "remove 'nodes' from its entry, or name them all"
        if missing
        else f"add '- path: {named.path}' under 'files' if it lies on the nodes",
        proposals=() if missing else ((_entry(engine, {"path": named.path}),),),
        nodes=tuple(missing),
    )


def _carry(engine: DeclaredEngine, key: KeyPath, source: str) -> tuple[Proposal, ...]:
    if not TEXT_TYPES["source_path"].fits(source):
        return ()
    whole = Replace(key, f"{FILES}/{source.removeprefix('files/')}")
    known = any(file.source == source for file in engine.files)
    return ((whole,) if known else (whole, _entry(engine, {"source": source})),)


def _entry(engine: DeclaredEngine, entry: dict[str, str]) -> Add:
    """An edit that adds an entry to `files`."""
    if not engine.files:
        return Add(_FILES, [dict(entry)])
    return Add((*_FILES, len(engine.files)), dict(entry))
