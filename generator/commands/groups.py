"""The option of commands that deal with one group of a site, and the group it selects."""

import click

from generator.commands.sites import fail
from generator.diagnostics import listed
from generator.fit.alternatives import Deployment
from generator.site.complete import CompleteDeclaration

GROUP = click.option(
    "--group", metavar="NAME", help="Only the group with this name, if the site has groups."
)


def chosen(declared: CompleteDeclaration, name: str | None) -> dict[str, Deployment]:
    """The groups by name, or the requested one; on a site without groups the name is empty."""
    groups = {
        part.group: Deployment(part.nodes, part.model, part.engine) for part in declared.parts
    }
    if not groups:
        fail("the site has no model: write 'model' and 'engine' to serve one")
    if name is None:
        return groups
    if name not in groups:
        known = listed(filter(None, groups))
        fail(f"there is no group {name}; " + (f"name {known}" if known else "the site has none"))
    return {name: groups[name]}
