"""What an engine rejects or fails on at startup, as conditions on what a site requests.

The conditions of an engine are in its own module. Each has the line of the engine's code that it
comes from and the versions for which it holds; rules turn them into findings.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import BatchDefaults
from generator.catalogs.flag_files import catalogs as flag_catalogs
from generator.catalogs.versions import Release, release, version
from generator.diagnostics import KeyPath
from generator.models.architecture import Shape, known_checkpoint, shape
from generator.records import record
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Parallel

SPECULATIVE: KeyPath = ("model", "speculative")
METHOD: KeyPath = (*SPECULATIVE, "method")
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)([kKmM]?)")
_POWERS = {"": 1, "k": 1000, "m": 1000**2, "K": 1024, "M": 1024**2}


@record
class Given:
    """An entry of `engine.args`: its name as written, and its value."""

    written: str
    value: Any


@record
class Refusal:
    """What is wrong, where, and what to write; `renamed` is the right name of a misspelled key."""

    message: str
    path: KeyPath
    help: str
    renamed: str = ""


class Effect(Enum):
    """The consequence: the engine doesn't serve, or doesn't serve as requested."""

    FAILS = "fails"
    DIFFERS = "differs"


# The result of a check: nothing, one refusal or several.
Found = Refusal | Iterable[Refusal] | None


@record
class Condition:
    """A check, the line of code it comes from (empty if inferred), and the versions it holds for.

    It holds from the release `since` on, up to but excluding `until`.
    """

    check: "Callable[[Start], Found]"
    source: str
    since: Release = ()
    until: Release | None = None
    effect: Effect = Effect.FAILS

    def holds(self, text: str) -> bool:
        """Whether it holds for a version."""
        return self.since <= release(text) and (self.until is None or release(text) < self.until)


@record
class Start:
    """What an engine is started with; `flags` by their full names, without dashes.

    `model_type` is the model's kind in its config.json and `form` how the weights are packed, empty
    if not known.
    """

    engine: DeclaredEngine
    model: DeclaredModel
    known: Shape | None
    model_type: str
    form: str
    flags: Mapping[str, Given]

    @property
    def sizes(self) -> Parallel:
        """How the model is split."""
        return self.engine.parallel

    @property
    def method(self) -> str:
        """How drafts are made; empty without speculative decoding."""
        return self.model.speculative.method if self.model.speculative else ""

    @property
    def drafted(self) -> int:
        """Tokens that are drafted at a time."""
        return (self.model.speculative.tokens or 0) if self.model.speculative else 0

    @property
    def batch(self) -> BatchDefaults:
        """The engine's default batch sizes."""
        return ENGINE_TRAITS[self.engine.name].batch(self.engine.version)

    @property
    def sequences(self) -> int:
        """The most sequences at once, as requested or by default."""
        return self.model.max_sequences or self.batch.sequences

    def draft_setting(self, key: str) -> Any:
        """A setting of speculative decoding, None if it is not given."""
        return self.model.speculative.config.get(key) if self.model.speculative else None

    @property
    def is_stock(self) -> bool:
        """Whether the image is known to be a publisher's own, with nothing added."""
        return (
            catalogs.image(self.engine.image) is not None and not version(self.engine.version).local
        )

    def value(self, name: str, *keys: str) -> Any:
        """The value of a flag, or of a key of its JSON; None if it is not given."""
        value = self.flags[name].value if name in self.flags else None
        for key in keys:
            dotted = self.flags.get(f"{name}.{key}")
            value = value.get(key) if isinstance(value, dict) else None
            value = dotted.value if dotted else value
        return value

    def word(self, name: str, *keys: str) -> str:
        """The value as text, empty if it is not given."""
        value = self.value(name, *keys)
        return "" if value is None or isinstance(value, (bool, list, dict)) else str(value)

    def number(self, name: str, *keys: str) -> float | None:
        """The value as a number, with the suffixes that engines accept."""
        found = _NUMBER.fullmatch(self.word(name, *keys))
        return float(found[1]) * _POWERS[found[2]] if found else None

    def numbers(self, name: str, *keys: str) -> tuple[float, ...]:
        """The value as a list of numbers, empty if it isn't one."""
        value = self.value(name, *keys)
        words = value.replace(",", " ").split() if isinstance(value, str) else value
        found = [
            _NUMBER.fullmatch(str(word)) for word in (words if isinstance(words, list) else ())
        ]
        return tuple(float(each[1]) * _POWERS[each[2]] for each in found if each)

    def count(self, name: str, otherwise: int = 1) -> int:
        """A flag's value as an integer."""
        number = self.number(name)
        return otherwise if number is None else int(number)

    def is_on(self, name: str, *keys: str) -> bool:
        """Whether a switch is given and on."""
        return self.value(name, *keys) in (True, "true", "True")

    def is_off(self, name: str, *keys: str) -> bool:
        """Whether a switch is given and off."""
        return self.value(name, *keys) in (False, "false", "False")

    def is_given(self, name: str) -> bool:
        """Whether a setting is given, and is neither off nor empty."""
        return self.value(name) not in (None, False, "false", "False", "none", "0", 0)

    def variable(self, name: str) -> bool | None:
        """A variable that is a switch; None if it is not given."""
        value = self.engine.env.get(name)
        return None if value is None else value.strip().lower() in ("1", "true")

    def refuse_variable(self, name: str, message: str, remedy: str) -> Refusal:
        """A refusal that points at a variable."""
        return Refusal(message, ("engine", "env", name), remedy)

    def refuse(self, name: str, message: str, remedy: str, *keys: str) -> Refusal:
        """A refusal that points at a flag, or at a key of its JSON."""
        if keys and (dotted := self.flags.get(f"{name}.{keys[0]}")):
            return Refusal(message, ("engine", "args", dotted.written), remedy)
        written = self.flags[name].written if name in self.flags else name
        return Refusal(message, ("engine", "args", written, *keys), remedy)


def start_of(engine: DeclaredEngine, model: DeclaredModel) -> Start:
    """What a site starts an engine with."""
    checkpoint = known_checkpoint(model)
    given = model.architecture or {}
    facts = checkpoint.architecture.facts if checkpoint else given
    return Start(
        engine=engine,
        model=model,
        known=shape(model),
        model_type=str(facts.get("model_type", "")),
        form=checkpoint.format if checkpoint else str(given.get("format", "")),
        flags=_flags(engine),
    )


def _flags(engine: DeclaredEngine) -> dict[str, Given]:
    """The entries of `args` by the full names of their flags; a negation is its flag, but off."""
    known = flag_catalogs(engine.name, engine.version) if engine.args else ()
    flags = {}
    for written, value in engine.args.items():
        found = next((found for each in known if (found := each.find(written))), None)
        name = found.flag.name if found else written
        if found and found.is_off and isinstance(value, bool):
            value = not value
        if found and found.flag.type == "json" and isinstance(value, str):
            value = parsed(value)
        flags[f"{name}.{found.key}" if found and found.key else name] = Given(written, value)
    return flags


def parsed(text: str) -> Any:
    """Text parsed as JSON; other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@record
class Verdict:
    """A refusal, and whether it is certain, because this version's own code says so."""

    refusal: Refusal
    effect: Effect
    is_certain: bool


def verdicts(conditions: Sequence[Condition], start: Start) -> list[Verdict]:
    """The refusals by those conditions that hold for the engine's version.

    Nothing is certain for versions older than those that were read, nor for custom builds, which
    may be patched.
    """
    text = start.engine.version
    read = ENGINE_TRAITS[start.engine.name].startup_since <= release(text)
    is_own = bool(version(text).local)
    return [
        Verdict(refusal, condition.effect, bool(condition.source) and read and not is_own)
        for condition in conditions
        if condition.holds(text)
        for refusal in _several(condition.check(start))
    ]


def _several(found: Found) -> Iterable[Refusal]:
    return (found,) if isinstance(found, Refusal) else found or ()
