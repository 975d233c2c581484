"""What a site's names refer to on its nodes, from captures of them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from generator.capture import Capture, records
from generator.records import record
from generator.sitefile.lock import Lock, LockedImage, LockedModel


@record
class Locking:
    """A lock, what is missing to complete it, and how nodes differ."""

    lock: Lock
    missing: tuple[str, ...]
    different: tuple[str, ...]


def lock_of(
    wanted: Lock,
    nodes: Iterable[str],
    captures: Sequence[Capture],
    before: Lock,
    hubs: Mapping[str, str],
    bases: Collection[str] = (),
) -> Locking:
    """What the `wanted` names stand for on nodes; those that have none of them do not count.

    What no node has stays as it was `before`. `hubs` are the caches that models are read from, and
    `bases` the images that others are built from, which no node needs to keep.
    """
    missing, different = [], []
    images: list[LockedImage] = []
    for name, inputs in ((image.image, image.inputs) for image in wanted.images):
        found = {c.node: image for c in captures if (image := image_on(c, name, bool(inputs)))}
        others = [node for node, image in found.items() if image.inputs != inputs]
        kept = [image for image in before.images if (image.image, image.inputs) == (name, inputs)]
        if others:
            on = ", ".join(others)
            missing.append(f"{name} on {on} differs from what the site builds: run build.sh")
        elif len({(image.digest or image.layers) for image in found.values()}) > 1:
            different.append(_differing(name, {n: _short(i) for n, i in found.items()}))
        elif not found and name not in bases:
            missing.append(f"no node has the image {name}{_STAYS * bool(kept)}")
        images += [*found.values(), *kept][:1] if not others else []
    models: list[LockedModel] = []
    for source, revision in ((model.source, model.revision) for model in wanted.models):
        hub = hubs.get(source, "")
        commits = {
            c.node: commit
            for c in captures
            if (commit := commit_on(c, source, revision, hub) or commit_on(c, source, revision))
        }
        kept_commit = before.commit(source, revision)
        if len({*commits.values()}) > 1:
            short = {node: commit[:12] for node, commit in commits.items()}
            different.append(_differing(f"{source}, revision {revision}", short))
        elif not commits:
            stays = _STAYS * bool(kept_commit)
            missing.append(f"no node has {source}, revision {revision}{stays}")
        if commit := next(iter(commits.values()), kept_commit):
            models.append(LockedModel(source, revision, commit))
    known = {capture.node for capture in captures}
    missing += [f"{node} is not captured" for node in nodes if node not in known]
    return Locking(Lock(tuple(images), tuple(models)), tuple(missing), tuple(different))


_STAYS = ": it stays as it is locked"


def image_on(capture: Capture, name: str, is_built: bool = False) -> LockedImage | None:
    """What an image's name refers to on a node, by its registry's digest or by its layers.

    An image that the site builds is identified by its layers and inputs, even if it has a digest.
    """
    for path in sorted(capture.texts):
        if not path.startswith(("containers/", "images/")):
            continue
        rows = [(label, str(values[0])) for label, values in records(capture.texts[path]) if values]
        named = {value.partition("@")[0] for label, value in rows if label == "image"}
        if name not in named:
            continue
        digests = [value for label, value in rows if label == "image-digest"]
        own = [d.partition("@")[2] for d in digests if _repository(d) == _repository(name)]
        layers = [value for label, value in rows if label == "image-layer"]
        inputs = next((f"sha256:{value}" for label, value in rows if label == "image-build"), "")
        if own and not is_built:
            return LockedImage(name, digest=sorted(own)[0])
        if layers:
            checksum = sha256("\n".join(layers).encode()).hexdigest()
            own_inputs = inputs if is_built else ""
            return LockedImage(name, layers=f"sha256:{checksum}", inputs=own_inputs)
    return None


def commit_on(capture: Capture, source: str, revision: str, hub: str = "") -> str:
    """The commit that a node's `hub`, or any, has for a revision of a model; empty if none."""
    for name, place, lines in caches(capture):
        if name == source and hub in ("", place):
            known: dict[str, str] = dict(re.findall(r"(?m)^ref (\S+) ([0-9a-f]{40})$", lines))
            known |= {own: own for own in re.findall(r"(?m)^snapshot ([0-9a-f]{40}) ", lines)}
            return known.get(revision, "")
    return ""


def caches(capture: Capture) -> Iterator[tuple[str, str, str]]:
    """Each model that a capture has of a hub's cache: its name, the hub, and the lines about it."""
    for block in re.split(r"(?m)^cache ", capture.texts.get("commands/models.txt", ""))[1:]:
        head, _, lines = block.partition("\n")
        name, _, place = head.partition(" ")
        yield name, place, lines


def changes(before: Lock, after: Lock) -> Iterator[str]:
    """How a new lock differs from the previous one."""
    old, new = (dict(_entries(lock)) for lock in (before, after))
    for what in dict.fromkeys((*new, *old)):
        if old.get(what) != new.get(what):
            yield f"{what}: {old.get(what, 'new')} -> {new.get(what, 'no longer in the site')}"


def stale(lock: Lock, wanted: Lock) -> Iterator[str]:
    """What a lock lacks, or has too many, of what a site names; `wanted` has no digests."""
    has, named = ({what for what, _ in _entries(each)} for each in (lock, wanted))
    yield from (f"{what}: not locked yet" for what in sorted(named - has))
    yield from (f"{what}: no longer in the site" for what in sorted(has - named))
    for image in wanted.images:
        known = lock.image(image.image)
        if known and known.inputs != image.inputs:
            yield f"{image.image}: the site builds another one now: run build.sh, and lock it"
    sums = {file.file: file.sha256 for file in wanted.files}
    for file in lock.files:
        if sums.get(file.file, file.sha256) != file.sha256:
            yield f"{file.file}: changed, {file.sha256[:12]} -> {sums[file.file][:12]}"


def _entries(lock: Lock) -> Iterator[tuple[str, str]]:
    """What is locked, and what it is locked to, as people read it."""
    for image in lock.images:
        built = f", built of {image.inputs[7:19]}" if image.inputs else ""
        yield image.image, f"{_short(image)}{built}"
    for model in lock.models:
        yield f"{model.source}, revision {model.revision}", model.commit[:12]
    for file in lock.files:
        yield file.file, file.sha256[:12]


def _repository(reference: str) -> str:
    """The repository of a reference, without Docker's default registry."""
    name = reference.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    return name.removeprefix("docker.io/").removeprefix("library/")


def _short(image: LockedImage) -> str:
    return (image.digest or image.layers)[:19]


def _differing(what: str, by_node: dict[str, str]) -> str:
    having = ", ".join(f"{node} has {one}" for node, one in by_node.items())
    return f"{what} is not the same on all nodes: {having}"
