"""Startup conditions that are data: the rows of `schemas/startup/ENGINE.yaml`.

A row is met if all tests under `when` hold and none under `unless` does. Its finding `says` what is
wrong and how to `help` if not by removing it, at the first subject under `when` or the one named by
`at`.

With `supports`, it is not met if the site says that its build has that feature.

A subject is a flag, a key of its JSON (`FLAG.KEY`), a variable (`env.NAME`), a key of the site file
(`model.`, `parallel.`, `speculative.` or `engine.`), a size of the model (`shape.`), or a fact that
is computed. `A|B` is the first that is given. A test may depend on another subject, `by`, or say
`since` or `until` which release it holds for each value. No test but `absent` holds of what is not
given or not known.

Its `effect` is that the engine fails, unless it is named: `differs`, or `reported` for what fails
for some and runs for others.

Under `keys` is what is checked of the keys that settings have: their `names` or `values`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from operator import attrgetter, eq, ge, gt, le, lt, ne
from typing import Any

from generator import catalogs, precompiled, resources
from generator.catalogs.versions import Release, is_prerelease, place, version
from generator.diagnostics import KeyPath, did_you_mean
from generator.engines import keys
from generator.engines.startup import SPECULATIVE, Condition, Effect, Refusal, Refusals, Start
from generator.settings.values import number

ConditionRow = Mapping[str, Any]
RowFacts = Mapping[str, Callable[[Start], Any]]

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">=": ge,
    "<=": le,
    "!=": ne,
    ">": gt,
    "<": lt,
    "=": eq,
    "%": lambda value, other: other != 0 and value % other != 0,
}
_COMPARISON = re.compile(rf"({'|'.join(_COMPARED)}) (.+)")
_SUM = re.compile(r"(.+) \+ (\d+)")
# The words for the releases from which a value is met, or before which.
_RELEASES: Mapping[str, Callable[[Release, Release], bool]] = {"since": ge, "until": lt}
_NOTHING = (None, "")
_OFF = (None, False, "", "false", "False", "none", "0", 0)
_STATES: Mapping[str, Callable[[Any], bool]] = {
    "given": lambda value: True,
    "set": lambda value: value not in _OFF,
    "empty": lambda value: value == [],
    "mapping": lambda value: isinstance(value, Mapping),
}
# Where each section is written, and its record.
_SECTIONS: Mapping[str, tuple[KeyPath, Callable[[Start], Any]]] = {
    "model": (("model",), attrgetter("model")),
    "speculative": (SPECULATIVE, attrgetter("model.speculative")),
    "engine": (("engine",), attrgetter("engine")),
    "parallel": (("engine", "parallel"), attrgetter("sizes")),
}
COMMON: RowFacts = {
    "ranks": lambda start: start.sizes.ranks,
    "sequences": lambda start: start.sequences,
    "stock": lambda start: start.is_stock,
    "unstated": lambda start: start.is_unstated,
    "type": lambda start: start.model_type,
    "format": lambda start: start.form,
    "class_since": lambda start: class_since(start),
    "recurrent": lambda start: start.known and start.known.recurrent is not None,
    "sparse": lambda start: start.known and start.known.indexer is not None,
    "context": lambda start: start.model.context_length or _inner(start.known, ["max_context"]),
    "draft_vocabulary": lambda start: _inner(
        _draft(start), ["architecture", "facts", "vocab_size"]
    ),
    "draft_context": lambda start: _inner(_draft(start), ["max_context"]),
}


def conditions(engine: str, facts: RowFacts | None = None) -> tuple[Condition, ...]:
    """The conditions of an engine's rows; `facts` are subjects that only its rows have."""
    held = precompiled.schema(f"startup/{engine}")
    reader = _Reader({**COMMON, **(facts or {})}, held["names"])
    checks: list[tuple[Callable[[Start], Refusals], ConditionRow]]
    checks = [(keys.CHECKS[each["check"]], each) for each in held.get("keys", ())]
    checks += [(reader.check(row), row) for each in held["rows"] for row in plain(each)]
    return tuple(
        Condition(
            check,
            row.get("source", ""),
            place(row["since"]) if "since" in row else (),
            place(row["until"]) if "until" in row else None,
            Effect(row.get("effect", "fails")),
        )
        for check, row in checks
    )


def plain(row: ConditionRow) -> Iterator[ConditionRow]:
    """A row as `when`, `unless`, `says` and `help`, once for each of the subjects of `for`."""
    for name in row.get("for", ("it",)):
        when = {name if key == "it" else key: test for key, test in row["when"].items()}
        last = name.rpartition(".")[2]
        says = row["says"].replace("{it}", f"{{{name}}}").replace("NAME", last)
        yield {**row, "when": when, "says": says, "title": row["says"]}


class _Reader:
    """Reads subjects of a start and tests them; `names` are short names of subjects."""

    def __init__(self, facts: RowFacts, names: Mapping[str, str]) -> None:
        self._facts, self._names = facts, names

    def check(self, row: ConditionRow) -> Callable[[Start], Refusal | None]:
        """What looks whether a row is met."""
        first, test = next(iter(row["when"].items()))

        def met(start: Start) -> Refusal | None:
            # The first test of almost every row fails.
            for name, wanted in row["when"].items():
                if not self._holds(start, name, wanted):
                    return None
            if any(self._holds(start, *each) for each in row.get("unless", {}).items()):
                return None
            feature, help_ = row.get("supports"), row.get("help", "remove it")
            if feature in start.engine.own.supports:
                return None
            if feature and not start.is_stock:
                help_ += f", or write 'supports: [{feature}]' under engine.own if the build has it"
            value, other = self.value(start, first), ""
            if isinstance(test, Mapping) and "keys" in test:
                other = next(key for key in value if key not in test["keys"])
            near = did_you_mean(str(value), test["not"]) if row.get("nearest") else ""
            return Refusal(
                self._filled(start, row["says"]).replace("KEY", other),
                self._path(start, ".".join(filter(None, (row.get("at", first), other)))),
                near or self._filled(start, help_),
            )

        met.__name__ = row.get("title", row["says"])
        return met

    def value(self, start: Start, name: str) -> Any:
        """The value of a subject; None if it is not given or not known."""
        name = self._first(start, name)
        if name in self._facts:
            return self._facts[name](start)
        head, *rest = name.split(".")
        if head == "env":
            given = start.environment.given.get(rest[0])
            return given.value if given else None
        if head == "shape":
            return _inner(start.known, rest)
        if name.startswith("speculative.config."):
            return next((value for _, value in _drafts_setting(start, rest[1])), None)
        if head in _SECTIONS:
            return _inner(_SECTIONS[head][1](start), rest)
        value = start.value(head, *rest)
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    def _first(self, start: Start, name: str) -> str:
        """The name of the subject that is given, of several."""
        name = self._names.get(name, name)
        if "|" not in name:
            return name
        *others, last = name.split("|")
        return next((each for each in others if self.value(start, each) is not None), last)

    def _path(self, start: Start, name: str) -> KeyPath:
        name = self._first(start, name)
        head, *rest = name.split(".")
        if head == "env":
            return start.environment.path(rest[0])
        if name.startswith("speculative.config."):
            written = next((key for key, _ in _drafts_setting(start, rest[1])), rest[1])
            return (*SPECULATIVE, "config", written)
        if head in _SECTIONS:
            return (*_SECTIONS[head][0], *rest)
        return start.settings.path(head, *rest)

    def _holds(self, start: Start, name: str, test: Any) -> bool:
        return bool(self._met(start, test, self.value(start, name)))

    def _met(self, start: Start, test: Any, value: Any) -> bool | None:
        """Whether a value meets a test; None if that can't be said."""
        if test == "absent":
            return value in _NOTHING
        if value is None or value == "":
            return None
        if isinstance(test, bool):
            return str(value).lower() in (("true", "1") if test else ("false", "0"))
        if isinstance(test, list):
            return any(self._met(start, each, value) for each in test)
        if isinstance(test, Mapping):
            return self._met_by(start, test, value)
        if isinstance(test, str) and test in _STATES:
            return _STATES[test](value)
        if found := _COMPARISON.fullmatch(str(test)):
            left, right = number(str(value)), self._number(start, found[2])
            if left is None or right is None:
                return None
            return bool(_COMPARED[found[1]](left, right))
        return not isinstance(value, (list, Mapping)) and fnmatchcase(
            str(value).casefold(), str(test).casefold()
        )

    def _met_by(self, start: Start, test: Mapping[str, Any], value: Any) -> bool | None:
        if "keys" in test:
            return isinstance(value, Mapping) and not value.keys() <= set(test["keys"])
        for bound, is_met in _RELEASES.items():
            if bound in test:
                limit = test[bound].get(str(value))
                return limit is not None and is_met(place(start.engine.version), place(limit))
        if "not" in test:
            met = self._met(start, test["not"], value)
            return None if met is None else not met
        # The test depends on another subject.
        chosen = str(self.value(start, test["by"]))
        found = next(
            (each for key, each in test.items() if key.casefold() == chosen.casefold()), None
        )
        return None if found is None else self._met(start, found, value)

    def _number(self, start: Start, text: str) -> float | None:
        plain_number = number(text)
        return number(str(self.value(start, text))) if plain_number is None else plain_number

    def _filled(self, start: Start, text: str) -> str:
        return re.sub(r"\{([\w.|+ -]+)\}", lambda found: self._shown(start, found[1]), text)

    def _shown(self, start: Start, name: str) -> str:
        more = _SUM.fullmatch(name)
        value = self.value(start, more[1] if more else name)
        amount = number(str(value)) if not isinstance(value, (list, bool)) else None
        if amount is None or (not more and isinstance(value, str) and not amount.is_integer()):
            return str(value)
        return f"{amount + (int(more[2]) if more else 0):.0f}"


def _inner(value: Any, names: list[str]) -> Any:
    """A field of a record or one of its `others`, or a key of a mapping; None if there is none."""
    for name in names:
        others = getattr(value, "others", {})
        is_mapping = isinstance(value, Mapping)
        value = value.get(name) if is_mapping else getattr(value, name, others.get(name))
    return value


def _draft(start: Start) -> Any:
    """The catalog's checkpoint of the draft model."""
    source = start.model.speculative.source if start.model.speculative else None
    return catalogs.checkpoint(source) if source else None


@cache
def _classes() -> Mapping[tuple[str, str], str]:
    """The first release with a class for a kind of model, by engine."""
    return {(engine, kind): first for kind, engine, first in resources.rows("model-classes")}


def class_since(start: Start) -> str | None:
    """The first release with a class for the model, if this is an earlier one; not of builds."""
    first, own = _classes().get((start.engine.name, start.model_type)), start.engine.version
    # The number of a build, b9415, can't be compared with that of a release.
    if not first or _is_build(first) != _is_build(own):
        return None
    is_release = not is_prerelease(own) and not version(own).local
    return first if is_release and place(own) < place(first) else None


def _is_build(text: str) -> bool:
    return text.removeprefix("b").isdecimal()


def _drafts_setting(start: Start, name: str) -> Iterator[tuple[str, Any]]:
    """A setting of the drafts, with its key as written: SGLang's flags have several spellings."""
    for key, value in start.model.speculative.config.items() if start.model.speculative else ():
        if _bare(key) == _bare(name):
            yield key, value


def _bare(key: str) -> str:
    return key.replace("_", "-").removeprefix("speculative-")
