"""`sparkgen init`."""

import re
import sys
from pathlib import Path
from typing import cast

import click

from generator.commands import completion
from generator.commands.sites import fail
from generator.declaration import Kind
from generator.starter import ENGINES, MODEL, SIZES, StarterError, kind_of, starter
from generator.starter.survey import Survey, SurveyError, survey

_KINDS = {
    "single": "one node alone",
    "direct": "two nodes, one cable",
    "ring": "three nodes, each on both others",
    "switch": "two nodes or more on a switch",
}
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@click.command(epilog="Example: sparkgen init --kind ring --name lab sites/lab.yaml")
@click.argument("file", required=False, type=Path)
@click.option("--kind", type=click.Choice(list(_KINDS)), help="How the nodes are joined.")
@click.option("--nodes", type=click.IntRange(1, 244), help="How many there are.")
@click.option("--name", help="The name of the site.  [default: of the file, else lab]")
@click.option("--engine", type=click.Choice(list(ENGINES)), default="vllm", show_default=True)
@click.option(
    "--model",
    default=MODEL,
    show_default=True,
    help="A model of the catalog.",
    shell_complete=completion.models,
)
@click.option(
    "--from",
    "outputs",
    multiple=True,
    metavar="[NODE=]FILE",
    help="What ibdev2netdev or ip -j addr printed on a node, which else is called like the file. "
    "Can be given more than once.",
)
def command(
    file: Path | None,
    kind: str | None,
    nodes: int | None,
    name: str | None,
    engine: str,
    model: str,
    outputs: tuple[str, ...],
) -> None:
    """Write a commented site file to start from, to FILE or to standard output.

    On a terminal it asks for what is not said. It never overwrites a file.
    """
    if file and file.exists():
        fail(f"{file} is there already; init never overwrites a site file")
    if file and not file.parent.exists():
        fail(f"{file}: there is no folder {file.parent}; make it first")
    surveys = _surveys(outputs)
    if kind is None and nodes is None and not surveys:
        kind, nodes, name = _asked(name or _name(file))
    surveys = _all(surveys, cast("Kind | None", kind), nodes)
    try:
        chosen = cast("Kind", kind) if kind else kind_of(surveys)
        _fitting(chosen, len(surveys))
        text = starter(chosen, surveys, _checked(name, file), engine, model)
    except StarterError as error:
        raise click.UsageError(str(error)) from None
    if file is None:
        click.echo(text, nl=False)
    else:
        _write(file, text)


def _surveys(outputs: tuple[str, ...]) -> dict[str, Survey]:
    """What the files say of each node, in the order in which the nodes are named first."""
    found: dict[str, Survey] = {}
    for output in outputs:
        name, equals, file = output.partition("=")
        if not equals:
            name, file = Path(output).name.partition(".")[0], output
        if not _LABEL.fullmatch(name):
            raise click.BadParameter(
                f"'{name}' is no name of a node: NODE={file}", param_hint="--from"
            )
        try:
            text = Path(file).read_text()
            found[name] = found.get(name, Survey()) | survey(text)
        except OSError as error:
            fail(f"{file}: {error.strerror}")
        except (SurveyError, UnicodeDecodeError) as error:
            fail(f"{file}: {error if isinstance(error, SurveyError) else 'not text'}")
    return found


def _all(surveys: dict[str, Survey], kind: Kind | None, nodes: int | None) -> dict[str, Survey]:
    """The nodes that were asked, and as many more as there are to be."""
    count = nodes or max(len(surveys), SIZES[kind][0] if kind else 1)
    if len(surveys) > count:
        raise click.BadParameter(f"--from names {len(surveys)} nodes", param_hint="--nodes")
    for position in range(len(surveys) + 1, count + 1):
        numbers = (position, *range(1, count + 1))
        names = (f"spark{number}" for number in numbers)
        surveys[next(name for name in names if name not in surveys)] = Survey()
    return surveys


def _fitting(kind: Kind, count: int) -> None:
    fewest, most = SIZES[kind]
    if not fewest <= count <= most:
        wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        nodes = "node" if most == 1 else "nodes"
        raise StarterError(f"{kind} takes {wanted} {nodes}, not {count}")


def _asked(name: str) -> tuple[str, int | None, str]:
    """Kind, number of nodes and name, as somebody answers; the questions go to standard error."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("say --kind or --nodes; on a terminal it asks")
    for choice, meaning in _KINDS.items():
        click.echo(f"  {choice:<7} {meaning}", err=True)
    kind = click.prompt("How are the nodes joined", type=click.Choice(list(_KINDS)), err=True)
    nodes = None
    if kind == "switch":
        size = click.IntRange(*SIZES["switch"])
        nodes = click.prompt("How many nodes are there", type=size, err=True)
    return kind, nodes, click.prompt("What is the site called", default=name, err=True)


def _checked(name: str | None, file: Path | None) -> str:
    """The name that is said, or else that of the file, if a site can be called so."""
    found = name or _name(file)
    if _LABEL.fullmatch(found):
        return found
    hint = f"'{found}' is no name of a site: lower-case letters, digits and '-'"
    if name:
        raise click.BadParameter(hint, param_hint="--name")
    raise click.UsageError(f"{hint}; call the file otherwise, or add --name")


def _name(file: Path | None) -> str:
    return file.name.partition(".")[0] if file else "lab"


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        fail(f"{file}: {error.strerror}")
    click.echo(f"{file} is written; sparkgen build {file} makes its bundle")
