"""The bundles that a change starts from: those in a folder, now or at a commit."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from generator.bundle.committed import Committed, Content, bundle_of
from generator.bundle.output import contents
from generator.bundle.plan import MANIFEST
from generator.records import record
from generator.review.history import Snapshot
from generator.site import Site


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
        return contents(self.out / name)

    def title(self, name: str) -> str:
        """`out/lab`."""
        return str(self.out / name)


@record
class CommitSide:
    """The bundles below a folder, as they were at a commit."""

    ref: str
    snapshot: Snapshot

    @property
    def names(self) -> Sequence[str]:
        """The folders with a manifest."""
        return sorted(self.snapshot.bundles)

    def files(self, name: str) -> Mapping[str, Content]:
        """The files that were in the folder; raises HistoryError."""
        return self.snapshot.files(name)

    def title(self, name: str) -> str:
        """`main (0123456789ab)`."""
        commit = self.snapshot.commit
        return f"{self.ref} ({commit})" if not commit.startswith(self.ref) else commit


# Bundles by the names of their sites.
Side = FolderSide | CommitSide


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


def origin(site: Site, file: Path, end: Side, spare: Mapping[str, Committed]) -> str | None:
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
