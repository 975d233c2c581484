"""How nodes are connected, according to the subnets of their interfaces."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import count

from generator.adoption.draft import Draft
from generator.adoption.found import GUESSED_PREFIX, FoundInterface, FoundNode, FoundVariable, Word
from generator.diagnostics import KeyPath
from generator.fabric.shapes import islands
from generator.fabric.topologies import DIRECT, PAIRS, SINGLE, SWITCH, TOPOLOGIES, without_a_switch
from generator.hardware import FABRIC_HALVES, HALVES, PORTS, RJ45
from generator.records import record
from generator.scaffold.outputs import is_address
from generator.sitefile.declaration import FIRST_HOST

_HALVES = {name: (half.port, half.half) for name, half in FABRIC_HALVES.items()}
_HCAS = {half.hca: (half.port, half.half) for half in FABRIC_HALVES.values()}
_SWITCH_NAME = "switch"
_BY_A_SWITCH = "that a switch joins the nodes, which nothing says: three or more may be a ring"
_POOL = IPv4Network("10.100.0.0/16")

NodePort = tuple[str, int]
Edge = tuple[NodePort, NodePort]


@record
class Wired:
    """A node, and its halves that are known to be cabled, by port and half."""

    node: FoundNode
    halves: Mapping[tuple[int, int], FoundInterface]

    @property
    def ports(self) -> list[int]:
        """The ports with a cable."""
        return sorted({port for port, _ in self.halves})

    def address(self, port: int, half: int) -> Word | None:
        """The first address of a half."""
        interface = self.halves.get((port, half))
        return interface.addresses[0] if interface and interface.addresses else None


def wired(node: FoundNode) -> Wired:
    """The halves that have an address or a link, and do not lead out of the cluster."""
    uplink = _uplink(node)
    found = {
        _HALVES[one.name]: one
        for one in node.interfaces
        if one.name in _HALVES and (one.addresses or one.has_link)
    }
    return Wired(node, {half: one for half, one in found.items() if half[0] != uplink})


def _uplink(node: FoundNode) -> int | None:
    """The port with the node's default route, if any."""
    return _HALVES[node.gateway][0] if node.gateway in _HALVES else None


def named_ports(variables: Iterable[FoundVariable]) -> tuple[int, ...]:
    """The ports whose interfaces or devices are named in the values of variables."""
    known = {**_HALVES, **_HCAS}
    values = [v.value.text for v in variables if "IFNAME" in v.name or "HCA" in v.name]
    texts = [part.lstrip("=^").partition(":")[0] for word in values for part in word.split(",")]
    return tuple(sorted({known[text][0] for text in texts if text in known}))


class FoundCabling:
    """The cables between nodes: those proven by subnets, and those that are a guess.

    `groups` are the nodes of each engine, if there are several. `is_mesh` means that somebody says
    that no switch joins them.
    """

    def __init__(
        self,
        nodes: Sequence[Wired],
        ports: Sequence[int],
        ranks: int,
        stated: Sequence[Edge] = (),
        groups: Sequence[Sequence[str]] = (),
        is_mesh: bool = False,
    ) -> None:
        self.nodes = list(nodes)
        self._is_mesh = is_mesh
        self._stated = [*stated] or self._detected()
        self._groups = groups
        self._ports = tuple(ports) or tuple(self.nodes[0].ports) or (0,)
        self.kind = self._kind(ranks)
        # It is one node only as far as anybody says.
        self.is_open = False
        self.guessed: list[str] = []
        self._fill_up(ranks)
        self.cables = self._cables()

    @property
    def is_alone(self) -> bool:
        """Whether it is one node."""
        return TOPOLOGIES[self.kind].most == 1

    @property
    def is_switched(self) -> bool:
        """Whether its cables end at a switch."""
        return TOPOLOGIES[self.kind].switched

    @property
    def is_stated(self) -> bool:
        """Whether its cables are stated, or were detected."""
        return bool(self._stated) or any(w.node.neighbors for w in self.nodes)

    @property
    def is_surveyed(self) -> bool:
        """Whether the nodes themselves listed their interfaces, so that there are no others."""
        return any(len(w.node.interfaces) > 1 for w in self.nodes)

    def part(self, names: Sequence[str]) -> "FoundCabling":
        """The cabling of some of the nodes: their cables, and the ports they use."""
        own = copy(self)
        own.cables = [
            cable
            for cable in self.cables
            if all(name in names or self.is_switched for name, _ in cable)
        ]
        ends = {end for cable in own.cables for end in cable}
        by_name = {w.node.name: w for w in self.nodes}
        own.nodes = [
            Wired(w.node, {h: one for h, one in w.halves.items() if (name, h[0]) in ends})
            for name, w in ((name, by_name[name]) for name in names)
        ]
        own.kind = self._kind_of(names, own.cables)
        return own

    def _kind_of(self, names: Sequence[str], edges: Sequence[Edge]) -> str:
        """The kind of topology that connects some of the nodes."""
        if len(names) == 1:
            return SINGLE
        joined = [] if self.is_switched else [(a, b) for (a, _), (b, _) in edges]
        found = [*islands(names, joined)]
        if len(found) > 1:
            return self.kind
        is_pair = found[0].kind == DIRECT and not TOPOLOGIES[self.kind].reaches_all
        return PAIRS if is_pair else found[0].kind

    def _kind(self, ranks: int) -> str:
        """The kind of topology."""
        total = max(len(self.nodes), ranks)
        names = {w.node.name for w in self.nodes}
        heard = {
            neighbor.name
            for w in self.nodes
            for name, neighbor in w.node.neighbors.items()
            if name in _HALVES
        }
        if total > 1 and heard and not heard <= names and len(self.nodes) > 1:
            return SWITCH
        if self._groups:
            return self._kind_of_groups()
        if len(self.nodes) == 1 and ranks <= 1:
            return _without_a_switch(1 + len(self._addressed()))
        if total == 1 or len(self._stated) == total:
            return _without_a_switch(total)
        if any(len({node for node, _ in ends}) > 2 for ends in self._shared().values()):
            return SWITCH
        if total == 2 or (self._is_mesh and not self._addressed()):
            return _without_a_switch(total)
        edges = self._edges(self.nodes)
        both = all(len(w.ports) == 2 for w in self.nodes)
        is_triangle = total == 3 and not self._addressed() and len(self._ports) == 2
        is_closed = both and bool(edges or self._addressed())
        return _without_a_switch(total) if is_closed or is_triangle else SWITCH

    def _kind_of_groups(self) -> str:
        """The kind of topology that connects the nodes of several engines, some without a cable."""
        if any(len({node for node, _ in ends}) > 2 for ends in self._shared().values()):
            return SWITCH
        edges = {frozenset(name for name, _ in edge) for edge in self._edges(self.nodes)}
        ends = Counter(name for edge in edges for name in edge)
        if not edges:
            is_alone = all(len(names) == 1 for names in self._groups)
            return SINGLE if is_alone else SWITCH
        if len(edges) == 1:
            return _without_a_switch(2)
        if set(ends.values()) == {1}:
            return PAIRS
        return _without_a_switch(len(ends)) if set(ends.values()) == {2} else SWITCH

    def _addressed(self) -> list[int]:
        return [p for p in PORTS if any(w.address(p, h) for w in self.nodes for h in HALVES)]

    def _shared(self) -> dict[IPv4Network, list[NodePort]]:
        """The ports on each subnet."""
        found: dict[IPv4Network, list[NodePort]] = defaultdict(list)
        for w in self.nodes:
            for (port, half), _ in w.halves.items():
                if word := w.address(port, half):
                    found[IPv4Interface(word.text).network].append((w.node.name, port))
        return found

    def _detected(self) -> list[Edge]:
        """Pairs of ports one of which hears the other."""
        names = {w.node.name for w in self.nodes}
        found: dict[frozenset[NodePort], Edge] = {}
        for w in self.nodes:
            for name, neighbor in w.node.neighbors.items():
                if name in _HALVES and neighbor.interface in _HALVES and neighbor.name in names:
                    there = (neighbor.name, _HALVES[neighbor.interface][0])
                    ends = ((w.node.name, _HALVES[name][0]), there)
                    found.setdefault(frozenset(ends), ends)
        return list(found.values())

    def _edges(self, nodes: Sequence[Wired]) -> list[Edge]:
        """The stated or detected cables, or else pairs of ports that are alone in a subnet."""
        if self._stated:
            return self._stated
        found: dict[Edge, None] = {}
        for ends in self._shared().values():
            unique = list(dict.fromkeys(ends))
            if len({name for name, _ in unique}) != 2:
                continue
            first = [end for end in unique if end[0] == unique[0][0]]
            second = [end for end in unique if end[0] != unique[0][0]]
            for a, b in zip(first, second, strict=False):
                found[a, b] = None
        return list(found) or self._pairs_of_groups()

    def _pairs_of_groups(self) -> list[Edge]:
        """The cables of engines on two nodes, if none has more and no address is known."""
        if any(len(names) > 2 for names in self._groups) or self._addressed():
            return []
        port = self._ports[0]
        return [((a, port), (b, port)) for a, b in (n for n in self._groups if len(n) == 2)]

    def _fill_up(self, ranks: int) -> None:
        """Add the nodes that must exist besides the known ones."""
        fewest = TOPOLOGIES[self.kind].fewest
        names = {w.node.name for w in self.nodes}
        spare = (f"spark{n}" for n in count(1) if f"spark{n}" not in names)
        while len(self.nodes) < max(fewest, ranks):
            name = next(spare)
            self.guessed.append(name)
            self.nodes.append(Wired(FoundNode(name), {}))

    def _cables(self) -> list[Edge]:
        """The cables; those of a ring in the order of the nodes."""
        names = [w.node.name for w in self.nodes]
        if self.is_alone:
            return []
        if self.is_switched:
            # A node that is a group by itself may have no cable.
            is_known = bool(self._groups and self._addressed())
            return [
                ((w.node.name, port), (_SWITCH_NAME, number))
                for port in sorted({p for w in self.nodes for p in w.ports}) or self._ports
                for number, w in enumerate(self.nodes, start=1 + port * len(self.nodes))
                if port in (w.ports if is_known else w.ports or self._ports)
            ]
        edges = self._edges(self.nodes)
        if self._groups:
            joined = {name for edge in edges for name, _ in edge}
            return self._around(edges) if len(edges) == len(joined) > 2 else edges
        if TOPOLOGIES[self.kind].most == 2:
            head = self.nodes[0].ports or list(self._ports)
            worker = self.nodes[1].ports or head
            guessed = [((names[0], a), (names[1], b)) for a, b in zip(head, worker, strict=False)]
            return edges or guessed
        if len(edges) == len(names):
            return self._around(edges)
        return [((a, 0), (b, 1)) for a, b in zip(names, [*names[1:], names[0]], strict=True)]

    def _around(self, edges: list[Edge]) -> list[Edge]:
        """The edges of a ring, starting from the head, and the nodes in that order."""
        left, here = list(edges), self.nodes[0].node.name
        ordered: list[Edge] = []
        port: int | None = 0
        while left:
            own = [(a, b) if a[0] == here else (b, a) for a, b in left if here in (a[0], b[0])]
            if not own:
                return edges
            if not ordered:
                # Both directions are the same ring: the one that follows the nodes' order is used.
                second = self.nodes[1].node.name
                own.sort(key=lambda edge: edge[1][0] != second)
                port = own[0][0][1] if own[0][1][0] == second else port
            step = next((edge for edge in own if edge[0][1] == port), own[0])
            left = [edge for edge in left if set(edge) != set(step)]
            ordered.append(step)
            here, port = step[1][0], 1 - step[1][1]
        by_name = {w.node.name: w for w in self.nodes}
        around = [a[0] for a, _ in ordered]
        self.nodes = [by_name[name] for name in dict.fromkeys([*around, *by_name])]
        return ordered

    def pair(self, cable: Edge, half: int) -> list[Word | None]:
        """The addresses of a cable's ends that are nodes."""
        by_name = {w.node.name: w for w in self.nodes}
        return [by_name[name].address(port, half) for name, port in cable if name in by_name]


def write(draft: Draft, cabling: FoundCabling, interface: str, plane: str) -> None:
    """Write nodes, cables and topology; `plane` is where control traffic goes, if that is known."""
    order = [w.node for w in cabling.nodes]
    plain = is_pooled(cabling)
    for number, node in enumerate(order):
        _node(draft, number, node, interface, node.name in cabling.guessed)
        host = _host(cabling, node.name) if plain else None
        if host is not None and host != FIRST_HOST + number:
            draft.put(("nodes", number, "host"), host)
    draft.put(("topology",), {})
    for number, cable in enumerate(cabling.cables):
        _cable(draft, number, cabling, cable, plain)
    place = next((i.place for w in cabling.nodes for i in w.halves.values()), None)
    guess = "" if place or cabling.is_stated or not cabling.is_switched else _BY_A_SWITCH
    if cabling.is_open:
        draft.need(("topology", "kind"), "how many nodes there are, and what joins them", SINGLE)
    else:
        draft.put(("topology", "kind"), cabling.kind, place, guess)
    if cabling.is_alone:
        return
    if plain:
        pool = _pool(cabling)
        if pool and pool != _POOL:
            first = (word for cable in cabling.cables for word in cabling.pair(cable, 0) if word)
            draft.put(("topology", "subnet_pool"), str(pool), next(first, None))
    uplinks = [
        f"{w.node.name}:p{port}" for w in cabling.nodes if (port := _uplink(w.node)) is not None
    ]
    if uplinks:
        draft.put(("topology", "uplinks"), uplinks)
    _halves(draft, cabling)
    _mtu(draft, cabling)
    _control(draft, cabling, plane)


def _control(draft: Draft, cabling: FoundCabling, plane: str) -> None:
    """Write where control traffic goes, and what that needs."""
    usual = TOPOLOGIES[cabling.kind].control_plane
    if plane and plane != usual:
        draft.put(("topology", "control_plane"), plane)
    for number, wired in enumerate(cabling.nodes):
        if (plane or usual) == "management" and not draft.get("nodes", number, "management"):
            path = ("nodes", number, "management")
            draft.put((*path, "interface"), RJ45)
            why = f"where {wired.node.name} is reached"
            draft.need((*path, "address"), why, f"10.250.250.{FIRST_HOST + number}/24")


def management(node: FoundNode, wanted: str = "") -> tuple[str, Word] | None:
    """The interface through which people reach a node, and its address."""
    if node.management and is_address(f"{node.management.text}/24"):
        word = node.management
        return RJ45, Word(f"{word.text}/24", word.file, word.span)
    found = [
        one
        for one in node.interfaces
        if one.addresses
        and one.name.startswith(("en", "wl", "eth"))
        and (one.name not in _HALVES or one.name == node.gateway)
    ]
    found.sort(key=lambda one: (one.name != wanted, one.name != RJ45, one.name.startswith("wl")))
    return (found[0].name, found[0].addresses[0]) if found else None


def _node(draft: Draft, number: int, node: FoundNode, wanted: str, guessed: bool) -> None:
    path = ("nodes", number)
    draft.put((*path, "name"), node.name, node.place)
    if known := management(node, wanted):
        name, word = known
        draft.put((*path, "management", "interface"), name, word)
        draft.put((*path, "management", "address"), word.text, word)
        if node.management:
            draft.comments[(*path, "management")] = GUESSED_PREFIX
    if guessed:
        draft.guessed.add(path)
        draft.guessed_nodes.add(node.name)
        draft.guesses.append(f"{node.name}, which no file is of")
        draft.comments[path] = f"guessed: {draft.guesses[-1]}"
    if node.user:
        draft.put((*path, "user"), node.user.text, node.user)
    if node.visible_gib and node.visible_gib < 128:
        if node.visible_gib < 80:
            draft.put((*path, "memory_gb"), 64)
        draft.put((*path, "visible_gib"), node.visible_gib)
    if node.release:
        draft.put((*path, "os"), node.release.text, node.release)


def _cable(draft: Draft, number: int, cabling: FoundCabling, cable: Edge, plain: bool) -> None:
    path: KeyPath = ("cabling", number)
    ends = [f"{name}:{port if name == _SWITCH_NAME else f'p{port}'}" for name, port in cable]
    known = [pair for half in HALVES if any(pair := cabling.pair(cable, half))]
    place = next((word for pair in known for word in pair if word), None)
    draft.put((*path, "endpoints"), ends, place)
    if any(name in draft.guessed_nodes for name, _ in cable):
        draft.doubtful.add((*path, "endpoints"))
    if not (known or cabling.is_stated):
        draft.comments[path] = "guessed: the ports that it joins"
    elif any(word.remark for pair in known for word in pair if word):
        draft.comments[path] = GUESSED_PREFIX
    if plain or not known:
        return
    if len(known) == 1 and not cabling.is_surveyed:
        why = "the second halves' addresses, in a subnet of their own"
        for end in range(2):
            draft.todo[(*path, "addresses", 1, end)] = why
        draft.comments[path] = f"TODO: {why}"
        known.append([word and _behind(word) for word in known[0]])
    _addresses(draft, path, cable, known)


def _addresses(
    draft: Draft, path: KeyPath, cable: Edge, known: Sequence[Sequence[Word | None]]
) -> None:
    """Write the addresses of a cable's halves; one that nobody states is still to be written."""
    taken = {IPv4Interface(word.text).ip for words in known for word in words if word}
    for half, words in enumerate(known):
        texts = [word.text if word else None for word in words]
        address = next(text for text in texts if text)
        for end, text in enumerate(texts):
            if text is None:
                guess = texts[end] = _beside(IPv4Interface(address), taken)
                draft.guessed.add((*path, "addresses", half, end))
                if guess in texts[:end] + texts[end + 1 :]:
                    # The subnet has no room for another address.
                    draft.doubtful.add((*path, "addresses", half))
                why = draft.todo[(*path, "addresses", half, end)] = (
                    f"the address of {cable[end][0]}"
                )
                draft.comments.setdefault(path, f"TODO: {why}")
        draft.put((*path, "addresses", half), texts, next(word for word in words if word))
        for end, word in enumerate(words):
            if word:
                draft.origins[(*path, "addresses", half, end)] = word


def _behind(word: Word) -> Word:
    """The same host in the next subnet."""
    known = IPv4Interface(word.text)
    moved = known.ip + known.network.num_addresses
    return Word(f"{moved}/{known.network.prefixlen}", word.file, word.span)


def _beside(known: IPv4Interface, taken: set[IPv4Address]) -> str:
    """Another address of the same subnet, which is then taken."""
    ends = {known.network.network_address, known.network.broadcast_address}
    near = (known.ip + step for distance in range(1, 9) for step in (distance, -distance))
    found = next((ip for ip in near if ip in known.network and ip not in taken | ends), known.ip)
    taken.add(found)
    return f"{found}/{known.network.prefixlen}"


def _halves(draft: Draft, cabling: FoundCabling) -> None:
    """Write whether second halves have addresses: all of them, or none."""
    second = [w.address(p, 1) for w in cabling.nodes for p in w.ports]
    if any(w.address(p, 0) for w in cabling.nodes for p in w.ports) and not all(second):
        cabled = [w for w in cabling.nodes if w.ports]
        bare = [w for w in cabled if not any(w.address(port, 1) for port in w.ports)]
        place = next((i.place for w in bare for i in w.halves.values()), None)
        if len(bare) == len(cabled) and cabling.is_surveyed:
            draft.put(("topology", "halves"), "first", place)


def _mtu(draft: Draft, cabling: FoundCabling) -> None:
    words = [i.mtu for w in cabling.nodes for i in w.halves.values() if i.mtu]
    sizes = {word.text for word in words}
    if len(sizes) > 1:
        draft.lose(f"that interfaces differ in MTU: {', '.join(sorted(sizes))}", words[0])
    if words and words[0].text.isdecimal() and int(words[0].text) != TOPOLOGIES[cabling.kind].mtu:
        draft.put(("topology", "mtu"), int(words[0].text), words[0])


def _subnets(cabling: FoundCabling) -> list[tuple[int, IPv4Interface]] | None:
    """Each address with the number of its subnet in a pool; None if an end has none."""
    found = []
    for number, cable in enumerate(cabling.cables):
        for half in HALVES:
            for word in cabling.pair(cable, half):
                if word is None:
                    return None
                index = 2 * (cable[0][1] if cabling.is_switched else number) + half
                found.append((index, IPv4Interface(word.text)))
    return found


def is_pooled(cabling: FoundCabling) -> bool:
    """Whether the addresses are those that follow from a pool and a host number per node."""
    known = _subnets(cabling)
    pool = _pool(cabling)
    if not known or not pool:
        return False
    hosts = {w.node.name: _host(cabling, w.node.name) for w in cabling.nodes if w.ports}
    return None not in hosts.values() and all(
        address.network == IPv4Network((int(pool.network_address) + (index << 8), 24))
        for index, address in known
    )


def _pool(cabling: FoundCabling) -> IPv4Network | None:
    known = _subnets(cabling)
    return IPv4Network(f"{known[0][1].ip}/16", strict=False) if known else None


def _host(cabling: FoundCabling, name: str) -> int | None:
    """The common host number of a node on all its subnets."""
    found = {
        int(IPv4Interface(word.text).ip) & 255
        for w in cabling.nodes
        if w.node.name == name
        for port, half in w.halves
        if (word := w.address(port, half))
    }
    return found.pop() if len(found) == 1 else None


def _without_a_switch(nodes: int) -> str:
    """The topology that connects this many nodes without a switch; for more, the switch."""
    return next(iter(without_a_switch(nodes)), SWITCH)
