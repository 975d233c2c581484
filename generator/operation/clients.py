"""What clients have to be told: addresses, keys and names that change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from generator.diagnostics import listed
from generator.operation.answers import stray
from generator.operation.firewall import lets_in
from generator.operation.needed import Change
from generator.operation.outcome import Outcome
from generator.operation.reading import GATEWAY
from generator.operation.state import CLIENT_KEY, WEB_UI, Desired, Door

_LOOPBACK = ("http://127.", "https://127.")


def told(change: Change, outcome: Outcome) -> Iterator[str]:
    """One sentence for each thing that a client has to change."""
    before, after = change.before, change.after
    yield from _addresses(change)
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
    has_litellm = [any(GATEWAY in d.units for d in bundle.doors) for bundle in (before, after)]
    if has_litellm == [True, False] and after.doors:
        yield (
            "nginx answers in place of LiteLLM: other texts of errors, the engine in X-Served-By, "
            "and no translation to an API that an engine does not have"
        )
    was, now = ({n: e.model for e in b.running.values() for n in e.names} for b in (before, after))
    for name, model in now.items():
        if model and was.get(name, model) not in ("", model):
            yield f"another model answers to {name} now, {model} in place of {was[name]}"
    yield from _alternatives(before, after)
    yield from _unguarded(before, after)
    yield from _names(change, outcome)


def _names(change: Change, outcome: Outcome) -> Iterator[str]:
    """The names that nobody answers to any more, or only since an engine does not check them."""
    answered = list(stray(change))
    for name, url, engine in answered:
        yield (
            f"requests for {name} to {url} are still answered, by {listed(engine.names, 'and')}: "
            f"{engine.ignores_names} does not check the name in chats and completions"
        )
    for name in (n for n in outcome.lost if all(n != known for known, *_ in answered)):
        groups = [g for g, engine in change.before.running.items() if name in engine.names]
        new = [change.continued.get(group) for group in groups]
        other = dict.fromkeys(n for e in new if e for n in e.names)
        instead = f"; what runs in its place answers to {listed([*other], 'and')}" if other else ""
        yield f"nobody answers to {name} any more{instead}"


def _alternatives(before: Desired, after: Desired) -> Iterator[str]:
    """The engines without a turn that are gone or new, with names that nothing else answers to."""
    known = {name for engine in after.running.values() for name in engine.names}
    for one, other, said, verb in (
        (before, after, "the alternative {0} is gone", "answered"),
        (after, before, "the alternative {0} is new: operator/switch.sh {0} runs it", "answers"),
    ):
        for group in sorted(one.by_group.keys() - one.running.keys() - other.by_group.keys()):
            names = [name for name in one.by_group[group].names if name not in {group, *known}]
            called = f", which {verb} to {listed(names, 'and')}" if names else ""
            yield f"{said.format(group)}{called}"


def _unguarded(before: Desired, after: Desired) -> Iterator[str]:
    """The nodes that lose what people rely on without asking it."""
    kept = [(name, after.folders[name]) for name in after.folders if name in before.folders]
    for unit, said in _GUARDS.items():
        had = [each for each in kept if unit in before.folders[each[0]].programs]
        if gone := [name for name, folder in had if unit not in folder.programs]:
            yield f"{said} any more: {listed(gone, 'and')}"
    doors, still = {door.url for door in before.doors}, {*_open(after)}
    shut = [url for url in _open(before) if url not in still | doors]
    new = {name for name, folder in kept if "firewall" in folder.programs} - {
        name for name, folder in before.folders.items() if "firewall" in folder.programs
    }
    own = [e.url for e in before.running.values() if e.url in shut and e.nodes[0] in new]
    if own:
        yield f"the firewall closes {listed(own, 'and')} to clients, who go through the gateway"
    if all(WEB_UI not in folder.programs for folder in after.folders.values()):
        for name in (n for n, folder in before.folders.items() if WEB_UI in folder.programs):
            yield f"the chat page is gone; its chats stay in the Docker volume {WEB_UI} on {name}"


_GUARDS = {
    "firewall": "no firewall closes ports",
    "sparkgen-monitoring": "Prometheus gets no metrics",
}


def _addresses(change: Change) -> Iterator[str]:
    """The addresses that nothing answers at any more, and the names that are answered elsewhere."""
    before, after = change.before, change.after
    answered = {(name, url) for name, url, _ in stray(change)}
    was, now = _answered(before), _answered(after)
    urls = {url for found in now.values() for url in found} | {*_open(after)}
    sent_on = {door.clear: door.url for door in after.doors}
    known: set[str] = set()
    for url in dict.fromkeys(door.url for door in before.doors if door.names):
        names = [name for name, found in was.items() if url in found]
        moved = [f"{listed(own, 'and')} at {place}" for place, own in _alike(names, now).items()]
        if url in sent_on:
            yield f"requests to {url} are sent on to {sent_on[url]}, which clients should use"
        elif url not in urls and not url.startswith(_LOOPBACK):
            yield f"nothing answers at {url} any more{': ' * bool(moved)}{', '.join(moved)}"
        else:
            continue
        known |= {*names}
    differing = [n for n, found in now.items() if n not in known and found != was.get(n)]
    for place, names in _alike(differing, now).items():
        left = ((n, url) for n in names for url in was.get(n, ()) if url not in now[n])
        gone = dict.fromkeys(url for n, url in left if (n, url) not in answered)
        instead = f", no longer at {listed(list(gone), 'and')}" if gone else ""
        verb = "is" if len(names) == 1 else "are"
        yield f"{listed(names, 'and')} {verb} answered at {place} now{instead}"


def _answered(bundle: Desired) -> Mapping[str, list[str]]:
    """The addresses by name, without those of engines that wait for their turn."""
    found: dict[str, list[str]] = {}
    for door in bundle.doors:
        local = f" on {door.node} alone" if door.url.startswith(_LOOPBACK) else ""
        for name in door.names:
            found.setdefault(name, []).append(f"{door.url}{local}")
    return found


def _alike(names: Iterable[str], answered: Mapping[str, Sequence[str]]) -> Mapping[str, list[str]]:
    """The names that are answered at the same addresses, by these."""
    found: dict[str, list[str]] = {}
    for name in names:
        if name in answered:
            found.setdefault(" and ".join(answered[name]), []).append(name)
    return found


def _moved(before: Desired, after: Desired) -> Iterator[str]:
    """The names of addresses that are new, or must lead to another node."""
    was = {urlsplit(door.url).hostname: before.folders[door.node].address for door in before.doors}
    for door in after.doors:
        host, address = urlsplit(door.url).hostname or "", after.folders[door.node].address
        if was.get(host, "") != address and not host.replace(".", "").isdigit():
            instead = f", in place of {was[host]}" if host in was else ""
            yield f"{host} must lead to {address} ({door.node}){instead}"


def _open(bundle: Desired) -> Iterator[str]:
    """The addresses of engines that no firewall closes, whether or not they are for clients."""
    for engine in bundle.running.values():
        node = bundle.folders[engine.nodes[0]]
        if lets_in(node.programs, engine.url.rpartition(":")[2]):
            yield engine.url


def _keys(before: Sequence[Door], after: Sequence[Door]) -> Iterator[str]:
    """The addresses whose requests need another key than those for the same names did."""
    known: dict[str, set[str]] = {}
    for door in before:
        for each in (door.url, *door.names):
            known.setdefault(each, set()).add(door.key)
    for door in after:
        needed = [known[n] for n in door.names if n in known] or [known.get(door.url, {""})]
        if door.url.startswith(_LOOPBACK) or all(door.key in keys for keys in needed):
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
    sent_on = {urlsplit(door.clear).hostname for door in doors if door.clear}
    for title, url in before.items():
        new = after.get(title, "")
        old, port = urlsplit(url), urlsplit(new).port
        if old.scheme == "http" and old.hostname in sent_on and old.port == port:
            yield f"requests to {url}, where {title} was, are sent on to {new}"
        elif new != url:
            now = f": it is at {after[title]}" if title in after else ""
            yield f"nothing answers at {url} any more, where {title} was{now}"
    yield from (f"{title} is at {url} now" for title, url in after.items() if title not in before)
