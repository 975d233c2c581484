"""Renders a template as `render` does, and records where each line comes from.

Nothing is guessed: the templates are the real ones, with a mark before every piece that they print.
Every field of the site that is read between two marks is recorded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from re import compile as pattern
from typing import Any

from jinja2 import Environment, FileSystemLoader, nodes

from generator.bundle.templates import environment
from generator.records import Record, record
from generator.resources import TEMPLATES

_MARK = pattern("\ue000([0-9]+)\ue001")


@record
class Field:
    """A field of a derived object that was read."""

    owner: Any
    name: str

    @property
    def key(self) -> str:
        """`Node.rank`, with the class that defines the field."""
        classes = (each for each in type(self.owner).__mro__ if self.name in vars(each))
        return f"{next(classes, type(self.owner)).__name__}.{self.name}"


@dataclass(eq=False)
class Piece:
    """A piece of rendered text, or a statement around such pieces; `names` are those it defines.

    `around` has the loops and conditions that it is nested in, the innermost last.
    """

    template: str
    line: int
    around: tuple["Piece", ...]
    names: tuple[str, ...]
    uses: tuple["Piece", ...] = ()
    own: list[Field] = field(default_factory=list)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields that it reads, directly or through the names in it."""
        return (*self.own, *(each for piece in self.uses for each in piece.own))

    @cached_property
    def condition(self) -> tuple[Field, ...]:
        """The fields that it depends on: those of the innermost loop or condition with any."""
        return next((piece.fields for piece in reversed(self.around) if piece.fields), ())


@record
class RenderedLine:
    """A rendered line, and the pieces that it consists of."""

    text: str
    pieces: tuple[Piece, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in it; if there are none, those that it depends on."""
        found = [each for piece in self.pieces for each in piece.fields]
        found = found or [each for piece in self.pieces for each in piece.condition]
        return tuple({(id(each.owner), each.name): each for each in found}.values())


def traced(template: str, values: Mapping[str, Any]) -> list[RenderedLine]:
    """The lines that a template renders."""
    engine = _engine()
    engine.tracer = _Tracer()
    engine.globals["__tracer__"] = engine.tracer
    printed = engine.get_template(f"{template}.j2").render(values)
    return list(_lines(printed, engine.tracer.pieces))


@cache
def _engine() -> "_Tracing":
    """The environment, whose templates are compiled once, so that a second file is fast."""
    return environment(_Tracing, FileSystemLoader(TEMPLATES, encoding="utf-8"))


def _lines(printed: str, pieces: Sequence[Piece]) -> Iterator[RenderedLine]:
    """Lines without their marks. A piece may end a line and continue in the next one."""
    last: Piece | None = None
    for marked in printed.removesuffix("\n").split("\n"):
        first, *rest = _MARK.split(marked)
        found = [last] if first and last else []
        numbers, texts = rest[::2], rest[1::2]
        for number, text in zip(numbers, texts, strict=True):
            last = pieces[int(number)]
            if text:
                found.append(last)
        yield RenderedLine(first + "".join(texts), tuple(found or ([last] if last else [])))


class _Tracer:
    """Records what the templates do, in the order in which they do it."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.stack: list[Piece] = []
        self.given: dict[str, Piece] = {}
        self.current: Piece | None = None

    def piece(self, template: str, line: int, names: Sequence[str]) -> str:
        """Record that a piece is rendered next, which uses these names."""
        self.current = Piece(template, line, tuple(self.stack), (), tuple(self._uses(names)))
        self.pieces.append(self.current)
        return f"\ue000{len(self.pieces) - 1}\ue001"

    def begin(self, template: str, line: int, names: Sequence[str], used: Sequence[str]) -> str:
        """Record that a loop or condition begins, which defines these names."""
        uses = tuple(self._uses(used))
        self.current = Piece(template, line, tuple(self.stack), tuple(names), uses)
        self.stack.append(self.current)
        return ""

    def end(self) -> str:
        """Record that the innermost loop or condition ends."""
        self.stack.pop()
        return ""

    def give(self, template: str, line: int, name: str, used: Sequence[str]) -> str:
        """Record that a name is assigned next."""
        uses = tuple(self._uses(used))
        self.current = self.given[name] = Piece(template, line, tuple(self.stack), (name,), uses)
        return ""

    def note(self, owner: object, name: str, value: object) -> None:
        """Record a field that is read, unless it only leads to others."""
        if self.current and isinstance(owner, Record) and not isinstance(value, Record):
            self.current.own.append(Field(owner, name))

    def _uses(self, names: Sequence[str]) -> Iterator[Piece]:
        for name in names:
            loops = (piece for piece in reversed(self.stack) if name in piece.names)
            if piece := next(loops, self.given.get(name)):
                yield piece


class _Tracing(Environment):
    """Adds marks to templates, and records every field that they read."""

    tracer: _Tracer

    def getattr(self, obj: Any, attribute: str) -> Any:
        value = super().getattr(obj, attribute)
        self.tracer.note(obj, attribute, value)
        return value

    def getitem(self, obj: Any, argument: Any) -> Any:
        value = super().getitem(obj, argument)
        self.tracer.note(obj, str(argument), value)
        return value

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        template.body = list(_marked(template.body, name or ""))
        template.set_environment(self)
        return template


def _marked(body: Sequence[nodes.Node], template: str) -> Iterator[nodes.Node]:
    """Statements with marks before each of them, and before everything that is printed."""
    for statement in body:
        line = statement.lineno
        match statement:
            case nodes.Output():
                statement.nodes = list(_pieces(statement.nodes, template))
                yield statement
            case nodes.Assign():
                names = [name.name for name in statement.find_all(nodes.Name)]
                yield _call("give", line, template, line, names[0], names[1:])
                yield statement
            case nodes.For() | nodes.If() | nodes.With():
                yield _call("begin", line, template, line, *_names(statement))
                _inside(statement, template)
                yield statement
                yield _call("end", line)
            case _:
                yield statement


def _inside(statement: nodes.For | nodes.If | nodes.With, template: str) -> None:
    statement.body = list(_marked(statement.body, template))
    if isinstance(statement, nodes.For | nodes.If):
        statement.else_ = list(_marked(statement.else_, template))
    if isinstance(statement, nodes.If):
        for other in statement.elif_:
            _inside(other, template)


def _names(statement: nodes.For | nodes.If | nodes.With) -> tuple[list[str], list[str]]:
    """The names that a statement defines, and those that it uses for that."""
    if isinstance(statement, nodes.For):
        return _found([statement.target]), _found([statement.iter])
    if isinstance(statement, nodes.With):
        return _found(statement.targets), _found(statement.values)
    return [], _found([statement.test])


def _found(expressions: Iterable[nodes.Node]) -> list[str]:
    """The names used on their own: in `node.rank` the field says everything, and `node` nothing."""
    names: list[str] = []
    for node in expressions:
        if isinstance(node, nodes.Name):
            names.append(node.name)
        children = node.iter_child_nodes()
        is_owner = isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name)
        names += [] if is_owner else _found(children)
    return names


def _pieces(printed: Sequence[nodes.Expr], template: str) -> Iterator[nodes.Expr]:
    """Each line of text, and each expression, with a mark before it."""
    for node in printed:
        if not isinstance(node, nodes.TemplateData):
            yield _mark("piece", node.lineno, template, node.lineno, _found([node]))
            yield node
            continue
        for offset, text in enumerate(node.data.splitlines(keepends=True)):
            line = node.lineno + offset
            yield _mark("piece", line, template, line, [])
            yield nodes.TemplateData(text, lineno=line)


def _call(method: str, line: int, *arguments: object) -> nodes.Output:
    return nodes.Output([_mark(method, line, *arguments)], lineno=line)


def _mark(method: str, line: int, *arguments: object) -> nodes.Expr:
    tracer = nodes.Name("__tracer__", "load", lineno=line)
    held = (tuple(each) if isinstance(each, list) else each for each in arguments)
    constants = [nodes.Const(each, lineno=line) for each in held]
    target = nodes.Getattr(tracer, method, "load", lineno=line)
    return nodes.Call(target, constants, [], None, None, lineno=line)
