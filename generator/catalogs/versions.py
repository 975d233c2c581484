"""Versions of engines and of NCCL, in the order of PEP 440.

`0.33.0.dev1 < 0.33.0a1 < 0.33.0rc1 < 0.33.0 < 0.33.0+own < 0.33.0.post1`.
"""

import math
import re
from functools import cache
from typing import NamedTuple

Release = tuple[int, ...]

# How PEP 440 orders missing parts: no pre-release comes after every pre-release, except that a
# development release of a final version comes before all of them.
_FINAL, _FIRST = ("~", 0), ("", 0)
_NO_POST, _NO_DEV = -1, math.inf

NIGHTLY = "nightly"
_LATER_THAN_ALL = 1 << 30

_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}

_PEP_440 = (
    r"(?i)v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?"
    r"(?P<post>-(?P<plain_post>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)


class Version(NamedTuple):
    """A version, compared as in PEP 440; the release without trailing zeros."""

    epoch: int
    release: Release
    pre: tuple[str, int]
    post: int
    dev: float
    local: tuple[tuple[int, str], ...]

    @property
    def public(self) -> "Version":
        """The version that a custom build was made from."""
        return self._replace(local=())


@cache
def version(text: str) -> Version:
    """Parse a version.

    `nightly` is later than every release, and `b11434` is build 11434 of llama.cpp. What PEP 440
    doesn't allow otherwise, such as the `py3` of `25.11-py3`, is treated as a local part, so that
    any two texts can be compared.
    """
    if text == NIGHTLY:
        return Version(_LATER_THAN_ALL, (_LATER_THAN_ALL,), _FINAL, _NO_POST, _NO_DEV, ())
    text = re.sub(r"^b(?=\d+$)", "", text)
    if _is_plain(text):
        return Version(0, _release(text), _FINAL, _NO_POST, _NO_DEV, ())
    found = re.match(_PEP_440, text.strip())
    if not found:
        return Version(0, (), _FINAL, _NO_POST, _NO_DEV, _local(text))
    rest = found["local"] or text.strip()[found.end() :]
    # setuptools-scm counts from 0.1 where it finds no tag, as in copies without the history.
    is_untagged = found["release"] == "0.1" and found["dev"] and found["local"]
    return Version(
        int(found["epoch"] or 0),
        (_LATER_THAN_ALL,) if is_untagged else _release(found["release"]),
        _pre(found),
        _post(found),
        int(found["dev_number"] or 0) if found["dev"] else _NO_DEV,
        _local(rest),
    )


def release(text: str) -> Release:
    """The release that a version belongs to or precedes: (0, 33) for `0.33.0rc1+own`."""
    return version(text).release


def place(text: str) -> Release:
    """Where a version is among the releases, to compare with the place of a bound.

    What precedes a release, such as `0.28.0rc1`, is before (0, 28) and after every earlier release;
    what follows it, such as `0.28.0.post1` or a custom build, is at (0, 28).
    """
    own = version(text)
    if own.epoch:
        return (_LATER_THAN_ALL,)
    if own.pre == _FINAL or not own.release:
        return own.release
    *first, last = own.release
    return (*first, last - 1, _LATER_THAN_ALL)


def is_prerelease(text: str) -> bool:
    """Whether it precedes a release, as candidates and nightlies do, and may have its code."""
    return place(text) != release(text)


def _is_plain(text: str) -> bool:
    """Whether it is only numbers and dots, which saves compiling the long pattern at startup."""
    return text.isascii() and all(part.isdecimal() for part in text.split("."))


def _release(text: str) -> Release:
    numbers = [int(part) for part in text.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _pre(found: re.Match[str]) -> tuple[str, int]:
    if found["pre"]:
        word = found["pre"].lower()
        return _PRE.get(word, word), int(found["pre_number"] or 0)
    return _FIRST if found["dev"] and not found["post"] else _FINAL


def _post(found: re.Match[str]) -> int:
    number = found["plain_post"] or found["post_number"] or 0
    return int(number) if found["post"] else _NO_POST


def _local(text: str) -> tuple[tuple[int, str], ...]:
    """The segments of a local part; a number sorts after every word."""
    segments = re.findall(r"[a-z0-9]+", text.lower())
    return tuple((int(word), "") if word.isdigit() else (-1, word) for word in segments)
