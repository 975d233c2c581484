"""The review of a change: what differs, and the plan for it that was carried out on a model."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from generator.bundle.committed import Committed
from generator.bundle.escaping import sh
from generator.bundle.tree import Tree
from generator.diagnostics import listed
from generator.fit.assessment import Fit
from generator.fit.table import bars
from generator.operation.clients import pages, told
from generator.operation.needed import Change
from generator.operation.outcome import NOTHING_DONE, Outage, Outcome, outcome
from generator.operation.plan import plan
from generator.operation.reading import completed, desired, facts, had
from generator.operation.state import Desired, LiveCable
from generator.records import record, replace
from generator.review.changes import FileChange, changes
from generator.review.ends import Before
from generator.review.nodes import NodeReview, node_reviews
from generator.review.upgrade import Upgrade, upgrade
from generator.site import Site
from generator.site.switch_setup import SwitchSetup
from generator.sitefile.declaration import FIRST_HOST


@record
class Review:
    """Everything that a change of a site does; `files` are those that belong to no node.

    `was` is the site's previous name, empty if there was none, and `edits` what was changed in its
    file. `clients` is what people who use the site are told. `served` and `serves` tell whether an
    engine runs before and after. `headroom` is the memory left on the fullest node before and
    after, in GiB, None if not known; `bars` show the memory of the nodes if it changes. `upgrade`
    is what another version of sparkgen changes by itself.
    """

    name: str
    against: str
    was: str
    edits: tuple[str, ...]
    notes: tuple[str, ...]
    nodes: tuple[NodeReview, ...]
    files: tuple[FileChange, ...]
    outcome: Outcome
    headroom: tuple[float, float] | None = None
    bars: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    upgrade: Upgrade | None = None
    served: bool = True
    serves: bool = True

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.all_files)

    @property
    def is_removed(self) -> bool:
        """Whether the site is removed."""
        return bool(self.nodes) and all(node.state == "removed" for node in self.nodes)

    @property
    def all_files(self) -> tuple[FileChange, ...]:
        """Every file that differs."""
        return (*self.files, *(file for node in self.nodes for file in node.files))

    @property
    def downtime(self) -> str:
        """What clients notice, in words."""
        if not self.served:
            return "nothing runs yet" if self.serves else "no engine runs"
        if not self.serves:
            return "the API is gone"
        return "; ".join(_notices(self.outcome)) or "the API stays up"


def _notices(found: Outcome) -> Iterator[str]:
    """The engines that stop, the names that are not answered, and those that one engine answers."""
    yield from _stopped(found)
    for group, other in found.switched.items():
        yield f"{other} runs in place of {group} once it is loaded"
    if lost := [name for name in found.lost if name not in found.renamed]:
        yield f"nobody answers to {listed(lost, 'and')} any more"
    for new in dict.fromkeys(found.renamed.values()):
        names = [name for name, other in found.renamed.items() if other == new]
        yield f"{new} is answered in place of {listed(names, 'and')}"
    together: dict[Outage, list[str]] = {}
    for outage in found.outages:
        own = together.setdefault(replace(outage, name="", was=""), [])
        own += filter(None, (outage.was, outage.name))
    for outage, names in together.items():
        yield f"nobody answers to {listed([*dict.fromkeys(names)], 'and')} in {_while(outage)}"
    down = {*found.lost, *(outage.name for outage in found.outages)}
    if alone := [name for name in found.alone if name not in found.lost]:
        where = ", at its own address" if {*alone} & {*found.spread} else ""
        yield f"one engine alone answers to {listed(alone, 'and')} meanwhile{where}"
    elif found.stopped and not down:
        yield "the API stays up"


def _stopped(found: Outcome) -> Iterator[str]:
    """The engines that run again, become others, or are gone."""
    kept = {group: new for group, new in found.stopped.items() if group and new is not None}
    again = [group for group, new in kept.items() if new in ("", group) or group in kept.values()]
    gone = [group for group in found.stopped if group and group not in kept]
    if again:
        yield f"{listed(again, 'and')} restart{'s' * (len(again) == 1)}"
    for group, new in kept.items():
        if group not in again:
            yield f"{group} is replaced by {new}"
    if gone:
        yield f"{listed(gone, 'and')} {'is' if len(gone) == 1 else 'are'} gone"


def _while(outage: Outage) -> str:
    """`steps 3 to 6, time limit 23 min plus the time of step 4`."""
    limit = f"time limit {minutes(outage.seconds)}" if outage.seconds else ""
    hand = f"the time of {_numbered(outage.by_hand)}" if outage.by_hand else ""
    steps = _numbered(range(outage.first, outage.last + 1))
    return ", ".join(filter(None, [steps, " plus ".join(filter(None, [limit, hand]))]))


def _numbered(numbers: Sequence[int]) -> str:
    """`step 3`, or `steps 3 to 6 and 9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"step{'s' * (len(numbers) > 1)} {listed(words, 'and')}"


def minutes(seconds: int) -> str:
    """A duration in words."""
    return f"{-(-seconds // 60)} min" if seconds >= 60 else f"{seconds} s"


def change_of(site: Site, after: Tree, before: Before) -> Change:
    """What a plan is made for: both bundles, the first under the new names of its nodes."""
    names = renamed(addresses(site), _addresses(before.bundle))
    tree = _under_new_names(before.bundle.tree, names)
    members = [names.get(name, name) for name in before.bundle.nodes]
    new = tuple(node.name for node in site.nodes)
    hosts = {new_name: name for name, new_name in names.items()}
    found = changes(tree, after)
    by_node, _ = _by_node(found, [*new, *members])
    cables, now = _renamed_cables(_cables_of(before), names), _site_cables(site)
    wanted = desired(after, new, now, {})
    # Both bundles of most sites that are compared are the same.
    is_same = not found and not names and members == [*new] and cables == now
    old = wanted if is_same else desired(_as_now(tree, after), members, cables, names)
    if not all(folder.user for folder in old.folders.values()):
        known = _under_new_names(before.rebuilt, names) if before.rebuilt else after
        own = desired(known, members if before.rebuilt else new, cables, names)
        old = completed(old, own, is_same=before.rebuilt is not None)
    return Change(
        old,
        wanted,
        hosts,
        {name for name in new if by_node[name] or name in hosts},
        tuple(_preparations(site, before, tree, {change.path for change in found})),
        lambda name, need: had(tree, name, need),
    )


def review(site: Site, after: Tree, before: Before) -> Review:
    """Review what it means for a bundle to become `after`, the bundle of `site`."""
    change = change_of(site, after, before)
    names = {was: name for name, was in change.hosts.items()}
    rebuilt = _under_new_names(before.rebuilt, names) if before.rebuilt else None
    plain = _review(site.name, before, change, _under_new_names(before.bundle.tree, names), after)
    return replace(
        plain,
        notes=(*_notes(site, before.site, names), *plain.notes),
        headroom=_headroom(before.site, site),
        bars=_bars(before.site, site),
        upgrade=upgrade(before.bundle, rebuilt, plain.all_files),
    )


def removal(before: Before) -> Review:
    """Review what it means for a site to be removed."""
    tree, nothing = before.bundle.tree, Desired({}, (), (), ())
    old = desired(tree, before.bundle.nodes, (), {})
    change = Change(old, nothing, {}, (), (), lambda name, need: False)
    return _review(before.name, before, change, tree, {})


def _review(name: str, before: Before, change: Change, tree: Tree, after: Tree) -> Review:
    """What nodes, clients and other people notice of a change."""
    by_node, rest = _by_node(changes(tree, after), [*change.after.folders, *change.before.folders])
    found, over, said = NOTHING_DONE, before.left_over, list[str]()
    if change.setups or change.before is not change.after:
        found = outcome(change, plan(change))
        said = [*told(change, found), *pages(_pages(tree), _pages(after), change.after.doors)]
    return Review(
        name=name,
        against=before.title,
        was=before.name,
        edits=before.edits,
        notes=(f"{over} is left over; git rm -r {sh(over)}",) if over else (),
        nodes=tuple(node_reviews(change, by_node)),
        files=tuple(rest),
        outcome=found,
        clients=tuple(dict.fromkeys(said)),
        served=bool(change.now.serving),
        serves=bool(change.after.running),
    )


def _cables_of(before: Before) -> tuple[LiveCable, ...]:
    """The cables of a bundle, with their labels if its site is known."""
    if before.site:
        return _site_cables(before.site)
    return tuple(LiveCable(number, "", ends) for number, ends in enumerate(before.bundle.cables, 1))


def _site_cables(site: Site) -> tuple[LiveCable, ...]:
    return tuple(LiveCable(c.number, c.label or "", (str(c.a), str(c.b))) for c in site.cables)


def _renamed_cables(cables: Sequence[LiveCable], names: Mapping[str, str]) -> tuple[LiveCable, ...]:
    """The cables with the new names of renamed nodes."""
    ends = ((_renamed(c.ends[0], ":", names), _renamed(c.ends[1], ":", names)) for c in cables)
    return tuple(replace(cable, ends=own) for cable, own in zip(cables, ends, strict=True))


def _renamed(text: str, separator: str, names: Mapping[str, str]) -> str:
    """A path or the end of a cable with the new name of its node, which comes first."""
    node, found, rest = text.partition(separator)
    return f"{names.get(node, node)}{found}{rest}"


def _as_now(tree: Tree, after: Tree) -> Tree:
    """The files of a bundle, each applied as in the new one, which knows better."""
    return {
        path: file
        if path not in after or file.activation == after[path].activation
        else replace(file, activation=after[path].activation)
        for path, file in tree.items()
    }


def addresses(site: Site) -> dict[str, str]:
    """The management addresses by the names of the nodes."""
    return {node.name: str(node.management.address.ip) for node in site.nodes if node.management}


def _addresses(bundle: Committed) -> dict[str, str]:
    """The same as a bundle has them."""
    texts = {name: bundle.tree.get(f"{name}/etc/sparkgen/node.env") for name in bundle.nodes}
    known = {name: facts(file.text).get("MANAGEMENT") for name, file in texts.items() if file}
    return {name: found[0] for name, found in known.items() if found}


def renamed(after: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """The new names, by old name, of nodes that keep their address."""
    new = {address: name for name, address in after.items() if name not in before}
    return {n: new[a] for n, a in before.items() if n not in after and a in new}


_PAGE = re.compile(r'^ +WEBUI_URL: "(.*)"$', re.MULTILINE)


def _pages(tree: Tree) -> dict[str, str]:
    """The pages that people open, by their titles; each node has a dashboard of its own."""
    file = tree.get("operator/site.env")
    known = facts(file.text) if file else {}
    fields = (line.split(maxsplit=3) for line in known.get("FORWARD", ()))
    encrypted = known.get("ENCRYPTED", ())
    shown = (each for each in fields if len(each) == 4 and each[3][:3] not in ("API", "DGX"))
    own = {each[3]: f"http{'s' * (each[2] in encrypted)}://{each[2]}" for each in shown}
    files = (file for path, file in tree.items() if path.endswith("/opt/sparkgen/web-ui.yaml"))
    if found := next(filter(None, (_PAGE.search(file.text) for file in files)), None):
        own["web UI"] = found[1]
    return {title: url for title, url in own.items() if "//127." not in url}


def _preparations(site: Site, before: Before, tree: Tree, changed: Container[str]) -> Sequence[str]:
    """What has to be done on the fabric before the nodes: on its switches, or for the topology."""
    if not site.has_fabric:
        return ()
    if site.switch_setups:
        known = {s.name: s for s in before.site.switch_setups} if before.site else {}
        return [
            f"run {setup.path} on {setup.name}, in Safe Mode"
            if setup.title
            else f"set {setup.name} up as {setup.path} says"
            for setup in site.switch_setups
            if setup.path in changed and not _is_set_up(setup, known.get(setup.name))
        ]
    files = (tree.get(f"{name}/etc/netplan/40-cx7.yaml") for name in before.bundle.nodes)
    found = (re.search(r"mtu: (\d+)", file.text) for file in files if file)
    mtu = next((int(match[1]) for match in found if match), None)
    return site.topology.preparations(site.mtu, mtu)


def _is_set_up(setup: SwitchSetup, was: SwitchSetup | None) -> bool:
    """Whether a switch needs nothing new: it may go on carrying larger frames than it has to."""
    if was is None or (was.mtu or 0) < (setup.mtu or 0):
        return False
    return replace(was, mtu=setup.mtu, l2mtu=setup.l2mtu) == setup


def _by_node(
    found: Iterable[FileChange], names: Iterable[str]
) -> tuple[dict[str, list[FileChange]], list[FileChange]]:
    """Changes by the node whose folder they are in, and those that belong to no node."""
    by_node: dict[str, list[FileChange]] = {name: [] for name in names}
    rest: list[FileChange] = []
    for change in found:
        by_node.get(PurePosixPath(change.path).parts[0], rest).append(change)
    return by_node, rest


def _under_new_names(tree: Tree, names: Mapping[str, str]) -> Tree:
    """The files with the new names of their nodes' folders."""
    if not names:
        return tree
    paths = {path: _renamed(path, "/", names) for path in tree}
    return {new: replace(tree[path], path=new) for path, new in paths.items()}


def _notes(site: Site, old: Site | None, names: Mapping[str, str]) -> Iterable[str]:
    """Notes about nodes on cables that got another host number because of another node."""
    before = {names.get(node.name, node.name): node.host for node in old.nodes} if old else {}
    for default, node in enumerate(site.nodes, FIRST_HOST):
        host = before.get(node.name, node.host)
        if node.interfaces and host != node.host == default:
            yield (
                f"{node.name} has host number {node.host} in place of {host}: to leave it as it "
                f"was, add nodes at the end of the list, or write 'host: {host}'"
            )


def _bars(old: Site | None, site: Site) -> tuple[str, ...]:
    """The nodes' memory as bars, if it is known and has changed."""
    now, was = _memory(site), _memory(old)
    return bars(now) if now and now.nodes != (was.nodes if was else ()) else ()


def _headroom(old: Site | None, site: Site) -> tuple[float, float] | None:
    now, was = _memory(site), _memory(old)
    return (was.worst.left_gib, now.worst.left_gib) if now and was else None


def _memory(site: Site | None) -> Fit | None:
    """How the only model fits its nodes, as far as that is known."""
    fit = site.serving.memory if site and site.serving else None
    return fit if fit and fit.nodes else None
