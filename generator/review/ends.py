"""The bundles that a change starts from, and which of them is whose."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from generator.bundle.committed import Committed, Content, bundle_of
from generator.bundle.output import FolderContents
from generator.bundle.plan import MANIFEST
from generator.bundle.tree import Tree
from generator.records import record
from generator.site import Site


@record
class Before:
    """A bundle to compare with: its title, its files, and its site if that is known.

    `left_over` is its folder, if the site now has another folder or none. `rebuilt` is what this
    version makes of the same site, if another version has built the bundle.
    """

    title: str
    name: str
    bundle: Committed
    site: Site | None = None
    edits: tuple[str, ...] = ()
    left_over: str = ""
    rebuilt: Tree | None = None


class Side(Protocol):
    """Bundles by the names of their sites."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the bundles."""

    def files(self, name: str) -> Mapping[str, Content]:
        """The files of a bundle; none if it doesn't exist."""

    def title(self, name: str) -> str:
        """The title of a bundle."""


@record
class FolderSide:
    """The bundles below a folder, as they are now."""

    out: Path

    @property
    def names(self) -> Sequence[str]:
        """The folders with a manifest."""
        return sorted(path.parent.name for path in self.out.glob(f"*/{MANIFEST}"))

    def files(self, name: str) -> Mapping[str, Content]:
        """The files in the folder; raises OutputError."""
        return FolderContents(self.out / name)

    def title(self, name: str) -> str:
        """`out/lab`."""
        return str(self.out / name)


def abandoned(end: Side, sites: Mapping[str, Path]) -> dict[str, Committed]:
    """The bundles whose site file is gone, or now has another site.

    `sites` has the sites in question, by name, with their files.
    """
    files = {path.resolve() for path in sites.values()}
    folders = {path.parent for path in files}
    found = {}
    for name in end.names:
        if name not in sites:
            bundle = bundle_of(end.files(name), {})
            # In the folder of a site, or in one beside it.
            name_there = f"*/{bundle.site_file}"
            places = (place for folder in folders for place in folder.parent.glob(name_there))
            if not bundle.site_file or all(place in files for place in places):
                found[name] = bundle
    return found


def reason(bundle: Committed, sites: Mapping[str, Path]) -> str:
    """Why a bundle has no site: its file is gone, or now has another site."""
    here = {path.name: (path, name) for name, path in sites.items()}
    if bundle.site_file in here:
        path, name = here[bundle.site_file]
        return f"for {path} is the site {name}"
    folders = {path.parent for path in sites.values()} or {Path()}
    return f"for there is no {' or '.join(str(f / bundle.site_file) for f in sorted(folders))}"


def previous(
    new: Sequence[tuple[Site, Path, Tree]], end: Side, out: Path
) -> tuple[list[Before], list[Before]]:
    """The previous bundle of each site with its file, and those whose sites are gone.

    Those of sites without one have no name.
    """
    spare = abandoned(end, {site.name: file for site, file, _ in new})
    found = []
    for site, file, tree in new:
        name = _origin(site, file, end, spare)
        bundle = bundle_of(end.files(name or site.name), tree)
        left = _left_over(out, name) if name in spare else ""
        found.append(Before(end.title(name or site.name), name or "", bundle, left_over=left))
        spare.pop(name or "", None)
    return found, [
        Before(end.title(name), name, bundle, left_over=_left_over(out, name))
        for name, bundle in spare.items()
    ]


def _left_over(out: Path, name: str | None) -> str:
    return str(out / name) if name and (out / name).exists() else ""


def _origin(site: Site, file: Path, end: Side, spare: Mapping[str, Committed]) -> str | None:
    """The site's previous bundle: by its name, by its file's, or with the same nodes."""
    if site.name in end.names:
        return site.name
    named = (name for name, bundle in spare.items() if bundle.site_file == file.name)
    alike = (name for name, bundle in spare.items() if _has_nodes_of(bundle, site))
    return next(named, next(alike, None))


def _has_nodes_of(bundle: Committed, site: Site) -> bool:
    """Whether the nodes have the same names and addresses."""
    logins = bundle.tree.get("operator/ssh_config")
    known = set(logins.text.split()) if logins else set()
    return set(bundle.nodes) == {node.name for node in site.nodes} and all(
        str(node.address) in known for node in site.nodes if node.management
    )
