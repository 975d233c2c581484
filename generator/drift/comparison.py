"""Captured nodes compared with what their bundle installs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.adoption.captures import node_of
from generator.bundle.render import render
from generator.bundle.tree import File
from generator.capture import Capture
from generator.diagnostics import listed
from generator.drift import between, engines, installed, interfaces, units
from generator.drift.seen import UNCAPTURED, Seen, remark
from generator.records import record
from generator.reports.remarks import Place, Remark
from generator.site import Site
from generator.sitefile.lock import Lock

# What a bundle describes, and no capture has.
NEVER = (
    "the values of secrets, who owns files, how containers log, are checked and get the GPU and "
    "temporary folders, the firewall's rules of others, and what is in weights beside the size of "
    "those that a catalog has"
)


@record
class Drift:
    """What differs, in the order of the nodes, and what captures don't show of their nodes."""

    differences: list[Remark]
    uncaptured: Mapping[str, list[str]]


def drift(
    site: Site, captures: Sequence[Capture], lock: Lock | None, unlocked: Site | None = None
) -> Drift:
    """Compare captured nodes with their site.

    A node may also have the bundle of the `unlocked` site, if it runs what is locked.
    """
    seen = seen_nodes(site, captures, unlocked)
    found: list[Remark] = []
    lacking: dict[str, list[str]] = {}
    for one in seen:
        for difference in _node(one.site, one, lock):
            if difference.rule != UNCAPTURED:
                found.append(difference)
            elif difference.message not in lacking.setdefault(one.node.name, []):
                lacking[one.node.name].append(difference.message)
    return Drift([*found, *between.between(site, seen), *_strangers(site, captures)], lacking)


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


def _strangers(site: Site, captures: Iterable[Capture]) -> Iterator[Remark]:
    known = {node.name for node in site.nodes}
    for capture in (capture for capture in captures if capture.node.lower() not in known):
        message = f"{capture.node} is not a node of {site.name}"
        advice = f"its nodes are {listed(sorted(known), 'and')}"
        yield remark("SG860", message, advice, Place(capture.archive))


def _node(site: Site, seen: Seen, lock: Lock | None) -> Iterator[Remark]:
    yield from interfaces.interfaces(seen)
    yield from installed.owners(seen)
    yield from engines.settings(seen)
    yield from installed.files(seen)
    yield from installed.effects(site, seen)
    yield from units.units(site, seen)
    yield from engines.engines(site, seen, lock)
