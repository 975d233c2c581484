"""`sparkgen build`."""

import sys
from pathlib import Path

import click

from generator.commands.bundles import compared, disk, rendered
from generator.commands.options import DRIFT, OUT, SITES, STRICT
from generator.commands.sites import sound
from generator.output import Comparison, write
from generator.site import Site
from generator.tree import Tree


@click.command(epilog="Example: sparkgen build sites/lab-mesh.yaml")
@SITES
@OUT
@STRICT
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand.")
def command(sites: tuple[Path, ...], out: Path, strict: bool, force: bool) -> None:
    """Check sites and write their bundles; nothing if one of them is not sound."""
    bundles = rendered(sound(sites, strict))
    plans = [(site, tree, compared(tree, out / site.name)) for site, tree in bundles]
    edited = [
        f"{out / site.name / path}" for site, _, comparison in plans for path in comparison.edited
    ]
    for path in edited:
        click.echo(f"{'overwritten' if force else 'SG803'}: {path} was edited by hand", err=True)
    if edited and not force:
        click.echo("nothing was written; --force overwrites them", err=True)
        sys.exit(DRIFT)
    for site, tree, comparison in plans:
        with disk():
            write(tree, out / site.name, comparison)
        for path in comparison.foreign:
            click.echo(
                f"SG805: {out / site.name / path} is not of the bundle; left alone", err=True
            )
        click.echo(_summary(site, tree, out / site.name, comparison))


def _summary(site: Site, tree: Tree, folder: Path, comparison: Comparison) -> str:
    nodes = f"{len(site.nodes)} node{'s' if len(site.nodes) > 1 else ''}"
    if not comparison.exists:
        news = "new"
    else:
        counts = {
            "written": len(comparison.changed) + len(comparison.edited),
            "removed": len(comparison.left_over),
        }
        news = ", ".join(f"{n} {word}" for word, n in counts.items() if n) or "no change"
    return f"{site.name}: {len(tree)} files for {nodes} in {folder} ({news})"
