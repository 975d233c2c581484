"""The runbook: its templates are short and flat, and every bundle's has its steps in order."""

import re
from collections.abc import Callable, Iterator
from os.path import normpath
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Bundle
from jinja2 import nodes
from tables import of_each
from test_golden import GOLDEN, SITES
from valid_sites import EXAMPLES, valid_file

from generator.bundle.plan import README, REFERENCE, group_pages
from generator.bundle.render import render
from generator.bundle.runbook import owners
from generator.bundle.templates import IsolatedEnvironment, environment, sources
from generator.bundle.tree import Tree
from generator.engines import ENGINES
from generator.fabric.topologies import TOPOLOGIES
from generator.pipeline import read_site
from generator.resources import TEMPLATES
from generator.services import SERVICES
from generator.site import Site

RUNBOOK = [
    TEMPLATES / "README.md.j2",
    TEMPLATES / "REFERENCE.md.j2",
    *sorted((TEMPLATES / "readme").rglob("*.j2")),
]
PARTS = TEMPLATES / "readme"
# A site of each launcher that no golden of groups has.
LAUNCHED = {"mpi": "trtllm-mpi-direct", "ray": "direct-ray", "slurm": "trtllm-slurm-switch"}

# Parts that each owner's folder may have and that no condition keeps out.
EVERYWHERE = [
    name
    for template in RUNBOOK
    for name in re.findall(r'owner ~ "/(.+?)" ignore missing', template.read_text())
    if name not in ("model.md.j2", "start_steps.md.j2", "ufw.md.j2")
]


@of_each(RUNBOOK)
def test_template_is_short_and_flat(template: Path) -> None:
    text = template.read_text()
    assert max(len(line) for line in text.splitlines()) <= 160
    tree = environment(IsolatedEnvironment, sources()).parse(text)
    for inner in [*conditions_within(tree), *choices_within(tree)]:
        pytest.fail(f"nested condition in line {inner.lineno}")
    for computed in tree.find_all((nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv)):
        pytest.fail(f"arithmetic in line {computed.lineno}")


def conditions_within(tree: nodes.Template) -> Iterator[nodes.Node]:
    """Conditions nested in others; an `elif` is not nested."""
    for outer in tree.find_all(nodes.If):
        for statement in (*outer.body, *outer.else_):
            yield from (statement,) if isinstance(statement, nodes.If) else ()
            yield from statement.find_all(nodes.If)


def choices_within(tree: nodes.Template) -> Iterator[nodes.Node]:
    """Choices such as `a if b else c` nested in others."""
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


def test_every_engine_has_the_parts_that_no_runbook_lacks() -> None:
    needed = {"share.md.j2", "dead_rank.md.j2", "key.md.j2"}
    for engine in ENGINES:
        assert needed <= {part.name for part in (PARTS / "engines" / engine).iterdir()}, engine


@pytest.mark.parametrize("file", SITES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_part_of_a_site_is_in_its_runbook(file: Path, bundle: Bundle) -> None:
    site = valid_file(file).site
    check_every_part_is_present(site, bundle(file))


@pytest.mark.parametrize("launcher", ["mpi", "ray", "slurm"])
def test_every_part_of_a_group_is_on_its_page(launcher: str) -> None:
    """The pages of groups whose launcher is not the one in the goldens."""
    declared: dict[str, Any] = yaml.safe_load(
        (GOLDEN / LAUNCHED[launcher] / "site.yaml").read_text()
    )
    group = {"name": "chat", "nodes": [node["name"] for node in declared["nodes"]]}
    group |= {key: declared.pop(key) for key in ("model", "engine")}
    text = yaml.safe_dump(declared | {"groups": [group]}).encode()
    site = read_site("site.yaml", text).site
    assert site
    assert site.groups[0].engine.launcher == launcher
    tree = render(site, "")
    check_every_part_is_present(site, tree)
    start = tree[README].text.partition("### Groups")[2].partition("## Check")[0]
    assert ("sbatch" in start, "systemctl" in start) == (launcher == "slurm", launcher != "slurm")
    assert all("```\n#" not in tree[page].text for page in group_pages(site.groups[0]))


def check_every_part_is_present(site: Site, tree: Tree) -> None:
    for shown, page, text in pages(site, tree):
        for owner in owners(shown):
            for name in EVERYWHERE:
                part = PARTS / owner / name
                elsewhere = owner.startswith("topologies/") and is_covered_elsewhere(shown, name)
                assert elsewhere or not part.exists() or longest_line(part) in text, (page, part)


def is_covered_elsewhere(shown: Site, name: str) -> bool:
    """The fabric is set up once; a fault in it shows in a group, so the group's page covers it."""
    is_trouble = name == "trouble.md.j2"
    return bool(shown.groups) if is_trouble else bool(shown.group)


def pages(site: Site, tree: Tree) -> Iterator[tuple[Site, str, str]]:
    """The runbook of the site and of each group, with its reference and what it is about."""
    for shown, paths in [
        (site, (README, REFERENCE)),
        *((g, (*group_pages(g),)) for g in site.groups),
    ]:
        yield shown, paths[0], "\n".join(tree[path].text for path in paths)


def longest_line(part: Path) -> str:
    """The longest text on a line that the part always prints; some have none."""
    tree = environment(IsolatedEnvironment, sources()).parse(part.read_text())
    plain = [
        data.data
        for output in tree.body
        if isinstance(output, nodes.Output)
        for data in output.nodes
        if isinstance(data, nodes.TemplateData)
    ]
    return max((line for text in plain for line in text.splitlines()), key=len, default="").strip()


def is_slurm_job(shown: Site) -> bool:
    return shown.serving is not None and shown.serving.engine.is_slurm_job


def is_site(shown: Site) -> bool:
    return not shown.group


def is_served(shown: Site) -> bool:
    return shown.serving is not None


def is_cabled_site(shown: Site) -> bool:
    return shown.has_fabric and not shown.group


def is_measured(shown: Site) -> bool:
    return shown.has_fabric and not shown.groups


# The headings in their order, on the runbook and then on its reference, and what has each.
ORDER: dict[str, Callable[[Site], bool]] = {
    "### Cables": is_cabled_site,
    "### The switch": lambda shown: bool(shown.switches) and is_site(shown),
    "### Prepare ": is_site,
    "### Copy and install": is_site,
    "### Verify the links": is_cabled_site,
    "### Image and model": is_served,
    "### Start": is_served,
    "### Groups": lambda shown: bool(shown.groups),
    "## Check": lambda _: True,
    "## Endpoints": lambda _: True,
    "## Roll back": lambda _: True,
    "## Troubleshooting": lambda shown: is_served(shown) or is_measured(shown),
    "## When something fails": lambda shown: is_site(shown) and bool(shown.parts),
    "## How a switch works": lambda shown: any(len(parts) > 1 for parts in shown.slots),
    "## The gateway": lambda shown: is_site(shown) and "gateway" in shown.services,
    "## Interfaces": is_cabled_site,
    "## What a start does": lambda shown: is_served(shown) and not is_slurm_job(shown),
    "## What the job does": is_slurm_job,
    "## Firewall": lambda shown: is_cabled_site(shown) and "firewall" not in shown.services,
    "## By hand": lambda shown: (
        is_measured(shown) or (is_served(shown) and not is_slurm_job(shown))
    ),
    "## Memory": is_served,
    "## What install.sh does": is_site,
}


@pytest.mark.parametrize("file", SITES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_steps_are_in_order(file: Path, bundle: Bundle) -> None:
    tree = bundle(file)
    site = valid_file(file).site
    for shown, page, text in pages(site, tree):
        found = [heading for heading in ORDER if re.search(f"^{heading}", text, re.MULTILINE)]
        places = [text.index(f"\n{heading}") for heading in found]
        assert places == sorted(places)
        assert found == [heading for heading, is_wanted in ORDER.items() if is_wanted(shown)]
        assert "\n\n\n" not in text
        assert tree[page].text[-2:] != "\n\n"


@pytest.mark.parametrize("file", SITES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_runbook_has_what_is_needed_at_the_nodes(file: Path, bundle: Bundle) -> None:
    """It is short, and what it only refers to is on the other page."""
    tree = bundle(file)
    site = valid_file(file).site
    words = len(tree[README].text.split())
    # Each node, cable and service has lines of its own.
    assert words <= 1800 + 100 * len(site.services) + 50 * len(site.nodes)
    groups = [tuple(group_pages(part)) for part in site.groups]
    assert all(len(tree[page].text.split()) <= 1500 for page, _ in groups)
    for page in (README, REFERENCE, *(page for pair in groups for page in pair)):
        for target, anchor in re.findall(r"\]\(([\w./-]+\.md)?#([\w-]+)\)", tree[page].text):
            there = tree[normpath(Path(page).parent / target) if target else page].text
            headings = re.findall(r"^#+ (.+)$", there, re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def test_the_runbook_of_a_pair_is_short(bundle: Bundle) -> None:
    assert len(bundle(EXAMPLES["pair-chatbot"])[README].text.split()) <= 2000


def test_uplinks_and_routes_are_described(bundle: Bundle) -> None:
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


def test_labels_to_print_have_the_label_of_the_site(bundle: Bundle) -> None:
    text = bundle(EXAMPLES["pair-chatbot"])[REFERENCE].text
    labels = text.partition("Labels to print")[2].split("```")[1].splitlines()[1:]
    assert labels == ["1: A1  spark1:p0 > spark2:p0", "1: A1  spark2:p0 > spark1:p0"]
