"""Containers and processes of engines and services, and the models that they read."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import yaml

from generator import catalogs
from generator.adoption.found import REMOVED, FoundContainer
from generator.diagnostics import listed
from generator.drift.installed import INSTALL, restarts
from generator.drift.limits import limits, words
from generator.drift.seen import Seen
from generator.locking.locking import commit_on, image_on
from generator.operation.reading import programs
from generator.records import replace
from generator.reports.remarks import Remark
from generator.site import Member, Part, Site
from generator.sitefile.lock import Lock
from generator.sitefile.redaction import is_secret_key


def engines(site: Site, seen: Seen, lock: Lock | None) -> Iterator[Remark]:
    """How what runs on a node differs from what the bundle starts there."""
    containers = {c.name.lstrip("/"): c for c in seen.found.containers if c.image}
    composed = {
        service["container_name"]: (path, service)
        for path, file in seen.files.items()
        if path.endswith(".yaml") and "container_name:" in file.text
        for service in yaml.safe_load(file.text)["services"].values()
    }
    if composed and _DOCKER not in seen.capture.texts:
        yield seen.lacks("containers")
    parts = {part.unit: (part, node) for part, node in site.parts_of(seen.node.name)}
    for name, (path, service) in composed.items():
        if name not in parts:
            yield from _service(seen, path, service, containers.get(name))
    yield from _in_turn(site, seen, containers)
    for part, node in parts.values():
        if engine := containers.get(part.unit):
            yield from _image(part, seen, engine, lock)
            yield from _variables(part, seen, node, engine)
            wanted = [node.container.entrypoint, *_command(node)]
            yield from _words(seen, "the engine", wanted, engine, _restart(part, seen))
            if part.unit in composed:
                yield from limits(seen, composed[part.unit][1], _restart(part, seen))
            yield from restarts(part.unit, seen, _started(seen, engine), _read(part, seen))
        elif part.engine.venv:
            yield from _process(part, seen, node)
        elif part.is_active and _DOCKER in seen.capture.texts and _is_installed(seen, part):
            advice = f"journalctl -u {part.unit} says why it does not run"
            yield seen.remark("SG866", f"there is no container {part.unit}", advice, _DOCKER)
        yield from _models(part, seen, lock)


_DOCKER = "commands/docker-info.txt"


def _in_turn(site: Site, seen: Seen, containers: Mapping[str, FoundContainer]) -> Iterator[Remark]:
    """Engines that run beside the one whose turn it is."""
    for slot in site.slots_of(seen.node.name):
        running = [part.unit for part in slot if part.unit in containers]
        if len(running) > 1:
            message = f"{listed(running, 'and')} run at once, and take turns in the site"
            yield seen.remark("SG866", message, "stop one of them", _DOCKER)


def _process(part: Part, seen: Seen, node: Member) -> Iterator[Remark]:
    """The process of an engine without a container, which its port tells from others."""
    wanted = _command(node)
    port = {word for word in wanted if word.startswith("--port=")}
    bare = (c for c in seen.found.containers if c.is_running and c.image is None)
    own = [process for process in bare if port <= {word.text for word in process.words}]
    for process in own:
        yield from _variables(part, seen, node, process)
        # Before them is the program, which may be a script of the environment.
        rest = replace(process, words=process.words[-len(wanted) :])
        yield from _words(seen, "the engine", wanted, rest, _restart(part, seen))
        yield from restarts(part.unit, seen, _started(seen, process), _read(part, seen))
    if not own and port and part.is_active and _is_installed(seen, part):
        advice = f"journalctl -u {part.unit} says why it does not run; capture it as root"
        yield seen.remark("SG866", f"there is no process of {part.unit}", advice)


def _is_installed(seen: Seen, part: Part) -> bool:
    """Whether a node has an engine's unit, not only another way to run it."""
    return f"files/etc/systemd/system/{part.unit}.service" in seen.capture.texts


def settings(seen: Seen) -> Iterator[Remark]:
    """nccl.conf compared with the bundle's."""
    path = "files/etc/nccl.conf"
    if path not in seen.capture.texts:
        is_hidden = "can't be read without root: etc/nccl.conf\n" in seen.text("capture.txt")
        gone = seen.remark("SG865", "there is no /etc/nccl.conf", INSTALL)
        yield seen.lacks("/etc/nccl.conf, which only root can read") if is_hidden else gone
        return
    there = {variable.name: variable.value.text for variable in seen.found.settings}
    yield from _values(seen, dict(seen.node.nccl), there, "/etc/nccl.conf", path, _RESTART)


def _variables(part: Part, seen: Seen, member: Member, engine: FoundContainer) -> Iterator[Remark]:
    """Variables of the running process."""
    there = {variable.name: variable.value.text for variable in engine.env}
    path, advice = _path(seen, engine), _restart(part, seen)
    # Without the image's own variables, others of the engine can't be told from these.
    allowed = part.engine.secrets if engine.base else None
    yield from _values(seen, member.env, there, "the running engine", path, advice, allowed)


def _values(
    seen: Seen,
    wanted: Mapping[str, str],
    there: Mapping[str, str],
    where: str,
    path: str,
    advice: str,
    allowed: Collection[str] | None = None,
) -> Iterator[Remark]:
    """How variables differ; None of `allowed` allows all but NCCL's."""
    for name, value in wanted.items():
        has = there.get(name)
        if has is None:
            yield seen.remark("SG865", f"{where} has no {name}", advice, path)
        elif has == REMOVED and value and not is_secret_key(name):
            yield seen.lacks(f"the value of {name} in {where}")
        elif has not in (value, REMOVED):
            message = f"{name} is {has} in {where}, and {value} in the bundle"
            yield seen.remark("SG865", message, advice, path)
    for name in sorted(there.keys() - wanted.keys() - {*(allowed or ()), *_OF_DOCKER}):
        if name.startswith("NCCL_") or (allowed is not None and not _PROXY.fullmatch(name)):
            value = "" if there[name] == REMOVED else f"={there[name]}"
            message = f"{where} has {name}{value}, which the bundle does not set"
            yield seen.remark("SG865", message, advice, path)


_OF_DOCKER = ("HOME", "HOSTNAME", "NCCL_VERSION", "PATH", "TERM")
# Docker's client gives them to every container, if it is told to.
_PROXY = re.compile(r"(?i)(https?|ftp|no|all)_proxy")
_RESTART = "install the bundle and restart the engine, or write it under engine.env"


def _restart(part: Part, seen: Seen) -> str:
    """What to do about an engine that runs with other settings than the bundle's."""
    own = {part.place(path) for path in ("etc/sparkgen/engine.env", "opt/sparkgen/compose.yaml")}
    applied = own - {*seen.stale} if seen.is_recorded else ()
    if applied and all(
        there.state == "same" for path, there in seen.installed.items() if path in own
    ):
        return f"applied, not restarted: systemctl restart {part.unit}"
    return _RESTART


def _read(part: Part, seen: Seen) -> list[str]:
    """The files that an engine reads when it starts, but those that its container shows."""
    shown = {part.place(path) for path in _SHOWN}
    read = programs(seen.files)[part.unit].reads
    return [path for path in read if path not in shown and not path.endswith(".service")]


_SHOWN = ("etc/sparkgen/engine.env", "etc/sparkgen/engine.raw.env", "opt/sparkgen/compose.yaml")


def _started(seen: Seen, engine: FoundContainer) -> str:
    """When a container or process was started, as the capture has it."""
    path = _path(seen, engine) or (engine.words[0].file.partition(":")[2] if engine.words else "")
    found = re.search(r'(?m)^started-at "(.*)"$', seen.text(path))
    return found[1] if found else ""


def _service(
    seen: Seen, path: str, service: Mapping[str, Any], there: FoundContainer | None
) -> Iterator[Remark]:
    """The container of a service, as its Compose file has it."""
    name, unit = service["container_name"], f"sparkgen-{PurePosixPath(path).stem}"
    if there is None:
        if _DOCKER in seen.capture.texts and path in seen.recorded:
            yield seen.remark("SG866", f"there is no container {name}", _AGAIN, _DOCKER)
        return
    has = there.image.text if there.image else ""
    if has != service["image"]:
        message = f"{name} runs {has}, and the bundle says {service['image']}"
        yield seen.remark("SG863", message, _AGAIN, _path(seen, there))
    yield from _words(seen, name, words(seen, service), there, _AGAIN)
    wanted = {key: str(value) for key, value in service.get("environment", {}).items()}
    values = {variable.name: variable.value.text for variable in there.env}
    yield from _values(seen, wanted, values, name, _path(seen, there), _AGAIN)
    yield from limits(seen, service, _AGAIN)
    yield from restarts(unit, seen, _started(seen, there), programs(seen.files)[unit].reads)


_AGAIN = "install the bundle and restart its unit"


def _by_flag(arguments: Sequence[str]) -> list[str]:
    """Arguments with their flags in alphabetical order, and those of one flag in their own."""
    starts = [n for n, word in enumerate(arguments) if not n or word.startswith("-")]
    flags = [arguments[a:b] for a, b in pairwise([*starts, len(arguments)])]
    return [word for flag in sorted(flags, key=lambda flag: flag[0]) for word in flag]


def _words(
    seen: Seen, name: str, wanted: Sequence[str], container: FoundContainer, advice: str
) -> Iterator[Remark]:
    """The running command; what the capture removed matches any word."""
    wanted, there = _by_flag(wanted), _by_flag([word.text for word in container.words])
    pairs = list(zip(wanted, there, strict=False))
    if len(wanted) == len(there) and all(REMOVED in has or has == want for want, has in pairs):
        if there != wanted:
            yield seen.lacks(f"some arguments of {name}")
        return
    gone = [word for word in wanted if word not in there]
    new = [word for word in there if word not in wanted]
    more = [f"without {' '.join(gone)}"] if gone else []
    more += [f"with {' '.join(new)}"] if new else []
    message = f"{name} runs {' and '.join(more) or 'with its arguments in another order'}"
    yield seen.remark("SG868", message, advice, _path(seen, container))


def _command(member: Member) -> list[str]:
    """The arguments of a node's entrypoint."""
    items = ((item,) if isinstance(item, str) else item for item in member.container.command)
    return [word for item in items for word in item]


def _path(seen: Seen, engine: FoundContainer) -> str:
    name = engine.name.lstrip("/")
    path = f"containers/{name}.txt"
    return path if path in seen.capture.texts else ""


def _image(part: Part, seen: Seen, engine: FoundContainer, lock: Lock | None) -> Iterator[Remark]:
    """The image by its name and, if that is stated or locked, by what the name stands for."""
    path, wanted = _path(seen, engine), part.engine.image
    has = engine.image.text if engine.image else ""
    (name, _, pinned), (running, _, digest) = wanted.partition("@"), has.partition("@")
    if running != name or (digest and pinned and digest != pinned):
        message = f"the engine runs {has}, and the bundle says {wanted}"
        yield seen.remark("SG863", message, _restart(part, seen), path)
        return
    if digest and pinned:  # Docker itself has compared them.
        return
    locked = lock.image(name) if lock else None
    build = part.image_build
    there = image_on(seen.capture, name, bool(build or (locked and locked.inputs)))
    if there and build and there.inputs != f"sha256:{build.inputs}":
        message = f"{name} is not what the site builds"
        yield seen.remark("SG863", message, f"run build.sh, and restart {part.unit}", path)
        return
    by_digest = pinned or (locked.digest if locked else "")
    expected = by_digest or (locked.layers if locked else "")
    if expected and not there:
        yield seen.lacks(f"which image {name} is")
    elif there and expected and (there.digest if by_digest else there.layers) != expected:
        own = (there.digest or there.layers or "nothing that is locked")[:19]
        where = "in the lock" if locked else "in the bundle"
        message = f"{name} is {own} there, and {expected[:19]} {where}"
        yield seen.remark("SG863", message, "pull what is locked, or lock what is there", path)


def _models(part: Part, seen: Seen, lock: Lock | None) -> Iterator[Remark]:
    path = "commands/models.txt"
    if path not in seen.capture.texts:
        if part.is_active and part.model.downloads:
            yield seen.lacks("models")
        return
    sizes = dict(_sizes(seen.text(path)))
    for file in (*part.model.folders, *part.model.files):
        if not sizes.get(file):
            advice = "put it there: models.sh says what is expected"
            is_gone = seen.remark("SG864", f"there is no {file}", advice, path)
            yield is_gone if file in sizes else seen.lacks(file)
    yield from _downloads(part, seen, lock, sizes)


def _downloads(
    part: Part, seen: Seen, lock: Lock | None, sizes: Mapping[str, int]
) -> Iterator[Remark]:
    path = "commands/models.txt"
    for source in part.model.downloads if not part.model.file else ():
        revision = part.model.revision_of(source)
        hub = seen.hub(part)
        there, size = commit_on(seen.capture, source, revision, hub), sizes.get(f"{source} {hub}")
        locked = lock.commit(source, revision) if lock else ""
        known = catalogs.checkpoint(source)
        least = (known.weight_gb or 0) * 1e9 * _MOST_OF if known else 0
        if not there:
            message = f"{source}, revision {revision}, is not in the cache of the hub"
            yield seen.remark("SG864", message, "run models.sh", path)
        elif size is None:
            yield seen.lacks(f"the size of {source}")
        elif size < least:
            has, wanted = size / 1e9, least / 1e9
            message = f"{source} has {has:.1f} GB there, and its weights at least {wanted:.1f}"
            yield seen.remark("SG864", message, "run models.sh: it ends what is not whole", path)
        elif locked and there != locked:
            message = f"{source} is at {there[:12]}, and the lock has {locked[:12]}"
            yield seen.remark("SG864", message, "run models.sh, or lock what is there", path)


# The catalog has rounded figures.
_MOST_OF = 0.97


def _sizes(text: str) -> Iterator[tuple[str, int]]:
    """The bytes of each repository with its hub, folder and file; 0 if it is not there."""
    name = ""
    for label, _, rest in (line.partition(" ") for line in text.splitlines()):
        name = rest if label == "cache" else name
        first, _, size = rest.rpartition(" ")
        if label in ("size", "path") and re.fullmatch("[0-9]{1,15}", size):
            yield first or name, int(size) << 10
