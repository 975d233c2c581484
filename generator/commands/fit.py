"""`sparkgen fit`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from generator.answers.findings import unasked
from generator.answers.ranks import of_lock, weights
from generator.catalogs.engines import ENGINE_TRAITS
from generator.columns import columns
from generator.commands.groups import GROUP, chosen
from generator.commands.options import DRIFT, INVALID, SITE_OR_STDIN, TABLE_FORM
from generator.commands.sites import (
    accessing,
    color_of,
    fail,
    print_data,
    read,
    refuse,
    tell,
    width_of,
)
from generator.diagnostics import Severity
from generator.engines import logged_memory
from generator.fit import together
from generator.fit.alternatives import Alternative, Deployment, alternatives
from generator.fit.assessment import Fit
from generator.fit.choices import Fitting, siblings
from generator.fit.measured import HEAD, correction, is_off, measured, rows
from generator.fit.table import FIGURES, UNKNOWN, compared, figures, table, verdict
from generator.fit.together import GroupFit, SharedNode, shared_nodes
from generator.records import record
from generator.site.show import as_data

_CHECKPOINTS = ("OTHER CHECKPOINT", "FORMAT", *FIGURES)
# Errors about memory: the printed figures say more than they do.
_ABOUT_MEMORY = {"SG246", "SG520", "SG523", "SG688"}
# The memory that a node reports varies by this much from start to start.
_SAME_GIB = 0.2
_ENTRY = "What corrects it, in a file beside the site file that 'fit: {calibration: FILE}' names:"


@click.command(epilog="Example: sparkgen fit sites/lab-mesh.yaml --compare")
@SITE_OR_STDIN
@click.option("--compare", is_flag=True, help="Show other layouts and KV caches too.")
@TABLE_FORM
@click.option(
    "--measured",
    "log",
    type=Path,
    metavar="LOG",
    help="Show what an engine printed at startup beside the prediction; exits 1 if weights "
    "or cache differ by more than a tenth.",
)
@GROUP
def command(site: Path, compare: bool, form: str, log: Path | None, group: str | None) -> None:
    """Print what each node holds, whether the model fits, and how much the cluster can serve."""
    reading = read(site)
    errors = {f.rule for f in reading.findings if f.severity is Severity.ERROR}
    declared = reading.declaration
    if declared is None or errors - _ABOUT_MEMORY:
        refuse(reading)
    known = of_lock(reading.site, reading.sha256, reading.lock) if reading.site else []
    tell(reading, [*reading.findings, *unasked(known, reading.lock)], strict=False)
    groups = chosen(declared, group)
    if log and len(groups) > 1:
        fail(f"{log} is of one engine: name its group with --group")
    counted = {name: weights(known, name) for name in groups}
    found = [_assessed(name, own, compare, counted[name]) for name, own in groups.items()]
    if log:
        _beside(log, *groups.values())
        return
    fits = {one.group: one.fit for one in found}
    parts = [
        GroupFit(part.group, part.slot, part.nodes, part.engine, fits[part.group])
        for part in declared.groups
        if group is None
    ]
    _publish(declared.identity.name, found, shared_nodes(parts), form)
    if errors:
        sys.exit(INVALID)


_LONGEST_LINE = 2000


def _beside(log: Path, group: Deployment) -> None:
    """Print a log's figures next to the prediction, and the correction; exits 1 if far apart."""
    fit = group.assess()
    with accessing(log):
        text = log.read_text(encoding="utf-8", errors="replace")
    # What engines log about memory is short; a line of binary data or of a prompt is not theirs.
    text = "\n".join(line for line in text.splitlines() if len(line) <= _LONGEST_LINE)
    seen = measured(logged_memory(text))
    if seen.is_empty:
        needed = ENGINE_TRAITS[group.engine.name].logs_memory
        how = f"; {group.engine.name} prints it with engine.args {{{needed}}}" if needed else ""
        fail(f"{log}: no line of it says what an engine's memory holds{how}", INVALID)
    if fit is None or not fit.nodes:
        click.echo(verdict(fit)[0] if fit else UNKNOWN)
        sys.exit(DRIFT)
    click.echo(columns(HEAD, rows(fit, seen)))
    is_measured = all(node.measured for node in group.nodes)
    if seen.visible and not is_measured and abs(seen.visible - fit.worst.visible_gib) > _SAME_GIB:
        click.echo(
            f"\nThe nodes see more or less than supposed: write 'visible_gib: {seen.visible}'"
        )
    if entry := correction(fit, seen, group.model, group.engine):
        click.echo(f"\n{_ENTRY}\n\n{entry}")
    if is_off(fit, seen):
        sys.exit(DRIFT)


@record
class _Assessed:
    """How a group fits, and what else would; its name is empty on a site without groups."""

    group: str
    fit: Fit | None
    others: list[Alternative]
    same: list[Fitting]


def _assessed(name: str, group: Deployment, compare: bool, counted: Mapping[str, int]) -> _Assessed:
    others = alternatives(group.nodes, group.model, group.engine) if compare else []
    return _Assessed(name, group.assess(counted), others, list(siblings(group)) if compare else [])


def _publish(
    name: str, found: Sequence[_Assessed], shared: Sequence[SharedNode], form: str
) -> None:
    if form == "table":
        texts = [
            _text(f"{name}, {one.group}" if one.group else name, one.fit, one.others, one.same)
            for one in found
        ]
        if shared:
            texts.append(together.table(shared, width_of(sys.stdout)))
        click.echo("\n".join(texts), nl=False)
        return
    parts = [{**({"group": one.group} if one.group else {}), **_data(one)} for one in found]
    data = {"site": name} | ({"groups": parts} if found[0].group else parts[0])
    if shared:
        data["together"] = as_data(list(shared))
    print_data(data, form)


def _data(found: _Assessed) -> dict[str, Any]:
    data: dict[str, Any] = {"memory": as_data(found.fit)}
    if found.others:
        data["alternatives"] = as_data(found.others)
    if found.same:
        data["checkpoints"] = [
            {"name": known.name, "format": known.format, "fit": as_data(fit)}
            for known, fit in found.same
        ]
    return data


def _text(name: str, fit: Fit | None, others: list[Alternative], same: list[Fitting]) -> str:
    if fit is None:
        return f"{name}: {UNKNOWN}\n"
    encoding = (sys.stdout.encoding or "").lower()
    width = width_of(sys.stdout)
    text = table(name, fit, not encoding.startswith("utf"), color_of(sys.stdout), width)
    parts = [text, compared(others, width) if others else "", _checkpoints(same, width)]
    return "\n".join(filter(None, parts))


def _checkpoints(same: list[Fitting], width: int | None) -> str:
    rows = [(known.name, known.format, *figures(fit)) for known, fit in same]
    return columns(_CHECKPOINTS, rows, width) + "\n" if rows else ""
