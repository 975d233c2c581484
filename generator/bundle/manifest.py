"""The manifest of a bundle, and the checksums of a node's folder."""

import json
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii as _quoted

from generator import __version__
from generator.bundle.tree import File, Tree
from generator.site import Site

# The `version` of the site files that this release reads.
_FORMAT = 1


def checksums(files: Iterable[File]) -> str:
    """The checksums for `sha256sum --check` in the node's folder."""
    rows = ((file.path.partition("/")[2], file.sha256) for file in files)
    return "".join([f"{digest}  {path}\n" for path, digest in sorted(rows)])


def manifest(site: Site, source_sha256: str, bundle: Tree) -> str:
    """The manifest as JSON: generator, site, nodes, cables, and every file with its checksum."""
    content = {
        "generator": f"sparkgen {__version__}",
        "format": _FORMAT,
        "name": site.name,
        "site": {"file": site.file, "sha256": source_sha256},
        "nodes": [node.name for node in site.nodes],
        "cables": [[str(cable.a), str(cable.b)] for cable in site.cables],
    }
    # Indentation takes json's slow encoder, and a large site has thousands of files.
    files = ",\n".join([_entry(path, file) for path, file in bundle.items()])
    start = json.dumps(content, indent=2).removesuffix("\n}")
    return f'{start},\n  "files": {{\n{files}\n  }}\n}}\n'


def _entry(path: str, file: File) -> str:
    return (
        f"    {_quoted(path)}: {{\n"
        f'      "mode": "{file.mode:04o}",\n'
        f'      "sha256": "{file.sha256}",\n'
        f'      "change": {_quoted(file.activation.text)}\n'
        "    }"
    )
