"""What was changed in a site file, one line per value: `model.context_length: 1 -> 2`."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from generator.diagnostics import visible

_LONGEST, _LEAD = 60, 12
# The keys that identify the items of lists.
_NAMED = ("name", "rule", "label")


def edits(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """The values that differ, by key; the order of items counts, comments and that of keys don't.

    `names` maps old names of nodes to new ones, which apply to their cables too.
    """
    renamed = (f"nodes.{visible(old)}: called {visible(new)} now" for old, new in names.items())
    return *renamed, *_mapping(_as_called(before, names), after, "")


def _as_called(value: Any, names: Mapping[str, str]) -> Any:
    """The same value with the new names of nodes, also in the ends of cables."""
    if not names:
        return value
    if isinstance(value, Mapping):
        return {key: _as_called(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_called(item, names) for item in value]
    name, colon, port = str(value).partition(":")
    return f"{names[name]}{colon}{port}" if name in names else value


def _mapping(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[str]:
    for key in dict.fromkeys([*before, *after]):
        place = f"{path}.{key}" if path else str(key)
        if key not in after:
            yield f"{visible(place)}: {_shown(before[key])} is gone"
        elif key not in before:
            yield f"{visible(place)}: {_shown(after[key])} is new"
        else:
            yield from _value(before[key], after[key], place)


def _value(before: Any, after: Any, place: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _mapping(before, after, place)
    elif (old := _by_name(before)) and (new := _by_name(after)):
        # A cable is the same whichever of its ends is written first.
        written = {frozenset(name.split(" - ")): name for name in new}
        old = {written.get(frozenset(name.split(" - ")), name): old[name] for name in old}
        yield from _mapping(old, new, place)
        if [name for name in old if name in new] != [name for name in new if name in old]:
            yield f"{visible(place)}: the order is {_shown(list(new))} now"
    elif before != after:
        start = _start(before, after)
        yield f"{visible(place)}: {_shown(before, start)} -> {_shown(after, start)}"


def _start(before: Any, after: Any) -> int:
    """Where long values begin to be shown: shortly before they differ."""
    texts = [visible(_flow(before)), visible(_flow(after))]
    pairs = enumerate(zip(*texts, strict=False))
    shared = next((at for at, (one, other) in pairs if one != other), min(map(len, texts)))
    return max(0, shared - _LEAD) if max(map(len, texts)) > _LONGEST else 0


def _by_name(items: Any) -> dict[str, Any] | None:
    """The items of a list by name; None if one has no name, or names have different keys."""
    if not isinstance(items, list | tuple) or not all(isinstance(i, Mapping) for i in items):
        return None
    names = [_name(item) for item in items]
    if None in names or len(set(names)) < len(names):
        return None
    return {str(name): item for name, item in zip(names, items, strict=True)}


def _name(item: Mapping[str, Any]) -> str | None:
    ends = item.get("endpoints")
    if isinstance(ends, list | tuple):
        return " - ".join(str(end) for end in ends)
    return next((str(item[key]) for key in _NAMED if key in item), None)


def _shown(value: Any, start: int = 0) -> str:
    """A value on one line, from there on, cut off if it is long."""
    text = f"{'...' * bool(start)}{visible(_flow(value))[start:]}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return str(value)
