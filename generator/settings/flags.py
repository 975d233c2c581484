"""The flags of an engine in normal form: one name and one value each, with the place of it."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from generator.catalogs.flag_files import catalogs
from generator.catalogs.flags import Flag, FlagCatalog
from generator.diagnostics import KeyPath
from generator.records import record, replace
from generator.settings.values import Argument, canonical, number, of_key

ARGS: KeyPath = ("engine", "args")


@record
class Setting:
    """A flag: its full name in the catalog, without dashes, and its value.

    `entries` are those that it is written by, for the flag as a whole or for keys of its JSON: the
    name and the value of each.
    """

    name: str
    value: Any
    entries: Mapping[KeyPath, tuple[str, Argument]]
    flag: Flag | None = None

    def at(self, *keys: str) -> Any:
        """The value, or that of a key of its JSON; None if there is none."""
        value = self.value
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def path(self, *keys: str | int) -> KeyPath:
        """The place of the value, or of a key of its JSON; of the whole if that is a text."""
        known = [first for first in self.entries if keys[: len(first)] == first]
        first = max(known, key=len, default=next(iter(self.entries)))
        name, value = self.entries[first]
        return (*ARGS, name, *(_inside(value, keys[len(first) :]) if known else ()))


def _inside(value: Any, keys: KeyPath) -> Iterator[str | int]:
    """The keys as far as they lead into a mapping or a list, and not into a text."""
    for key in keys:
        if not isinstance(value, dict | list):
            return
        yield key
        value = value.get(key, {}) if isinstance(value, dict) else value[int(key)]


class Asked:
    """What answers questions about settings, by their full names and the keys of their JSON."""

    __slots__ = ()

    def value(self, name: str, *keys: str) -> Any:
        """The value; None if it is not given."""
        raise NotImplementedError

    def word(self, name: str, *keys: str) -> str:
        """The value as text, empty if it is not given."""
        value = self.value(name, *keys)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return "" if value is None or isinstance(value, (bool, list, dict)) else str(value)

    def number(self, name: str, *keys: str) -> float | None:
        """The value as a number, with the suffixes that engines accept."""
        return number(self.word(name, *keys))

    def numbers(self, name: str, *keys: str) -> tuple[float, ...]:
        """The value as a list of numbers, empty if it isn't one."""
        value = self.value(name, *keys)
        words = value if isinstance(value, list) else self.word(name, *keys).replace(",", " ")
        found = (
            number(str(word)) for word in (words if isinstance(words, list) else words.split())
        )
        return tuple(each for each in found if each is not None)

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


@record
class EngineSettings(Asked):
    """All flags that a site gives an engine of this version.

    `as_written` are the entries of `engine.args`, which only rules about spelling look at. `more`
    are values that sparkgen gives flags that the site does not have.
    """

    engine: str
    version: str
    as_written: Mapping[str, Argument] = {}
    more: Mapping[str, Argument] = {}

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._given.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __bool__(self) -> bool:
        return bool(self.as_written)

    def value(self, name: str, *keys: str) -> Any:
        """The value of a flag, or of a key of its JSON; None if it is not given."""
        found = self._by_name.get(name)
        return found.at(*keys) if found else None

    def path(self, name: str, *keys: str) -> KeyPath:
        """The place of a flag's value or of a key in it, also of one that is not given."""
        found = self._by_name.get(name)
        return found.path(*keys) if found else (*ARGS, name, *keys)

    def beside(self, more: Mapping[str, Argument]) -> "EngineSettings":
        """The same with values for flags that the site does not have."""
        return replace(self, more={**self.more, **more})

    def changed(self, name: str, value: Argument) -> "EngineSettings":
        """The same with another value for a flag that the site has."""
        written = str(self.path(name)[len(ARGS)])
        return replace(self, as_written={**self.as_written, written: value})

    @cached_property
    def _given(self) -> Mapping[str, Setting]:
        """The settings by their names, in the order in which they are written."""
        known = catalogs(self.engine, self.version) if self.as_written or self.more else ()
        found: dict[str, Setting] = {}
        for written, value in self.as_written.items():
            _add(found, written, value, known)
        for name, value in self.more.items():
            if name not in found:
                _add(found, name, value, known)
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, Setting]:
        """The settings by any name of the flag."""
        found = {
            name.lstrip("-"): setting
            for setting in self._given.values()
            if setting.flag
            for name in setting.flag.names
        }
        return {**found, **self._given}


def _add(
    given: dict[str, Setting], written: str, value: Argument, known: tuple[FlagCatalog, ...]
) -> None:
    """Add an entry to the settings; a key of a JSON flag joins the others of the same flag."""
    found = next((found for each in known if (found := each.find(written))), None)
    entry = (written, value)
    if found is None:
        # No catalog has it; its parser reads the name as it reads all others.
        name = written.replace("_", "-") if known and "underscores" in known[0].traits else written
        given[name] = Setting(name, value, {(): entry})
        return
    flag = found.flag
    keys: KeyPath = tuple(found.key.split(".")) if found.key else ()
    if keys:
        value = _nested(keys, of_key(value))
    else:
        value = not value if found.is_off and isinstance(value, bool) else value
        value = canonical(value, flag, "iec" in known[0].traits)
    before = given.get(flag.name)
    entries = {**(before.entries if before else {}), keys: entry}
    joined = _joined(before.value, value) if before else value
    given[flag.name] = Setting(flag.name, joined, entries, flag)


def _nested(keys: KeyPath, value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _joined(one: Any, other: Any) -> Any:
    """Both mappings in one; if they aren't mappings, the later one."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other
    shared = {key: _joined(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}
