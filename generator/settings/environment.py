"""The variables that a site sets for an engine, as each node gets them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from generator.diagnostics import KeyPath
from generator.records import record, replace

ENV: KeyPath = ("engine", "env")


@record
class Written:
    """Variables as written in one place, which only rules about spelling look at."""

    as_written: Mapping[str, str] = {}


@record
class OfNode:
    """A node, its place in the site file, and the variables that it has for itself."""

    node: str
    path: KeyPath
    own: Written


@record
class Variable:
    """A value of a variable, the nodes that get it, and the places where it is written for them.

    `nodes` is empty while the nodes are not valid.
    """

    name: str
    value: str
    nodes: tuple[str, ...]
    places: tuple[KeyPath, ...]

    @property
    def path(self) -> KeyPath:
        """The first of the places."""
        return self.places[0]


@record
class Values:
    """Variables that some nodes get with the same values."""

    nodes: tuple[str, ...]
    given: Mapping[str, Variable]

    def get(self, name: str, otherwise: str = "") -> str:
        """The value of a variable."""
        return self.given[name].value if name in self.given else otherwise

    def path(self, name: str) -> KeyPath:
        """The place of a variable that is set."""
        return self.given[name].path


@record
class Environment:
    """The variables of all nodes, and those of single nodes, which come first."""

    shared: Written = Written()
    of_nodes: tuple[OfNode, ...] = ()

    def __iter__(self) -> Iterator[Variable]:
        return (variable for values in self._by_name.values() for variable in values)

    def of(self, name: str) -> tuple[Variable, ...]:
        """The values that a variable has, each once; none if it is not set."""
        return self._by_name.get(name, ())

    def on(self, node: str) -> Mapping[str, str]:
        """All variables that a node gets."""
        own = next((each.own for each in self.of_nodes if each.node == node), Written())
        return {**self.shared.as_written, **own.as_written}

    @property
    def on_head(self) -> Mapping[str, str]:
        """All variables of the first node, where the engine's head runs."""
        return self.on(self.of_nodes[0].node) if self.of_nodes else self.shared.as_written

    def first(self, name: str, otherwise: str = "") -> str:
        """The value of a variable on the first node, where the engine's head runs."""
        own = self.of_nodes[0].own.as_written if self.of_nodes else {}
        return own.get(name, self.shared.as_written.get(name, otherwise))

    @property
    def is_shared(self) -> bool:
        """Whether no node has variables for itself."""
        return not any(each.own.as_written for each in self.of_nodes)

    def places(self, path: KeyPath, of_name: bool) -> tuple[KeyPath, ...]:
        """All places of the variable at this one, with any value or with the same; else none."""
        variables = self._by_name.get(str(path[-1]), ()) if path[-2:-1] == ("env",) else ()
        here = next((each for each in variables if path in each.places), None)
        if here is None or not of_name:
            return here.places if here else ()
        return tuple(place for each in variables for place in each.places)

    def without(self, name: str) -> "Environment":
        """The same without a variable."""
        of_nodes = (replace(each, own=_without(each.own, name)) for each in self.of_nodes)
        return Environment(_without(self.shared, name), tuple(of_nodes))

    def together(self, names: Iterable[str]) -> Iterator[Values]:
        """The values of several variables, for each set of nodes with the same ones."""
        known = {name: self._by_name[name] for name in names if name in self._by_name}
        alike = {name: each[0] for name, each in known.items() if each[0].nodes == self._nodes}
        varying = [variable for name in known.keys() - alike for variable in known[name]]
        groups: dict[tuple[int, ...], list[str]] = {}
        for node in self._nodes if varying else ():
            held = tuple(i for i, variable in enumerate(varying) if node in variable.nodes)
            groups.setdefault(held, []).append(node)
        if not varying:
            groups[()] = list(self._nodes)
        for held, nodes in groups.items():
            own = {varying[i].name: varying[i] for i in held}
            yield Values(tuple(nodes), {**alike, **own})

    @cached_property
    def _nodes(self) -> tuple[str, ...]:
        return tuple(each.node for each in self.of_nodes)

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[Variable, ...]]:
        """The values of each variable by its name, in the order in which they are written."""
        shared = self.shared.as_written
        having = [each for each in self.of_nodes if each.own.as_written]
        names = dict.fromkeys((*shared, *(name for each in having for name in each.own.as_written)))
        return {name: tuple(self._of_name(name, having)) for name in names}

    def _of_name(self, name: str, having: Sequence[OfNode]) -> Iterator[Variable]:
        own = {each.node: each for each in having if name in each.own.as_written}
        found: dict[str, tuple[set[str], list[KeyPath]]] = {}
        rest = {node for node in self._nodes if node not in own}
        if name in self.shared.as_written and (rest or not self._nodes):
            found[self.shared.as_written[name]] = (rest, [(*ENV, name)])
        for each in own.values():
            nodes, places = found.setdefault(each.own.as_written[name], (set(), []))
            nodes.add(each.node)
            places.append((*each.path, "env", name))
        for value, (nodes, places) in found.items():
            in_order = tuple(node for node in self._nodes if node in nodes)
            yield Variable(name, value, in_order, tuple(places))


def _without(written: Written, name: str) -> Written:
    return Written({key: value for key, value in written.as_written.items() if key != name})
