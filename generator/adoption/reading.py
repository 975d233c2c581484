"""Recognizes and reads files: captures, and the other files that people run clusters with."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePath
from typing import Any, TypeVar

from generator.adoption import (
    captures,
    compose,
    docker,
    inventory,
    items,
    keyfiles,
    netplan,
    orchestrated,
    printed,
    recipes,
    scripts,
    units,
)
from generator.adoption.command import find, is_server
from generator.adoption.found import (
    Found,
    FoundContainer,
    FoundInterface,
    FoundNode,
    FoundVariable,
    Item,
    Loss,
    Word,
)
from generator.adoption.shell import WrittenFile, script, shell_words, unwrapped
from generator.adoption.text import Text, variables
from generator.adoption.yaml_file import Yaml
from generator.capture import Capture, CaptureError
from generator.capture.archive import read as read_archive
from generator.diagnostics import listed
from generator.grouping import grouped
from generator.records import record, replace
from generator.sitefile import source
from generator.sitefile.text_types import TEXT_TYPES

# Files that people write are far smaller; anything larger is not worth the time.
MAX_BYTES = 256 << 10
_MAX_PARTS = 200
_KINDS = (
    "a capture, netplan's, NetworkManager's or networkd's, what 'ip addr' or ibdev2netdev printed, "
    "nccl.conf, a Compose file, a docker run line, a script, a recipe of sparkrun or "
    "spark-vllm-docker, or NVIDIA's cluster JSON"
)
_CONTAINERS = "containers"
_MANIFESTS = re.compile(r"(?m)^apiVersion:")
_Part = TypeVar("_Part")
_NOTHING = ("it says nothing of a cluster", f"name {_KINDS}")


@record
class Input:
    """A file as given: the node it belongs to, if stated, its name and its bytes."""

    node: str
    name: str
    raw: bytes


def read(inputs: Iterable[Input], serving: bool = True) -> Found:
    """Everything that files say; raises CaptureError if nothing is of a cluster, or `serving`."""
    reader = _Reader()
    # Files that set variables for others are read first.
    for one in sorted(inputs, key=lambda one: not one.name.endswith(".env")):
        reader.read(one)
    return reader.found(serving)


def check(one: Input) -> None:
    """Read one file alone; raises CaptureError unless it may be useful together with others."""
    _Reader().read(one)


def _is_relevant(node: FoundNode) -> bool:
    """Whether anything known of a node concerns a cluster, or a model that it serves."""
    if node.place or node.interfaces or node.settings or node.management:
        return True
    return any(
        find(container, {})
        or is_server(container)
        or any(v.name.startswith("NCCL_") for v in container.env)
        for container in node.containers
    )


def _merged(node: FoundNode) -> FoundNode:
    """A node with each interface once, whichever files set it up."""
    own = netplan.merged(node.interfaces)
    if len(own) == len(node.interfaces):
        return node
    twice = netplan.repeats(node.interfaces)
    return replace(node, interfaces=tuple(own.values()), repeats=(*node.repeats, *twice))


def _is_nccl_conf(name: str, text: Text, entries: int) -> bool:
    """Whether NCCL reads a file: it is named like NCCL's own, or has only lines for it."""
    lines = [line for line in text.text.split("\n") if line.strip() and line[0] != "#"]
    for_nccl = [line for line in lines if re.match(r"\s*(export\s+)?NCCL_\w+\s*=", line)]
    own = "nccl" in PurePath(name).name and name.endswith(".conf")
    return len(for_nccl) == entries and (own or entries == len(lines))


def _refuse_broken(name: str, document: source.Document) -> None:
    """Report where a file that is named like YAML is not valid YAML."""
    wrong = next((f for f in document.findings if f.span), None)
    if wrong and wrong.span and name.endswith((".yaml", ".yml")):
        raise CaptureError(f"line {wrong.span.line + 1}: {wrong.message}", wrong.help)


def _documents(text: Text) -> Iterator[Text]:
    """The documents of a file with several, each at its lines of the file."""
    start = 0
    for found in (*re.finditer(r"(?m)^---[ \t]*$", text.text), None):
        end = found.start() if found else len(text.text)
        if text.text[start:end].strip():
            yield Text(text.file, "\n" * text.text.count("\n", 0, start) + text.text[start:end])
        start = found.end() if found else end


def _few(parts: Iterable[_Part], what: str) -> tuple[_Part, ...]:
    """The parts of a file, unless there are more than anybody runs."""
    found = tuple(islice(parts, _MAX_PARTS + 1))
    if len(found) > _MAX_PARTS:
        raise CaptureError(f"it has more than {_MAX_PARTS} {what}", "name a file for each cluster")
    return found


class _Reader:
    def __init__(self) -> None:
        self._nodes: dict[str, FoundNode] = {}
        self._texts: dict[str, str] = {}
        self._losses: list[Loss] = []
        self._items: list[Item] = []
        self._known: dict[str, str] = {}
        self._names: set[str] = set()
        # What files are that serve nothing by themselves, and files that others start.
        self._said: list[str] = []
        self._wanted: list[tuple[str, Word]] = []
        self._env_files: dict[str, tuple[FoundVariable, ...]] = {}

    def read(self, one: Input) -> None:
        if one.raw.startswith(b"\x1f\x8b"):
            self._capture(read_archive(one.name, one.raw))
            return
        if len(one.raw) > MAX_BYTES:
            raise CaptureError(f"it has more than {MAX_BYTES >> 10} KiB", f"name {_KINDS}")
        try:
            raw = one.raw.decode()
        except UnicodeDecodeError:
            raise CaptureError("it is not text", f"name {_KINDS}") from None
        text = Text(one.name, raw.replace("\r\n", "\n"))
        self._texts[one.name] = text.text
        self._names.add(PurePath(one.name).name)
        if not self._structured(one, text) and not self._plain(one, text):
            raise CaptureError(*_NOTHING)

    def found(self, serving: bool) -> Found:
        """Everything; raises CaptureError if nothing of it concerns a cluster."""
        nodes = [
            _merged(replace(node, containers=tuple(map(self._with_env_file, node.containers))))
            for node in self._nodes.values()
        ]
        for path, word in self._wanted:
            if PurePath(path).name not in self._names:
                self._losses.append(Loss(f"what {path} says: name that file too", word))
        if not any(_is_relevant(n) or (n.containers and not serving) for n in nodes):
            what = self._said[-1] if self._said else ""
            raise CaptureError(f"it is {what}" if what else _NOTHING[0], _NOTHING[1])
        return Found(tuple(nodes), self._texts, tuple(self._losses), tuple(self._items))

    def _with_env_file(self, container: FoundContainer) -> FoundContainer:
        """The container with the variables from its environment files, if they are given."""
        own = {variable.name: variable for variable in container.env}
        for word in container.env_files:
            given = self._env_files.get(PurePath(word.text).name)
            if given is None:
                message = f"what {word.text} says: name that file too"
                self._losses.append(Loss(message, word))
            own = {**{v.name: v for v in given or ()}, **own}
        return replace(container, env=tuple(own.values()))

    def _capture(self, capture: Capture) -> None:
        node, texts, settings = captures.node_of(capture)
        name = node.name.lower()
        if name in self._nodes and self._nodes[name].place:
            raise CaptureError(f"there are two captures of {name}", "name each node's once")
        self._texts |= texts
        self._items += settings
        self._add(name, replace(node, name=name))

    def _structured(self, one: Input, text: Text) -> bool:
        """Whether it is JSON or YAML of a known kind."""
        if keyfiles.is_keyfile(text.text):
            self._items += items.of_entries(text, "keyfile")
            return self._network(one, keyfiles.interfaces(text))
        if _MANIFESTS.search(text.text):
            return self._manifests(one, text)
        document = source.read(one.name, text.text.encode())
        if document.root is None:
            _refuse_broken(one.name, document)
            return False
        file = Yaml(text, document)
        if inventory.is_inventory(file):
            for number, node in enumerate(inventory.nodes(file), start=1):
                self._add(f"spark{number}", node)
            self._losses += inventory.losses(file)
            self._items += items.of_yaml(file, "cluster")
        elif netplan.is_netplan(file):
            own = netplan.merged(_few(netplan.interfaces(file), "interfaces"))
            node = FoundNode(interfaces=tuple(own.values()), gateway=netplan.gateway(file))
            self._losses += netplan.losses(file)
            self._items += items.of_yaml(file, "netplan")
            self._add(one.node or self._own_name(one.name), node)
        elif compose.is_compose(file):
            self._items += items.of_yaml(file, "compose", without="services")
            self._contained(one, compose.containers(file, self._known), "a Compose file")
        else:
            return self._served(one, file)
        return True

    def _served(self, one: Input, file: Yaml) -> bool:
        """Whether a YAML file says what serves a model, other than Compose."""
        if orchestrated.is_llama_swap(file):
            self._items += items.of_yaml(file, "llama-swap", without="models")
            self._contained(one, orchestrated.llama_swap(file), "llama-swap's configuration")
        elif orchestrated.is_inspected(file):
            self._contained(one, orchestrated.inspected(file), "what docker inspect printed")
        elif recipes.is_recipe(file):
            self._contained(one, [recipes.container(file)], "a recipe")
        else:
            return False
        return True

    def _manifests(self, one: Input, text: Text) -> bool:
        """Read the documents of a manifest of Kubernetes."""
        found: dict[str, list[FoundContainer]] = {one.node: []}
        for part in _documents(text):
            file = Yaml(part, source.read(one.name, part.text.encode()))
            for host, container in orchestrated.kubernetes(file):
                is_host = not one.node and TEXT_TYPES["hostname"].fits(host)
                found.setdefault(host if is_host else one.node, []).append(container)
            self._items += items.of_yaml(file, "kubernetes")
        for node, containers in found.items():
            self._contained(replace(one, node=node), containers, "a manifest of Kubernetes")
        return True

    def _contained(self, one: Input, found: Iterable[FoundContainer], what: str) -> None:
        """Add what a file says of containers; `what` is what it is, if they serve nothing."""
        containers = _few(found, _CONTAINERS)
        self._add(one.node, FoundNode(containers=containers))
        names = listed([container.owner for container in containers][:8], "and")
        self._said.append(f"{what}; nothing is known of {names or 'it'} that serves a model")

    def _network(self, one: Input, interfaces: Iterable[FoundInterface]) -> bool:
        """Whether there are interfaces, which then belong to a node."""
        own = tuple(interfaces)
        if own:
            self._add(one.node or self._own_name(one.name), FoundNode(interfaces=own))
        return bool(own)

    def _plain(self, one: Input, text: Text) -> bool:
        """Whether it is a unit, a script, a program's output, or a file of NAME=VALUE lines."""
        if units.is_unit(text.text) and not text.text.startswith("#!"):
            self._unit(one, text)
            return True
        is_data = re.search(r"\.(ya?ml|json)(\.(j2|jinja2?|tmpl|tpl))?$", one.name) is not None
        if not is_data and self._script(one, text):
            return True
        if self._network(one, printed.interfaces(text).values()):
            self._items += items.of_lines(text)
            return True
        if is_data and not one.name.endswith(("ml", "json")):
            raise CaptureError("it is a template: name what is made of it", _NOTHING[1])
        if is_data:
            raise CaptureError("it is YAML or JSON of no kind that is known here", _NOTHING[1])
        is_script = text.text.startswith("#!")
        if is_script:
            is_link = re.search(r"(?m)^[^#\n]*\b(nmcli con|ip a(ddr)?(ess)? add)", text.text)
            sets_up = "sets up links whose addresses only the shell knows" if is_link else ""
            said = sets_up or "starts no engine that is known here"
            self._said.append(f"a script, which {said}")
        settings = tuple(variables(text))
        if settings:
            self._settings(one, text, settings)
        return is_script or bool(settings)

    def _settings(self, one: Input, text: Text, settings: tuple[FoundVariable, ...]) -> None:
        """Read a file of NAME=VALUE lines: a launcher's, NCCL's, or one that another file reads."""
        is_conf = _is_nccl_conf(one.name, text, len(settings))
        if not text.text.startswith("#!"):
            kind = "nccl" if is_conf else "env"
            self._items += (Item(v.name, v.value.text, (v.value,), kind) for v in settings)
        self._env_files[PurePath(one.name).name] = settings
        if recipes.is_settings(settings):
            container, nodes = recipes.settings(settings)
            for node in nodes:
                self._add(node.name, node)
            self._add(one.node, FoundNode(containers=(container,)))
        elif is_conf:
            self._add(one.node, FoundNode(settings=settings))
        else:
            if not text.text.startswith("#!"):
                self._said.append("a file of variables: name the file that reads it, too")
            self._known |= {variable.name: variable.value.text for variable in settings}
            if any(v.name.startswith("NCCL_") for v in settings):
                self._add(
                    one.node, FoundNode(containers=(FoundContainer("settings", env=settings),))
                )

    def _unit(self, one: Input, text: Text) -> None:
        """Read a unit, or a Quadlet file."""
        found = list(units.quadlet(text))
        env = {own.name: own.value.text for own in units.environment(text)}
        known = {**self._known, **env}
        words = list(unwrapped(shell_words(text, 0, len(text.text), known), known))
        found += docker.containers(words)
        found = found or list(scripts.started(words, tuple(units.environment(text))))
        start, named = units.start(text), list(units.named(text))
        name = PurePath(one.name).name
        self._add(
            one.node, FoundNode(containers=tuple(found), units={name: start} if start else {})
        )
        self._items += items.of_entries(text, "unit")
        self._wanted += [] if found else named
        files = [path for path, _ in named]
        self._said.append(
            f"a unit that starts {listed(files, 'and') or 'another program'}: name that file too"
        )

    def _script(self, one: Input, text: Text) -> bool:
        """Whether it is a script that starts an engine, or sets up what one runs on."""
        all_words, all_arrays, files = script(text, self._known)
        words, arrays = ([w for w in own if not w.doubt] for own in (all_words, all_arrays))
        is_read, here = self._written(one, files)
        if own := _few(scripts.interfaces(words), "interfaces"):
            first = replace(one, name="spark1")
            is_read = self._network(first, netplan.merged(own).values())
        found = _few(docker.containers(words), _CONTAINERS)
        found = found or _few(docker.containers(arrays), _CONTAINERS)
        # Into a container that only starts Ray, a later command of the script brings the engine.
        known = (find(container, {}) for container in found)
        if not any(own and (own.served or not own.ray) for own in known):
            served = _few(scripts.serving(words, found), _CONTAINERS)
            started = {container.name for container in served}
            found = (*served, *(one for one in found if one.name not in started))
        # What a script starts in any case, or by default, comes first.
        found = tuple(sorted(found, key=lambda one: any(w.around for w in one.words[:1])))
        settings = () if found else tuple(scripts.exports(words))
        if settings and any(v.name.startswith("NCCL_") for v in settings):
            found = (FoundContainer("settings", env=settings),)
        if found:
            assigned = tuple(v for word in words for v in docker.variable(word))
            self._add(one.node, FoundNode(assigned=assigned))
            for node, containers in _by_host(found, one.node).items():
                self._add(node, FoundNode(containers=tuple(containers)))
        if is_read or found or text.text.startswith("#!"):
            self._items += items.of_commands([*all_words, *all_arrays], here)
        return is_read or bool(found)

    def _written(self, one: Input, files: Iterable[WrittenFile]) -> tuple[bool, dict[int, str]]:
        """Whether a script has a file of a known kind; its files' lines, with what writes them."""
        here: dict[int, str] = {}
        number, is_written = 0, False
        for line, its, body in _few(files, "files"):
            is_read = re.search(r"nccl\.conf", line) is not None
            if is_read:
                self._add(one.node, FoundNode(settings=tuple(variables(body))))
            elif is_read := self._structured(replace(one, name=f"spark{number + 1}"), body):
                # The next file of the same kind belongs to the next node.
                number += 1
            elif is_read := units.is_unit(body.text):
                self._unit(one, body)
            is_written = is_written or is_read
            # What was read has no line.
            here |= dict.fromkeys(its, "" if is_read else line) | {its[-1]: ""}
        return is_written, here

    def _own_name(self, file: str) -> str:
        """The node that a netplan file belongs to: its name, if a node can have that."""
        name = PurePath(file).name.partition(".")[0].lower()
        taken = [name for name in self._nodes if name]
        usual = f"spark{len(taken) + 1}"
        return name if TEXT_TYPES["hostname"].fits(name) and not re.match(r"[0-9]", name) else usual

    def _add(self, name: str, node: FoundNode) -> None:
        known = self._nodes.get(name, FoundNode(name))
        both = {key: _joined(getattr(known, key), getattr(node, key)) for key in _FIELDS}
        self._nodes[name] = replace(known, **both)


def _by_host(found: Iterable[FoundContainer], node: str) -> dict[str, list[FoundContainer]]:
    """Containers by the node that a script starts them on through SSH, if all are on several."""
    own = [(next((w.host for w in one.words[:1] or (one.image,) if w), ""), one) for one in found]
    hosts = list(dict.fromkeys(host.rpartition("@")[2] for host, _ in own))
    if node or not all(hosts) or len(hosts) < 2:
        return {node: [one for _, one in own]}
    fit = all(TEXT_TYPES["hostname"].fits(host) for host in hosts)
    names = {host: host if fit else f"spark{at}" for at, host in enumerate(hosts, 1)}
    return grouped((names[host.rpartition("@")[2]], one) for host, one in own)


_FIELDS = [key for key in FoundNode.__annotations__ if key != "name"]


def _joined(known: Any, more: Any) -> Any:
    """What two files say of a node; of a single value, the later one counts."""
    if isinstance(known, tuple):
        return known + more
    return {**known, **more} if isinstance(known, Mapping) else more or known
