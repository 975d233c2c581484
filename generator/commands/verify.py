"""`sparkgen verify`."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from generator.commands import completion
from generator.commands.options import DRIFT
from generator.commands.sites import fail
from generator.formats import visible
from generator.verify.bundle import BundleError, BundleFolder, opened
from generator.verify.checks import CHECKS, Check, Nothing
from generator.verify.network import NETWORK, Forbidden
from generator.verify.programs import PACKAGES, Missing


@click.command(epilog="Example: sparkgen verify out/*")
@click.argument(
    "bundles",
    nargs=-1,
    required=True,
    metavar="BUNDLE...",
    type=Path,
    shell_complete=completion.bundles,
)
@click.option(
    "--network", is_flag=True, help="Try every cable in network namespaces (root, Linux)."
)
@click.option("--strict", is_flag=True, help="Fail where a program is not installed.")
def command(bundles: tuple[Path, ...], network: bool, strict: bool) -> None:
    """Hand bundles to the programs that read them on a node, a line a check.

    Nothing of this machine is changed. What is not installed is named with its package.
    """
    sound = True
    try:
        for bundle in [opened(path) for path in bundles]:
            if len(bundles) > 1:
                click.echo(f"{bundle.path}:")
            for check in (*CHECKS, *((NETWORK,) if network else ())):
                sound &= _line(check, bundle, strict)
    except (BundleError, Forbidden) as error:
        fail(str(error))
    if not sound:
        sys.exit(DRIFT)


def _line(check: Check, bundle: BundleFolder, strict: bool) -> bool:
    """Run a check and say how it went; whether it went well."""
    complaints: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix="sparkgen-") as work:
            complaints = list(check.run(bundle, Path(work)))
    except Nothing:
        click.echo(f"-        {check.name}: no such files")
        return True
    except Missing as missing:
        click.echo(f"missing  {check.name}: apt-get install {PACKAGES[str(missing)]}")
        return not strict
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    for line in _told(check, complaints):
        click.echo(line)
    return not complaints


def _told(check: Check, complaints: list[str]) -> Iterator[str]:
    if not complaints:
        yield f"ok       {check.name}: {check.what}"
    for complaint in complaints:
        yield f"FAIL     {check.name}: {visible(complaint)}"
