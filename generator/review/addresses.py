"""What clients notice: addresses that are no longer served, and keys that stay behind."""

from collections.abc import Iterator, Mapping

from generator.bundle.access import forwards
from generator.bundle.tree import Tree
from generator.site import Site
from generator.site.control_plane import LOOPBACK

_FACTS, _FORWARD, _API = "operator/site.env", "FORWARD=", "API"


def moved(before: Tree, site: Site) -> Iterator[str]:
    """What clients have to be urls for each published address of an API."""
    urls = {each.title: _url(f"{each.address}:{each.port}") for each in forwards(site)}
    served = {site.address, *(part.engine.api.url for part in site.parts)}
    now = {title: url for title, url in urls.items() if title.startswith(_API)}
    for title, url in _published(before).items():
        if url not in served and not url.startswith(_url(str(LOOPBACK))):
            found = {title: now[title]} if title in now else now
            where = ", ".join(f"{name} at {own}" for name, own in found.items())
            gone = f"nothing answers at {url} any more, where {title} was"
            yield f"{gone}: {where}" if where else gone


def left_behind(before: Tree, site: Site) -> Iterator[str]:
    """What a service that moves to another node leaves behind on the previous one."""
    for service in site.services.values():
        if not service.KEPT:
            continue
        entry = service.ENTRIES[0]
        was = [path.split("/")[0] for path in before if path.endswith(f"/{entry.path}")]
        now = [node.name for node in site.nodes if entry.instances(site, node)]
        if was and now and was != now:
            yield f"{service.KEPT} stay on {was[0]}: copy them to {now[0]}"


def _published(before: Tree) -> Mapping[str, str]:
    """The address of each API by its title, from the operator's folder."""
    lines = before[_FACTS].text.splitlines() if _FACTS in before else []
    found = (
        line.removeprefix(_FORWARD).split(maxsplit=3) for line in lines if line.startswith(_FORWARD)
    )
    return {each[3]: _url(each[2]) for each in found if len(each) == 4 and each[3].startswith(_API)}


def _url(address: str) -> str:
    return f"http://{address}"
