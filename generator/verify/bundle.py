"""A bundle in a folder, as described by its manifest, and copies of its nodes' trees."""

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

from generator.bundle.plan import CARRIED, CHECKSUMS, MANIFEST, is_context
from generator.records import record


class BundleError(Exception):
    """The folder is not a bundle, or can't be read; the message says why in one line."""


@record
class BundleFolder:
    """A bundle on disk; `modes` are those that files have on a node, of which git keeps little."""

    path: Path
    nodes: tuple[str, ...]
    cables: tuple[tuple[str, str], ...]
    modes: dict[str, int]
    checksums: dict[str, str]

    def copy(self, node: str, target: Path) -> Path:
        """Copy a node's tree below `target`, with the manifest's modes."""
        tree = target / node
        for path, mode in self.modes.items():
            name, _, rest = path.partition("/")
            if name == node and (self.path / path).is_file():
                (tree / rest).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.path / path, tree / rest)
                (tree / rest).chmod(mode)
        return tree

    def files(self, pattern: str) -> list[str]:
        """The existing generated files of the bundle whose path matches.

        Files carried for the engine are the user's own, and not included.
        """
        listed = (
            p
            for p in self.modes
            if Path(p).match(pattern) and CARRIED not in p and not is_context(p)
        )
        return [path for path in listed if (self.path / path).is_file()]

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        return (self.path / path).read_bytes()

    def faults(self) -> list[str]:
        """What differs from the manifest."""
        found = []
        for path, checksum in self.checksums.items():
            file = self.path / path
            if not file.is_file():
                found.append(f"{path} is missing")
            elif sha256(file.read_bytes()).hexdigest() != checksum:
                found.append(f"{path} is not what the manifest says")
            elif bool(file.stat().st_mode & 0o100) != bool(self.modes[path] & 0o100):
                found.append(f"{path} has the wrong mode")
        return found


def opened(folder: Path) -> BundleFolder:
    """The bundle in a folder; raises BundleError."""
    if folder.is_file():
        raise BundleError(f"{folder} is a file; a bundle is a folder, such as out/{folder.stem}")
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return _bundle(folder, manifest)
    except OSError as error:
        raise BundleError(f"{error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BundleError(f"{folder / MANIFEST} is not the manifest of a bundle") from None


def _bundle(folder: Path, manifest: dict[str, Any]) -> BundleFolder:
    files = {path: entry for path, entry in manifest["files"].items() if _is_inside(path)}
    if len(files) < len(manifest["files"]):
        raise ValueError
    nodes = [name for name in manifest["nodes"] if f"{name}/{CHECKSUMS}" in files]
    return BundleFolder(
        path=folder,
        nodes=tuple(nodes),
        cables=tuple((str(a), str(b)) for a, b in manifest["cables"]),
        modes={path: int(entry["mode"], 8) for path, entry in files.items()},
        checksums={path: str(entry["sha256"]) for path, entry in files.items()},
    )


def _is_inside(path: str) -> bool:
    return not Path(path).is_absolute() and ".." not in Path(path).parts
