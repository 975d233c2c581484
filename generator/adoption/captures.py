"""Nodes from captures."""

import json
import re
from collections.abc import Iterator, Mapping

from generator.adoption import docker, items, keyfiles, netplan, printed, units
from generator.adoption.found import FoundContainer, FoundInterface, FoundNode, Item, Neighbor, Word
from generator.adoption.shell import shell_words, unwrapped
from generator.adoption.text import Text, variables
from generator.adoption.yaml_file import Yaml
from generator.capture import Capture, CaptureError, records
from generator.catalogs.commands import marks, of_package
from generator.diagnostics import Span
from generator.records import replace
from generator.sitefile import source

_KIB_PER_GIB = 1 << 20
_MAX_SETTINGS = 400
_OPTIONS = (
    *("name", "user", "pid", "restart", "privileged", "network", "ipc", "shm-size"),
    "image-id",
)
# Beside the marks of the engines: what starts them, and the name of a bundle's unit.
_STARTS = ("ray", "serve", "sparkgen-engine")


def node_of(capture: Capture) -> tuple[FoundNode, dict[str, str], list[Item]]:
    """What a capture says about its node, the texts that places refer to, and all settings."""
    reader = _Reader(capture)
    return reader.node(), reader.texts, reader.items


class _Reader:
    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.texts: dict[str, str] = {}
        self.items: list[Item] = []
        self.unread: list[Word] = []

    def node(self) -> FoundNode:
        written = list(self._netplan())
        configured = netplan.merged((*written, *self._keyfiles()))
        for path in self._under("commands/"):
            if path.endswith(".json") and not _is_json(self._capture.texts[path]):
                self.unread.append(self._text_of(path).line(0))
        live = self._get("commands/ip-addr.json")
        found = tuple(printed.interfaces(live, configured).values()) if live else ()
        interfaces = found or tuple(configured.values())
        own = [path for path in self._capture.texts if re.fullmatch(r"files/.*/\.nccl\.conf", path)]
        texts = filter(None, map(self._get, ("files/etc/nccl.conf", *own)))
        settings = [variable for text in texts for variable in variables(text)]
        self.items += [Item(v.name, v.value.text, (v.value,), "nccl") for v in settings]
        if len(settings) > _MAX_SETTINGS:
            why = f"its files of NCCL have more than {_MAX_SETTINGS} lines"
            raise CaptureError(why, "look at them: NCCL has no more parameters")
        return FoundNode(
            name=self._capture.node,
            interfaces=self._linked(interfaces),
            containers=tuple(self._containers()),
            settings=tuple(settings),
            programs=dict(self._programs()),
            neighbors=dict(self._neighbors()),
            release=self._release(),
            visible_gib=self._memory(),
            units=dict(self._units()),
            user=self._user(),
            place=self._text_of("capture.txt").line(0),
            gateway=self._gateway(),
            repeats=tuple(netplan.repeats(written)),
            unread=tuple(self.unread),
        )

    def _text_of(self, path: str) -> Text:
        raw = self._capture.texts.get(path, "")
        text = Text(self._capture.place(path), raw)
        self.texts[text.file] = raw
        return text

    def _get(self, path: str) -> Text | None:
        return self._text_of(path) if path in self._capture.texts else None

    def _under(self, folder: str) -> Iterator[str]:
        return (path for path in sorted(self._capture.texts) if path.startswith(folder))

    def _netplan(self) -> Iterator[FoundInterface]:
        for path in self._under("files/etc/netplan/"):
            text = self._text_of(path)
            file = Yaml(text, source.read(text.file, text.text.encode()))
            if file.root is None:
                self.unread.append(text.line(0))
                continue
            self.items += items.of_yaml(file, "netplan")
            yield from netplan.interfaces(file)

    def _keyfiles(self) -> Iterator[FoundInterface]:
        for path in sorted(self._capture.texts):
            if path.startswith(("files/etc/NetworkManager/", "files/etc/systemd/network/")):
                text = self._text_of(path)
                self.items += items.of_entries(text, "keyfile")
                yield from keyfiles.interfaces(text)

    def _linked(self, interfaces: tuple[FoundInterface, ...]) -> tuple[FoundInterface, ...]:
        """The interfaces with the link states of ibdev2netdev, where `ip` has none."""
        text = self._get("commands/ibdev2netdev.txt")
        if text is None or any(one.has_link is not None for one in interfaces):
            return interfaces
        known = printed.interfaces(text)
        merged = {one.name: one for one in interfaces}
        for name, one in known.items():
            merged[name] = replace(merged.get(name, one), has_link=one.has_link)
        return tuple(merged.values())

    def _containers(self) -> Iterator[FoundContainer]:
        texts = [self._text_of(path) for path in self._under("processes/")]
        # The command lines of processes that serve.
        served = [[word for label, word in _records(own) if label == "arg"] for own in texts]
        contained = [_container(self._text_of(path), served) for path in self._under("containers/")]
        yield from contained
        if not any(map(serves, contained)):
            yield from map(_process, texts)
        for path in self._under("files/etc/systemd/system/"):
            text = self._text_of(path)
            words = list(unwrapped(shell_words(text, 0, len(text.text), {}), {}))
            yield from docker.containers(words)

    def _programs(self) -> Iterator[tuple[str, str]]:
        for path in self._under("processes/"):
            for label, word in _records(self._text_of(path)):
                found = re.fullmatch(r"([a-z_0-9]+)-([0-9][^-]*)\.dist-info", word.text)
                if label == "program" and found:
                    name = "nccl" if found[1].startswith("nvidia_nccl") else found[1]
                    yield of_package(name), found[2]

    def _neighbors(self) -> Iterator[tuple[str, Neighbor]]:
        text = self._capture.texts.get("commands/lldp.txt", "")
        ports = dict(re.findall(r"(?m)^lldp\.(\w+)\.port\.(?:ifname|descr)=(e\w+)$", text))
        for name, host in re.findall(r"(?m)^lldp\.(\w+)\.chassis\.name=(.+)$", text):
            yield name, Neighbor(host.partition(".")[0].lower(), ports.get(name, ""))

    def _gateway(self) -> str:
        """The interface of the effective default route."""
        try:
            routes = json.loads(self._capture.texts.get("commands/ip-route.json", "[]"))
            own = [route for route in routes if route.get("dst") == "default"]
            own.sort(key=lambda route: route.get("metric", 0))
            return str(own[0]["dev"]) if own else ""
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return ""

    def _release(self) -> Word | None:
        # Each update adds its own; the last one counts.
        found = self._found("commands/dgx-release.txt", r'DGX_OTA_VERSION="?([0-9.]+)')
        return next(reversed([*found]), None)

    def _memory(self) -> float | None:
        text = self._capture.texts.get("commands/meminfo.txt", "")
        found = re.search(r"MemTotal:\s+([0-9]+) kB", text)
        return round(int(found[1]) / _KIB_PER_GIB, 1) if found else None

    def _units(self) -> Iterator[tuple[str, Word]]:
        for path in self._under("files/etc/systemd/system/"):
            text = self._text_of(path)
            self.items += items.of_entries(text, "unit")
            if started := units.start(text):
                yield path.rpartition("/")[2], started

    def _user(self) -> Word | None:
        own = r"(?m)^cache \S+ /home/([a-z_][a-z0-9_-]*)/"
        return next(self._found("commands/models.txt", own), None)

    def _found(self, path: str, pattern: str) -> Iterator[Word]:
        """What a pattern finds in a text, if that was captured."""
        if text := self._get(path):
            for found in re.finditer(pattern, text.text):
                yield text.word(found[1], *found.span(1))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _records(text: Text) -> Iterator[tuple[str, Word]]:
    """The lines that consist of a name and JSON."""
    lines = text.text.split("\n")
    for number, (label, values) in enumerate(records(text.text)):
        if not values:
            continue
        line = lines[number]
        rest = line[len(label) + 1 :]
        first = len(label) + 1 + rest.startswith('"')
        span = Span(number, first, number, max(len(line) - rest.endswith('"'), first + 1))
        value = ":".join(map(str, values[:2])) if label == "mount" else str(values[0])
        yield label, Word(value.lower() if isinstance(values[0], bool) else value, text.file, span)


def _container(text: Text, served: list[list[Word]]) -> FoundContainer:
    records: dict[str, list[Word]] = {}
    for label, word in _records(text):
        records.setdefault(label, []).append(word)
    words = [*records.get("entrypoint", ()), *records.get("cmd", ())]
    if [word.text for word in words[-2:]] == ["sleep", "infinity"] and served:
        words = served[0]
    is_running = [word.text for word in words] in [[word.text for word in own] for own in served]
    base = frozenset(word.text for word in records.get("image-env", ()))
    env = [
        own
        for word in records.get("env", ())
        for own in docker.variable(word)
        if word.text not in base
        if base or not docker.OF_IMAGES.fullmatch(word.text)
    ]
    options: Mapping[str, Word] = {
        label: records[label][0] for label in _OPTIONS if label in records
    }
    name = options["name"].text.lstrip("/") if "name" in options else ""
    image = records.get("image", [None])[0]
    return FoundContainer(
        name,
        image,
        tuple(words),
        tuple(env),
        options,
        tuple(records.get("mount", ())),
        base,
        is_running=is_running,
        items=tuple(
            Item(label, word.text, (word,), "capture", name or (image.text if image else ""))
            for label, own in records.items()
            for word in own
            if not label.startswith("image-")
        ),
    )


def _process(text: Text) -> FoundContainer:
    """A process that is in no known container."""
    records = list(_records(text))
    env = [own for label, word in records if label == "env" for own in docker.variable(word)]
    words = tuple(word for label, word in records if label == "arg")
    return FoundContainer("process", words=words, env=tuple(env), is_running=True)


def serves(container: FoundContainer) -> bool:
    """Whether a container may be one that serves a model."""
    words = [container.name, container.image.text if container.image else ""]
    text = "\n".join((*words, *(word.text for word in container.words)))
    return any(mark in text for mark in (*_STARTS, *marks()))
