"""`sparkgen build`."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from generator.bundle.output import Comparison
from generator.bundle.tree import Tree
from generator.bundle.writing import write
from generator.commands.bundles import compared, disk, rendered
from generator.commands.options import DATA_FORM, DRIFT, OUT, QUIET, SITES, STRICT
from generator.commands.policies import POLICY, policy_of
from generator.commands.sites import publish, read_valid
from generator.records import record
from generator.reports import drift
from generator.site import Site


@record
class _Plan:
    """A bundle, where it goes, and how that folder differs from it."""

    site: Site
    tree: Tree
    folder: Path
    found: Comparison


@click.command(epilog="Example: sparkgen build sites/lab-mesh.yaml")
@SITES
@OUT
@STRICT
@click.option("--force", is_flag=True, help="Overwrite edits, and bundles of a later sparkgen.")
@POLICY
@QUIET
@DATA_FORM
def command(
    sites: tuple[Path, ...],
    out: Path,
    strict: bool,
    force: bool,
    policy_file: Path | None,
    quiet: bool,
    form: str,
) -> None:
    """Check sites and write their bundles, or nothing if one of them is not valid.

    Takes sites/*.yaml if none is named.
    """
    rest = _data([], written=False)
    policy = partial(policy_of, given=policy_file, form=form)
    readings = read_valid(sites, strict, form, rest, policy)
    plans = [
        _Plan(site, tree, out / site.name, compared(tree, out / site.name))
        for site, tree in rendered(readings)
    ]
    refused = _refusals(plans, force, as_text=form == "text")
    for plan in () if refused else plans:
        with disk():
            write(plan.tree, plan.folder, plan.found)
        if form == "text":
            _report(plan, quiet)
    found = [(valid.reading, valid.reading.findings) for valid in readings]
    publish(form, found, rest=_data(plans, written=not refused))
    if refused:
        sys.exit(DRIFT)


def _refusals(plans: list[_Plan], force: bool, as_text: bool) -> bool:
    """Report what only `force` overwrites; return whether anything prevents writing."""
    newer = [drift.downgrade(p.found, p.folder, force) for p in plans if p.found.is_newer]
    if newer and not force:
        why = "--force builds them with this version"
        return _stopped(newer, why, as_text)
    word = "overwritten" if force else "SG803"
    edited = [
        f"{word}: {plan.folder / path} was edited by hand"
        for plan in plans
        for path in plan.found.edited
    ]
    if edited and not force:
        return _stopped(edited, "--force overwrites them", as_text)
    if as_text:
        for line in (*newer, *edited):
            click.echo(line, err=True)
    return False


def _stopped(lines: list[str], way_out: str, as_text: bool) -> bool:
    if as_text:
        for line in (*lines, f"nothing was written; {way_out}"):
            click.echo(line, err=True)
    return True


def _report(plan: _Plan, quiet: bool) -> None:
    if plan.found.interrupted:
        click.echo(f"{plan.folder}: finished what an interrupted build began", err=True)
    for path in plan.found.foreign:
        click.echo(f"SG805: {plan.folder / path} is not of the bundle; left alone", err=True)
    if not quiet:
        click.echo(_summary(plan))


def _summary(plan: _Plan) -> str:
    site, found = plan.site, plan.found
    nodes = f"{len(site.nodes)} node{'s' if len(site.nodes) > 1 else ''}"
    if not found.exists:
        news = "new"
    else:
        counts = {
            "written": len(found.changed) + len(found.edited) + found.drifted * len(found.origin),
            "removed": len(found.left_over),
        }
        unchanged = "only the site's text written" if found.origin else "no change"
        news = ", ".join(f"{n} {word}" for word, n in counts.items() if n) or unchanged
    return f"{site.name}: {len(plan.tree)} files for {nodes} in {plan.folder} ({news})"


def _data(plans: list[_Plan], written: bool) -> dict[str, Any]:
    """The result for scripts; if `written` is false, it lists what would have been written."""
    return {"written": written, "sites": [_bundle(plan) for plan in plans]}


def _bundle(plan: _Plan) -> dict[str, Any]:
    found = plan.found
    edited = [path for path in found.edited if path in plan.tree]
    return {
        "site": plan.site.name,
        "folder": str(plan.folder),
        "nodes": [node.name for node in plan.site.nodes],
        "files": len(plan.tree),
        "new": not found.exists,
        "changed": sorted((*found.changed, *edited, *found.origin)),
        "removed": sorted({*found.left_over, *found.edited} - {*edited}),
        "edited": list(found.edited),
        "foreign": list(found.foreign),
        "madeBy": found.made_by,
    }
