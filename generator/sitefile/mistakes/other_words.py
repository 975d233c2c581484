"""Words that people know from Compose, netplan, engines or launchers.

Some have another name in the site format; others stand for things that nobody has to configure.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from generator.diagnostics import KeyPath, path_text
from generator.records import record
from generator.resources import rows


@record
class OtherWord:
    """A key known from elsewhere: the rule that reports it, and what to write instead.

    `is_needless` means that the site needs nothing in its place.
    """

    rule: str
    help: str
    is_needless: bool


@cache
def _names() -> Mapping[str, list[str]]:
    """The names that other programs have for a key; "?" begins one that need not mean the same."""
    return {key: names.split() for key, names, *_ in rows("other-names")}


def is_like(word: str, key: str) -> bool:
    """Whether a word may stand for a key, and for something else as well: grafana, monitoring."""
    return f"?{_plain(word)}" in _names().get(key, ())


@cache
def _words() -> Mapping[str, OtherWord]:
    return {
        word: OtherWord(rule, text, use == "needless")
        for words, rule, text, use in rows("other-words")
        for word in words.split()
    }


def _plain(key: str) -> str:
    return key.lower().replace("-", "_")


@cache
def _letters(key: str) -> str:
    return re.sub(r"[\W_]", "", key.lower())


def meant(word: str, known: Collection[str]) -> str:
    """The known key that a word is in another style, or another program's name for; or nothing."""
    its = {_plain(word), f"?{_plain(word)}"}
    names = [name for name in known if _letters(name) == _letters(word)]
    names += (name for name in known if not its.isdisjoint(_names().get(name, ())))
    return next(iter(names), "") or choice(word, known, {})


def choice(word: str, known: Iterable[str], also: Mapping[str, Collection[str]]) -> str:
    """The choice with this name, in whatever case, or with an alias from `also`; or nothing."""
    return next((name for name in known if word.lower() in (name, *also.get(name, ()))), "")


def elsewhere(key: str) -> str:
    """How to write what belongs in another section, or nothing."""
    found = (row for row in rows("other-names") if row[2] != "-" and _plain(key) in row[1].split())
    return next((row[2] for row in found), "")


def of(key: str, section: KeyPath = ()) -> OtherWord | None:
    """What to report about a key that is known from elsewhere, or that its section once had."""
    names = tuple(part for part in (*section, key) if isinstance(part, str))
    once = _words().get(path_text(names)) if section else None
    return once or _words().get(_plain(key))
