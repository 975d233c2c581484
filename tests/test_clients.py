"""What clients are told of a change, against what the two runbooks say about addresses.

The runbooks are rendered from the site, and what is told comes from the nodes' files.
"""

import re
from collections.abc import Iterator, Mapping

import pytest
from draws import sample
from plans import Built, golden, random_plans

from generator.bundle.tree import Tree
from generator.review.impact import review
from generator.services.proxy import Proxy
from generator.services.web_ui import WebUi

_SERVES = re.compile(r"serves?\s(`[^\n]*)\n?")
_API = re.compile(r"^- \*\*API\*\*.*?: (http\S+), for (\w.*?);\n(.*)$", re.MULTILINE)
_GROUP = re.compile(r"^\| \[\S+\]\((\S+)\) \| [^|]* \| ([^|]*) \| [^|]* \| (http\S+) \|$", re.M)
_PROXY = re.compile(r"^- \*\*Proxy\*\*: (http\S+), for clients", re.MULTILINE)
_PAGE = re.compile(r"^- \*\*Chat page\*\* \(Open WebUI\): (http[^\s,]+)", re.MULTILINE)
_CERTIFICATE = re.compile(r"^Clients get the certificate `(\S+)`", re.MULTILINE)
_TURNS = re.compile(r"^- (.* or .*): the site runs (\S+)\.$", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_OWN = "a key of its own"


def text(tree: Tree, path: str) -> str:
    return tree[path].text


def answered(tree: Tree) -> Mapping[str, set[tuple[str, str]]]:
    """The names, each with the addresses of clients and the key that they need there."""
    readme = text(tree, "README.md")
    found: dict[str, set[tuple[str, str]]] = {}
    proxy = _PROXY.search(readme)
    pages = [("README.md", names) for names in _SERVES.findall(readme)[:1]]
    pages = [(path, names) for path, names, _ in _GROUP.findall(readme)] or pages
    waiting = {g for line, active in _TURNS.findall(readme) for g in line.split(" or ")} - {
        active for _, active in _TURNS.findall(readme)
    }
    for path, names in pages:
        if path[len("operator/groups/") :].removesuffix(".md") in waiting:
            continue
        page = text(tree, path)
        url, _, key = _API.findall(page)[0]
        known = (url, "" if "no key" in key else "the engine's")
        for name in _NAME.findall(names.partition(" (")[0]):
            found.setdefault(name, set()).add((proxy[1], _OWN) if proxy else known)
    return found


def differences(before: Tree, after: Tree) -> Iterator[tuple[str, ...]]:
    """What differs for clients, as words of which each has to be in one sentence."""
    was, now = answered(before), answered(after)
    old_urls, new_urls = ({url for each in all_.values() for url, _ in each} for all_ in (was, now))
    for url in old_urls - new_urls:
        yield (url,)
    for name in was.keys() | now.keys():
        old, new = ({url for url, _ in each.get(name, ())} for each in (was, now))
        yield from ((name, url) for url in new - old)
        if name not in now:
            yield (name,)
        keys = {key for _, key in was.get(name, ())}
        yield from ((url, "key") for url, key in now.get(name, ()) if keys and key not in keys)
    for pattern in (_PAGE, _CERTIFICATE):
        found, wanted = (pattern.search(text(tree, "README.md")) for tree in (before, after))
        for one, other in ((found, wanted), (wanted, found)):
            if one and one[1] != (other[1] if other else "") and (other or pattern is _PAGE):
                yield (one[1],)


def untold(before: Built, after: Built) -> list[str]:
    """The differences that clients are not told of."""
    found = review(after.site, after.tree, before.before).clients
    return [
        f"{words}: {found}"
        for words in differences(before.tree, after.tree)
        if not any(url_is_local(words) or all(w in said for w in words) for said in found)
    ]


def url_is_local(words: tuple[str, ...]) -> bool:
    """Whether nobody else can reach it."""
    return any("//127." in word for word in words)


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(sample(2)))
def test_random_changes(seed: int) -> None:
    differing = 0
    for what, before, after in random_plans(2000 + seed, 24):
        assert untold(before, after) == [], what
        differing += bool(list(differences(before.tree, after.tree)))
    assert differing


def test_from_one_golden_site_to_another() -> None:
    sites = [(name, site) for name, site in golden() if site.site.parts]
    for index, (name, before) in enumerate(sites):
        other, after = sites[(index * 11 + 5) % len(sites)]
        assert untold(before, after) == [], f"{name} to {other}"


def test_runbooks_are_read_as_the_sites_say() -> None:
    """Otherwise nothing would ever differ."""
    for name, built in golden():
        site = built.site
        found = answered(built.tree) if site.parts else {}
        active = [part for part in site.parts if part.is_active]
        names = {n for part in active for n in (part.model.served_name, *part.model.aliases)}
        assert found.keys() == names, name
        proxy = Proxy.of(site)
        urls = {proxy.url} if proxy else {part.engine.api.url for part in active}
        assert {url for each in found.values() for url, _ in each} == urls, name
        chat = WebUi.of(site)
        page = _PAGE.search(text(built.tree, "README.md"))
        assert (page and page[1]) == (chat and chat.url), name
