"""`sparkgen show`."""

import sys
from pathlib import Path, PurePosixPath

import click

from generator.bundle.tree import Tree
from generator.commands import completion
from generator.commands.bundles import rendered
from generator.commands.options import SITE_OR_STDIN, TABLE_FORM
from generator.commands.sites import print_data, read_valid, width_of
from generator.diagnostics import did_you_mean
from generator.pipeline import ValidReading
from generator.site import Site
from generator.site.show import plain, table


@click.command(epilog="Example: sparkgen show sites/lab-mesh.yaml --node spark2")
@SITE_OR_STDIN
@click.option(
    "--node", metavar="NAME", help="Everything about one node.", shell_complete=completion.nodes
)
@click.option(
    "--why",
    metavar="FILE[:LINE]",
    shell_complete=completion.bundle_files,
    help="Where a file of the bundle, or a line of it, comes from: site file, rule and template.",
)
@TABLE_FORM
def command(site: Path, node: str | None, why: str | None, form: str) -> None:
    """Print what is derived from a site: ranks, addresses, cables, environment, commands."""
    if node is not None and why is not None:
        raise click.UsageError("use --node or --why, not both")
    (valid,) = read_valid([site])
    derived = valid.site
    if why is not None:
        _why(valid, why, form)
        return
    names = [member.name for member in derived.nodes]
    if node and node not in names:
        raise click.BadParameter(f"{node}; the nodes are {', '.join(names)}", param_hint="--node")
    if form == "table":
        click.echo(table(derived, node, width_of(sys.stdout)), nl=False)
    else:
        print_data(plain(derived, node), form)


def _why(valid: ValidReading, place: str, form: str) -> None:
    from generator.why import text, why

    ((site, bundle),) = rendered([valid])
    document = valid.reading.document
    name, number = _place(place)
    path = _path(site, bundle, name)
    lines = why(site, document, bundle, path)
    if number is not None:
        if not 0 < number <= len(lines):
            raise click.BadParameter(f"{path} has {len(lines)} lines", param_hint="--why")
        lines = [lines[number - 1]]
    if form != "table":
        print_data(text.data(path, lines), form)
    elif number is None:
        click.echo(text.file(lines), nl=False)
    else:
        click.echo(text.line(lines[0], document), nl=False)


def _place(text: str) -> tuple[str, int | None]:
    """A file, and a line number if one is given."""
    name, colon, number = text.rpartition(":")
    return (name, int(number)) if colon and number.isdecimal() else (text, None)


def _path(site: Site, bundle: Tree, name: str) -> str:
    """The path in the bundle, given with or without the bundle's folder."""
    parts = PurePosixPath(name).parts
    for start in range(len(parts)):
        path = "/".join(parts[start:])
        if path in bundle and (start == 0 or parts[start - 1] == site.name):
            return path
    near = did_you_mean(name, bundle) or f"such as {next(iter(bundle))}"
    raise click.BadParameter(f"the bundle has no file {name}; {near}", param_hint="--why")
