"""`sparkgen import`."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click

from generator.adoption import Adoption, adopt
from generator.adoption.cables import Edge
from generator.adoption.draft import not_held
from generator.adoption.found import ItemEnd
from generator.commands import completion
from generator.commands.adopting import INPUTS, found, site_name
from generator.commands.options import DATA_FORM, INVALID, QUIET
from generator.commands.recorded import import_recorded
from generator.commands.sites import accessing, fail, publish, tell
from generator.diagnostics import has_errors, visible
from generator.sitefile.beside import nothing_beside
from generator.sitefile.disk import beside


def _cables(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> list[Edge]:
    """Parse both ends of each cable, written NODE:PORT=NODE:PORT."""
    cables: list[Edge] = []
    for text in values:
        ends = re.fullmatch(r"([a-z0-9-]+):p([01])=([a-z0-9-]+):p([01])", text)
        if ends is None:
            raise click.BadParameter(f"'{text}' is not a cable, such as spark1:p0=spark2:p1")
        cables.append(((ends[1], int(ends[2])), (ends[3], int(ends[4]))))
    return cables


@click.command(epilog="Example: sparkgen import spark1.tar.gz spark2.tar.gz -o sites/mine.yaml")
@INPUTS
@click.option(
    "-o",
    "--output",
    "file",
    type=Path,
    metavar="SITE",
    help="The site file to write.  [default: standard output]",
    shell_complete=completion.sites,
)
@click.option(
    "--cable",
    "cables",
    multiple=True,
    callback=_cables,
    metavar="END=END",
    help="A cable that neither subnets nor LLDP show, as spark1:p0=spark2:p1.",
)
@click.option("--name", help="The name of the site.  [default: of the file, else mine]")
@QUIET
@DATA_FORM
def command(
    inputs: tuple[str, ...],
    file: Path | None,
    cables: list[Edge],
    name: str | None,
    quiet: bool,
    form: str,
) -> None:
    """Write a site file that describes what a cluster already runs.

    FILE is a capture, or a file that people run clusters with: a configuration of netplan,
    NetworkManager or networkd, the output of 'ip addr' and ibdev2netdev, nccl.conf, Compose, a
    docker run line, a script that sets up a node or starts an engine, a unit, a recipe of sparkrun
    or spark-vllm-docker with its .env, or NVIDIA's cluster JSON. NODE= names the node that it is
    from. Nodes that sparkgen has installed, and a bundle's folder, give back their own site file,
    and what has changed since. What no file states is guessed and marked; what the format can't
    express is listed at the end. It never overwrites a file.
    """
    if file and file.exists():
        fail(f"{file} is there already; import never overwrites a site file")
    if not cables and name is None and import_recorded(inputs, file, quiet, form):
        return
    near = beside(file) if file else nothing_beside
    given = found(inputs, form)
    adopted = adopt(given, site_name(name, file), str(file or "mine.yaml"), cables, near)
    if file:
        with accessing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(adopted.text)
    if form == "json":
        rest = _data(adopted, file)
        publish(form, [(adopted.reading, adopted.findings)], rest=rest)
    else:
        _report(adopted, file, quiet)
    if has_errors(adopted.findings):
        sys.exit(INVALID)


def _report(adopted: Adoption, file: Path | None, quiet: bool) -> None:
    if file is None:
        click.echo(adopted.text, nl=False)
    tell(adopted.reading, adopted.findings, strict=False)
    if quiet:
        return
    for guess in adopted.draft.guesses:
        click.echo(f"guessed: {visible(guess)}", err=True)
    for line in not_held(adopted.ended):
        click.echo(f"not in it: {visible(line)}", err=True)
    kinds = Counter(one.end for one in adopted.ended)
    held = f"{kinds[ItemEnd.SITE]} in the site, {kinds[ItemEnd.DEFAULT]} the same by default"
    rest = f"{kinds[ItemEnd.LOST] + kinds[None]} not held, {kinds[ItemEnd.OTHER]} of other programs"
    click.echo(f"{len(adopted.ended)} settings: {held}, {rest}", err=True)
    if file is not None:
        click.echo(f"{file} is written")


def _data(adopted: Adoption, file: Path | None) -> dict[str, Any]:
    items = [
        {
            "item": visible(one.item.what),
            "end": one.end,
            "text": one.line,
            "path": ".".join(map(str, one.path)),
            "file": one.item.place.file,
            "line": one.item.place.span.line + 1,
        }
        for one in adopted.ended
    ]
    lost = (one for one in items if one["end"] in (None, ItemEnd.LOST))
    losses = [{key: one[key] for key in ("text", "file", "line")} for one in lost]
    return {
        "file": str(file) if file else None,
        "text": adopted.text,
        "guesses": list(adopted.draft.guesses),
        "losses": losses,
        "items": items,
    }
