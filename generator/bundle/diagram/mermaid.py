"""The cabling as a Mermaid graph, which GitHub and others render in Markdown."""

import re
from collections.abc import Generator, Iterator, Sequence

from generator.bundle.diagram.frames import label
from generator.bundle.diagram.gateway import serving
from generator.bundle.diagram.layout import cable_text, role
from generator.fabric.addressing import Cable, Port, SwitchPort
from generator.site import Part, Site

Slot = tuple[Part, ...]


def graph(site: Site) -> str:
    """The text of a graph. Mermaid draws up to 500 edges, and a site has fewer cables."""
    return "\n".join(["graph LR", *_nodes(site), *_edges(site), *_ways(site)]) + "\n"


def _nodes(site: Site) -> Iterator[str]:
    for node in site.nodes:
        yield f'  n{node.rank}["{_text(node.name)}<br/>{_text(role(site, node))}"]'
    for index, name in enumerate(site.switches):
        yield f'  s{index}[["{_text(name)}"]]'
    yield from _groups(site)


def _groups(site: Site) -> Iterator[str]:
    """A frame around the nodes of each group; where two overlap, Mermaid puts a node into one."""
    slots = sorted(site.slots if site.groups else (), key=lambda parts: -len(parts[0].nodes))
    ids = {node.name: f"n{node.rank}" for node in site.nodes}
    crossing: list[str] = []
    yield from _frames(list(enumerate(slots)), ids, crossing, "  ")
    yield from crossing


def _frames(
    slots: Sequence[tuple[int, Slot]], ids: dict[str, str], crossing: list[str], indent: str
) -> Generator[str, None, dict[str, str]]:
    """Frames, the largest first, with those nested in them; returns the nodes outside of all."""
    free, framed = dict(ids), set[int]()
    for place, (index, parts) in enumerate(slots):
        own = {node.name: ids[node.name] for node in parts[0].nodes if node.name in ids}
        if index in framed:
            continue
        if not own.keys() <= free.keys():
            nodes = " & ".join(own.values())
            crossing.append(f'  g{index}(["{_text(label(parts))}"]) -.- {nodes}')
            continue
        inner = [slot for slot in slots[place + 1 :] if _names(slot[1]) <= own.keys()]
        framed |= {number for number, _ in inner}
        yield f'{indent}subgraph g{index}["{_text(label(parts))}"]'
        if alone := (yield from _frames(inner, own, crossing, f"{indent}  ")):
            yield f"{indent}  {' & '.join(alone.values())}"
        yield f"{indent}end"
        free = {name: key for name, key in free.items() if name not in own}
    return free


def _names(parts: Slot) -> set[str]:
    return {node.name for node in parts[0].nodes}


def _ways(site: Site) -> Iterator[str]:
    """The gateway, and an arrow from it to the head of each group that serves a name."""
    names = serving(site)
    if not names:
        return
    yield f'  gateway(["{_text(f"gateway {site.address}")}"])'
    ids = {node.name: f"n{node.rank}" for node in site.nodes}
    for name, parts in names.items():
        for head in dict.fromkeys(part.head.name for part in parts):
            yield f'  gateway -.->|"{_text(name)}"| {ids[head]}'


def _edges(site: Site) -> Iterator[str]:
    ids = {node.name: f"n{node.rank}" for node in site.nodes}
    ids |= {name: f"s{index}" for index, name in enumerate(site.switches)}
    for cable in site.cables:
        (a, own), (b, there) = _end(cable.a), _end(cable.b)
        label = "<br/>".join(map(_text, _label(cable, own, there)))
        yield f'  {ids[a]} ---|"{label}"| {ids[b]}'


def _label(cable: Cable, a: str, b: str) -> Iterator[str]:
    yield cable_text(cable)
    yield f"{a} to {b}"
    yield from map(str, cable.subnets)


def _end(end: Port | SwitchPort) -> tuple[str, str]:
    """What a cable is connected to: the node or switch, and the port."""
    return (end.node, f"p{end.port}") if isinstance(end, Port) else (end.switch, end.port)


def _text(value: str) -> str:
    """A quoted text; everything that could be markup is written as a character reference."""
    return re.sub(r"[^\w .:,/()\u00b7-]", lambda found: f"#{ord(found[0])};", value)
