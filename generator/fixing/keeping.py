"""Whether everything that was written is kept: only such a change is made without a person.

A key may be renamed or moved, a value written in another form or type, a name corrected. What
removes or overwrites something is shown, and a person decides. `keeps` judges a proposal, and
`kept` what came of it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_interface, ip_network
from typing import Any

import yaml

from generator.diagnostics import (
    Add,
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
from generator.sitefile.mistakes.meanings import NO, YES
from generator.sitefile.mistakes.values import FIGURES
from generator.sitefile.source import Document, continued_lines, nodes_of, value_at

_ON, _OFF = ("true", "1", *YES), ("false", "none", "0", *NO)
_NUMBER = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?) ?(%|cm|[kmgt]?)(?: ?[a-z]{1,7})?")
# What a number may be multiplied by to have the unit of its key.
_FACTORS: Mapping[str, Sequence[float]] = {
    **{unit: (1, 2**power) for unit, power in (("m", 20), ("g", 30), ("t", 40))},
    **dict.fromkeys(("%", "cm"), (0.01,)),
    "": (1,),
    "k": (2**10,),
}
_WORD = re.compile(r"\w+")
# What is written before a variable in a script or a command line, and says nothing here.
_OF_A_SHELL = ("export", "set", "e", "env")
# A key that is none of a name's may be a value that was written for one.
_IS_NAME = re.compile(r"[\W_]*[A-Za-z][\w .-]*[\W_]*")
_SHORT = 4
# What makes a text a path, a variable or a share; './' before a path and '/' behind it say nothing.
_SIGN = re.compile(r"[~$@%]|(?<!^\.)/(?=\S)")
_MOST_LETTERS = 3
_COMMENT = re.compile(r"(?<!\s)\s*+(#|//)\s.*$")


def correction(document: Document, finding: Finding) -> Proposal | None:
    """The proposal that may be applied without a person: nothing that was written is lost by it."""
    found = finding.correction
    return found if found and keeps(document, found) else None


def keeps(document: Document, proposal: Proposal) -> bool:
    """Whether all that a document says is in it after the edits, where it was meant to be."""
    gone, new = list[_Scalar](), list[_Scalar]()
    is_move = any(isinstance(edit, Remove) for edit in proposal)
    for edit in proposal:
        match edit:
            case Rewrite(_, text):
                old = _rewritten(document, edit)
                is_lost = Counter(_said(old)) - Counter(_said(text))
                if old.strip() and is_lost and not _is_same(old, text):
                    return False
            case Rename(path) if not _IS_NAME.fullmatch(str(path[-1])):
                return False
            case Add(path) if is_move and not _is_only_home(document.data, path):
                return False
            case Remove(path) | Replace(path):
                gone += _scalars(value_at(document.data, path))
        new += _scalars(edit.value) if isinstance(edit, Replace | Add) else ()
    # Another key is another meaning, unless the edit is to rename it.
    keys = {text for is_key, text in gone if is_key}
    return keys <= {text for _, text in new} and all(_took(old, new) for old in sorted(gone))


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
    if before.root is None or after.root is None:
        lost = _tokens(before.text) - _tokens(after.text) - Counter(_OF_A_SHELL)
        return not lost and not _joins_lines(before, after)
    # The key of a list or a mapping says nothing by itself: all that it held may have moved.
    had = _keys(before.root, yaml.ScalarNode) + _values(before.root)
    has = _keys(after.root, yaml.Node) + _values(after.root)
    # Values first: a key may have any new name.
    gone, new = sorted((had - has).elements()), list((has - had).elements())
    uncommented = Counter(word for _, text in new for word in _tokens(text).elements())
    hidden = _in_comments(before.text) - _in_comments(after.text)
    return not hidden - uncommented and all(_took(old, new) for old in gone)


def _joins_lines(before: Document, after: Document) -> bool:
    """Whether a line that was changed goes on with the text above it."""
    was, now = set(before.text.split("\n")), after.text.split("\n")
    return any(now[line] not in was for line in continued_lines(after.root))


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
    found = Counter(word for _, part in parts for word in _said(part))
    signs = Counter(_SIGN.findall(text)) - Counter(_SIGN.findall(" ".join(t for _, t in parts)))
    return bool(same) or (bool(words) and not words - found and not signs)


def _tokens(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _in_comments(text: str) -> Counter[str]:
    """The words of comments, also of those that YAML takes for a part of the value before."""
    found = re.findall(r"(?:(?:^|\s)#|(?:#|//)\s)(.*)", text, re.MULTILINE)
    return _tokens("\n".join(found))


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


def _scalars(value: Any, key: str = "") -> Iterator[_Scalar]:
    """The scalars in a value, and the keys that have them."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _scalars(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item)
    elif value not in (None, ""):
        yield False, str(value)
        if key:
            yield True, key


def _said(value: str) -> list[str]:
    """The words in a text, without those of a shell."""
    return sorted(word for word in _WORD.findall(value.lower()) if word not in _OF_A_SHELL)


def _rewritten(document: Document, edit: Rewrite) -> str:
    """The text that an edit takes the place of."""
    span = edit.span
    lines = document.file(span).text.split("\n")[span.line : span.end_line + 1]
    lines[-1] = lines[-1][: span.end_column]
    return "\n".join([lines[0][span.column :], *lines[1:]])


def _is_same(old: str, new: str) -> bool:
    """Whether a scalar is written in another form, or is the right spelling of a name."""
    old, new = _COMMENT.sub("", old).lower(), new.lower()
    forms = _letters(old), _letters(old).translate(FIGURES)
    is_near = _letters(new) in forms or _is_corrected(old, new)
    return (
        (is_near and not _loses_a_part(old, new))
        or any(_letters(old) in same and new in same for same in (_ON, _OFF))
        or bool((_numbers(old) | _numbers(f"{old}%")) & _numbers(new))
        or new.startswith(f"{old}/")
        or new in _addresses(old)
    )


def _letters(text: str) -> str:
    """Letters and digits alone."""
    return re.sub(r"[\W_]+", "", text.lower())


def _numbers(text: str) -> set[float]:
    """What a number with a unit may be in the unit of its key."""
    found = _NUMBER.fullmatch(text)
    return {round(float(found[1]) * one, 6) for one in _FACTORS[found[2]]} if found else set()


def _addresses(text: str) -> tuple[str, ...]:
    """An address with a mask as one with a prefix length, and its subnet."""
    try:
        return str(ip_interface(text)), str(ip_network(text, strict=False))
    except ValueError:
        return ()


def _is_corrected(old: str, new: str) -> bool:
    """Whether one is a misspelling; digits of names and versions may differ by a slip as well."""
    is_name = len(old) > _SHORT and bool(re.match(r"[a-z]|\d+\.\d+\.\d+$", old))
    return bool(misspelt(old, [new])) or (is_name and slips(old, new) == 1)


def _loses_a_part(old: str, new: str) -> bool:
    """Whether a word of a text is gone, an owner or a suffix, or a sign that gives it a meaning."""
    signs = Counter(_SIGN.findall(old)) - Counter(_SIGN.findall(new))
    words, left = (len(re.findall(r"[^\W_]+", text)) for text in (old, new))
    letters = _letters(old), _letters(new)
    is_shorter = left < words or len(letters[0]) - len(letters[1]) > _MOST_LETTERS
    return bool(signs) or (is_shorter and letters[0] != letters[1])
