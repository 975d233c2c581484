"""Files that the engine reads besides the model: carried in the bundle, or put there by users."""

from collections.abc import Iterable, Iterator, Mapping

from generator.site import CarriedFile, Mount, PlacedFile
from generator.sitefile.beside import Source
from generator.sitefile.declaration import DeclaredEngine, DeclaredFile


def mounts(files: Iterable[DeclaredFile], node: str) -> Iterator[Mount]:
    """The mounts that give them to a node's container."""
    for file in files:
        if file.is_on(node):
            yield Mount(file.place, read_only=not file.writable, inside=file.inside)


def carried(
    files: Iterable[DeclaredFile], sources: Mapping[str, Source], node: str
) -> tuple[CarriedFile, ...]:
    """The files of a node's folder, each once."""
    found = {
        path: CarriedFile(path, each.data, each.is_executable)
        for file in files
        if file.source and file.is_on(node)
        for each in sources[file.source].files
        for path in [f"{file.place}/{each.path}" if each.path else file.place]
    }
    return tuple(found.values())


def placed(files: Iterable[DeclaredFile], node: str) -> tuple[PlacedFile, ...]:
    """The files that must exist on the node already."""
    return tuple(
        PlacedFile(file.path, file.sha256, file.writable)
        for file in files
        if file.path and file.is_on(node)
    )


def script(engine: DeclaredEngine) -> str | None:
    """The path inside the container of the script that prepares it."""
    return engine.given_files[-1].inside if engine.prepare else None


def home(user: str) -> str:
    """The home folder of a user."""
    return "/root" if user == "root" else f"/home/{user}"
