"""What a container serves: its engine, its model, and its flags by the parser's names."""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import Any

from generator import catalogs
from generator.adoption.docker import EXPORTS, passed, variable
from generator.adoption.flow import commands
from generator.adoption.found import FoundContainer, Item, Word
from generator.adoption.shell import unwrapped
from generator.catalogs import commands as starting
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog, versions
from generator.catalogs.flags import FlagCatalog, ResolvedFlag
from generator.records import record, replace
from generator.resources import words
from generator.settings.values import parsed
from generator.sitefile.redaction import is_secret_key

# What may come first after the image of a server: a flag, a model, or a shell's variable.
_MODEL = re.compile(r"[-$]|(?!.*/s?bin/).*/")
# What comes before a command in a script: words of the shell, and the shell itself.
_BEFORE = re.compile(
    r"if|then|elif|else|fi|for|while|do|done|esac|!|\{|\}|(.*/)?(ba|da)?sh|-[a-z]*c"
)
_NAMES_A_MODEL = re.compile(r"--(model(-path)?|served-model-name|hf-repo)(=.*)?|.*\.gguf")
# Flags of llama.cpp that take a list with commas, to which each further one adds.
_ADDED = frozenset(words("llama-added.txt"))
# What shows figures of the GPU to Prometheus.
_EXPORTER = re.compile(r"(.*[/_-])?exporter(:[^/]*)?")
_REDIRECTION = re.compile(r"[0-9&]?(>>?|<|<<<)(&?[^{<>]*)$")


@record
class ArgumentEntry:
    """A flag as given; `value` is True for a switch, and `place` that of the value."""

    name: str
    value: Any
    place: Word
    is_known: bool = True
    words: tuple[Word, ...] = ()

    @property
    def item(self) -> Item:
        """The flag and its value, as an item of its file."""
        name, _, value = self.words[0].text.partition("=") if self.words else (self.name, "", "")
        return Item(
            name, value or " ".join(w.text for w in self.words[1:]), self.words or (self.place,)
        )


@record
class Command:
    """A command that serves a model, or helps to serve one; `rest` are words that are no flags.

    `program` are the words that name the engine, and `outside` the other commands of its script.
    `likely` is a release that knows what the command says, if nothing says which one it is.
    """

    engine: str
    container: FoundContainer
    version: str
    model: Word | None = None
    entries: tuple[ArgumentEntry, ...] = ()
    ray: bool = False
    is_worker: bool = False
    rest: tuple[Word, ...] = ()
    outside: tuple[Item, ...] = ()
    program: tuple[Word, ...] = ()
    likely: str = ""

    @property
    def served(self) -> Word | None:
        """The model as named in the command; None if it isn't."""
        entry = self.entry("model", "model-path", "hf-repo")
        return self.model or (entry.place if entry else None)

    @property
    def venv(self) -> Word | None:
        """The virtual environment that it runs in, if that is not in a container."""
        if self.container.image is not None:
            return None
        scripts = starting.scripts()
        if activated := self.container.options.get("venv"):
            return activated
        for word in self.container.words:
            found = re.fullmatch(r"(/[^$`]+)/bin/([^/]+)", word.text)
            if found and (found[2] in scripts or re.fullmatch(r"python[0-9.]*", found[2])):
                return None if found[1] in ("/usr", "/usr/local") else replace(word, text=found[1])
        return None

    @property
    def around(self) -> tuple[str, ...]:
        """The blocks of a script that it is in."""
        return next((w.around for w in (*self.program, *self.container.words)), ())

    @property
    def launcher(self) -> str:
        """What starts the ranks, if not the engine itself; empty if unknown."""
        names = {variable.name for variable in self.container.env}
        if "SLURM_NTASKS" in names or "SLURM_NNODES" in names:
            return "slurm"
        return "ray" if self.ray else ""

    @property
    def published(self) -> Word | None:
        """The node's port for the container's own, if that is another."""
        options = self.container.options
        word = options.get("p", options.get("publish"))
        found = re.fullmatch(r"(?:[\d.]+:)?(\d+):(\d+)(?:/tcp)?", word.text) if word else None
        port = self.entry("port")
        own = str(port.value) if port else str(ENGINE_TRAITS[self.engine].api_port)
        if word and found and found[2] == own != found[1]:
            return replace(word, text=found[1])
        return None

    def entry(self, *names: str) -> ArgumentEntry | None:
        """The last flag with any of these names."""
        return next((entry for entry in reversed(self.entries) if entry.name in names), None)

    @property
    def rank(self) -> int:
        """The rank that it states; workers without one sort after the others."""
        entry = self.entry("node-rank")
        if entry and str(entry.value).isdecimal():
            return int(entry.value)
        variables = {variable.name: variable.value.text for variable in self.container.env}
        own = variables.get("NODE_RANK", "")
        return int(own) if own.isdecimal() else 1 if self.is_worker else 0


def find(container: FoundContainer, programs: dict[str, str]) -> Command | None:
    """The command of a container, if it serves a model; `programs` has its node's versions."""
    # The value of a secret is named nowhere but at its own place.
    known = {v.name: v.value.text for v in container.env if not is_secret_key(v.name)}
    words = [w for w in unwrapped(container.words, known, True) if not w.doubt]
    texts = [word.text for word in words]
    ray = any(a.endswith("ray") and b == "start" for a, b in pairwise(texts))
    ray = ray or any(text.endswith("/ray.sh") for text in texts)
    image = catalogs.image(container.image.text) if container.image else None
    whole = tuple(replace(item, kind="start") for item in _outside(words, 0, 0))
    for at, word in enumerate(words):
        program = word.text.rpartition("/")[2]
        if served := starting.served(program, texts[at + 1] if at + 1 < len(texts) else ""):
            engine, taken = served
            handed, own = _handed_on(_until_break(words[at + taken :]), container.words)
            given = list(_given(words[:at]))
            env = (*container.env, *(passed(word) for word in given))
            found = _command(engine, replace(container, env=env), own, ray, programs)
            rest = [word for word in words if word not in given]
            begin = at - len(words) + len(rest)
            outside = tuple(_outside(rest, begin, begin + taken + len(handed) + len(own)))
            return replace(found, outside=outside, program=(*words[at : at + taken], *handed))
        if worked_for := starting.worked_for(program):
            return Command(worked_for, container, "", is_worker=True, outside=whole)
    marked = starting.marked(container.image.text) if container.image else ""
    for at, word in enumerate(words[:-1] if marked else ()):
        # A script of one's own that starts the engine of the image.
        if word.text.endswith((".sh", ".py")) and re.match(r"serve$|--", texts[at + 1]):
            own = _until_break(words[at + 1 + (texts[at + 1] == "serve") :])
            return _command(marked, replace(container, is_changed=True), own, ray, programs)
    is_script = bool(words) and words[0].text.endswith((".sh", ".py"))
    text = container.image.text if container.image else ""
    engine = image.engine if image else starting.of_image(text)
    if engine and words and not is_script and _MODEL.match(words[0].text):
        return _command(engine, container, _until_break(words), ray, programs)
    first = int(bool(words) and words[0].text == "serve")
    is_own = first or (words and words[0].text[:1] == "-" and _names_a_model(container))
    if marked and is_own:
        # The start of the image is the engine's own.
        command = _command(marked, container, _until_break(words[first:]), ray, programs)
        return replace(command, program=tuple(words[:first]))
    if ray:
        engine = starting.under_ray()
        at = next((n for n, text in enumerate(texts) if text.endswith("ray")), 0)
        env = (*container.env, *(passed(word) for word in _given(words[:at])))
        container = replace(container, env=env)
        version = _version(engine, container, programs)
        is_worker = "--head" not in texts
        return Command(engine, container, version, None, (), True, is_worker, outside=whole)
    return None


def _handed_on(words: list[Word], outer: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """A script's $@ and the name that stands before its arguments, and the words without both."""
    for at, (word, after) in enumerate(pairwise(words)):
        if word.text == "$@" and word not in outer and after in outer:
            return words[at : at + 2], words[:at] + words[at + 2 :]
    return [], words


def _given(words: Sequence[Word]) -> Iterator[Word]:
    """The words that give variables to the command that comes next in the same shell."""
    for own in commands(words):
        is_last = own[-1] is words[-1]
        if is_last or any(word.text in EXPORTS for word in own):
            yield from (word for word in own if any(variable(word)))


def is_server(container: FoundContainer) -> bool:
    """Whether a container, of no known engine, uses the GPU or is told of a model."""
    uses_gpu = any(
        re.search("gpu", item.what) or re.search("nvidia", item.value) for item in container.items
    )
    image = container.image.text if container.image else ""
    if _EXPORTER.fullmatch(image):
        return False
    is_told = container.is_launched or _names_a_model(container)
    is_own = any(w.text.endswith(".sh") for w in container.words) and starting.marked(image)
    return uses_gpu or bool(is_own or (is_told and (image or container.name == "unit")))


def _names_a_model(container: FoundContainer) -> bool:
    return any(_NAMES_A_MODEL.fullmatch(word.text) for word in container.words)


def _outside(words: Sequence[Word], begin: int, end: int) -> Iterator[Item]:
    """The commands of a script before and after the words between two positions."""
    for own in (*commands(words[:begin]), *commands(words[end:])):
        said = list(dropwhile(lambda part: _BEFORE.fullmatch(part.text), own)) or own
        text = " ".join(part.text for part in said)
        first = said[0].text
        name = first if re.search("[=<>]", first) else first.rpartition("/")[2]
        # What is in one command with the engine starts it.
        is_start = own[-1] in words[begin - 1 : begin]
        yield Item(name, text, tuple(own), "start" if is_start else "shell")


def _until_break(words: Sequence[Word]) -> list[Word]:
    own = takewhile(lambda word: not (word.breaks or _REDIRECTION.match(word.text)), words)
    return [word for word in own if word.text != "\\"]


def _command(
    engine: str, container: FoundContainer, words: list[Word], ray: bool, programs: dict[str, str]
) -> Command:
    version = _version(engine, container, programs)
    likely = version or _likely(engine, container, words)
    known = catalog(engine, likely)
    entries: list[ArgumentEntry] = []
    positional: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        # vLLM reads -O3 so.
        text = re.sub(r"-O(?=[0-3]$)", "--optimization-level=", word.text)
        name, equals, value = text.partition("=")
        found = _found(known, name)
        if not (name.startswith("--") or found):
            positional.append(word)
            continue
        if equals:
            taken = [replace(word, text=value, script=None)]
        else:
            taken = _taken(known, name, words[at:])
            at += len(taken)
        entry = replace(_entry(known, name, taken, word), words=(word, *taken))
        before = next((e for e in entries if e.name == entry.name), None)
        is_more = found and (found.flag.many == "append" or found.flag.name in _ADDED)
        if is_more and before and taken:
            # The parser adds each to a list, so that they are one setting.
            both = [*(v if isinstance(v := before.value, list) else [v]), entry.value]
            entries[entries.index(before)] = replace(
                before, value=both, words=(*before.words, *entry.words)
            )
        else:
            entries.append(entry)
    is_model = bool(positional) and not ENGINE_TRAITS[engine].reads_gguf
    model = positional.pop(0) if is_model and positional[0].text[:1] != "-" else None
    headless = any(entry.name == "headless" for entry in entries)
    command = Command(engine, container, version, model, tuple(entries), ray, headless)
    return replace(command, rest=tuple(positional), likely=likely)


def _likely(engine: str, container: FoundContainer, words: Sequence[Word]) -> str:
    """The newest release that knows all flags and variables, or as many as any other one."""
    flags = {word.text.partition("=")[0] for word in words if word.text.startswith("--")}
    names = {own.name for own in container.env}

    def strange(version: str) -> int:
        known = catalog(engine, version)
        if known is None:
            return len(flags)
        ours = {name for name in names if known.prefix and name.startswith(known.prefix)}
        return sum(not _found(known, flag) for flag in flags) + len(ours - known.variables)

    newest = reversed(versions(engine))
    first = next(newest)
    return first if not strange(first) else min((first, *newest), key=strange)


def _found(known: FlagCatalog | None, name: str) -> ResolvedFlag | None:
    """The flag that a parser takes a word for, which may be an abbreviation."""
    if known is None or not name.startswith("-"):
        return None
    plain = name.lstrip("-")
    found = known.find(plain)
    if found is None and name.startswith("--") and "abbreviations" in known.traits:
        completed = known.completions(plain)
        found = known.find(completed[0]) if len(completed) == 1 else None
    return found


def _taken(known: FlagCatalog | None, name: str, rest: Sequence[Word]) -> list[Word]:
    """The values after a flag."""
    found = _found(known, name)
    following = []
    for word in rest:
        if re.match(r"--?[A-Za-z]", word.text):
            break
        following.append(word)
    if found and (found.flag.type == "switch" or found.is_off) and not found.key:
        return []
    if found and found.flag.many in ("+", "*"):
        return following
    if found and found.flag.many.isdecimal():
        return list(rest[: int(found.flag.many)])
    if found and not found.flag.optional and (following or not found.flag.choices):
        return list(rest[:1])
    # For an unknown flag, several numbers are a list.
    are_figures = found is None and all(word.text.isdecimal() for word in following)
    return following if are_figures else following[:1]


def _entry(known: FlagCatalog | None, name: str, taken: list[Word], word: Word) -> ArgumentEntry:
    plain = name.lstrip("-")
    found = _found(known, name)
    place = taken[0] if taken else word
    if found is None:
        value: Any = [w.text for w in taken] if len(taken) > 1 else taken[0].text if taken else True
        return ArgumentEntry(plain, value, place, is_known=False)
    full = f"{found.flag.name}.{found.key}" if found.key else found.flag.name
    if not taken:
        return ArgumentEntry(full, not found.is_off, word)
    if found.flag.many and found.flag.many not in ("append", "comma"):
        texts = [w.text for w in taken]
        return ArgumentEntry(full, texts if len(texts) > 1 else texts[0], place)
    if found.flag.type == "json" and not found.key:
        return ArgumentEntry(full, parsed(taken[0].text), place)
    return ArgumentEntry(full, taken[0].text, place)


def _version(engine: str, container: FoundContainer, programs: dict[str, str]) -> str:
    """The engine's version, from its files or its image; empty if unknown."""
    if own := programs.get(engine.replace("-", "_"), programs.get(engine, "")):
        return own
    image = catalogs.image(container.image.text) if container.image else None
    if image and image.engine == engine and image.version:
        return image.version
    variables = {v.name: v.value.text for v in container.env} | dict(
        text.partition("=")[::2] for text in container.base
    )
    return variables.get(ENGINE_TRAITS[engine].commands.version_variable, "")
