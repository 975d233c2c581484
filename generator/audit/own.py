"""Checks of files that no site file can express; documented in `generator.rules.adopted`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Interface

from generator.adoption import Adoption
from generator.adoption.captures import serves
from generator.adoption.command import find, is_server
from generator.adoption.found import (
    REMOVED,
    FoundContainer,
    FoundInterface,
    FoundNode,
    Item,
    Word,
)
from generator.adoption.running import size
from generator.catalogs.commands import marks
from generator.diagnostics import listed
from generator.hardware import FABRIC_HALVES, HALVES, PORTS, Half
from generator.reports.remarks import Place, Remark
from generator.resources import rows
from generator.rules.engine import moving_tag
from generator.rules.registry import RULES, documented
from generator.sitefile.redaction import is_secret_key, is_secret_text

_RESTARTS = ("always", "unless-stopped")


def remarks(adopted: Adoption) -> Iterator[Remark]:
    """All remarks."""
    for node in adopted.found.nodes:
        yield from _bonds(node)
        yield from _repeats(node)
        yield from _bare_halves(node)
        yield from _settings(node)
        yield from _subnets(node)
        for word in node.unread:
            advice = "see what is wrong with it: nothing in it was checked"
            yield _remark("SG884", "this file can't be read", advice, word)
        for container in node.containers:
            for check in (_rights, _tag, _open_pages, _without_rdma):
                yield from check(container)
            yield from _two_owners(node, container)
            yield from _keys(adopted.found.texts, container)
        for own in node.assigned:
            yield from _key(adopted.found.texts, own.name, own.value.text, own.value, "file")
    yield from _units(adopted.found.items)


def _remark(rule: str, message: str, advice: str, word: Word) -> Remark:
    severity = (RULES.get(rule) or documented()[rule]).severity
    return Remark(rule, severity, message, advice, Place(word.file, "", word.span))


def _bonds(node: FoundNode) -> Iterator[Remark]:
    """Halves that are parts of a bond or a bridge."""
    parts: dict[str, list[FoundInterface]] = {}
    for one in node.interfaces:
        if one.master and one.name in FABRIC_HALVES:
            parts.setdefault(one.master.text, []).append(one)
    for name, own in parts.items():
        known = [one.name for one in own]
        message = f"{listed(known, 'and')} {'are' if len(own) > 1 else 'is'} in {name}"
        place = own[0].master or own[0].place
        advice = "remove them, and give each half an address in a subnet of its own"
        yield _remark("SG846", message, advice, place)


def _repeats(node: FoundNode) -> Iterator[Remark]:
    """Halves that two netplan files set up differently."""
    for first, later in node.repeats:
        if first.name in FABRIC_HALVES:
            message = f"{first.name} is set up otherwise in {first.place.file}"
            yield _remark("SG847", message, _netplan_takes(first, later), later.place)


def _netplan_takes(first: FoundInterface, later: FoundInterface) -> str:
    """Which of two files' settings apply, and what to do."""
    known = dict.fromkeys(w.text for one in (first, later) for w in one.addresses)
    dhcp, mtu = later.dhcp or first.dhcp, later.mtu or first.mtu
    more = [f"'dhcp4: {dhcp.text}'"] if dhcp else []
    more += [f"'mtu: {mtu.text}'"] if mtu else []
    parts = [*([listed(list(known), "and")] if known else []), *more]
    return f"netplan takes {listed(parts, 'and')}: keep what is meant, in one of the files"


def _bare_halves(node: FoundNode) -> Iterator[Remark]:
    """Halves without an address beside one that has one."""
    if node.place is None and len(node.interfaces) == 1 and node.interfaces[0].has_link:
        # Named only by a setting: nobody looked for more.
        return
    known = {interface.name: interface for interface in node.interfaces}
    for port in PORTS:
        halves = [known.get(Half(port, half).interface) for half in HALVES]
        having = [one for one in halves if one and one.addresses]
        is_bonded = any(one and one.master for one in halves)
        if len(having) != 1 or is_bonded or any(one.name == node.gateway for one in having):
            continue
        bare = next(Half(port, half).interface for half in HALVES if halves[half] is not having[0])
        yield _remark(
            "SG841",
            f"{bare}, the other half of {having[0].name}'s port, has no address",
            f"give {bare} one in a subnet of its own: a half carries 100 of the 200 Gb/s",
            having[0].place,
        )


def _subnets(node: FoundNode) -> Iterator[Remark]:
    """Ports of one node in one subnet; rules of sites know halves and the management network."""
    known: dict[str, str] = {}
    for one in node.interfaces:
        for word in one.addresses[:1] if one.name in FABRIC_HALVES else ():
            network = str(IPv4Interface(word.text).network)
            other = known.setdefault(network, one.name)
            if FABRIC_HALVES[other].port != FABRIC_HALVES[one.name].port:
                message = f"{one.name} is in {network}, and so is {other}"
                advice = (
                    "give each interface a subnet of its own: the kernel sends from one of them"
                )
                yield _remark("SG881", message, advice, word)


def _units(items: Iterable[Item]) -> Iterator[Remark]:
    """Units that restart an engine again and again, or run it as root."""
    files: dict[str, dict[str, Item]] = {}
    for item in items:
        if item.kind in ("unit", "quadlet"):
            files.setdefault(item.place.file, {})[item.what] = item
    for own in files.values():
        restart, user = own.get("Service.Restart"), own.get("Service.User")
        start = own.get("Service.ExecStart") or own.get("Container.Image")
        limits = [own.get(f"{section}.StartLimitBurst") for section in ("Unit", "Service")]
        off = own.get("Unit.StartLimitIntervalSec")
        is_bound = any(limits) and not (off and off.value == "0")
        serves = start and re.search(r"docker[ -]|podman[ -]|" + "|".join(marks()), start.value)
        if restart and serves and restart.value in ("always", "on-failure") and not is_bound:
            yield _remark("SG882", *_ENDLESS, restart.place)
        is_client = start and re.search("docker|podman|compose", start.value)
        if user and serves and not is_client and user.value in ("root", "0"):
            yield _remark("SG883", "the engine runs as root", "name another login", user.place)


_ENDLESS = (
    "this restarts the engine without end",
    "bound it: StartLimitBurst and StartLimitIntervalSec in a unit, 'on-failure:3' in Docker",
)


def _settings(node: FoundNode) -> Iterator[Remark]:
    """Lines of nccl.conf that NCCL reads differently from how they look."""
    for variable in node.settings:
        if variable.is_blank:
            yield _remark(
                "SG842",
                f"NCCL does not trim this line: {variable.name} is not set to what it looks like",
                f"write {variable.name}={variable.value.text}, without spaces, quotes and 'export'",
                variable.value,
            )


def _rights(container: FoundContainer) -> Iterator[Remark]:
    """What a container may do on its node beyond what an engine needs."""
    # Exporters of the node's own figures need more.
    known = rows("container-rights") if serves(container) or is_server(container) else ()
    for rule, name, values, message, advice in known:
        option = container.options.get(name)
        if option and option.text.partition(":")[0] in values.split():
            yield _remark(rule, message, advice, option)


def _tag(container: FoundContainer) -> Iterator[Remark]:
    """An image whose tag moves; that of an engine is the site's."""
    image = container.image
    is_own = find(container, {}) or any(item.what.startswith("build") for item in container.items)
    if image and "$" not in image.text and not is_own and (moving := moving_tag(image.text)):
        yield _remark("SG609", *moving, image)


def _open_pages(container: FoundContainer) -> Iterator[Remark]:
    """Pages and APIs that everybody in reach may use."""
    image = container.image.text if container.image else ""
    values = {variable.name: variable.value for variable in container.env}
    given = {word.text.partition("=")[0] for word in container.words}
    for title, name, setting, states in rows("open-pages"):
        value = values.get(setting)
        is_open = value.text.lower() in states.split() if value else states == "-"
        port = _published(container) if re.fullmatch(rf"(.*/)?{name}([:@].*)?", image) else None
        if port and is_open and setting not in given:
            message = f"{title} is on all addresses, and asks for no login"
            yield _remark("SG885", message, _CLOSE, value or port)


_CLOSE = "turn its login on, or publish it on 127.0.0.1 and let a proxy with a login pass it on"


def _published(container: FoundContainer) -> Word | None:
    """What puts a container's port on all addresses of the node."""
    options = container.options
    port = options.get("p", options.get("publish", options.get("network")))
    is_open = port and re.fullmatch(r"host|(0\.0\.0\.0:)?[^:]+:[^:]+", port.text)
    return port if is_open else None


def _without_rdma(container: FoundContainer) -> Iterator[Remark]:
    """Ranks that are told to use RDMA, without the devices for it."""
    values = {variable.name: variable.value for variable in container.env}
    off = values.get("NCCL_IB_DISABLE")
    asks = values.get("NCCL_IB_HCA", off)
    given = "\n".join(f"{item.what} {item.value}" for item in container.items)
    command = find(container, {})
    is_rank = container.image and not (command and size(command) == 1)
    is_known = not container.is_launched and not _MAY_GIVE.search(given)
    if asks and (off is None or off.text == "0") and is_rank and is_known:
        message = "RDMA is asked for, and the container has no /dev/infiniband"
        advice = "add '--device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1'"
        yield _remark("SG886", message, advice, asks)


# What gives devices to a container, and what may: options in a variable, and other files.
_MAY_GIVE = re.compile(r"(?mi)/dev/infiniband|privileged (true)?$|MOFED|rdma/|^\$|^extends")


def _two_owners(node: FoundNode, container: FoundContainer) -> Iterator[Remark]:
    """A container that both Docker and a unit restart, or Docker without end."""
    restart = container.options.get("restart")
    if restart is None or restart.text.partition(":")[0] not in _RESTARTS:
        return
    name = container.name.lstrip("/")
    named = rf"(?<![\w-]){re.escape(name)}(?![\w-])|compose"
    starts = ((unit, start.text) for unit, start in node.units.items() if "docker" in start.text)
    units = [unit for unit, text in starts if re.search(named, text)]
    if units:
        yield _remark(
            "SG844",
            f"Docker starts '{name}' again, and so does {listed(units, 'and')}",
            'write restart: "no", and leave it to the unit',
            restart,
        )
    elif serves(container) and not any(i.value == "sleep infinity" for i in container.items):
        yield _remark("SG882", *_ENDLESS, restart)


def _keys(texts: Mapping[str, str], container: FoundContainer) -> Iterator[Remark]:
    """Keys in places where anybody who may list processes can read them."""
    before = ""
    for word in container.words:
        flag, equals, value = word.text.partition("=")
        name, text = (flag, value) if equals else (before, word.text)
        before = word.text if word.text.startswith("--") and not equals else ""
        yield from _key(texts, name if name[:2] == "--" else "", text, word, "command")
    # A separate file of variables is where a key belongs.
    image = container.image
    for own in (v for v in container.env if image is None or v.value.file == image.file):
        if own.value.text != REMOVED:
            yield from _key(texts, own.name, own.value.text, own.value, "file")


def _key(
    texts: Mapping[str, str], name: str, text: str, word: Word, where: str
) -> Iterator[Remark]:
    """The value of a flag or variable, if it is a key that the file has itself."""
    is_named = is_secret_key(name.lstrip("-")) and _is_written(text)
    if (is_named or is_secret_text(text)) and not _is_expanded(texts, word):
        what = f"the value of {name}" if is_named or where == "file" else "a key"
        yield _remark("SG845", f"{what} is written in the {where}", _ADVICE, word)


_ADVICE = "make it a new one, and keep it in a file that root alone reads, as by 'env_file'"


# Placeholders for keys in guides.
_PLACEHOLDER = re.compile(
    r"(?i)<.*>|.*(\byour|your[-_]|x{4,}|\.\.\.|change[-_]?me|replace|no[-_]?key|not[-_]?needed|dummy).*"
    r"|(sk-)?(empty|none|null|no|false|true|local|fake|unused|placeholder|test|any(thing)?|token-abc123|vllm|sglang|ollama|lm-studio)"
)


def _is_written(text: str) -> bool:
    is_key = bool(text) and not text.startswith(("$", "--"))
    return is_key and not _PLACEHOLDER.fullmatch(text)


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return text.split("\n")


def _is_expanded(texts: Mapping[str, str], word: Word) -> bool:
    """Whether a shell or Compose inserts the value."""
    lines = _lines(texts.get(word.file, ""))[word.span.line : word.span.end_line + 1]
    end = word.span.end_column if len(lines) == 1 else None
    return any("$" in line for line in lines[:1] and [lines[0][word.span.column : end], *lines[1:]])
