"""How nodes differ from the bundle that they were given, by what each difference means."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.adoption.captures import node_of
from generator.bundle.render import render
from generator.bundle.tree import File
from generator.capture import Capture
from generator.diagnostics import listed
from generator.drift import between, engines, installed, interfaces, units
from generator.drift.seen import Seen
from generator.drift.uncaptured import uncaptured
from generator.reports.remarks import Place, Remark
from generator.rules.registry import documented
from generator.site import Site
from generator.sitefile.lock import Lock


def drift(
    site: Site, captures: Sequence[Capture], lock: Lock | None, unlocked: Site | None = None
) -> list[Remark]:
    """What differs on the captured nodes, in the order of the nodes.

    A node may also have the bundle of the `unlocked` site, if it runs what is locked.
    """
    seen = seen_nodes(site, captures, unlocked)
    found = [remark for one in seen for remark in _node(one.site, one, lock)]
    return [*found, *between.between(site, seen), *_strangers(site, captures)]


def seen_nodes(site: Site, captures: Iterable[Capture], unlocked: Site | None = None) -> list[Seen]:
    """The captured nodes of a site beside what its bundle installs on them."""
    by_name = {capture.node.lower(): capture for capture in captures}
    found = []
    for one in (site, unlocked) if unlocked else (site,):
        files = _files(one)
        found += [
            Seen(one, node, by_name[node.name], node_of(by_name[node.name])[0], files[node.name])
            for node in one.nodes
            if node.name in by_name
        ]
    # Of several, the one that is installed; else that of the site itself.
    chosen = {seen.node.name: seen for seen in reversed(found)}
    chosen |= {seen.node.name: seen for seen in found if seen.is_recorded and not seen.stale}
    return [chosen[node.name] for node in site.nodes if node.name in chosen]


def _files(site: Site) -> Mapping[str, Mapping[str, File]]:
    """The files that a bundle installs, by node and path."""
    files: dict[str, dict[str, File]] = defaultdict(dict)
    for path, file in render(site, "").items():
        name, _, rest = path.partition("/")
        if rest.startswith(("etc/", "opt/")):
            files[name][rest] = file
    return files


def missing(site: Site, captures: Iterable[Capture]) -> list[str]:
    """The nodes without a capture."""
    names = {capture.node.lower() for capture in captures}
    return [node.name for node in site.nodes if node.name not in names]


def unseen(site: Site, captures: Iterable[Capture]) -> dict[str, list[str]]:
    """What captures don't show of their nodes, so that it was not compared."""
    found = {seen.node.name: list(uncaptured(site, seen)) for seen in seen_nodes(site, captures)}
    return {name: lacking for name, lacking in found.items() if lacking}


def _strangers(site: Site, captures: Iterable[Capture]) -> Iterator[Remark]:
    known = {node.name for node in site.nodes}
    for capture in captures:
        if capture.node.lower() not in known:
            message = f"{capture.node} is not a node of {site.name}"
            advice = f"its nodes are {listed(sorted(known), 'and')}"
            yield Remark(
                "SG860", documented()["SG860"].severity, message, advice, Place(capture.archive)
            )


def _node(site: Site, seen: Seen, lock: Lock | None) -> Iterator[Remark]:
    links = list(interfaces.interfaces(seen))
    yield from links
    yield from installed.owners(seen, "".join(remark.help for remark in links))
    yield from engines.settings(seen)
    yield from installed.files(seen)
    yield from installed.effects(site, seen)
    yield from units.units(site, seen)
    yield from engines.engines(site, seen, lock)
