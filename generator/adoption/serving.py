"""The model and engine sections, from a command that serves."""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from generator import catalogs
from generator.adoption.command import ArgumentEntry, Command
from generator.adoption.draft import Draft
from generator.adoption.found import REMOVED, Ended, FoundContainer, Item, ItemEnd, Word
from generator.adoption.items import of_table, options
from generator.adoption.limits import limits
from generator.adoption.mounts import hub, in_hub, is_inside, outside
from generator.adoption.running import DATA_PARALLEL_ATTENTION
from generator.adoption.text import is_open
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog, versions
from generator.catalogs.versions import release
from generator.diagnostics import listed
from generator.engines import handed_on
from generator.hardware import VISIBLE_GIB
from generator.records import replace
from generator.rules.files import is_relative_file
from generator.rules.flags.parser import parsers
from generator.scaffold.scaffold import ENGINES as STARTS
from generator.scaffold.scaffold import MODEL, MODEL_FILES
from generator.settings.values import canonical
from generator.sitefile.defaults import default
from generator.sitefile.source import Plain
from generator.sitefile.text_types import TEXT_TYPES

_SNAPSHOT = re.compile(r".*/models--([^/]+?)--([^/]+)/snapshots/(([0-9a-f]{40})/?|\$.*)")
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


def fill(draft: Draft, command: Command | None) -> None:
    """Write what a command says about the model and the engine, and guess the rest."""
    if command is None:
        _assume(draft)
        return
    engine, container = command.engine, command.container
    draft.put(("model",), {})
    draft.put(("engine",), {})
    said = (*command.program, command.model, container.image)
    draft.put(("engine", "name"), engine, next((word for word in said if word), None))
    _version(draft, command)
    _image(draft, command)
    if command.model:
        with draft.ending(Item(command.model.text, command.model.text, (command.model,))):
            _model(draft, command, command.model)
    owned = _owned(engine)
    for entry in command.entries:
        with draft.ending(entry.item):
            _flag(draft, command, entry, _key(owned, engine, entry.name))
    if command.program:
        with draft.ending(Item(command.program[0].text, "", command.program)):
            draft.settle("engine", "name")
    draft.ended += [of_table(item) for item in command.outside]
    for word in command.rest:
        why = "it is known only when it runs" if "$" in word.text else _NO_FLAG
        draft.ended.append(Ended(Item(word.text, word.text, (word,)), ItemEnd.LOST, why=why))
    if not any(draft.get("model", key) for key in ("name", "source", "file")):
        draft.need(("model", "name"), "the model: nothing read here names it", MODEL)
    if command.launcher:
        draft.put(("engine", "launcher"), command.launcher, container.image)
    is_whole = not any(word and "$" in word.text for word in (command.model, *command.rest))
    if ENGINE_TRAITS[engine].commands.listens_everywhere and not command.entry("host") and is_whole:
        draft.put(("engine", "bind"), "all", command.served)
        draft.comments["engine", "bind"] = "not stated anywhere: it listens on all interfaces"
    _around(draft, command)
    if published := command.published:
        draft.put(("engine", "port"), int(published.text), published)
    _published_at(draft, command)
    _meeting_ports(draft, command)
    hub(draft, container)
    limits(draft, container)
    _share(draft, command)


def _around(draft: Draft, command: Command) -> None:
    """Remark in which blocks of a script the engine is started."""
    around = {block.partition(" ")[0] for block in command.around}
    if remarks := [text for kind, text in _AROUND.items() if not around.isdisjoint(kind.split())]:
        draft.comments["engine",] = f"started {', '.join(remarks)}"


def _published_at(draft: Draft, command: Command) -> None:
    """Write where Docker publishes the port, if that is at one address."""
    options = command.container.options
    word = options.get("p", options.get("publish"))
    found = re.match(r"([0-9.]+|localhost):[0-9]+:", word.text) if word else None
    if word and found and draft.get("engine", "bind") == "all" and found[1] != "0.0.0.0":
        draft.drop("engine", "bind", why="Docker publishes the port at one address")
        if found[1] in ("127.0.0.1", "localhost"):
            draft.put(("engine", "bind"), "local", word)
        else:
            why = "the address at which Docker publishes it: see 'nodes[].management'"
            draft.ended.append(Ended(Item("-p", found[1], (word,)), ItemEnd.LOST, why=why))


def _meeting_ports(draft: Draft, command: Command) -> None:
    """Write the ports at the end of addresses where ranks meet."""
    for flag, name in (("dist-init-addr", "dist_init"), ("rpc", "rpc")):
        entry = command.entry(flag)
        found = re.fullmatch(r"[0-9.]+:([0-9]+)(,.*)?", entry.place.text) if entry else None
        if entry and found and not _is_usual(f"engine.ports.{name}", found[1]):
            draft.put(("engine", "ports", name), int(found[1]), entry.place)


def compare(draft: Draft, head: Command, command: Command) -> None:
    """Record what becomes of the command of another rank, which has to say the same."""
    known = {entry.name: entry.value for entry in head.entries}
    owned = _owned(command.engine)
    theirs = {word.text for word in _words(head)}
    same, own = "as on the head", "sparkgen sets it for each node"
    if command is head:
        return
    for entry in command.entries:
        is_own = _key(owned, command.engine, entry.name) in ("", "engine.bind", "engine.port")
        why = same if known.get(entry.name) == entry.value else own if is_own else ""
        draft.ended.append(_as_on_head(entry.item, why))
    draft.ended += map(of_table, command.outside)
    there, here = ((*c.mounts, *c.options.values()) for c in (head.container, command.container))
    shared = [word for word in here if word.text in {other.text for other in there}]
    draft.ended += [_as_on_head(Item(word.text, word.text, (word,)), same) for word in shared]
    for word in _words(command):
        why = same if word.text in theirs else ""
        draft.ended.append(_as_on_head(Item(word.text, word.text, (word,)), why))


def _as_on_head(item: Item, why: str) -> Ended:
    """The end of what another rank says; `why` it has the same effect, if it has."""
    otherwise = "the head says otherwise, and all ranks have one value"
    return Ended(item, ItemEnd.DEFAULT if why else ItemEnd.LOST, why=why or otherwise)


def _words(command: Command) -> list[Word]:
    """The words of a command that are no flags."""
    words = (command.container.image, command.model, *command.program, *command.rest)
    return [word for word in words if word]


def _assume(draft: Draft, why: str = "nothing here says what is served") -> None:
    """What an audit assumes where nothing is served: the rules about variables need an engine."""
    engine, start = next(iter(STARTS.items()))
    draft.need(("model", "name"), why, MODEL)
    draft.need(("engine", "name"), why, engine)
    draft.need(("engine", "version"), why, start.version)
    draft.need(("engine", "image"), why, start.image)


def unknown(draft: Draft, container: FoundContainer) -> None:
    """Write what can be said of an engine that is not known here: its image, model and port."""
    _assume(draft, "it can't be told what is served")
    image = container.image
    what = f"in {image.text}" if image else f"of {container.owner}"
    why = f"the engine {what}, which can't be told: {listed(list(STARTS), 'or')}"
    draft.need(("engine", "name"), why, next(iter(STARTS)))
    if image and TEXT_TYPES["image"].fits(image.text):
        draft.put(("engine", "image"), image.text, image)
    named = [word for word in container.words if _HUB_ID.fullmatch(word.text)]
    for word in named[:1]:
        draft.drop("model", "name")
        draft.todo.pop(("model", "name"))
        with draft.ending(Item("model", word.text, (word,))):
            draft.put(("model", "source"), word.text, word)
    for flag, word in pairwise(container.words):
        if flag.text == "--port" and word.text.isdecimal():
            with draft.ending(Item("--port", word.text, (flag, word))):
                draft.put(("engine", "port"), int(word.text), word)
    draft.guessed |= {("model",), ("engine", "image"), ("engine", "port")}
    known = {*draft.origins.values(), *(w for one in draft.ended for w in one.item.words)}
    words = [word for word in container.words if word not in known and not word.breaks]
    said = [*options(Item("", "", container.words), words)]
    said += [Item(v.name, v.value.text, (v.value,)) for v in container.env if v.value not in known]
    why = "of an engine that can't be told"
    draft.ended += [Ended(item, ItemEnd.LOST, why=why) for item in said]


def _owned(engine: str) -> Mapping[str, str]:
    """The site file's key for each flag, by the flag's full name."""
    newest = parsers(engine, versions(engine)[-1])
    own = handed_on.owned(engine)
    return {**own, **(newest[0].owned if newest else {})}


def _key(owned: Mapping[str, str], engine: str, name: str) -> str | None:
    """The key for a flag, which an earlier release may call by another of its names."""
    newest = catalog(engine, versions(engine)[-1])
    found = newest.find(name) if newest and name not in owned else None
    return owned.get(found.flag.name if found else name)


def _version(draft: Draft, command: Command) -> None:
    if known := command.version or _build(command):
        draft.put(("engine", "version"), known, command.container.image)
        return
    guess = f"the version of {ENGINE_TRAITS[command.engine].title}, which the image does not say"
    draft.put(("engine", "version"), _guessed_version(command), None, guess)


def _build(command: Command) -> str:
    """The build in the tag of an image, of an engine that counts its builds; empty if none."""
    image = command.container.image
    if image is None or not STARTS[command.engine].version.isdecimal():
        return ""
    found = re.search(r"(?<![a-z0-9])b[0-9]{4,}(?![a-z0-9])", image.text)
    return found[0] if found else ""


def _guessed_version(command: Command) -> str:
    """The version in the tag of a custom image, which may contain more than the release."""
    image = command.container.image
    start = STARTS[command.engine]
    if image is not None and image.text == start.image:
        return start.version
    likely = command.likely or start.version
    if image is None or not image.text:
        return likely
    # Anything older than the first Sparks counts the publisher's own builds, and another major
    # version is that of something else in the image.
    known = versions(command.engine)
    oldest = release(ENGINE_TRAITS[command.engine].commands.first_release or known[0])
    numbers = (each for each in _TAGGED.findall(image.text.rpartition(":")[2]))
    fitting = [n for n in numbers if release(n) >= oldest and n[0] == known[-1][0]]
    return f"{fitting[0] if fitting else likely}+own"


# A release in a tag, perhaps of a candidate or a build of a branch.
_TAGGED = re.compile(
    r"(?:^|(?<=[-_]))v?([0-9]+\.[0-9]+\.[0-9]+(?:rc[0-9]+)?(?:\.post[0-9]+)?(?:\.dev[0-9]+)?)"
    r"(?![0-9.])"
)


def _image(draft: Draft, command: Command) -> None:
    image = command.container.image
    if command.venv:
        draft.put(("engine", "venv"), command.venv.text, command.venv)
        return
    if image is None:
        why = "the image, or 'venv', the path of a virtual environment: nothing read here names one"
        draft.need(("engine", "image"), why, STARTS[command.engine].image)
        return
    is_known = image.text != REMOVED and TEXT_TYPES["image"].fits(image.text)
    if is_known and _with_mods(draft, command.container, image):
        return
    with draft.ending(Item("image", image.text, (image,))):
        if is_known:
            draft.put(("engine", "image"), image.text, image)
        else:
            why = "only the shell knows it" if is_open(image.text) else "no image has such a name"
            draft.lose("the capture left it out" if image.text == REMOVED else why, image)
            why = f"the image, {image.text}: {why}"
            draft.need(("engine", "image"), why, STARTS[command.engine].image)


def _with_mods(draft: Draft, container: FoundContainer, image: Word) -> bool:
    """Whether an image has mods, which makes it a derived image in the site file."""
    known = [word for word in container.mods if TEXT_TYPES["source_path"].fits(word.text)]
    if not known or len(known) < len(container.mods):
        for word in container.mods:
            draft.lose(f"the mod {word.text}", word)
        return False
    stem = image.text.partition("@")[0].rpartition("/")[2].partition(":")[0]
    path = ("engine", "image")
    draft.put((*path, "name"), f"{stem}-with-mods:1", image, "the name of the image with its mods")
    draft.put((*path, "from"), image.text, image)
    draft.put((*path, "mods"), [word.text for word in known], known[0])
    draft.ended += [Ended(Item("mods", w.text, (w,)), ItemEnd.SITE, (*path, "mods")) for w in known]
    draft.lose("the folders of the mods: copy them beside the site file", known[0])
    return True


def _of_hub(draft: Draft, word: Word) -> Word:
    """The id of a model in place of its folder in the hub, whose revision is written."""
    found = _SNAPSHOT.fullmatch(word.text)
    if found is None:
        return word
    word = replace(word, text=f"{found[1]}/{found[2]}")
    if not found[4]:
        return replace(word, remark="the revision is known only when it runs")
    draft.put(("model", "revision"), found[4], word)
    return word


def _model(draft: Draft, command: Command, word: Word) -> None:
    """Write the model by its name in the catalog, its id, or its file or folder."""
    word = _of_hub(draft, word)
    if is_inside(command.container, word.text):
        word = replace(word, remark="the container's own path, which nothing here mounts")
    text = word.text
    reads_gguf = ENGINE_TRAITS[command.engine].reads_gguf
    if reads_gguf and _HUB_ID.fullmatch(text.partition(":")[0]):
        repository, _, kind = text.partition(":")
        file = f"{MODEL_FILES}/{repository.partition('/')[2]}{f'-{kind}' if kind else ''}.gguf"
        draft.need(("model", "file"), f"where the file of {text} is on the head", file)
        draft.put(("model", "source"), repository, word)
        return
    if is_open(text):
        is_any = re.fullmatch(r"\$([@*]|\{[@*].*\})", text)
        _without_model(draft, _ARGUMENTS if is_any else word.remark or _ONLY_RUNNING, word)
        return
    if re.match(r"[/.~%]", text):
        text = outside(command.container, text)
        if not TEXT_TYPES["path"].fits(text):
            _without_model(
                draft, f"the model's path on the nodes, '{text}', is no whole path", word
            )
            return
    if text.endswith(".gguf") and text.startswith("/"):
        draft.put(("model", "file"), text, word)
        if name := _by_file(text):
            draft.put(("model", "name"), name, word)
        else:
            draft.need(("model", "name"), "the model in the file", MODEL)
        return
    known = catalogs.checkpoint(text)
    if known and known.hf_id.lower() == text.lower():
        draft.put(("model", "name"), known.name, word)
    elif _HUB_ID.fullmatch(text) or text.startswith("/"):
        draft.put(("model", "source"), text, word)
    else:
        _without_model(draft, "it is neither the id of a model nor its path", word)


_AROUND = {
    "&& if case while until": "only under a condition of the script",
    "for select": "once for each word of a loop",
}
_PLUGIN = "/opt/parsers/own.py"
_NO_FLAG = "an argument that sparkgen doesn't know"
_ARGUMENTS = "arguments, which are known only when it runs; nothing else names the model"
_ONLY_RUNNING = "the model's name, which is known only when it runs"


def _without_model(draft: Draft, lost: str, word: Word) -> None:
    draft.lose(lost, word)
    draft.need(("model", "name"), lost, MODEL)


def _by_file(path: str) -> str:
    """The catalog's model that a weights file is named after."""
    stem = re.sub(
        r"([-.](Q[0-9]\w*|IQ\w+|BF16|F16|MXFP4))?(-\d{5}-of-\d{5})?\.gguf$",
        "",
        path.rpartition("/")[2],
        flags=re.IGNORECASE,
    )
    known = catalogs.checkpoint(stem.lower())
    return known.name if known else ""


def _flag(draft: Draft, command: Command, entry: ArgumentEntry, key: str | None) -> None:
    """Write one flag in the place that the format has for it."""
    if (entry.place.is_removed or entry.value == REMOVED) and not _is_secret(key):
        draft.lose("the capture left out its value", entry.place)
        if not entry.is_known:
            # The flag's existence is checked anyway.
            draft.put(("engine", "args", entry.name), True, entry.place)
    elif entry.value == "":
        draft.lose("it is empty", entry.place)
    elif (
        is_open(str(entry.value))
        and not _is_secret(key)
        and key not in ("model.name", "model.file")
    ):
        why = entry.place.remark or "only the shell knows its value"
        draft.lose(why, entry.place)
        if entry.name.endswith("-plugin"):
            # Without it, the parsers that it adds would be unknown.
            draft.need(("engine", "args", entry.name), f"the path of the plug-in: {why}", _PLUGIN)
    elif entry.name == "download-dir" and in_hub(command.container, str(entry.value)):
        draft.lose("models are in the folder 'hub' of 'model.cache': move them there", entry.place)
    elif key == "engine.parallel.data" and command.entry(DATA_PARALLEL_ATTENTION):
        draft.lose("of attention alone: in newer releases 'attn-dp-size' under 'args'", entry.place)
    elif key is None and _is_of_the_image(command.container, entry):
        draft.lose("a file of an image of your own: see 'engine.files'", entry.place)
    elif key is None:
        draft.put(("engine", "args", entry.name), _argument(entry.value), entry.place)
    else:
        _owned_flag(draft, command, entry, key)


def _is_of_the_image(container: FoundContainer, entry: ArgumentEntry) -> bool:
    """Whether a file may be there that no release has: in an unknown image."""
    image = container.image
    is_own = image is not None and catalogs.image(image.text) is None
    return (is_own or container.is_changed) and is_relative_file(entry.name, str(entry.value))


def _is_secret(key: str | None) -> bool:
    return (key or "").startswith("engine.secrets")


def _owned_flag(draft: Draft, command: Command, entry: ArgumentEntry, key: str) -> None:
    """Write a flag that the site file has a key for."""
    value = str(entry.value)
    place = replace(entry.place, text=value)
    traits = ENGINE_TRAITS[command.engine]
    if _is_secret(key):
        _secret(draft, key)
    elif key == "engine.memory_utilization" and traits.reads_gguf:
        _left(draft, place)
    elif key == "model.context_length" and value in ("auto", "-1", "0"):
        _automatic(draft, place)
    elif key == "model.context_length" and traits.allocates_all:
        slots = command.entry("parallel")
        parts = str(slots.value) if slots else "1"
        each = int(value) // max(int(parts), 1) if (value + parts).isdecimal() else 0
        draft.put(("model", "context_length"), each or Plain(value), place)
    elif key in _OWN:
        _OWN[key](draft, command, ArgumentEntry(entry.name, entry.value, place))
    elif key.startswith("engine.args"):
        draft.lose(f"the settings in {value}", place)
    elif re.fullmatch(_KEY, key) and not _is_usual(key, value):
        newest = catalog(command.engine, versions(command.engine)[-1])
        found = newest.find(entry.name) if newest else None
        plain = canonical(value, found.flag, "iec" in newest.traits) if newest and found else value
        draft.put(tuple(key.split(".")), Plain(str(plain)), place)
    elif re.match(r"master-addr|dist-init-addr|rpc$", entry.name) and not _are_known(draft, value):
        draft.lose("an address that nothing else states: see 'nodes' and 'cabling'", place)
    elif key in ("", "engine.name", "engine.parallel") or _is_usual(key, value):
        draft.same("sparkgen sets it for each node")


def _are_known(draft: Draft, value: str) -> bool:
    """Whether the site's nodes have the addresses in a value, if they are here."""
    site, found = str(draft.data), re.findall(r"\d{1,3}(?:\.\d{1,3}){3}", value)
    return "nodes" not in draft.data or all(f"{address}/" in site for address in found)


def _automatic(draft: Draft, place: Word) -> None:
    """The longest context that fits, which is computed for models whose shape is known."""
    if place.text == "0":
        draft.lose("the longest context of the model: write it as model.context_length", place)
    elif draft.get("model", "name"):
        draft.put(("model", "context_length"), "auto", place)
    else:
        draft.lose("a context as long as fits: write model.architecture, or a length", place)


def _experts(draft: Draft, command: Command, entry: ArgumentEntry) -> None:
    if str(entry.value) in ("1", "False"):
        draft.same("experts are not split")
    else:
        draft.put(("engine", "parallel", "expert"), True, entry.place)


def _launched(draft: Draft, command: Command, entry: ArgumentEntry) -> None:
    if entry.value == "ray":
        draft.put(("engine", "launcher"), "ray", entry.place)
    else:
        draft.same("the ranks are started without Ray")


def _served_names(draft: Draft, command: Command, entry: ArgumentEntry) -> None:
    # vLLM accepts several words, llama.cpp one with commas.
    names = entry.value if isinstance(entry.value, list) else str(entry.value).split(",")
    draft.put(("model", "served_name"), names[0], entry.place)
    if names[1:]:
        draft.put(("model", "aliases"), names[1:], entry.place)


# Keys that take a flag's value unchanged.
_KEY = (
    r"model\.(served_name|revision|context_length|max_sequences|kv_cache_dtype|quantization)"
    r"|engine\.(memory_utilization|port|ports\.\w+|parallel\.(tensor|pipeline|data))"
)


def _is_usual(key: str, value: str) -> bool:
    """Whether a value is sparkgen's default of a port."""
    try:
        return key.startswith("engine.ports.") and str(default(key)) == value
    except KeyError:
        return False


def _left(draft: Draft, place: Word) -> None:
    """The share of the memory that remains if this many MiB are left free."""
    if place.text.isdecimal():
        share = 1 - int(place.text) / 1024 / VISIBLE_GIB[128]
        draft.put(("engine", "memory_utilization"), round(share, 5), place)
    else:
        draft.lose("it is no number of MiB", place)


def _argument(value: Any) -> Any:
    if isinstance(value, list):
        return [_argument(item) for item in value]
    return Plain(str(value)) if isinstance(value, str) else value


def _secret(draft: Draft, key: str) -> None:
    if found := re.search(r"\((\w+)\)", key):
        known = draft.get("engine", "secrets") or []
        draft.put(("engine", "secrets"), list(dict.fromkeys([*known, found[1]])))


def _bind(draft: Draft, command: Command, entry: ArgumentEntry) -> None:
    """Write where the API listens, unless that is on the management network, the default."""
    value = str(entry.value)
    bind = {"0.0.0.0": "all", "::": "all", "127.0.0.1": "local", "localhost": "local"}.get(value)
    if bind:
        draft.put(("engine", "bind"), bind, entry.place)
    else:
        draft.origins["engine", "bind"] = entry.place
        draft.same("the API listens at the node's own address")


def _speculative(draft: Draft, command: Command, entry: ArgumentEntry) -> None:
    started = ENGINE_TRAITS[command.engine].commands
    keys = started.draft_keys
    if isinstance(entry.value, dict):
        for name, value in entry.value.items():
            _draft(draft, keys.get(name, ""), name, value, entry.place)
        if "method" not in entry.value:
            source = str(entry.value.get("model", "")).lower()
            own = next((m for m in started.inferred_drafts if m in source), "draft")
            draft.put(("model", "speculative", "method"), own, None, "the method of speculation")
        return
    name = entry.name.rpartition(".")[2]
    _draft(draft, keys.get(name, ""), name, entry.value, entry.place)


def _draft(draft: Draft, key: str, name: str, value: Any, place: Word) -> None:
    text = value.lower() if key == "method" and isinstance(value, str) else value
    if key:
        draft.put(("model", "speculative", key), Plain(str(text)), place)
    else:
        draft.put(("model", "speculative", "config", name), _argument(value), place)


def _share(draft: Draft, command: Command) -> None:
    traits = ENGINE_TRAITS[command.engine]
    share = traits.commands.own_share(command.version)
    if draft.get("engine", "memory_utilization") is not None or not share:
        return
    path = ("engine", "memory_utilization")
    draft.put(path, Plain(share), command.model if command.version else None)
    owned = _owned(command.engine)
    keys = (_key(owned, command.engine, entry.name) for entry in command.entries)
    said = "what is said is known only when it runs" if ".".join(path) in keys else "nobody says"
    draft.comments[path] = f"{said}: {traits.title}'s own"


_OWN: Mapping[str, Callable[[Draft, Command, ArgumentEntry], None]] = {
    "engine.bind": _bind,
    "engine.launcher": _launched,
    "engine.parallel.expert": _experts,
    "model.file": lambda draft, command, entry: _model(draft, command, entry.place),
    "model.name": lambda draft, command, entry: _model(draft, command, entry.place),
    "model.served_name": _served_names,
    "model.speculative": _speculative,
}
