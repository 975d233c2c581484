"""The runbook: its templates are short and flat, and each bundle's has the steps in their order."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Bundle
from jinja2 import nodes
from test_golden import GOLDEN, SITES

from generator.bundle.runbook import owners
from generator.bundle.templates import environment
from generator.engines import ENGINES
from generator.fabric.topologies import TOPOLOGIES
from generator.pipeline import read_site
from generator.resources import TEMPLATES
from generator.services import SERVICES
from generator.sitefile.disk import beside

RUNBOOK = [TEMPLATES / "README.md.j2", *sorted((TEMPLATES / "readme").rglob("*.j2"))]
PARTS = TEMPLATES / "readme"

# Parts that each owner's folder may have and that no condition keeps out.
EVERYWHERE = [
    name
    for template in RUNBOOK
    for name in re.findall(r'owner ~ "/(.+?)" ignore missing', template.read_text())
    if name not in ("model.md.j2", "start_steps.md.j2", "ufw.md.j2")
]


@pytest.mark.parametrize("template", RUNBOOK, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_template_is_short_and_flat(template: Path) -> None:
    text = template.read_text()
    assert max(len(line) for line in text.splitlines()) <= 160
    tree = environment().parse(text)
    for inner in [*conditions_within(tree), *choices_within(tree)]:
        pytest.fail(f"nested condition in line {inner.lineno}")


def conditions_within(tree: nodes.Template) -> Iterator[nodes.Node]:
    """Conditions inside of others; an `elif` is not inside."""
    for outer in tree.find_all(nodes.If):
        for statement in (*outer.body, *outer.else_):
            yield from (statement,) if isinstance(statement, nodes.If) else ()
            yield from statement.find_all(nodes.If)


def choices_within(tree: nodes.Template) -> Iterator[nodes.Node]:
    """Choices such as `a if b else c` inside of others."""
    for outer in tree.find_all(nodes.CondExpr):
        yield from outer.find_all(nodes.CondExpr)


def test_every_folder_of_parts_has_an_owner() -> None:
    known = {
        "topologies": set(TOPOLOGIES),
        "engines": set(ENGINES),
        "services": set(SERVICES),
        "launchers": {"native", "ray", "mpi", "slurm"},
    }
    for group, names in known.items():
        assert {folder.name for folder in (PARTS / group).iterdir()} <= names


@pytest.mark.parametrize("file", SITES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_part_of_a_site_is_in_its_runbook(file: Path, bundle: Bundle) -> None:
    site = read_site(file.name, file.read_bytes(), beside(file)).site
    assert site
    text = bundle(file)["README.md"].text
    for owner in owners(site):
        for name in EVERYWHERE:
            part = PARTS / owner / name
            assert not part.exists() or longest_line(part) in text, part


def longest_line(part: Path) -> str:
    """The longest text on a line that the part always has; some have none."""
    tree = environment().parse(part.read_text())
    plain = [
        data.data
        for output in tree.body
        if isinstance(output, nodes.Output)
        for data in output.nodes
        if isinstance(data, nodes.TemplateData)
    ]
    return max((line for text in plain for line in text.splitlines()), key=len, default="").strip()


ORDER = (
    "### Cables",
    "### The switch",
    "### Prepare ",
    "### Copy and install",
    "### Verify the links",
    "### Image and model",
    "### Start",
    "## Check",
    "## Endpoints",
    "## Troubleshooting",
    "## Reference",
    "## Roll back",
)


@pytest.mark.parametrize("file", SITES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_steps_stand_in_the_order_that_they_are_taken_in(file: Path, bundle: Bundle) -> None:
    tree = bundle(file)
    text = tree["README.md"].text
    found = [heading for heading in ORDER if re.search(f"^{heading}", text, re.MULTILINE)]
    places = [text.index(f"\n{heading}") for heading in found]
    assert places == sorted(places)
    wanted = set(ORDER) - {"### The switch"}
    if "cabling.svg" not in tree:
        wanted -= {"### Cables", "### Verify the links"}
    assert wanted <= set(found)
    assert "\n\n\n" not in text


def test_uplinks_and_routes_are_told(bundle: Bundle) -> None:
    uplinks = bundle(GOLDEN / "direct-uplink" / "site.yaml")["README.md"].text
    assert "nothing here configures them: spark1:p1, spark2:p1.\n" in uplinks
    routes = bundle(GOLDEN / "ring-five-routes" / "site.yaml")["README.md"].text
    assert "`sudo systemctl start sparkgen-routes`" in routes


def test_cable_sheet_has_a_line_for_each_cable_that_fits_on_paper(bundle: Bundle) -> None:
    for case, line in (
        ("switch-setup", "[ ]  [ ]  1      "),
        ("direct-crossed-ports", "[ ]  [ ]  1      spark1:p0  spark2:p1"),
    ):
        sheet = bundle(GOLDEN / case / "site.yaml")["operator/cables.txt"].text
        assert [row for row in sheet.splitlines() if row.startswith(line)], sheet
        assert max(map(len, sheet.splitlines())) <= 80
    assert "p1: ethtool enp1s0f1np1" in sheet
    assert "operator/cables.txt" not in bundle(GOLDEN / "single-web-ui" / "site.yaml")
