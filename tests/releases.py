"""The bundles of earlier releases, and their sites, as the last commit of each had them."""

import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath

RELEASED = Path(__file__).parent / "released"
# The files of each bundle, and its site, by the bundle's name.
Bundles = Mapping[str, tuple[dict[str, tuple[bytes, bool]], str]]


@cache
def bundles(version: str) -> Bundles:
    """The bundles that a release made of its example sites."""
    found: dict[str, dict[str, tuple[bytes, bool]]] = {}
    sites: dict[str, str] = {}
    with tarfile.open(RELEASED / version / "bundles.tar.xz") as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            content = archive.extractfile(member)
            assert content
            top, name, *inside = PurePosixPath(member.name).parts
            if top == "sites":
                sites[PurePosixPath(name).stem] = content.read().decode()
            else:
                mode = bool(member.mode & 0o100)
                found.setdefault(name, {})["/".join(inside)] = content.read(), mode
    return {name: (files, sites[name]) for name, files in found.items()}
