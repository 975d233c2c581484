"""Cables that have to be moved: which, from where, and where to."""

from collections.abc import Iterator, Mapping, Sequence

from generator.records import record
from generator.site import Site


@record
class Plugged:
    """A cable as it is plugged in: its number, its label if it has one, and its two ends."""

    number: int
    label: str | None
    ends: tuple[str, str]

    def __str__(self) -> str:
        return f"cable {self.number}{f' ({self.label})' if self.label else ''}"

    @property
    def place(self) -> str:
        """`spark1:p0 to spark2:p1`."""
        return " to ".join(self.ends)

    @property
    def nodes(self) -> tuple[str, ...]:
        """What its ends are plugged into, including the switch."""
        return tuple(end.partition(":")[0] for end in self.ends)


def cables_of(site: Site) -> tuple[Plugged, ...]:
    """The cables of a site."""
    return tuple(Plugged(c.number, c.label, (str(c.a), str(c.b))) for c in site.cables)


def listed_cables(pairs: Sequence[tuple[str, str]]) -> tuple[Plugged, ...]:
    """The cables that a manifest lists, which has no labels."""
    return tuple(Plugged(number, None, pair) for number, pair in enumerate(pairs, 1))


def under_new_names(cables: Sequence[Plugged], names: Mapping[str, str]) -> tuple[Plugged, ...]:
    """The cables with the new names of renamed nodes."""
    ends = (tuple(_named(end, names) for end in cable.ends) for cable in cables)
    return tuple(
        Plugged(cable.number, cable.label, (a, b))
        for cable, (a, b) in zip(cables, ends, strict=True)
    )


def moves(before: Sequence[Plugged], after: Sequence[Plugged]) -> Iterator[tuple[str, Plugged]]:
    """What is done with each cable that is new, removed or moved, and the cable.

    Nothing is plugged into a port before the cable that is there has been unplugged.
    """
    stay = {frozenset(cable.ends) for cable in before} & {frozenset(cable.ends) for cable in after}
    gone = [cable for cable in before if frozenset(cable.ends) not in stay]
    due: list[tuple[Plugged | None, Plugged]] = []
    for cable in after:
        if frozenset(cable.ends) not in stay:
            old = next((one for one in gone if _is_same(one, cable)), None)
            due.append((old, cable))
            if old:
                gone.remove(old)
    for cable in gone:
        yield f"unplug {cable}: {cable.place}", cable
    while due:
        taken = {end: old for old, _ in due if old for end in old.ends}
        free = [move for move in due if _is_free(*move, taken)]
        # If each waits for another, one is unplugged until its place is free.
        old, cable = (free or [move for move in due if move[0]])[0]
        place = due.index((old, cable))
        if free:
            del due[place]
            yield (
                (f"move {cable}: {old.place} -> " if old else f"plug {cable} in: ") + cable.place,
                cable,
            )
        elif old:
            due[place] = (None, cable)
            yield f"unplug {cable}: {old.place}", cable


def _is_free(old: Plugged | None, new: Plugged, taken: Mapping[str, Plugged]) -> bool:
    """Whether no other cable is still at an end where this one is plugged in."""
    return all(taken.get(end, old) is old for end in new.ends)


def pulled(before: Sequence[Plugged], after: Sequence[Plugged]) -> frozenset[str]:
    """The nodes and switches from which a cable is unplugged."""
    stay = {frozenset(cable.ends) for cable in after}
    gone = (cable for cable in before if frozenset(cable.ends) not in stay)
    return frozenset(node for cable in gone for node in cable.nodes)


def _is_same(old: Plugged, new: Plugged) -> bool:
    """Whether both are the same cable: by its label, or by an end that stays in place."""
    if old.label or new.label:
        return old.label == new.label
    return bool(set(old.ends) & set(new.ends))


def _named(end: str, names: Mapping[str, str]) -> str:
    node, separator, port = end.partition(":")
    return f"{names.get(node, node)}{separator}{port}"
