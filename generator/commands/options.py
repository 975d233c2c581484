"""Arguments and options that several commands share, and the exit statuses."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from generator.commands import completion

DRIFT, INVALID, ENVIRONMENT = 1, 3, 4
# The argument on the command line, and how findings refer to its content.
STDIN = STDOUT = Path("-")
STDIN_NAME = "<stdin>"

FOLDER, OUT_FOLDER = Path("sites"), Path("out")
_LOCK = ".lock.yaml"
NO_SITE = "name a site, or run it where there are sites/*.yaml"


def _stored(context: click.Context, parameter: click.Parameter, sites: Any) -> Any:
    """The given sites, none of which may be standard input."""
    if STDIN in (sites if isinstance(sites, tuple) else (sites,)):
        raise click.UsageError(
            "name a file: only validate, fit, show, diagram and failures read standard input"
        )
    return sites


def _or_what_is_left(
    context: click.Context, parameter: click.Parameter, sites: tuple[Path, ...]
) -> Any:
    """The same, or an empty list if there are only bundles left, whose sites are gone."""
    _stored(context, parameter, sites)
    is_any = sites or any(FOLDER.glob("*.yaml"))
    out = Path(context.params.get("out") or OUT_FOLDER)
    return _or_all(context, parameter, sites) if is_any or not out.is_dir() else ()


def _or_all(context: click.Context, parameter: click.Parameter, sites: tuple[Path, ...]) -> Any:
    """The given sites, or else all in `sites/`; locks and bases are not sites of their own."""
    if context.resilient_parsing:
        return sites
    stored = (path for path in sorted(FOLDER.glob("*.yaml")) if not path.name.startswith("."))
    named = sites or tuple(stored)
    if not named:
        raise click.UsageError(NO_SITE)
    found = tuple(path for path in named if not path.name.endswith(_LOCK))
    bases = {base for path in found for base in _bases(path)} if len(found) > 1 else set()
    return tuple(path for path in found if os.path.realpath(path) not in bases) or named


def _bases(site: Path) -> Iterator[str]:
    """The base that a site file names on a line of its own; none if it can't be read."""
    try:
        text = site.read_bytes() if site.is_file() else b""
    except OSError:
        return
    for found in re.findall(rb"^extends: *[\"']?([^\s\"'#]+)", text, re.MULTILINE):
        yield os.path.realpath(site.parent / os.fsdecode(found))


def _stored_or_all(
    context: click.Context, parameter: click.Parameter, sites: tuple[Path, ...]
) -> Any:
    return _or_all(context, parameter, _stored(context, parameter, sites))


def _sites(callback: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument(
        "sites",
        nargs=-1,
        metavar="[SITE]...",
        type=Path,
        callback=callback,
        shell_complete=completion.sites,
    )


def _site(callback: Callable[..., Any] | None) -> Callable[..., Any]:
    return click.argument(
        "site", metavar="SITE", type=Path, callback=callback, shell_complete=completion.sites
    )


def format_option(names: Iterable[str], about: str | None = None) -> Callable[..., Any]:
    """The option for the form of the output, by default the first."""
    choices = list(names)
    kind = click.Choice(choices)
    return click.option(
        "--format", "form", type=kind, default=choices[0], show_default=True, help=about
    )


# Defaults to sites/*.yaml. Commands that write nothing beside a site accept '-' for standard input.
SITES = _sites(_stored_or_all)
SITES_OR_STDIN = _sites(_or_all)
# For commands that also deal with bundles whose sites are gone.
SITES_OR_BUNDLES = _sites(_or_what_is_left)
SITE = _site(_stored)
SITE_OR_STDIN = _site(None)
FORM = format_option(
    ("text", "json", "sarif", "github"),
    "Text goes to standard error, findings in other formats to standard output.",
)
# For commands whose result is not a list of findings.
DATA_FORM = format_option(("text", "json"), "JSON is for scripts.")
TABLE_FORM = format_option(("table", "yaml", "json"))
STRICT = click.option("--strict", is_flag=True, help="Treat warnings as errors.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Report problems only.")
OUT = click.option(
    "--out",
    type=Path,
    default=OUT_FOLDER,
    show_default=True,
    metavar="DIR",
    help="Folder of the bundles: DIR/NAME for each site.",
)
