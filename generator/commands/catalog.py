"""`sparkgen catalog`."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from generator.catalogs.added import AddedCatalog, CatalogError, described, read
from generator.commands import completion
from generator.commands.options import FOLDER, INVALID, QUIET
from generator.commands.sites import accessing, fail
from generator.sitefile.beside import CATALOGS
from generator.sitefile.disk import bounded

_MAX_BYTES = 16 << 20


@click.command(epilog="Example: sparkgen catalog add nightly.json")
@click.argument("action", type=click.Choice(("add", "list")))
@click.argument(
    "files", nargs=-1, metavar="[FILE]...", type=Path, shell_complete=completion.outputs
)
@click.option(
    "--sites",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help=f"The folder with the sites.  [default: {FOLDER} if there is one, or else this folder]",
)
@QUIET
def command(action: str, files: tuple[Path, ...], sites: Path | None, quiet: bool) -> None:
    """Keep what the engines of images say of their own settings, or list what is kept.

    A nightly build, a fork or a release newer than sparkgen has settings that sparkgen does not
    know. On a head, 'launch.sh --describe-engine' has the engine in its image list them: FILE is
    that list. It is written to the folder 'catalogs' beside the sites, whose engines with that
    image are then checked by it.
    """
    folder = (sites or (FOLDER if FOLDER.is_dir() else Path())) / CATALOGS
    if (action == "add") != bool(files):
        raise click.UsageError("'add' takes files, and 'list' takes none")
    if action == "list":
        for path in sorted(folder.glob("*.tsv")):
            click.echo(f"{path}: {_line(_of(path, lambda raw: read(raw.decode())))}")
    for found in [_of(path, described) for path in files]:
        target = _written(folder, found)
        if not quiet:
            click.echo(f"{target} is written: {_line(found)}")


def _of(path: Path, make: Callable[[bytes], AddedCatalog]) -> AddedCatalog:
    try:
        with accessing(path):
            return make(bounded(path, _MAX_BYTES))
    except (CatalogError, UnicodeDecodeError) as error:
        fail(f"{path}: {error}", INVALID)


def _written(folder: Path, found: AddedCatalog) -> Path:
    target = folder / found.file_name
    with accessing(target):
        folder.mkdir(exist_ok=True)
        target.write_text(found.text, encoding="utf-8", newline="\n")
    return target


def _line(found: AddedCatalog) -> str:
    return ", ".join(_parts(found))


def _parts(found: AddedCatalog) -> Iterator[str]:
    names = [line.partition("\t")[0] for line in found.text.splitlines()]
    yield f"{found.engine} {found.version}"
    yield f"{sum(name.startswith('-') for name in names)} flags"
    yield f"{sum(name.isupper() for name in names)} variables"
    if found.image:
        yield found.image + (f"@{found.digest}" if found.digest else "")
