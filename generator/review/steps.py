"""The steps that people take for a change, in the order of the runbook.

Download and copy while the old engine still serves; stop, the head first; move cables; install;
make keys; check the fabric; start, the head last.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from generator.activation import Activation, Effect
from generator.bundle.escaping import sh
from generator.bundle.plan import activations
from generator.bundle.tree import Tree
from generator.records import record
from generator.review.cables import Plugged, cables_of, moves
from generator.review.changes import FileChange
from generator.review.nodes import NodeReview
from generator.review.serving import Serving, Wave
from generator.site import Node, Part, Site, first_part


@record
class Step:
    """One thing to do, on these nodes in this order; no nodes if it is done elsewhere."""

    text: str
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}: {', '.join(self.nodes)}" if self.nodes else self.text


@record
class Change:
    """Everything that determines the steps.

    `before` has the bundle with the new names of nodes, and `members` its nodes by rank, of which
    those in `ran` have an engine; `old` is its site, None if not known. `cables` are the present
    ones. `serving` is what happens to its groups, None if it has none.
    """

    site: Site
    before: Tree
    members: Sequence[str]
    ran: Collection[str]
    old: Site | None
    cables: Sequence[Plugged]
    nodes: Sequence[NodeReview]
    restarts: bool
    serving: Serving | None = None

    def named(self, state: str) -> tuple[str, ...]:
        """The nodes in a state: new, removed, renamed, changed or unchanged."""
        return tuple(node.name for node in self.nodes if node.state == state)

    @cached_property
    def given(self) -> Mapping[str, Sequence[str]]:
        """The previous inputs of containers, by the name of the node."""
        texts: dict[str, list[str]] = {}
        for path, file in self.before.items():
            node, _, rest = path.partition("/")
            if (rest.startswith("etc/sparkgen/") and _is_given(PurePosixPath(rest).name)) or (
                rest.startswith("opt/sparkgen/") and rest.endswith((".yaml", ".sbatch", ".env"))
            ):
                texts.setdefault(node, []).append(file.text)
        return texts

    @property
    def touched(self) -> tuple[NodeReview, ...]:
        """The nodes with a folder to install, in start order."""
        by_name = {node.name: node for node in self.nodes if node.files}
        ranks = (node.name for node in self.site.start_order)
        return tuple(by_name[name] for name in ranks if name in by_name)


def _is_given(name: str) -> bool:
    """Whether a file among a node's facts and environments is an engine's environment."""
    return name.endswith(".env") and not name.endswith(
        ("container.env", "node.env", "nodes.env", "secrets.env")
    )


def order(change: Change) -> Iterator[Step]:
    """All steps."""
    touched = change.touched
    moved = list(moves(change.cables, cables_of(change.site)))
    yield from _by_hand(change)
    yield from _fetches(change)
    yield from _copies(change)
    yield from (Step(text) for text in _preparations(change))
    later: set[str] = set()
    if change.serving:
        later = {*change.serving.later}
        yield from _stops(change, change.serving)
    elif change.restarts and change.ran:
        yield _stop(change)
    yield from _grouped((node, _ahead(node.files)) for node in touched)
    if gone := tuple(name for name in change.named("removed") if name not in later):
        yield Step("install.sh --uninstall", gone)
    yield from (Step(text) for text, _ in moved)
    yield from _installed(change, [node for node in touched if node.name not in later])
    yield from _keys(change)
    if moved or any(n.effect is Effect.LINKS and n.state != "removed" for n in change.nodes):
        all_nodes = tuple(node.name for node in change.site.nodes)
        yield Step("check the fabric: wait-fabric.sh 10", all_nodes)
    if change.serving:
        yield from _starts(change, change.serving)
        yield from _switches(change.serving)
    elif change.site.parts and (change.restarts or change.named("new")):
        names = tuple(node.name for node in change.site.start_order)
        yield Step(f"start the engine{', the head last' if len(names) > 1 else ''}", names)


def _stops(change: Change, serving: Serving) -> Iterator[Step]:
    """The engines that stop at once: those of the first wave, or of a bundle without groups."""
    if not serving.before and change.ran:
        yield _stop(change)
    yield from _stopped(serving, serving.waves[:1])


def _stop(change: Change) -> Step:
    members = tuple(name for name in change.members if name in change.ran)
    return Step("stop the engine, the head first", members)


def _starts(change: Change, serving: Serving) -> Iterator[Step]:
    """The engines of the first wave, then each later wave including its stops."""
    heads: tuple[str, ...] = ()
    for index, wave in enumerate(serving.waves):
        if index:
            yield Step("wait until these serve", heads)
            yield from _stopped(serving, [wave])
            if gone := tuple(name for name in change.named("removed") if name in serving.later):
                yield Step("install.sh --uninstall", gone)
            later = [node for node in change.touched if node.name in serving.later]
            yield from _installed(change, later)
        yield from _started(wave.starts)
        heads = tuple(group.head.name for group in wave.starts)


def _stopped(serving: Serving, waves: Iterable[Wave]) -> Iterator[Step]:
    for wave in waves:
        for name in wave.stops:
            yield Step(f"stop the engine of {name}, the head first", serving.before[name])


def _switches(serving: Serving) -> Iterator[Step]:
    """Alternatives are started by the script that stops the running one."""
    for group, _ in serving.switched:
        yield Step(f"operator/switch.sh {group.group}")


def _started(groups: Iterable[Part]) -> Iterator[Step]:
    for group in groups:
        names = tuple(node.name for node in group.start_order)
        last = ", the head last" if len(names) > 1 else ""
        yield Step(f"start the engine of {group.group}{last}", names)


def _by_hand(change: Change) -> Iterator[Step]:
    """What no file of a bundle does, but later steps need: logins, management addresses."""
    old = {node.name: node for node in change.old.nodes} if change.old else {}
    known = [(node, old[node.name]) for node in change.site.nodes if node.name in old]
    logins: dict[str, list[str]] = {}
    for node, before in known:
        if node.user != before.user:
            logins.setdefault(node.user, []).append(node.name)
    for user, names in logins.items():
        yield Step(f"see that {user} is a login, with sudo and Docker", tuple(names))
    for node, before in known:
        now, then = node.management, before.management
        if now and then and now.address != then.address:
            yield Step(f"change the management address to {now.address} by hand", (node.name,))


def _copies(change: Change) -> Iterator[Step]:
    """The copies of folders; a renamed node accepts its own only if it may take the new name."""
    renamed = change.named("renamed")
    for option in ("--set-hostname ", ""):
        names = [node.name for node in change.touched if (node.name in renamed) is bool(option)]
        if names:
            yield Step(f"copy the folder (operator/deploy.sh {option}--run)", tuple(names))


def _installed(change: Change, nodes: Sequence[NodeReview]) -> Iterator[Step]:
    """The installations, then the secrets that units need, then the starts of services.

    A new node has no file for secrets before its installation.
    """
    names = {node.name for node in nodes}
    lacking = ((step.text, tuple(n for n in step.nodes if n in names)) for step in _secrets(change))
    secrets = [Step(text, found) for text, found in lacking if found]
    if not secrets:
        yield from _grouped((node, node.steps) for node in nodes)
        return
    yield from _grouped((node, node.steps[:1]) for node in nodes)
    yield from secrets
    yield from _grouped((node, node.steps[1:]) for node in nodes)


def node_steps(files: Sequence[FileChange], renamed: bool) -> Iterator[str]:
    """What is done on a node once its folder has been copied: the first installs it."""
    if files:
        apply = f"install.sh {'--set-hostname ' if renamed else ''}--apply"
        yield f"{apply}{_CONFIRM if any(_is_reverted(file) for file in files) else ''}"
    kinds: dict[Activation, set[str]] = {}
    for file in files:
        kinds.setdefault(file.activation, set()).add(file.kind)
    for activation in activations().values():
        if activation in kinds and (step := _step(activation, kinds[activation])):
            yield step


# What install.sh reverts unless it is confirmed: whatever can cut the connection.
_CONFIRM = ", then install.sh --confirm in a new session within 120 s"


def _is_reverted(file: FileChange) -> bool:
    return file.activation.effect is Effect.LINKS or "/etc/ssh/sshd_config.d/" in file.path


def _step(activation: Activation, kinds: set[str]) -> str:
    """The first start instead of a restart, and neither for what is removed."""
    if kinds == {"added"}:
        return activation.first
    return activation.gone if kinds == {"removed"} else activation.step


def _ahead(files: Iterable[FileChange]) -> tuple[str, ...]:
    removed = {file.activation for file in files if file.kind == "removed"}
    return tuple(one.before for one in activations().values() if one.before and one in removed)


def _grouped(steps: Iterable[tuple[NodeReview, Sequence[str]]]) -> Iterator[Step]:
    """Nodes with the same steps, combined into one."""
    by_text: dict[str, list[str]] = {}
    for node, texts in steps:
        if texts:
            by_text.setdefault("; ".join(texts), []).append(node.name)
    yield from (Step(text, tuple(names)) for text, names in by_text.items())


def _preparations(change: Change) -> Sequence[str]:
    """What has to be done on the fabric before the nodes: on its switches, or for the topology."""
    if not change.site.has_fabric:
        return ()
    if change.site.switch_setups:
        before_by_name = {s.name: s for s in change.old.switch_setups} if change.old else {}
        return [
            f"run {setup.path} on {setup.name}, in Safe Mode"
            if setup.title
            else f"set {setup.name} up as {setup.path} says"
            for setup in change.site.switch_setups
            if before_by_name.get(setup.name) != setup
        ]
    files = (change.before.get(f"{name}/etc/netplan/40-cx7.yaml") for name in change.members)
    found = (re.search(r"mtu: (\d+)", file.text) for file in files if file)
    before = next((int(mtu[1]) for mtu in found if mtu), None)
    return change.site.topology.preparations(change.site.mtu, before)


def _fetches(change: Change) -> Iterator[Step]:
    """Downloads while the old engine still serves, on nodes that don't have them yet."""
    site, given = change.site, change.given
    for part in site.parts:
        image = part.engine.image
        inputs = (part.image_build.inputs,) if part.image_build else ()
        pulling = _without(part.nodes, given, image, *inputs) if image else ()
        if pulling:
            image = sh(image)
            built = f"build and load the image first: {image}"
            yield Step(
                built
                if part.engine.is_built_here
                else f"fetch the image first: docker pull {image}",
                pulling,
            )
    beside: dict[str, list[Node]] = {}
    for service in site.services.values():
        for node in site.nodes:
            for image in service.images(node):
                beside.setdefault(image, []).append(node)
    for image, nodes in beside.items():
        if pulling := _without(nodes, given, image):
            yield Step(f"fetch the image first: docker pull {sh(image)}", pulling)
    for part in site.parts:
        yield from _models(part, given)


def _models(part: Part, given: Mapping[str, Sequence[str]]) -> Iterator[Step]:
    model = part.model
    for source in model.downloads:
        revision = model.revision if source == model.source else None
        words = (source, *((revision,) if revision else ()))
        command = sh(("hf", "download", *" --revision ".join(words).split()))
        for hub, names in part.hubs.items():
            nodes = [node for node in part.nodes if node.name in names]
            if new := _without(nodes, given, *words):
                yield Step(f"fetch the model first: {command}", new)
            had = [node for node in nodes if node.name not in new]
            if moved := _without(had, given, hub):
                yield Step(f"fetch or move the model first, into {sh(hub)}: {command}", moved)
    for path in (*model.folders, *model.files):
        readers = part.nodes if path in model.folders else (part.head,)
        if copying := _without(readers, given, first_part(path)):
            yield Step(f"copy the model first: {sh(path)}", copying)


def _without(
    nodes: Iterable[Node], given: Mapping[str, Sequence[str]], *texts: str
) -> tuple[str, ...]:
    """The nodes on which no container's input had these words until now."""
    words = [re.compile(rf"(?<![\w./:-]){re.escape(text)}(?![\w.:-])") for text in texts]
    return tuple(
        node.name
        for node in nodes
        if not all(any(word.search(text) for text in given.get(node.name, ())) for word in words)
    )


def _secrets(change: Change) -> Iterator[Step]:
    """Secrets that people write, on the nodes that do not have them yet."""
    site, new = change.site, change.named("new")
    if secrets := site.engine_secrets:
        known = change.old.engine_secrets if change.old else secrets
        added = [name for name in secrets if name not in known]
        if new:
            yield Step(f"write {', '.join(secrets)} into /etc/sparkgen/secrets.env", new)
        if added:
            there = tuple(node.name for node in site.nodes if node.name not in new)
            yield Step(f"write {', '.join(added)} into /etc/sparkgen/secrets.env", there)
    known_beside = _of_services(change.old) if change.old else {}
    for name, beside in _of_services(site).items():
        if added := [secret for secret in beside if secret not in known_beside.get(name, ())]:
            yield Step(f"write {', '.join(added)} into /etc/sparkgen/secrets.env", (name,))


def _keys(change: Change) -> Iterator[Step]:
    """Keys that people create, with which nodes log in to each other."""
    site = change.site
    joined = bool(change.named("new") or change.named("renamed"))
    is_led_by_another = bool(change.members) and change.members[0] != site.head.name
    all_nodes = tuple(node.name for node in site.nodes)
    keys = [key for part in site.parts for node in part.nodes for key in node.container.keys]
    if keys and (joined or is_led_by_another or _without(site.nodes, change.given, keys[0])):
        yield Step("make the keys of MPI, as README.md says", all_nodes)
    for service in site.services.values():
        is_new = change.old is not None and service.NAME not in change.old.services
        is_due = joined or is_led_by_another or is_new
        if service.ON_NEW_MEMBERS and is_due and len(all_nodes) > 1:
            yield Step(service.ON_NEW_MEMBERS, (site.head.name,))


def renamed_nodes(site: Site, old: Site | None) -> Mapping[str, str]:
    """The new names, by old name, of nodes that keep their address."""
    if old is None:
        return {}
    names = {node.name for node in site.nodes}
    before = {node.name for node in old.nodes}
    by_address = {
        node.management.address.ip: node.name
        for node in site.nodes
        if node.management and node.name not in before
    }
    return {
        node.name: by_address[node.management.address.ip]
        for node in old.nodes
        if node.management and node.name not in names and node.management.address.ip in by_address
    }


def _of_services(site: Site) -> dict[str, tuple[str, ...]]:
    """The secrets of each node's services, which its engines do not have."""
    found = {}
    for node in site.nodes:
        engines = {name for part, _ in site.parts_of(node.name) for name in part.engine.secrets}
        found[node.name] = tuple(name for name in site.secrets(node) if name not in engines)
    return found
