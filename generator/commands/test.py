"""`sparkgen test`."""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from generator.commands import completion
from generator.commands.bundles import refuse_interrupted
from generator.commands.options import DATA_FORM, DRIFT
from generator.commands.sites import fail
from generator.diagnostics import visible
from generator.records import record
from generator.verify.bundle import BundleError, BundleFolder, opened
from generator.verify.checks import CHECKS, Nothing, ProgramCheck
from generator.verify.network import NETWORK, Forbidden
from generator.verify.programs import PACKAGES, Missing

_STATUSES = {"ok": "ok", "FAIL": "failed", "missing": "missing", "-": "nothing"}


@record
class _Result:
    """How a check went: the word that its line begins with, and the details."""

    check: str
    status: str
    what: str
    complaints: tuple[str, ...]


@click.command(epilog="Example: sparkgen test out/*")
@click.argument(
    "bundles",
    nargs=-1,
    required=True,
    metavar="BUNDLE...",
    type=Path,
    shell_complete=completion.bundles,
)
@click.option(
    "--network", is_flag=True, help="Test every cable in network namespaces (root, Linux)."
)
@click.option("--strict", is_flag=True, help="Fail if a program is not installed.")
@click.option("-q", "--quiet", is_flag=True, help="Print a line only for what fails or is missing.")
@DATA_FORM
def command(bundles: tuple[Path, ...], network: bool, strict: bool, quiet: bool, form: str) -> None:
    """Hand bundles to the programs that read them on a node, one line per check.

    Nothing on this machine is changed. Missing programs are named with their packages.
    """
    refuse_interrupted(bundles)
    checks = (*CHECKS, *((NETWORK,) if network else ()))
    results: dict[str, list[_Result]] = {}
    try:
        for bundle in [opened(path) for path in bundles]:
            if len(bundles) > 1 and form == "text":
                click.echo(f"{bundle.path}:")
            found = results.setdefault(str(bundle.path), [])
            for check in checks:
                found.append(_result(check, bundle))
                for line in _lines(found[-1], quiet) if form == "text" else ():
                    click.echo(line)
    except (BundleError, Forbidden) as error:
        fail(str(error))
    bad = {"FAIL", "missing"} if strict else {"FAIL"}
    valid = not any(result.status in bad for found in results.values() for result in found)
    if form == "json":
        click.echo(json.dumps(_data(results, valid), indent=2))
    if not valid:
        sys.exit(DRIFT)


def _result(check: ProgramCheck, bundle: BundleFolder) -> _Result:
    try:
        with tempfile.TemporaryDirectory(prefix="sparkgen-") as work:
            complaints = tuple(check.run(bundle, Path(work)))
    except Nothing:
        return _Result(check.name, "-", "no such files", ())
    except Missing as missing:
        return _Result(check.name, "missing", f"apt-get install {PACKAGES[str(missing)]}", ())
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    return _Result(check.name, "FAIL" if complaints else "ok", check.what, complaints)


def _lines(result: _Result, quiet: bool) -> Iterator[str]:
    if quiet and result.status in ("ok", "-"):
        return
    for text in map(visible, result.complaints) if result.complaints else (result.what,):
        yield f"{result.status:<8} {result.check}: {text}"


def _data(results: Mapping[str, list[_Result]], valid: bool) -> dict[str, Any]:
    """The same for scripts; the format is stable: keys are added, never renamed or removed."""
    bundles = [
        {"bundle": path, "checks": [_plain(result) for result in found]}
        for path, found in results.items()
    ]
    return {"version": 1, "valid": valid, "bundles": bundles}


def _plain(result: _Result) -> dict[str, Any]:
    return {
        "check": result.check,
        "status": _STATUSES[result.status],
        "what": result.what,
        "complaints": list(result.complaints),
    }
