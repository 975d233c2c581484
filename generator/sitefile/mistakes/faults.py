"""What is wrong with a document by its schema, and what would be after an edit."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import cerberus
import yaml

from generator.diagnostics import Add, Data, KeyPath, Proposal, Remove, Rename, Replace, Rewrite
from generator.grouping import grouped
from generator.records import record
from generator.sitefile import source
from generator.sitefile.key_rules import rules_at, types_of
from generator.sitefile.mistakes.slips import edited
from generator.sitefile.sections import site_schema
from generator.sitefile.source import Document, Plain, value_at
from generator.sitefile.typed_values import as_typed
from generator.sitefile.validation import validator

_UNKNOWN = cerberus.errors.UNKNOWN_FIELD.code
# More unknown keys of one mapping than these are not mistyped: it is another tool's file.
_MOST_UNKNOWN = 20
# What a section's own key is checked for while its content is not.
_OF_A_KEY = ("required", "excludes", "dependencies")


@record
class SchemaFault:
    """What is wrong at a path: a rule of the schema that is broken, `unknown` or `twice`.

    A key that is missing is at its own path. `beside` is the key that needs or excludes it.
    """

    kind: str
    path: KeyPath
    value: Any
    constraint: Any = None
    reason: str = ""
    of_name: bool = False
    beside: KeyPath = ()

    @property
    def key(self) -> tuple[str, KeyPath]:
        """What tells it from others."""
        return self.kind, self.path


class SchemaFaults:
    """The faults of a document, and those that an edit would leave."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines = document.text.split("\n")
        self.data: Mapping[str, Any] = document.data
        self.typed = {key: _typed(key, value) for key, value in self.data.items()}
        self.twice = [f for f in document.findings if f.rule == "SG003"]
        self._of: dict[tuple[str, ...], list[SchemaFault]] = {}
        self.all = [*self._twice(()), *_few(_schema_faults(self.typed, set(self.typed)))]

    def of(self, *kinds: str) -> list[SchemaFault]:
        """The faults of some kinds."""
        if kinds not in self._of:
            self._of[kinds] = [fault for fault in self.all if fault.kind in kinds]
        return self._of[kinds]

    @cached_property
    def missing(self) -> dict[KeyPath, list[str]]:
        """The keys that each mapping lacks."""
        paths = (fault.path for fault in self.of("required", "dependencies"))
        return grouped((path[:-1], str(path[-1])) for path in paths)

    @cached_property
    def strays(self) -> list[KeyPath]:
        """Keys that may belong elsewhere: unknown, written twice, or excluded by another."""
        paths = [f.path for f in self.of("unknown", "twice", "excludes", "dependencies")]
        # A line that is there twice is a copy.
        paths = [path for path in paths if self.second(path) != value_at(self.data, path)]
        paths += [f.beside for f in self.of("excludes", "dependencies")]
        return list(dict.fromkeys(path for path in paths if path and value_at(self.data, path)))

    def explained_by(self, edit: Proposal) -> frozenset[tuple[str, KeyPath]]:
        """The faults that would be gone after an edit; none if it leaves as many new ones."""
        after = self._after(edit)
        if after is None:
            return frozenset()
        # What is wrong in the value itself is another matter.
        inside = [(*one.path[:-1], one.key) for one in edit if isinstance(one, Rename)]
        inside += [one.path for one in edit if isinstance(one, Add)]
        after = [f for f in after if not any(f.path[: len(own)] == own for own in inside)]
        was, now = Counter(f.key for f in self.all), Counter(f.key for f in after)
        gone, new = was - now, now - was
        return frozenset(gone) if gone.total() > new.total() else frozenset()

    def _after(self, edit: Proposal) -> list[SchemaFault] | None:
        rewrites = [one for one in edit if isinstance(one, Rewrite)]
        if any(one.span.file for one in rewrites):
            return None
        if rewrites:
            text = edited(self.lines, rewrites)
            document = source.read(self.document.name, text.encode())
            return SchemaFaults(document).all if isinstance(document.data, dict) else None
        data = applied(self.data, edit, self.second)
        names = {_section(one) for one in edit} & data.keys()
        typed = {**self.typed, **{name: _typed(name, data[name]) for name in names}}
        typed = {name: value for name, value in typed.items() if name in data}
        again = {"unknown", "twice", *_OF_A_KEY}
        rest = [f for f in self.all if len(f.path) > 1 or f.kind not in again]
        rest = [f for f in rest if f.path[0] in typed.keys() - names and f.kind != "twice"]
        return [*self._twice(edit), *_few(_schema_faults(typed, names)), *rest]

    def _twice(self, edit: Proposal) -> Iterator[SchemaFault]:
        changed = {one.path for one in edit if isinstance(one, Remove | Rename)}
        for finding in self.twice:
            if finding.path not in changed:
                yield SchemaFault("twice", finding.path, value_at(self.data, finding.path))

    def second(self, path: KeyPath) -> Any:
        """The scalar that a key has where it is written for the second time."""
        return self._seconds.get(path)

    @cached_property
    def _seconds(self) -> dict[KeyPath, Any]:
        paths = {finding.path for finding in self.twice}
        entries = {path: _entries(self.document.root, path) for path in {p[:-1] for p in paths}}
        found = {path: entries[path[:-1]].get(path[-1], []) for path in paths}
        return {
            path: Plain(values[1].value)
            for path, values in found.items()
            if len(values) > 1 and isinstance(values[1], yaml.ScalarNode)
        }


def _entries(node: Any, path: KeyPath) -> dict[Any, list[Any]]:
    """The nodes that each key of the mapping at a path has."""
    for part in path:
        if isinstance(node, yaml.SequenceNode):
            node = node.value[part]
        else:
            node = next((value for key, value in node.value if key.value == part), None)
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return grouped((k.value if isinstance(k, yaml.ScalarNode) else None, v) for k, v in pairs)


def _section(edit: Any) -> str:
    return str(edit.key if isinstance(edit, Rename) and len(edit.path) == 1 else edit.path[0])


def _typed(key: str, value: Any) -> Any:
    return as_typed(value, site_schema()[key]) if key in site_schema() else value


def _schema_faults(typed: Mapping[str, Any], names: set[str]) -> Iterator[SchemaFault]:
    """The schema's faults in the sections with these names, and in the keys of all sections."""
    rules = {
        key: own if key in names else {k: v for k, v in own.items() if k in _OF_A_KEY}
        for key, own in site_schema().items()
    }
    checked = validator(rules)
    checked.validate(typed, normalize=False)
    missing = []
    for fault in map(_fault, _flat(checked._errors)):
        if fault.kind in ("required", "dependencies"):
            missing.append(fault)
        else:
            yield fault
    # Cerberus reports missing keys in an order that differs from run to run.
    yield from sorted(missing, key=lambda fault: [str(part).zfill(6) for part in fault.path])


def _flat(errors: Iterable[Any]) -> Iterator[Any]:
    for error in errors:
        if error.child_errors:
            yield from _flat(error.child_errors)
        else:
            yield error


def _fault(error: Any) -> SchemaFault:
    path: KeyPath = tuple(error.document_path)
    kind = "unknown" if error.code == _UNKNOWN else error.rule or "check_with"
    info = str(error.info[0]) if error.info else ""
    of_name = "keysrules" in error.schema_path
    if kind == "dependencies":
        place = (*path[:-1], str(error.constraint))
        return SchemaFault(kind, place, None, error.constraint, beside=path)
    if kind == "excludes":
        other = types_of({"type": error.constraint})[0]
        rival = (*path[:-1], other)
        return SchemaFault(kind, path, error.value, error.constraint, beside=rival)
    return SchemaFault(kind, path, error.value, error.constraint, info, of_name)


def _few(faults: Iterable[SchemaFault]) -> Iterator[SchemaFault]:
    """The faults, with the first unknown keys of each mapping alone."""
    seen: Counter[KeyPath] = Counter()
    for fault in faults:
        if fault.kind == "unknown":
            seen[fault.path[:-1]] += 1
        if fault.kind != "unknown" or seen[fault.path[:-1]] <= _MOST_UNKNOWN:
            yield fault


def applied(
    data: Any, edits: Iterable[Any], second: Callable[[KeyPath], Any] = lambda path: None
) -> Any:
    """Data after edits of it; the rest is shared with what it was."""
    for edit in edits:
        match edit:
            case Replace(path, value) | Add(path, value):
                data = _with(data, path, value)
            case Rename(path, key):
                data = _renamed(data, path, key)
            case Remove(path, again):
                other = None if again else second(path)
                if other is not None:
                    data = _with(data, path, other)
                elif not again:
                    data = _without(data, path)
    return data


def _with(data: Any, path: KeyPath, value: Data) -> Any:
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(data, list) and isinstance(first, int):
        inner = data[first] if first < len(data) else {}
        return [*data[:first], _with(inner, rest, value), *data[first + 1 :]]
    held = data if isinstance(data, dict) else {}
    return {**held, first: _with(held.get(first, {}), rest, value)}


def _without(data: Any, path: KeyPath) -> Any:
    """The data without a key or an entry, and without what would be empty then."""
    first, rest = path[0], path[1:]
    if value_at(data, (first,)) is None:
        return data
    inner = _without(data[first], rest) if rest else None
    if inner:
        return _with(data, (first,), inner)
    is_dict = isinstance(data, dict)
    if isinstance(data, list) and isinstance(first, int):
        return [*data[:first], *data[first + 1 :]]
    return {key: value for key, value in data.items() if key != first} if is_dict else data


def _renamed(data: Any, path: KeyPath, key: str) -> Any:
    first, rest = path[0], path[1:]
    if rest:
        return _with(data, (first,), _renamed(data[first], rest, key))
    return {key if name == first else name: value for name, value in data.items()}


def typed_at(path: KeyPath, value: Any) -> Any:
    """A value with the types of the schema at a path."""
    return as_typed(value, rules_at(path))
