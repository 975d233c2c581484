"""The documents: their commands print what the text shows, and their links resolve."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bundles import BY_NAME
from conftest import Command
from documents import (
    GENERATED,
    PATHS,
    Workplace,
    block,
    blocks,
    console,
    every_document,
    same,
    text_of,
)
from evidence_report import compared, markdown, unknown_layouts
from make_command_reference import EXITS, page
from make_comment_picture import drawn
from valid_sites import EXAMPLES, valid_file

from generator.catalogs.flag_files import versions
from generator.cli import COMMANDS
from generator.resources import ROOT

BUNDLE = "templates/README.md"

# These start in an empty folder; the others in a repository with the examples.
FROM_NOTHING = ("README.md",)
WITH_COMMANDS = [path for path in PATHS if [*console(text_of(path))]]


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("update_golden"))


@pytest.mark.golden
@pytest.mark.parametrize("path", WITH_COMMANDS)
def test_documented_commands_print_what_they_show(path: str, tmp_path: Path, update: bool) -> None:
    place = Workplace(tmp_path)
    place = place.empty() if path in FROM_NOTHING else place.with_examples()
    text = text_of(path)
    for command, printed in console(text):
        output = place.run(command)
        if update and not same(output, printed):
            text = text.replace(f"\n$ {command}\n{printed}", f"\n$ {command}\n{output}", 1)
        else:
            assert same(output, printed), command
    if update:
        (ROOT / path).write_text(text, encoding="utf-8")


@pytest.mark.golden
def test_command_reference_is_fresh(update: bool) -> None:
    path = ROOT / "generator/commands/README.md"
    if update:
        path.write_text(page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page(), "made by tests/make_command_reference.py"
    assert {*EXITS} == {*COMMANDS}


@pytest.mark.golden
def test_table_of_held_out_figures_is_fresh(update: bool) -> None:
    path = ROOT / "schemas/accuracy.md"
    text = path.read_text(encoding="utf-8")
    head, _ = markdown().split("\n", 1)
    table = re.search(rf"^{re.escape(head)}\n(?:\|.*\n)+(?:\n(?:\|.*\n)+){{3}}", text, re.MULTILINE)
    assert table
    if update:
        path.write_text(text.replace(table[0], markdown()), encoding="utf-8")
    else:
        assert table[0] == markdown(), "the table is that of evidence_report.markdown()"


def test_figures_of_the_front_page_are_those_of_the_table() -> None:
    table = text_of("schemas/accuracy.md")
    told = " ".join(text_of("README.md").split())
    for row, sentence in (
        (
            "all, builds of one's own",
            "Of {0} of patched and nightly builds, {2} and {3} are; {4} more have no estimate,",
        ),
        ("all", "of {0} figures, {2} are within 3% and {3} within 10% ("),
        (
            "KV cache memory",
            "of {0} for KV cache memory, which decides whether a model fits, {2} are within 3%.",
        ),
    ):
        named = row if "," in row else f"{row}, releases"
        (cells,) = re.findall(rf"^\| {named} \|(.*)\|$", table, re.MULTILINE)
        assert sentence.format(*(cell.strip() for cell in cells.split("|"))) in told
    assert f"more have no estimate, {len(unknown_layouts())} an unknown layout." in told


def test_figures_without_one_small_model_are_told() -> None:
    """Ten starts of the same model would otherwise make the estimates look better."""
    figures = [figure for figure in compared(known=True) if figure.error is not None]
    others = [f for f in figures if not f.start.path.stem.startswith("qwen2.5-1.5b-sglang")]
    three, ten = (
        f"{sum(abs(f.error or 0) <= most for f in others) / len(others):.0%}"
        for most in (0.03, 0.1)
    )
    told = " ".join(text_of("README.md").split())
    alike = len(figures) - len(others)
    assert f"({three} and {ten} without {alike} of one small model)" in told
    sparks = sum(figure.start.on_sparks for figure in figures)
    assert 0.6 < sparks / len(figures) < 0.7
    table = " ".join(text_of("schemas/accuracy.md").replace(" %", "%").split())
    assert f"{three} of {len(others)} figures of releases are within 3% and {ten} within" in table
    assert f"{sparks} of the {len(figures)} figures of releases are of Sparks" in table


def test_fit_and_diff_tell_the_same_memory() -> None:
    """Of the same site, on the front page."""
    text = text_of("README.md")
    left = re.findall(r"fits: (\S+ GiB) left", text)
    assert {*left} == {*re.findall(r"left on the fullest node: (\S+ GiB) ->", text)}


@pytest.mark.golden
def test_picture_of_the_comment_is_fresh(update: bool) -> None:
    path = ROOT / "sites/images/comment.svg"
    now = drawn()
    ElementTree.fromstring(now)
    if update:
        path.write_text(now, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == now, "made by tests/make_comment_picture.py"
    for word in ("context_length: 32768", "nobody answers to", "1. copy the folder", "pair/spark1"):
        assert word in now


@pytest.mark.parametrize("path", sorted({*every_document()} - {*GENERATED}))
def test_documents_are_short(path: str) -> None:
    """Words of prose; what commands print, and pages that are generated, can be longer."""
    prose = re.sub(r"^```.*?^```$", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= (900 if path == "README.md" else 1500)


def test_summary_of_a_check_is_the_real_one(tmp_path: Path) -> None:
    """`install.sh --check` of the first node, on a machine that has nothing of it yet."""
    place = Workplace(tmp_path).empty()
    place.run("sparkgen init --from spark1.txt --from spark2.txt sites/pair.yaml && sparkgen build")
    shown = block("README.md", "text", "files are new")
    place.run("mkdir -p node/etc && echo spark1 >node/etc/hostname")
    place.run("cp -r out/pair/spark1 sparkgen-bundle")
    printed = place.run("sparkgen-bundle/install.sh --check --root node 2>&1")
    assert printed.startswith(shown)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, and the explicit anchors."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*plain, *re.findall(r'<a id="([^"]+)">', text)}


@pytest.mark.parametrize("path", every_document())
def test_links_lead_somewhere(path: str) -> None:
    text = text_of(path)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    folder = (ROOT / path).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        found = (folder / file) if file else ROOT / path
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text(encoding="utf-8")), target


def test_commands_of_every_document_are_tested() -> None:
    assert {path for path in every_document() if [*console(text_of(path))]} == {*WITH_COMMANDS}


# The examples


@pytest.mark.parametrize("path", EXAMPLES.values(), ids=lambda path: path.stem)
def test_examples_are_fine_and_of_the_current_release(path: Path, sparkgen: Command) -> None:
    """What is found in them is waived, with a reason; lab-mesh has the release of its recipe."""
    outcome = sparkgen("validate", path, cwd=ROOT)
    assert outcome.out + outcome.err == f"{path}: fine\n"
    for part in valid_file(path).site.parts if path.stem != "lab-mesh" else ():
        released = versions(part.engine.name)
        final = [name for name in released if "rc" not in name]
        assert part.engine.version.removeprefix("b") in (released[-1], final[-1])


# The bundle


def test_documented_tree_is_that_of_a_bundle() -> None:
    (tree,) = [text for text in blocks(text_of(BUNDLE), "") if text.startswith("out/lab-mesh/")]
    folder, listed = "", set()
    for line in tree.splitlines()[1:]:
        name = line.split()[0]
        folder = "" if line.startswith("  ") and line[2] != " " else folder
        if name.endswith("/"):
            folder = name
        else:
            listed.add(folder + name)
    root = ROOT / "out/lab-mesh"
    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert listed == {path for path in files if not path.startswith(("spark2/", "spark3/"))}


def test_documented_files_are_in_a_bundle() -> None:
    """Each is in a bundle that the tests have, unless it is part of a service that none has."""
    sites = "".join(path.read_text() for path in (ROOT / "sites").rglob("*.yaml"))
    rows = [
        row
        for row in text_of(BUNDLE).splitlines()
        if row.startswith("| `o")
        and all(is_shown(service, sites) for service in re.findall(r"services\.(\w+)", row))
    ]
    names = [name for row in rows for name in re.findall(r"`(\S+/\S+)`", row)]
    assert len(names) > 10
    folders = [BY_NAME[example].folder for example in EXAMPLES]
    folders += (ROOT / "tests/golden").glob("*/expected")
    for name in names:
        assert any([*root.glob(name), *root.glob(f"*/{name}")] for root in folders), name
    for service in ("monitoring", "guard", "firewall", "qos", "web_ui"):
        assert is_shown(service, sites), service


def is_shown(service: str, sites: str) -> bool:
    """Whether a site enables a service; a `gateway` can also be that of a network."""
    return re.search(rf"^(?:services: \{{.*\b|  ){service}:", sites, re.MULTILINE) is not None
