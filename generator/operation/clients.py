"""What clients have to be told: addresses, keys and names that change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from generator.diagnostics import listed
from generator.operation.firewall import lets_in
from generator.operation.needed import Change
from generator.operation.outcome import Outcome
from generator.operation.reading import GATEWAY
from generator.operation.state import CLIENT_KEY, Desired, Door

_LOOPBACK = ("http://127.", "https://127.")


def told(change: Change, outcome: Outcome) -> Iterator[str]:
    """One sentence for each thing that a client has to change."""
    before, after = change.before, change.after
    if not before.doors:
        return
    yield from _gone(before, after)
    yield from _moved(before, after)
    yield from _keys(before.doors, after.doors)
    known = {"", *(door.trusted for door in before.doors)}
    for trusted in {door.trusted: None for door in after.doors if door.trusted not in known}:
        if trusted.startswith("/"):
            yield f"clients get another certificate, {trusted}, and must trust whoever signed it"
        else:
            yield (
                f"clients must trust the authority of {trusted}: operator/certificates.sh root "
                "prints its certificate"
            )
    if _has_litellm(before) and after.doors and not _has_litellm(after):
        yield (
            "nginx answers in place of LiteLLM: other texts of errors, the engine in X-Served-By, "
            "and no translation to an API that an engine does not have"
        )
    for name in outcome.lost:
        engines = [e for e in before.engines if name in e.names and e.is_active]
        new = [change.switched.get(e.group) or after.by_group.get(e.group) for e in engines]
        now = dict.fromkeys(n for e in new if e and e.is_active for n in e.names)
        instead = f": what did answers to {listed(list(now), 'and')}" if now else ""
        yield f"nobody answers to {name} any more{instead}"


def _has_litellm(bundle: Desired) -> bool:
    return any(GATEWAY in door.units for door in bundle.doors)


def _gone(before: Desired, after: Desired) -> Iterator[str]:
    """The addresses that nothing answers at any more, and where the same names are answered."""
    urls = {door.url for door in after.doors} | {*_open(after)}
    answered: dict[str, dict[str, None]] = {}
    for door in before.doors:
        answered.setdefault(door.url, {}).update(dict.fromkeys(_names(before, door)))
    sent_on = {door.clear: door.url for door in after.doors}
    for url, names in answered.items():
        if url in sent_on:
            yield f"requests to {url} are sent on to {sent_on[url]}, which clients should use"
        elif url not in urls and not url.startswith(_LOOPBACK):
            where = _places(names, after)
            moved = ", ".join(f"{listed(own, 'and')} at {place}" for place, own in where.items())
            yield f"nothing answers at {url} any more{f': {moved}' if moved else ''}"


def _moved(before: Desired, after: Desired) -> Iterator[str]:
    """The names of addresses that must lead to another node."""
    was = {door.url: before.folders[door.node].address for door in before.doors}
    for door in after.doors:
        address = after.folders[door.node].address
        if was.get(door.url, address) != address and not door.url.startswith(_LOOPBACK):
            host = urlsplit(door.url).hostname
            yield f"{host} must lead to {address} ({door.node}), in place of {was[door.url]}"


def _open(bundle: Desired) -> Iterator[str]:
    """The addresses of engines that no firewall closes, whether or not they are for clients."""
    for engine in bundle.engines:
        node = bundle.folders[engine.nodes[0]]
        if lets_in(node.programs, engine.url.rpartition(":")[2]):
            yield engine.url


def _names(bundle: Desired, door: Door) -> Sequence[str]:
    """The names at a door; those of its engines if they wait for their turn."""
    return door.names or [n for group in door.groups for n in bundle.by_group[group].names]


def _places(names: Iterable[str], after: Desired) -> Mapping[str, list[str]]:
    """The names by the addresses at which they are answered."""
    found: dict[str, list[str]] = {}
    for name in names:
        urls = dict.fromkeys(door.url for door in after.doors if name in _names(after, door))
        if urls:
            found.setdefault(" and ".join(urls), []).append(name)
    return found


def _keys(before: Sequence[Door], after: Sequence[Door]) -> Iterator[str]:
    """The addresses whose requests need another key than those for the same names did."""
    for door in after:
        same = [old for old in before if {*old.names} & {*door.names}]
        if not same or door.url.startswith(_LOOPBACK) or any(old.key == door.key for old in same):
            continue
        if door.key == CLIENT_KEY:
            script = f"sudo /opt/sparkgen/proxy.sh add NAME on {door.node} makes one"
            yield f"requests to {door.url} need a key of their own now: {script}"
        elif door.key:
            yield f"requests to {door.url} need the engine's key now, {door.key} in secrets.env"
        else:
            yield f"requests to {door.url} need no key any more"


def pages(
    before: Mapping[str, str], after: Mapping[str, str], doors: Sequence[Door]
) -> Iterator[str]:
    """The same for pages, each with its title."""
    sends_on = any(door.clear for door in doors)
    for title, url in before.items():
        new = after.get(title, "")
        if sends_on and new.startswith("https:") and url.startswith("http:"):
            yield f"requests to {url}, where {title} was, are sent on to {new}"
        elif new != url:
            now = f": it is at {after[title]}" if title in after else ""
            yield f"nothing answers at {url} any more, where {title} was{now}"
