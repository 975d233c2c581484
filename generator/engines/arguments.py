"""An engine's settings as words of a command line, as its own parser accepts them."""

import json
from collections.abc import Iterator, Mapping

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog
from generator.settings.flags import EngineSettings, Setting
from generator.settings.values import as_text
from generator.site import Words
from generator.sitefile.declaration import Speculative

# What stands between the parts of JSON.
Separators = tuple[str, str]
_SPACED: Separators = (", ", ": ")


def arguments(
    settings: EngineSettings, *but: str, separators: Separators = _SPACED
) -> Iterator[Words]:
    """The words of all settings but some, by name."""
    given = sorted(settings, key=lambda setting: setting.name)
    known = catalog(settings.engine, settings.version) if given else None
    for setting in (setting for setting in given if setting.name not in but):
        yield from words(setting, known is None or "equals" in known.traits, separators)


def draft_flags(engine: str, version: str, drafts: Speculative) -> EngineSettings:
    """The flags of speculative decoding."""
    given = {draft_flag(engine, key): value for key, value in drafts.config.items()}
    return EngineSettings(engine, version, given)


def draft_flag(engine: str, key: str) -> str:
    """The flag that a key of `config` stands for, which may leave out its prefix."""
    plain, prefix = key.replace("_", "-"), ENGINE_TRAITS[engine].drafts_prefix
    return plain if plain.startswith(prefix) else f"{prefix}{plain}"


def words(
    setting: Setting, takes_equals: bool = True, separators: Separators = _SPACED
) -> Iterator[Words]:
    """A flag and its values, repeated if the flag is.

    A flag that no catalog has is treated like most: `--no-` turns a switch off, and a list becomes
    separate words.
    """
    option = f"--{setting.name}"
    for item in _values(setting, separators):
        if item is None:
            yield (_negation(setting),) if setting.value is False else (option,)
        elif isinstance(item, list):
            yield (option, *item)
        elif takes_equals:
            yield (f"{option}={item}",)
        else:
            yield (option, item)


def _values(setting: Setting, separators: Separators) -> Iterator[str | list[str] | None]:
    """What follows each occurrence of the flag: nothing, one word or several."""
    value, flag = setting.value, setting.flag
    if isinstance(value, Mapping) or (flag and flag.type == "json" and not isinstance(value, str)):
        yield json.dumps(value, sort_keys=True, separators=separators)
    elif isinstance(value, bool):
        yield None
    elif isinstance(value, list):
        words = [as_text(item) for item in value]
        is_each = flag and (flag.many == "append" or len(words) == 1)
        yield from words if is_each else (words,)
    else:
        yield as_text(value)


def _negation(setting: Setting) -> str:
    """The flag's own negation, or the usual one."""
    common = f"--no-{setting.name}"
    negations = setting.flag.off if setting.flag else ()
    return common if not negations or common in negations else negations[0]
