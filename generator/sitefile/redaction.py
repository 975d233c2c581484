"""Finds what looks like a secret in a site file, and keeps it out of reports.

A secret in a site file must not also appear in a terminal, a log or a report.
"""

import re
from collections.abc import Iterable, Iterator

import yaml

from generator.diagnostics import Finding, KeyPath, Related
from generator.records import record, replace
from generator.resources import rows
from generator.sitefile.sections import path_in_group
from generator.sitefile.source import Document, Plain

MASK = "********"

# How providers begin their tokens and keys: what each contains, and its whole shape.
_SHAPES = {looks: (signs.split(), shape) for looks, signs, shape in rows("secret-shapes")}
_ANY_SHAPE = "|".join(pattern for _, pattern in _SHAPES.values())
# Most texts have none of these, and compiling the patterns takes longer than reading a site.
_SIGNS = tuple(sign for signs, _ in _SHAPES.values() for sign in signs)

# Keys whose values are secrets. Numbers are often counted in tokens, and some values name a file.
_SECRET_KEY = r"(?i)PASSWORD|PASSWD|PASSPHRASE|(^|_)SECRET(_|$)|API_?KEY|ACCESS_KEY|PRIVATE_KEY"
_SECRET_WORDS = ("pass", "secret", "key", "token")
_TOKEN_KEY = r"(?i)(^|_)TOKEN$"
_REFERENCE_KEY = r"(?i)_(FILE|PATH|DIR|NAME|ID|LENGTH|COUNT)$"
# In a JSON flag of the engine, a token is one of the model's vocabulary, except for these.
_CREDENTIAL_KEY = r"(?i)(^|_)(HF|AUTH|ACCESS|API|BEARER|REFRESH|SESSION)_TOKEN$|^TOKEN$"
_JSON_FLAG = ("engine", "args")
# A key and its value in a file that is not YAML.
_LINE = r"""(?<![A-Za-z0-9_-])([A-Za-z0-9_-]+)["']?[ \t]*[:=][ \t]*(\S[^\n]*)"""


@record
class Secret:
    """A text that looks like a secret: what it looks like, and its place."""

    looks: str
    path: KeyPath
    at_key: bool
    node: yaml.ScalarNode


def secrets(document: Document) -> Iterator[Secret]:
    """All texts of a site file that look like secrets, keys too; repeated aliases count once."""
    search = _Search(shapes=any(is_secret_text(part.text) for part in document.files))
    return search.walk(document.root, (), named=False) if document.root else iter(())


class _Search:
    """A walk through a document; most have no text of a secret's shape, so that only keys count."""

    def __init__(self, shapes: bool) -> None:
        self._shapes = shapes
        self._seen: set[tuple[int, bool]] = set()

    def walk(self, node: yaml.Node, path: KeyPath, named: bool) -> Iterator[Secret]:
        """The secrets in a node; `named` means that it is the value of a secret's key."""
        if (id(node), named) in self._seen:
            return
        self._seen.add((id(node), named))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from self._pair(key, value, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                # For a list of secrets, the list itself is reported.
                yield from self.walk(item, path if named else (*path, index), named)
        elif isinstance(node, yaml.ScalarNode):
            looks = self._shape(node.value)
            if looks or (named and _is_value(path, node)):
                self._seen |= {(id(node), False), (id(node), True)}
                yield Secret(looks, path, False, node)

    def _pair(self, key: yaml.Node, value: yaml.Node, path: KeyPath) -> Iterator[Secret]:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if isinstance(key, yaml.ScalarNode) and (looks := self._shape(name)):
            yield Secret(looks, (*path, name), True, key)
        named = is_secret_key(name) and not _is_vocabulary(path, name) and not _names(value)
        yield from self.walk(value, (*path, name), named)

    def _shape(self, text: str) -> str:
        if not self._shapes or not is_secret_text(text):
            return ""
        return next(looks for looks, (_, pattern) in _SHAPES.items() if re.search(pattern, text))


def _names(node: yaml.Node) -> bool:
    """Whether a list has only names of variables: what secrets are called, not secrets."""
    items = node.value if isinstance(node, yaml.SequenceNode) else []
    return bool(items) and all(
        isinstance(item, yaml.ScalarNode) and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", item.value)
        for item in items
    )


def is_secret_text(text: str) -> bool:
    """Whether a text has the shape of a secret."""
    return any(sign in text for sign in _SIGNS) and re.search(_ANY_SHAPE, text) is not None


def blanked(text: str) -> str:
    """A text with asterisks in place of everything that has the shape of a secret."""
    return re.sub(_ANY_SHAPE, _blank, text) if is_secret_text(text) else text


def shown(document: Document) -> str:
    """The text of one file for quoting in a report, with asterisks in place of every secret."""
    text = re.sub(_ANY_SHAPE, _blank, document.text)
    if document.root is None:
        return re.sub(_LINE, _blank_line, text)
    found = list(secrets(document))
    for word in _words(found):
        text = text.replace(word, re.sub(r"\S", "*", word))
    lines = text.split("\n")
    hidden: dict[int, list[str]] = {}
    for secret in found:
        start, end = secret.node.start_mark, secret.node.end_mark
        for number in range(start.line, min(end.line + 1, len(lines))):
            line = hidden.get(number) or hidden.setdefault(number, list(lines[number]))
            first = start.column if number == start.line else 0
            last = end.column if number == end.line else len(line)
            line[first:last] = [c if c.isspace() else "*" for c in line[first:last]]
    for number, line in hidden.items():
        lines[number] = "".join(line)
    return "\n".join(lines)


def concealed(document: Document, findings: Iterable[Finding]) -> list[Finding]:
    """The findings without secrets in their text.

    Where one reports a secret, other findings at that place are dropped: the secret has to be
    removed anyway.
    """
    found = list(secrets(document))
    places = {secret.path for secret in found}
    words = _words(found)
    secret_paths = {finding.path for finding in findings if finding.rule in _SECRET_RULES} & places
    return [
        _concealed(document, finding, words)
        for finding in findings
        if finding.path not in secret_paths or finding.rule in _SECRET_RULES
    ]


_SECRET_RULES = ("SG710", "SG711")
# Secrets without a shape are searched for word by word; nobody has this many passwords.
_MOST_WORDS = 100


def _words(found: Iterable[Secret]) -> list[str]:
    """Secrets without a shape of their own, wherever they are repeated; the longest first."""
    named = {secret.node.value for secret in found if not secret.looks}
    return sorted((word for word in named if len(word) > 3), key=len, reverse=True)[:_MOST_WORDS]


def _concealed(document: Document, finding: Finding, words: Iterable[str]) -> Finding:
    def plain(text: str) -> str:
        for word in words:
            text = text.replace(word, MASK)
        return re.sub(_ANY_SHAPE, MASK, text)

    path = _plain_path(finding.path)
    # The place of a key that is a secret can't be looked up by its redacted name.
    span = finding.span if path == finding.path else document.locate(finding.path, finding.at_key)
    worded = repr(finding.proposals)
    return replace(
        finding,
        proposals=finding.proposals if plain(worded) == worded else (),
        message=plain(finding.message),
        path=path,
        help=plain(finding.help),
        related=tuple(Related(plain(r.text), _plain_path(r.path)) for r in finding.related),
        span=span,
    )


def _plain_path(path: KeyPath) -> KeyPath:
    return tuple(re.sub(_ANY_SHAPE, MASK, part) if isinstance(part, str) else part for part in path)


def is_secret_key(name: str) -> bool:
    """Whether the value of a key with this name is a secret."""
    folded = name.casefold()
    if not any(word in folded for word in _SECRET_WORDS):
        return False
    name = name.replace("-", "_").replace(".", "_")
    secret = re.search(_SECRET_KEY, name) or re.search(_TOKEN_KEY, name)
    return bool(secret) and not re.search(_REFERENCE_KEY, name)


def _is_vocabulary(path: KeyPath, name: str) -> bool:
    """Whether a key belongs to a JSON flag, dotted or not, and names a token of a vocabulary."""
    path = path_in_group(path)
    *flags, key = name.replace("-", "_").split(".") if path == _JSON_FLAG else (*path[2:], name)
    is_token = bool(re.search(_TOKEN_KEY, str(key))) and not re.search(_CREDENTIAL_KEY, str(key))
    return path[:2] == _JSON_FLAG and bool(flags) and is_token


def _is_value(path: KeyPath, node: yaml.ScalarNode) -> bool:
    """Whether there is a secret at all: not a flag, empty, or a number of tokens."""
    meaning = Plain(node.value).meaning() if not node.style else node.value
    if meaning is None or meaning == "" or isinstance(meaning, bool):
        return False
    key = next(part for part in reversed(path) if isinstance(part, str)).replace("-", "_")
    is_text = isinstance(meaning, str) and not re.fullmatch(r"\d+\.\d+", meaning)
    return is_text or not re.search(_TOKEN_KEY, key)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"\S", "*", match[0])


def _blank_line(match: re.Match[str]) -> str:
    if not is_secret_key(match[1]):
        return match[0]
    start = match.start(2) - match.start()
    return match[0][:start] + re.sub(r"\S", "*", match[2])
