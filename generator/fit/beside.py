"""What an engine takes of a node's memory beside its share: caches in host memory, and weights.

A GB10 has one memory, so what an engine calls CPU memory is taken from the same node. The settings
are rows of schemas/memory.tsv, which says how to read them.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, cast

from generator.catalogs.versions import place
from generator.diagnostics import KeyPath
from generator.fit.formulas import GB, GIB
from generator.models.architecture import known_checkpoint
from generator.records import record
from generator.resources import rows
from generator.settings.values import number
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

Taken = Literal["pinned", "filled", "moved"]

_COUNTED = ("pinned", "filled", "moved")
_UNITS: Mapping[str, float] = {"B": 1, "MiB": 2**20, "GB": GB, "GiB": GIB}
# All memory of a node: what fills without a limit.
_NO_LIMIT = 128.0 * GIB
_OFF = (None, False, "", "0", "false", "False", "None", 0)


@record
class BesideRow:
    """A row of the table."""

    engine: str
    setting: str
    taken: str
    unit: str
    per: str
    when: str
    otherwise: str
    source: str


@record
class Beside:
    """What one setting takes of a node: `amount` bytes, or with `of_room` times the room.

    `is_default`: the site does not set it.
    """

    name: str
    path: KeyPath
    taken: Taken
    amount: float
    of_room: bool
    on_head_only: bool
    is_default: bool
    source: str

    def bytes(self, is_head: bool, room: float) -> float:
        """What it takes of a rank with this much room for KV cache, in bytes."""
        if self.on_head_only and not is_head:
            return 0.0
        return self.amount * max(0.0, room) if self.of_room else self.amount


@cache
def table() -> tuple[BesideRow, ...]:
    """All rows."""
    return tuple(BesideRow(*row) for row in rows("memory"))


def beside(model: DeclaredModel, engine: DeclaredEngine) -> tuple[Beside, ...]:
    """What the settings of a model and its engine take."""
    return tuple(_beside(model, engine))


def _beside(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Beside]:
    if offload := model.kv_offload:
        path = ("model", "kv_offload", "buffer_gib")
        buffer = offload.buffer_gib * GIB
        source = "what the engine's flags for it say"
        yield Beside("kv_offload.buffer_gib", path, "pinned", buffer, False, False, False, source)
    for row in table():
        if row.engine != engine.name or row.taken not in _COUNTED:
            continue
        given = list(_values(engine, row.setting))
        is_given = any(value not in (None, "") for value in given)
        words = given if is_given else [row.otherwise]
        sizes = [size for word in words if (size := number(str(word))) is not None]
        if sizes and all(_holds(condition, model, engine) for condition in row.when.split()):
            amount = _amount(row, sum(sizes), engine) if min(sizes) >= 0 else _NO_LIMIT
            if amount:
                yield Beside(
                    _name(row.setting),
                    _path(engine, row.setting),
                    cast(Taken, row.taken),
                    amount,
                    row.unit == "room",
                    row.per in ("head", "processes"),
                    not is_given,
                    row.source,
                )


def _amount(row: BesideRow, size: float, engine: DeclaredEngine) -> float:
    amount = size * _UNITS.get(row.unit, 1)
    if row.per == "replica":
        return amount / (engine.parallel.tensor * engine.parallel.pipeline)
    if row.per == "processes":
        return amount * (engine.settings.count("api-server-count") + 1)
    return amount


def _holds(condition: str, model: DeclaredModel, engine: DeclaredEngine) -> bool:
    if condition == "vision":
        checkpoint = known_checkpoint(model)
        sees = checkpoint is not None and checkpoint.vision_gb > 0
        return sees and not engine.settings.is_on("language-model-only")
    if condition.startswith("before:"):
        return place(engine.version) < place(condition.removeprefix("before:"))
    if condition.startswith("!"):
        return all(value in _OFF for value in _values(engine, condition[1:]))
    name, is_compared, word = condition.partition("=")
    values = [str(value) for value in _values(engine, name.removesuffix("!"))]
    if name.endswith("!"):
        return word not in values
    return word in values if is_compared else any(each not in map(str, _OFF) for each in values)


def _values(engine: DeclaredEngine, name: str) -> Iterator[Any]:
    """The values of a setting: of a variable, a flag, or a key of one."""
    if name.startswith("$"):
        if value := engine.environment.first(name[1:]):
            yield value
        return
    flag, *keys = name.split(".")
    found = engine.settings.value(flag)
    yield from _within(found, keys) if keys else (found,) if found is not None else ()


def _within(value: Any, keys: list[str]) -> Iterator[Any]:
    if not keys:
        yield value
    elif keys[0] == "*":
        yield from _within(value, keys[1:])
        inner = value.values() if isinstance(value, dict) else value
        for each in inner if isinstance(value, dict | list) else ():
            if isinstance(each, dict | list):
                yield from _within(each, keys)
    elif isinstance(value, dict) and keys[0] in value:
        yield from _within(value[keys[0]], keys[1:])


def _name(setting: str) -> str:
    """As people write it: without the sign of a variable, and the place of a key at any depth."""
    return setting.removeprefix("$").split("*.")[-1]


def _path(engine: DeclaredEngine, setting: str) -> KeyPath:
    if setting.startswith("$"):
        found = engine.environment.of(setting[1:])
        return found[0].path if found else ("engine",)
    flag, *keys = setting.split(".")
    known = [key for key in keys if "*" not in keys and "[" not in key]
    return engine.settings.path(flag, *known) if flag in engine.settings else ("engine", "name")
