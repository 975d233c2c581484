"""`sparkgen fit`."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from generator.commands.options import INVALID, SITE
from generator.commands.sites import read, sound, tell
from generator.diagnostics import Severity
from generator.fit.alternatives import Alternative, alternatives
from generator.fit.assessment import Fit, assess
from generator.fit.table import UNKNOWN, compared, table
from generator.pipeline import Reading
from generator.show import as_data

# Errors that are about memory: the figures say more than they do.
_ABOUT_MEMORY = {"SG520", "SG523"}


@click.command(epilog="Example: sparkgen fit sites/lab-mesh.yaml --compare")
@SITE
@click.option("--compare", is_flag=True, help="Show other layouts and KV caches too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "yaml", "json"]),
    default="table",
    show_default=True,
)
def command(site: Path, compare: bool, form: str) -> None:
    """Print what each node holds, whether it fits, and what the cluster can hold then."""
    reading = read(site)
    errors = {f.rule for f in reading.findings if f.severity is Severity.ERROR}
    if errors - _ABOUT_MEMORY:
        sound([site])
    tell(reading, reading.findings, strict=False)
    _publish(reading, *_judged(reading, compare), form)
    if errors:
        sys.exit(INVALID)


def _judged(reading: Reading, compare: bool) -> tuple[Fit | None, list[Alternative]]:
    declared = reading.declaration
    assert declared
    assert declared.nodes
    assert declared.model
    assert declared.engine
    group = (declared.nodes, declared.model, declared.engine)
    return assess(*group), alternatives(*group) if compare else []


def _publish(reading: Reading, fit: Fit | None, others: list[Alternative], form: str) -> None:
    assert reading.declaration
    assert reading.declaration.identity
    name = reading.declaration.identity.name
    if form == "table":
        click.echo(_text(name, fit, others), nl=False)
        return
    data: dict[str, Any] = {"site": name, "memory": as_data(fit)}
    if others:
        data["alternatives"] = as_data(others)
    if form == "json":
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


def _text(name: str, fit: Fit | None, others: list[Alternative]) -> str:
    if fit is None:
        return f"{name}: {UNKNOWN}\n"
    encoding = (sys.stdout.encoding or "").lower()
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    text = table(name, fit, ascii_only=not encoding.startswith("utf"), color=color)
    return f"{text}\n{compared(others)}" if others else text
