"""Whether everything that was written is kept: only such a change is made without a person.

A key may be renamed or moved, a value written in another form or type, a name corrected. What
removes or overwrites something is shown, and a person decides. `keeps` judges a proposal, and
`kept` what came of it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import yaml

from generator.diagnostics import (
    Add,
    Data,
    Finding,
    KeyPath,
    Proposal,
    Remove,
    Rename,
    Replace,
    Rewrite,
    misspelt,
    slips,
)
from generator.sitefile.source import Document, nodes_of, value_at

# Letters that look like digits, and are typed in place of them.
_FIGURES = str.maketrans({"o": "0", "l": "1", "i": "1"})
_ON = ("true", "yes", "y", "on", "ok", "enable", "enabled", "1")
_OFF = ("false", "no", "n", "off", "none", "disable", "disabled", "0")
_SIZE = re.compile(r"([0-9]{1,30})(?:([kmgt])(?:i?b)?)?")
_FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_WORD = re.compile(r"\w+")
# What is written before a variable in a script or a command line, and says nothing here.
_OF_A_SHELL = ("export", "set", "e", "env")
_UNIT = re.compile(r"(?<=[0-9k]) ?(?:tokens?|tok|bytes?|b|gi?b?|m|met(?:er|re)s?)$")
# A key that is none of a name's may be a value that was written for one.
_IS_NAME = re.compile(r"[\W_]*[A-Za-z][\w .-]*[\W_]*")
_COMMENT = re.compile(r"(?<!\s)\s*+(#|//)\s.*$")


def correction(document: Document, finding: Finding) -> Proposal | None:
    """The proposal that may be applied without a person: nothing that was written is lost by it."""
    found = finding.correction
    return found if found and keeps(document, found) else None


def keeps(document: Document, proposal: Proposal) -> bool:
    """Whether all that a document says is in it after the edits, where it was meant to be."""
    lost, added = Counter[str](), Counter[str]()
    is_move = any(isinstance(edit, Remove) for edit in proposal)
    for edit in proposal:
        match edit:
            case Rewrite():
                old = _rewritten(document, edit)
                if old.strip() and not _says_the_same(old, edit.text):
                    return False
            case Rename(path) if not _IS_NAME.fullmatch(str(path[-1])):
                return False
            case Remove(path):
                lost.update(_words(value_at(document.data, path)))
            case Add(path) if is_move and not _is_only_home(document.data, path):
                return False
            case Replace(path, value):
                old = value_at(document.data, path)
                if not _says_the_same(old, value):
                    lost.update(_words(old))
                    added.update(_words(value))
            case Add(_, value):
                added.update(_words(value))
    return not lost - added


def _is_only_home(data: Any, path: KeyPath) -> bool:
    """Whether no other entry of a list lacks a key that is moved, and may be meant: a group."""
    for at, number in enumerate(path[:-1]):
        if isinstance(number, int):
            entries, rest = value_at(data, path[:at]), path[at + 1 :]
            others = [entry for entry in entries if entry is not entries[number]]
            lacking = [entry for entry in others if value_at(entry, rest) is None]
            if any(isinstance(value_at(entry, rest[:1]), dict) for entry in lacking):
                return False
    return True


def kept(before: Document, after: Document) -> bool:
    """Whether each key, scalar and comment of a text is in the other one; no two became one.

    If either is no YAML, their words are compared in place of their trees.
    """
    was, now = _tokens(before.text), _tokens(after.text)
    if before.root is None or after.root is None:
        return not _joins_lines(before, after) and not was - now - Counter(_OF_A_SHELL)
    comments = Counter(word for text in _comments(before.text) for word in _tokens(text))
    # The key of a list or a mapping says nothing by itself: all that it held may have moved.
    had = _keys(before.root, yaml.ScalarNode) + _values(before.root)
    has = _keys(after.root, yaml.Node) + _values(after.root)
    # Values first: a key may have any new name.
    gone, new = sorted((had - has).elements()), list((has - had).elements())
    return not comments - now and all(_took(old, new) for old in gone)


def _joins_lines(before: Document, after: Document) -> bool:
    """Whether a line that was changed goes on with the text above it."""
    was, now = set(before.text.split("\n")), after.text.split("\n")
    return any(
        line not in was
        for node in nodes_of(after.root)
        if isinstance(node, yaml.ScalarNode) and not node.style
        for line in now[node.start_mark.line + 1 : node.end_mark.line + 1]
    )


# Whether it is a key, and its text.
_Scalar = tuple[bool, str]


def _took(old: _Scalar, new: list[_Scalar]) -> bool:
    """Whether a scalar is one of the new ones, or several, which no other one can be then."""
    is_key, text = old
    of_kind = (one for one in new if one[0] == is_key and (is_key or _is_same(text, one[1])))
    same = next((one for one in new if one[1] == text), None) or next(of_kind, None)
    words = Counter(_said(text))
    parts = [same] if same else [one for one in new if not Counter(_said(one[1])) - words]
    for part in parts:
        new.remove(part)
    return bool(same) or not words - Counter(word for _, part in parts for word in _said(part))


def _tokens(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _comments(text: str) -> Iterator[str]:
    return (found[1] for found in re.finditer(r"(?:(?:^|\s)#|(?:#|//)\s)(.*)", text, re.MULTILINE))


def _keys(root: yaml.Node, kind: type[yaml.Node]) -> Counter[_Scalar]:
    """The keys whose values are of a kind."""
    pairs = (pair for pair in _pairs(root) if isinstance(pair[1], kind))
    return Counter((True, key.value) for key, _ in pairs if isinstance(key, yaml.ScalarNode))


def _values(root: yaml.Node) -> Counter[_Scalar]:
    """The scalars that are values or entries of lists, those of an alias once."""
    keys = {id(key) for key, _ in _pairs(root)}
    scalars = (node for node in nodes_of(root) if isinstance(node, yaml.ScalarNode))
    return Counter((False, one.value) for one in scalars if one.value and id(one) not in keys)


def _pairs(root: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    for node in nodes_of(root):
        yield from node.value if isinstance(node, yaml.MappingNode) else ()


def _words(value: Any) -> Iterator[str]:
    """The keys and scalars in a value, in letters and digits alone."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield _letters(str(key))
            yield from _words(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _words(item)
    elif value not in (None, ""):
        yield _letters(str(value))


def _says_the_same(old: Any, new: Data) -> bool:
    """Whether a value is another one in another form; several do not become one text."""
    several = isinstance(old, dict | list) and len(old) > 1 and isinstance(new, str)
    is_same = _said(old) == _said(new) or _is_same(_joined(old), _joined(new))
    return is_same and not several


def _said(value: Any) -> list[str]:
    """The words in a value, without those of a shell."""
    found = [word for word in _WORD.findall(str(value).lower()) if word not in _OF_A_SHELL]
    return sorted(found)


def _joined(value: Any) -> str:
    """A scalar as it is, and the words of anything else."""
    return " ".join(_words(value)) if isinstance(value, dict | list | tuple) else str(value or "")


def _rewritten(document: Document, edit: Rewrite) -> str:
    """The text that an edit takes the place of."""
    span = edit.span
    lines = document.file(span).text.split("\n")[span.line : span.end_line + 1]
    lines[-1] = lines[-1][: span.end_column]
    return "\n".join([lines[0][span.column :], *lines[1:]])


def _is_same(old: str, new: str) -> bool:
    """Whether a scalar is written in another form, or is the right spelling of a name."""
    old, new = _COMMENT.sub("", old).lower(), new.lower()
    return (
        _letters(old) == _letters(new)
        or _letters(old).translate(_FIGURES) == _letters(new)
        or any(_letters(old) in same and new in same for same in (_ON, _OFF))
        or _size(old) == _size(new) != -1
        or _size(_UNIT.sub("", old)) == _size(new) != -1
        or _UNIT.sub("", old) == new
        or _meters(old) == new
        or _share(old) == new
        or new.startswith(f"{old}/")
        or _network(old) == new
        or _is_corrected(old, new)
    )


def _letters(text: str) -> str:
    """Letters and digits alone."""
    return re.sub(r"[\W_]+", "", text.lower())


def _size(text: str) -> int:
    """A number with the suffix of a size, -1 if it is none."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _FACTORS[found[2] or ""] if found else -1


def _share(text: str) -> str:
    """A number of per cent as a fraction of one: 0.9 for 90."""
    found = re.fullmatch(r"([0-9]{1,2}) ?%?", text)
    return f"{int(found[1]) / 100:g}" if found else ""


def _meters(text: str) -> str:
    """A number of centimeters in meters."""
    found = re.fullmatch(r"([0-9]{1,6}) ?cm", text)
    return f"{int(found[1]) / 100:g}" if found else ""


def _network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        return ""


def _is_corrected(old: str, new: str) -> bool:
    """Whether one is a misspelling; digits of names and versions may differ by a slip as well."""
    is_name = len(old) > _SHORT and bool(re.match(r"[a-z]|\d+\.\d+\.\d+$", old))
    return bool(misspelt(old, [new])) or (is_name and slips(old, new) == 1)


_SHORT = 4
