"""Rules about the nodes themselves."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from generator.diagnostics import (
    KeyPath,
    Related,
    Replace,
    all_nearest,
    did_you_mean,
    listed,
    replacements,
)
from generator.rules.registry import Fault, Faults, rule, shape_rule, to_remove
from generator.sitefile.declaration import FIRST_HOST, DeclaredGroup, DeclaredJob, DeclaredNode

Nodes = Sequence[DeclaredNode]
_Entry = TypeVar("_Entry")

_MOST_NAMES = 8


def named(names: Sequence[str]) -> str:
    """Names in a sentence, with the number of those left out: `a, b and 3 more`."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return listed([*names[:_MOST_NAMES], *more], "and")


def unknown(what: str, name: str, path: KeyPath, names: Sequence[str]) -> Fault:
    """A name that no node, or no group, has; `names` are those that may be meant."""
    return Fault(
        f"there is no {what} '{name}'",
        path,
        did_you_mean(name, names) or f"the {what}s are {named(names)}",
        proposals=replacements(path, all_nearest(name, names)),
    )


def named_twice(name: str, path: KeyPath, help_text: str, *first: Related) -> Fault:
    """A name that is in a list already."""
    return to_remove(f"{name} is named twice", path, help_text, related=first)


def called_alike(
    what: str, entries: Iterable[DeclaredNode | DeclaredGroup | DeclaredJob]
) -> Faults:
    """Entries with the name of an earlier one."""
    for name, first, other in repeated(entries, lambda entry: entry.name):
        yield Fault(
            f"two {what}s are called '{name}'",
            (*other.path, "name"),
            "give one of them another name",
            related=(Related("first used", (*first.path, "name")),),
        )


def repeated(
    entries: Iterable[_Entry], key: Callable[[_Entry], Hashable]
) -> Iterator[tuple[Any, _Entry, _Entry]]:
    """Values that occur more than once, each with the first entry that has it and a later one."""
    first: dict[Hashable, _Entry] = {}
    for entry in entries:
        value = key(entry)
        if value is not None and first.setdefault(value, entry) is not entry:
            yield value, first[value], entry


@shape_rule("SG201")
def duplicate_name(nodes: Nodes) -> Faults:
    """No two nodes have the same name."""
    return called_alike("node", nodes)


@shape_rule("SG202", unless="SG201")
def duplicate_management_address(nodes: Nodes) -> Faults:
    """No two nodes have the same management address."""

    def address(node: DeclaredNode) -> Hashable:
        return node.management.address.ip if node.management else None

    for value, first, second in repeated(nodes, address):
        yield Fault(
            f"two nodes have the management address {value}",
            (*second.path, "management", "address"),
            "give each node an address of its own",
            related=(Related("first used", (*first.path, "management", "address")),),
        )


@shape_rule("SG206", unless="SG201 SG202")
def duplicate_host(nodes: Nodes) -> Faults:
    """No two nodes have the same host number."""
    taken = {node.host for node in nodes}
    free = next(n for n in (*range(FIRST_HOST, 255), *range(1, FIRST_HOST)) if n not in taken)
    for host, first, second in repeated(nodes, lambda node: node.host):
        # At least one of the numbers is written; the other may come from the list order.
        if second.host == FIRST_HOST + second.index:
            first, second = second, first
        counted = first.host == FIRST_HOST + first.index
        yield Fault(
            f"two nodes have the host number {host}",
            (*second.path, "host"),
            f"write 'host: {free}' at one of them, which is free",
            related=(
                Related(f"{first.name} has it by its place in the list,", first.path)
                if counted
                else Related("first used", (*first.path, "host")),
            ),
            # If both are written, either may be wrong, and any free number will do.
            unsafe=True,
            proposals=replacements((*second.path, "host"), [free])
            + (() if counted else replacements((*first.path, "host"), [free])),
        )


@rule("SG222", unless="SG201", of_serving=True)
def mixed_memory(nodes: Nodes) -> Faults:
    """Nodes that serve one model have the same amount of memory."""
    sizes = Counter(node.memory_gb for node in nodes)
    if len(sizes) < 2:
        return
    usual = max(sizes, key=lambda gb: (sizes[gb], gb))
    node = next(node for node in nodes if node.memory_gb != usual)
    other = next(node for node in nodes if node.memory_gb == usual)
    yield Fault(
        f"{node.name} has {node.memory_gb} GB of memory, and {other.name} {usual} GB",
        (*node.path, "memory_gb"),
        "nodes that serve one model together have the same memory",
        related=(Related(f"{other.name}", other.path),),
    )


@shape_rule("SG216", unless="SG201")
def users_differ(nodes: Nodes) -> Faults:
    """The same user logs in to all nodes."""
    users = Counter(node.user for node in nodes)
    if len(users) < 2:
        return
    usual, count = users.most_common(1)[0]
    node = next(node for node in nodes if node.user != usual)
    other = next(node for node in nodes if node.user == usual)
    # If two names are equally common, either may be right.
    either = sorted(users) if list(users.values()).count(count) > 1 else [usual]
    yield Fault(
        f"the user on {node.name} is '{node.user}', and on {other.name} '{usual}'",
        (*node.path, "user"),
        f"write {listed(repr(f'user: {user}') for user in either)} once for the whole site, and "
        "make that login on all nodes",
        related=(Related(other.name, other.path),),
        proposals=tuple(
            tuple(Replace((*n.path, "user"), user) for n in nodes if n.user != user)
            for user in either
        ),
    )
