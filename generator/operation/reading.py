"""Reads from the files of a bundle what they make of the cluster."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from generator.activation import Activation, Scope
from generator.bundle.tree import File, Tree
from generator.catalogs.engines import ENGINE_TRAITS
from generator.operation import state
from generator.operation.meaning import UNKNOWN
from generator.records import replace
from generator.services import SERVICES
from generator.site import places

TextFacts = Mapping[str, Sequence[str]]
# The files of a node by their paths there.
NodeFiles = Mapping[str, File]

_FACTS, _NETPLAN = "etc/sparkgen/node.env", "etc/netplan/40-cx7.yaml"
_NODES, _SSH_KEYS = "etc/sparkgen/nodes.env", "opt/sparkgen/ssh-keys.sh"
_PROXY_CONF = "opt/sparkgen/proxy/proxy.conf"
_UNITS = "etc/systemd/system/"
_ENGINE_UNIT = f"{_UNITS}sparkgen-engine.service"
# Before 0.3, a gateway was a program of its own behind the proxy.
GATEWAY = "sparkgen-gateway"
_CLEAR = re.compile(r"^ +listen (\S+) ssl\b.*?^ +error_page 497 =308 ", re.MULTILINE | re.DOTALL)
_LISTEN = re.compile(r"^ +listen (.+)$", re.MULTILINE)
_FACT = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_IMAGE = re.compile(r"^ +image: [\"']?([^\s\"']+)", re.MULTILINE)
# What a virtual environment's engine gets from its unit.
_SETTINGS = re.compile(r"^(?:User|MemoryMax|AllowedCPUs|ReadWritePaths|Limit\w+)=.*$", re.MULTILINE)
_SCRIPT = re.compile(r"^Exec\w+=\S*?/(opt/sparkgen/[\w.-]+)", re.MULTILINE)
_FACT_OF_SCRIPT = re.compile(r"\bfact ([A-Z_]+)|s/\^([A-Z_]+)=//p")
_OF_JOB = re.compile(r"^(image|venv|needed)=\(?([^)\n]*)", re.MULTILINE)
_STOP = re.compile(r"^TimeoutStopSec=(\d+)$", re.MULTILINE)
_LOGINS = Activation("", Scope.FILES, step="/opt/sparkgen/ssh-keys.sh")
# What has an engine's command; before 0.3, container.sh had it too.
_COMMANDS = ("compose.yaml", "engine.sh", "container.sh", "serve.sbatch")
_NAMES = ("--served-model-name", "--served_model_name", "--alias")


def desired(
    tree: Tree, nodes: Sequence[str], cables: Iterable[state.LiveCable], renamed: Mapping[str, str]
) -> state.Desired:
    """What a bundle makes of cables and nodes, in the order of ranks, some `renamed` since then."""
    files: dict[str, dict[str, File]] = {name: {} for name in nodes}
    for path, file in tree.items():
        node, _, rest = path.partition("/")
        if node in files:
            files[node][rest] = file
    known = {name: _text_facts(own, _FACTS) for name, own in files.items()}
    engines = tuple(_engines(files, known, renamed))
    return state.Desired(
        {name: _folder(name, own, known[name]) for name, own in files.items()},
        tuple(cables),
        engines,
        tuple(_doors(files, known, engines)),
        {path: tree[path].text for path in ELSEWHERE if path in tree},
    )


# What reads them: nothing of a bundle.
ELSEWHERE = {
    "operator/prometheus.yml": "Prometheus",
    "operator/alerts.yml": "Prometheus",
    "operator/dashboard.json": "Grafana",
}


def facts(text: str) -> Mapping[str, list[str]]:
    """The values of each NAME=VALUE, as in a file of facts, an environment or a unit."""
    found: dict[str, list[str]] = {}
    for name, value in _FACT.findall(text):
        found.setdefault(name, []).append(value)
    return found


# What every release has asked of a node for the same site.
_OF_SITE = ("image", "squashfs", "model", "folder", "file", "secret", "key")


def completed(old: state.Desired, known: state.Desired, *, is_same: bool) -> state.Desired:
    """A bundle of 0.1, which says nothing of logins, addresses and names: `known` has these.

    `is_same`: that is made of the same site, so that its engines needed the same.
    """
    folders = {}
    for name, folder in old.folders.items():
        new = known.folders.get(name, folder)
        programs = dict(folder.programs)
        for unit in programs.keys() & new.programs.keys() if is_same else ():
            asked = (need for need in new.programs[unit].needs if need.kind in _OF_SITE)
            needs = programs[unit].needs.union(asked if programs[unit].is_engine else ())
            programs[unit] = replace(programs[unit], needs=needs)
        folders[name] = replace(folder, address=new.address, user=new.user, programs=programs)
    units = {(name, unit) for name, folder in folders.items() for unit in folder.programs}
    engines = [e for e in known.engines if {(name, e.unit) for name in e.nodes} <= units]
    groups = {engine.group for engine in engines}
    doors = tuple(door for door in known.doors if {*door.groups} <= groups and not door.units)
    return replace(old, folders=folders, engines=tuple(engines), doors=doors)


def _text_facts(files: NodeFiles, path: str) -> TextFacts:
    file = files.get(path)
    return facts(file.text) if file else {}


def _groups(files: NodeFiles, known: TextFacts) -> tuple[str, ...]:
    """The groups whose engines are on a node; one without a name if it is the only engine."""
    listed = tuple(known.get("GROUP", ()))
    return listed or (("",) if "etc/sparkgen/engine.env" in files else ())


def programs(files: NodeFiles) -> dict[str, state.Program]:
    """What runs on a node, or is run after an installation, by unit."""
    known = _text_facts(files, _FACTS)
    groups = _groups(files, known)
    found = [_engine_program(files, known, group, groups) for group in groups]
    units: dict[str, dict[str, File]] = {}
    for path, file in files.items():
        if unit := file.activation.unit:
            units.setdefault(unit, {})[path] = file
    found += [_service(unit, own, files, known) for unit, own in units.items()]
    if _SSH_KEYS in files:
        members = {"members": "\n".join(_text_facts(files, _NODES).get("MEMBER", ()))}
        found.append(state.Program(state.LOGINS, members, activation=_LOGINS))
    return {program.unit: program for program in found}


def _folder(node: str, files: NodeFiles, known: TextFacts) -> state.NodeFolder:
    own = programs(files)
    links, sums = files.get(_NETPLAN), files.get("SHA256SUMS")
    return state.NodeFolder(
        node,
        sums.text if sums else "",
        _first(known, "MANAGEMENT"),
        _first(known, "USER"),
        links.text if links else "",
        {path: file.text for path, file in files.items() if path.startswith("etc/ssh/sshd")},
        own,
        frozenset(_asked(files)),
        any(need.kind == "secret" for program in own.values() for need in program.needs),
    )


def _engine_program(
    files: NodeFiles, known: TextFacts, group: str, groups: Sequence[str]
) -> state.Program:
    """A rank of an engine: its own files, its job, and those of the node that these mention."""
    mine = _facts_of(files, known, group)
    job = "/serve.sbatch" if "JOB" in mine else " "
    own = {
        path: file.text
        for path, file in files.items()
        if _is_own(path, group) and (_is_read(file) or path.endswith(job))
    }
    unit = places.place(_ENGINE_UNIT, group)
    if "VENV" in mine and unit in files:
        own[unit] = "\n".join(_SETTINGS.findall(files[unit].text))
    text = "\n".join(own.values())
    shared = {
        path: file.text
        for path, file in files.items()
        if _is_read(file) and not any(each and _is_own(path, each) for each in groups)
    }
    read = {path: t for path, t in shared.items() if not group or f"/{path}" in text}
    container = _text_facts(files, places.place("etc/sparkgen/container.env", group))
    members = " ".join(mine.get("RANKS", ()) or _text_facts(files, _NODES).get("MEMBER", ()))
    brought = tuple(_needs(mine, members))
    needs = (*brought, *(state.Need("secret", name) for name in container.get("SECRET", ())))
    # The same place may have other content: another release, revision or build.
    own |= {f"{n.kind} {n.name}": f"{n.place} {n.source}".strip() or UNKNOWN for n in brought}
    waits = group in {name for words in known.get("ALTERNATIVES", ()) for name in words.split()[1:]}
    boots = "JOB" not in mine and not waits
    reads = {**own, **read}
    return state.Program(places.unit(group), reads, frozenset(needs), is_engine=True, boots=boots)


def _facts_of(files: NodeFiles, known: TextFacts, group: str) -> TextFacts:
    """The facts about an engine, which are those of the node if it is the only one."""
    return _text_facts(files, places.place(_FACTS, group)) if group else known


def _is_own(path: str, group: str) -> bool:
    if group:
        return path.startswith((f"etc/sparkgen/groups/{group}.", f"opt/sparkgen/groups/{group}/"))
    return path.startswith("opt/sparkgen/") and path.count("/") == 2


def _is_read(file: File) -> bool:
    return file.activation.effect is Scope.RESTART


def _needs(known: TextFacts, members: str) -> Iterator[state.Need]:
    """What an engine needs on its node, by its facts."""
    is_built = "IMAGE_IS_BUILT" in known
    for image in known.get("IMAGE", ()):
        inputs = _first(known, "IMAGE_BUILD")
        yield state.Need("built image", image, inputs) if is_built else state.Need("image", image)
        yield from (state.Need("squashfs", p, source=image) for p in known.get("SQUASHFS", ()))
    for words in known.get("VENV", ()):
        path, *release = words.rsplit(maxsplit=2)
        yield state.Need("environment", path, " ".join(release))
    for words in known.get("MODEL", ()):
        _, name, *revision = words.split()
        if name.startswith("/"):
            yield state.Need("folder", name)
        else:
            yield state.Need("model", name, _first(known, "HUB"), *revision[:1])
    for words in known.get("VOCABULARY", ()):
        _, file, url = words.split()
        yield state.Need("vocabulary", file, _first(known, "VOCABULARIES"), url)
    yield from (state.Need("folder", path) for path in known.get("MODEL_FILE", ()))
    for words in known.get("FILE", ()):
        checksum, path = words.split(maxsplit=1)
        yield state.Need("file", path, checksum.strip("-"))
    yield from (state.Need("key", path, members) for path in known.get("KEY", ()))


# The facts that name the secrets which the script of a unit reads.
_SECRETS = {
    GATEWAY: ("GATEWAY_KEY",),
    state.PROXY: ("API_KEY", "ENGINE_KEY"),
    "sparkgen-web-ui": ("WEB_UI",),
}
_REGISTER = "create a key for each client: sudo ~/sparkgen-bundle/opt/sparkgen/proxy.sh add NAME"


def _asked(files: NodeFiles) -> Iterator[state.Need]:
    """What jobs need, which people start."""
    for path, file in files.items():
        if path.startswith("opt/sparkgen/jobs/") and path.endswith("/command.sh"):
            for name, words in _OF_JOB.findall(file.text):
                kind: state.NeedKind = "image" if name == "image" else "job's file"
                named = (word for word in shlex.split(words) if word[:13] != "/opt/sparkgen")
                yield from (state.Need(kind, word) for word in named)


def _read_facts(unit: str, files: NodeFiles, known: TextFacts) -> dict[str, str]:
    """The facts that the scripts of a unit read as it starts, each as a text of its own."""
    file = files.get(f"{_UNITS}{unit}.service")
    scripts = {path for path in _SCRIPT.findall(file.text if file else "") if path in files}
    found = (name for path in scripts for name in _FACT_OF_SCRIPT.findall(files[path].text))
    names = sorted({one or other for one, other in found} & known.keys())
    return {f"{_FACTS}:{n}": "\n".join(f"{n}={value}" for value in known[n]) for n in names}


def _service(unit: str, own: NodeFiles, files: NodeFiles, known: TextFacts) -> state.Program:
    """A service beside the engine, with what it reads and needs; `own` are its own files."""
    reads = {path: file.text for path, file in own.items()} | _read_facts(unit, files, known)
    again = {path for path, file in own.items() if " reload " in file.activation.step}
    reads["listen"] = "\n".join(each for path in again for each in _LISTEN.findall(reads[path]))
    images = {image for text in reads.values() for image in _IMAGE.findall(text)}
    words = (words for name in _SECRETS.get(unit, ()) for words in known.get(name, ()))
    secrets = {re.split("[= ]", each)[-1] for each in words}
    served = [s for s in SERVICES.values() if any(e.activation.unit == unit for e in s.ENTRIES)]
    first = _REGISTER if unit == state.PROXY else ""
    needs = {
        *(state.Need("image", image) for image in images),
        *(state.Need("secret", name) for name in secrets),
        *(state.Need("kept", s.KEPT, source=first) for s in served if s.KEPT),
        *(state.Need("package", name) for s in served for name in s.PACKAGES),
    }
    if unit == state.PROXY and (path := _first(known, "TLS_CERTIFICATE")):
        made = "make the certificate and install it: operator/certificates.sh"
        how = made if "TLS_AUTHORITY" in known else f"bring the certificate and its key: {path}"
        found = f"the certificate and its key, {path}, for {_first(known, 'TLS_NAME')}"
        needs.add(state.Need("kept", found, _first(known, "TLS_KEY"), how))
    starts = (file.activation for path, file in own.items() if path not in again)
    activation = next(starts, next(iter(own.values())).activation)
    reloads = frozenset({*again, f"{_FACTS}:ENGINE_KEY"} if again else ())
    # A firewall's rules stay over a boot.
    boots = not activation.before
    return state.Program(unit, reads, frozenset(needs), activation, boots=boots, reloads=reloads)


def _engines(
    files: Mapping[str, NodeFiles], known: Mapping[str, TextFacts], renamed: Mapping[str, str]
) -> Iterator[state.LiveEngine]:
    members: dict[str, list[str]] = {}
    for node, own in files.items():
        for group in _groups(own, known[node]):
            members.setdefault(group, []).append(node)
    for group, nodes in members.items():
        listed = _facts_of(files[nodes[0]], known[nodes[0]], group).get("RANKS", ())
        first = (renamed.get(name, name) for name in listed)
        ranks = tuple(dict.fromkeys([*(name for name in first if name in nodes), *nodes]))
        head = files[ranks[0]]
        mine = _facts_of(head, known[ranks[0]], group)
        all_turns = (tuple(words.split()) for words in known[ranks[0]].get("ALTERNATIVES", ()))
        turns = next((names for names in all_turns if group in names), ())
        names, listen = _command(head, group)
        url, address = _first(mine, "HEALTH_URL"), _first(known[ranks[0]], "MANAGEMENT")
        container = _text_facts(head, places.place("etc/sparkgen/container.env", group))
        model = next(iter(_first(mine, "MODEL").split()[1:]), "")
        served = _first(container, "SERVED_NAME") or model.rpartition("/")[2].lower()
        job = _first(mine, "JOB"), places.place("/opt/sparkgen/serve.sbatch", group)
        traits = ENGINE_TRAITS.get(_first(mine, "ENGINE").partition(" ")[0])
        yield state.LiveEngine(
            group,
            places.unit(group),
            ranks,
            names or (served,),
            url.replace("127.0.0.1", address) if listen == "0.0.0.0" and address else url,
            model,
            _first(container, "API_KEY"),
            turns,
            not turns or turns[0] == group,
            int(_found(_STOP, head, places.place(_ENGINE_UNIT, group)) or 0),
            int(_first(mine, "LOAD_SECONDS") or _first(known[ranks[0]], "LOAD_SECONDS") or 0),
            job if job[0] else (),
            traits.title if traits and traits.answers_any_name else "",
        )


def _command(files: NodeFiles, group: str) -> tuple[tuple[str, ...], str]:
    """The names that an engine answers to, and the address that it listens on."""
    paths = (places.place(f"opt/sparkgen/{name}", group) for name in _COMMANDS)
    words = list(_words(next((files[path].text for path in paths if path in files), "")))
    names: tuple[str, ...] = ()
    listen = ""
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option not in (*_NAMES, "--host"):
            continue
        values = [value] if equals else [*takewhile(lambda w: w[:1] != "-", words[at + 1 :])]
        if option == "--host":
            listen = " ".join(values)
        else:
            names = tuple(values[0].split(",")) if option == "--alias" else tuple(values)
    return names, listen


def _words(text: str) -> Iterator[str]:
    """The words of a command: one a line in a Compose file, an option a line in a script."""
    for line in map(str.strip, text.splitlines()):
        if line.startswith('- "'):
            yield json.loads(line[2:]).replace("$$", "$")
        elif line.startswith("--"):
            yield from shlex.split(line.removesuffix(" \\"))


def _doors(
    files: Mapping[str, NodeFiles],
    known: Mapping[str, TextFacts],
    engines: Sequence[state.LiveEngine],
) -> Iterator[state.Door]:
    """The gateway if there is one; or else the proxy before the only engine, or each engine."""
    fronted = False
    for node, own in files.items():
        units = tuple(u for u in (GATEWAY, state.PROXY) if f"{_UNITS}{u}.service" in own)
        gateway = _first(known[node], "GATEWAY").partition(" ")[0]
        url = gateway or _proxy(known[node])
        if units and url:
            fronted = True
            names = tuple(dict.fromkeys(n for e in engines if e.is_active for n in e.names))
            groups = tuple(engine.group for engine in engines)
            script = own.get("opt/sparkgen/proxy.sh")
            drains = bool(script and "proxy.sh drain " in script.text)
            trusted = _first(known[node], "TLS_AUTHORITY") or _first(known[node], "TLS_CERTIFICATE")
            clear = _found(_CLEAR, own, _PROXY_CONF, "http://")
            key, checks = state.CLIENT_KEY, bool(gateway)
            yield state.Door(url, node, units, groups, names, key, drains, trusted, clear, checks)
    for engine in () if fronted else engines:
        if engine.url:
            names = engine.names if engine.is_active else ()
            yield state.Door(engine.url, engine.nodes[0], (), (engine.group,), names, engine.key)


def _proxy(known: TextFacts) -> str:
    if url := _first(known, "PROXY"):
        return url
    ports = dict(words.split() for words in known.get("PORT", ()))
    address = _first(known, "MANAGEMENT")
    return f"http://{address}:{ports['proxy']}" if "proxy" in ports and address else ""


def _found(pattern: re.Pattern[str], files: NodeFiles, path: str, before: str = "") -> str:
    found = pattern.search(files[path].text) if path in files else None
    return before + found[1] if found else ""


def _first(known: TextFacts, name: str) -> str:
    return next(iter(known.get(name, ())), "")


def had(tree: Tree, node: str, need: state.Need) -> bool:
    """Whether a bundle of any version has had a node get the same: by the words in its files."""
    words = [need.name, need.place, need.source if need.source != "main" else ""]
    texts = [
        file.text
        for path, file in tree.items()
        if path.startswith((f"{node}/etc/sparkgen/", f"{node}/opt/sparkgen/"))
        and path.endswith((".env", ".yaml", ".sbatch"))
    ]
    found = (re.compile(rf"(?<![\w./:-]){re.escape(word)}(?![\w.:-])") for word in words if word)
    return all(any(word.search(text) for text in texts) for word in found)
