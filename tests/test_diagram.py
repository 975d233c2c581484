"""Cabling diagrams: they are complete, nothing overlaps anything else, and they are valid XML."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bundles import BUNDLES, BY_NAME
from conftest import Command
from programs import require
from racks import ring_text, site_text
from tables import of_each
from valid_sites import valid

from generator.bundle.diagram.layout import cable_text, layout, subnets
from generator.bundle.diagram.memory import BarSegment, picture
from generator.bundle.diagram.mermaid import graph
from generator.bundle.diagram.plain import drawing
from generator.bundle.diagram.shapes import Box, Drawing, Label, fitted, width_of
from generator.bundle.render import cabling
from generator.fit.table import LEGEND, UNSURE
from generator.resources import ROOT
from generator.site import Site

SVG = "{http://www.w3.org/2000/svg}"
LAB_MESH = ROOT / "sites/lab-mesh.yaml"


def site_of(text: str, name: str = "lab.yaml") -> Site:
    return valid(text, name).site


def grouped(text: str, groups: dict[str, str]) -> Site:
    """A site with these groups of nodes in place of its single model."""
    entries = "".join(
        f"""\
  - name: {name}
    nodes: [{", ".join(f"spark{number}" for number in nodes)}]
    model: {{name: gpt-oss-20b, served_name: of-{name}, context_length: 8192}}
    engine:
      name: vllm
      version: 0.33.0
      image: vllm/vllm-openai:v0.33.0
      port: {8001 + index}
      ports: {{{f"master: {29501 + index}" if len(nodes) > 1 else ""}}}
      memory_utilization: 0.2
      parallel: {{pipeline: {len(nodes)}}}
"""
        for index, (name, nodes) in enumerate(groups.items())
    )
    return site_of(f"{text[: text.index('model:')]}groups:\n{entries}")


def long_names() -> Site:
    """A site on both ports with all free text as long and as awkward as allowed."""
    text = (
        site_text(nodes=5, ports=2).replace("spark3", "n" * 63).replace("rack:", "rack:pppppppp-")
    )
    nasty = '<&>]]>"--' * 4
    more = f"\n    label: '{nasty}'\n    kind: dac\n    length_m: 1.25"
    return site_of(re.sub(r"(- endpoints: .*)", rf"\1{more}", text))


@cache
def sites() -> Mapping[str, Site]:
    """Sites whose pictures are looked at, by name."""
    return {
        **{bundle.name: bundle.site for bundle in BUNDLES},
        "two-on-a-switch": site_of(site_text(nodes=2)),
        "three-on-a-switch": site_of(site_text(nodes=3)),
        "sixteen-on-a-switch": site_of(site_text(nodes=16)),
        "both-ports-on-a-switch": site_of(site_text(nodes=16, ports=2)),
        **{f"ring-of-{nodes}": site_of(ring_text(nodes)) for nodes in range(4, 9)},
        "long-names": long_names(),
        "gateway": site_of((ROOT / "tests/golden/groups-gateway/site.yaml").read_text()),
        # Nested, side by side, overlapping, and in two pieces.
        "groups-of-a-ring": grouped(
            ring_text(4), {"a": "12", "b": "21", "c": "2", "d": "43", "e": "23"}
        ),
        "groups-on-a-switch": grouped(
            site_text(nodes=9),
            {"a": "12", "b": "345", "c": "5", "d": "36", "e": "789", "f": "2378"},
        ),
    }


each_site = of_each(
    lambda: sites().values(),
    lambda site: next(name for name, known in sites().items() if known is site),
)


@each_site
def test_nothing_overlaps(site: Site) -> None:
    picture = layout(site)
    things = [*(text.box for text in picture.texts), *(badge.box for badge in picture.badges)]
    for a, b in combinations(things, 2):
        assert not a.overlaps(b), (a, b)
    for a, b in combinations(picture.frames, 2):
        assert not a.overlaps(b)
    for a, b in combinations([socket.box for socket in picture.sockets], 2):
        assert not a.overlaps(b)
    for text in picture.texts:
        for line in picture.lines:
            assert not any(crosses(segment, text.box) for segment in line.segments), text


def crosses(segment: Box, box: Box) -> bool:
    """Whether a line without a width passes through a box."""
    thick = Box(segment.x - 1, segment.y - 1, segment.width + 2, segment.height + 2)
    return thick.overlaps(box)


@each_site
def test_everything_is_inside_the_picture(site: Site) -> None:
    picture = layout(site)
    sheet = Box(0, 0, picture.width, picture.height)
    boxes = [*picture.frames, *(text.box for text in picture.texts)]
    boxes += [badge.box for badge in picture.badges]
    boxes += [segment for line in picture.lines for segment in line.segments]
    assert all(sheet.holds(box) for box in (*boxes, *picture.groups))
    for text in picture.texts:
        frames = [frame for frame in picture.frames if frame.overlaps(text.box)]
        assert all(frame.holds(text.box) for frame in frames), text
    for socket in picture.sockets:
        assert any(frame.holds(socket.box) for frame in picture.frames)
    for badge in picture.badges:
        assert badge.box.holds(badge.text.box)


@each_site
def test_lines_join_the_ports_of_their_cables(site: Site) -> None:
    picture = layout(site)
    assert Counter(badge.text.text for badge in picture.badges) == Counter(
        str(cable.number) for cable in site.cables for _ in cable.ports
    )
    frames = dict(zip([node.name for node in site.nodes], node_frames(picture, site), strict=True))
    for cable, line in zip(by_line(picture, site), picture.lines, strict=True):
        touched = {
            (name, port)
            for name, frame in frames.items()
            for port, socket in enumerate(ports(picture, frame))
            if any(end in ((socket.center, socket.bottom),) for end in line.points)
        }
        assert touched == {(port.node, port.port) for port in cable.ports}


@each_site
def test_groups_have_frames(site: Site) -> None:
    """Each frame encloses exactly its nodes, has its label, and no text crosses it."""
    picture = layout(site)
    nodes = dict(zip([node.name for node in site.nodes], node_frames(picture, site), strict=True))
    found: dict[str, set[str]] = {}
    labels = {(text.x, text.y): text.text for text in picture.texts}
    for group in picture.groups:
        held = {name for name, box in nodes.items() if group.holds(box)}
        assert not any(group.overlaps(box) for name, box in nodes.items() if name not in held)
        first = min((nodes[name] for name in held), key=lambda box: (box.y, box.x))
        found.setdefault(labels[first.x, group.y + 14].partition(":")[0], set()).update(held)
    for a, b in combinations(picture.groups, 2):
        assert not {a.x, a.right} & {b.x, b.right} or a.bottom < b.y or b.bottom < a.y
    slots = site.slots if site.groups else ()
    assert found == {parts[0].slot: {node.name for node in parts[0].nodes} for parts in slots}
    for edge in (edge for group in picture.groups for edge in edges(group)):
        assert not [text for text in picture.texts if crosses(edge, text.box)]


def edges(box: Box) -> list[Box]:
    """The sides of a box, as boxes with no area."""
    return [
        Box(box.x, box.y, box.width, 0),
        Box(box.x, box.bottom, box.width, 0),
        Box(box.x, box.y, 0, box.height),
        Box(box.right, box.y, 0, box.height),
    ]


def node_frames(picture: Drawing, site: Site) -> list[Box]:
    """The frames of the nodes, by rank; on a switch site, the first frame is the switch's own."""
    return list(picture.frames[1:] if site.kind == "switch" else picture.frames)


def ports(picture: Drawing, frame: Box) -> list[Box]:
    """A node's sockets from left to right: p0 is next to the RJ45, then p1."""
    inside = [socket.box for socket in picture.sockets if frame.holds(socket.box)]
    return sorted(inside, key=lambda box: box.x)[1:]


def by_line(picture: Drawing, site: Site) -> list[object]:
    """The cables in the order of the lines; each label is above the middle of its line."""
    texts = {(text.x, text.y): text.text for text in picture.texts if text.style == "small"}
    found = []
    for line in picture.lines:
        y = line.points[1][1]
        (label,) = [
            text
            for (x, base), text in texts.items()
            if base == y - 7 and min(p[0] for p in line.points) < x < max(p[0] for p in line.points)
        ]
        number = int(re.match(r"cable (\d+)", label)[1])  # type: ignore[index]
        found.append(site.cables[number - 1])
    return found


@each_site
def test_labels_of_cables(site: Site) -> None:
    shown = [text.text for text in layout(site).texts]
    for cable in site.cables:
        assert any(cable_text(cable).startswith(text.rstrip("\u2026")) for text in shown)
        assert subnets(cable) in shown


@each_site
def test_svg_is_valid_xml_with_all_texts(site: Site) -> None:
    root = ElementTree.fromstring(cabling(site))
    assert root.tag == f"{SVG}svg"
    texts = [element.text for element in root.iter(f"{SVG}text")]
    picture = layout(site)
    assert Counter(texts) == Counter(
        [text.text for text in picture.texts] + [badge.text.text for badge in picture.badges]
    )
    assert len(list(root.iter(f"{SVG}path"))) == 2 * len(site.cables)
    description = root.find(f"{SVG}desc")
    assert description is not None
    for cable in site.cables:
        assert f"{cable_text(cable)}: {cable.a} to {cable.b}" in str(description.text)


@each_site
def test_ports_of_a_switch_are_told_apart(site: Site) -> None:
    shown = [text.text for text in layout(site).texts if text.style == "port"]
    found = [name for name in shown if name not in ("RJ45", "p0", "p1")]
    assert len({*found}) == len(found)


@each_site
def test_pictures_fit_a_page(site: Site) -> None:
    """Nodes without a switch are in rows of at most four."""
    assert layout(site).width <= 1800


def test_cut_label_of_a_group_is_below() -> None:
    """A frame has as much room as its nodes; what does not fit is a line of its own."""
    texts = {text.text for text in layout(sites()["gateway"]).texts}
    assert "embed: qwen3-embedding-8b or gp\u2026" in texts
    assert "embed: qwen3-embedding-8b or gpt-oss-20b" in texts


def test_site_name_cannot_end_the_xml_comment() -> None:
    site = site_of(LAB_MESH.read_text().replace("name: lab-mesh", "name: a--b", 1))
    svg = cabling(site)
    assert svg.startswith("<!-- generated by sparkgen from the site a-&#45;b; do not edit -->\n")
    ElementTree.fromstring(svg)


def test_memory_picture_has_one_bar_for_identical_nodes() -> None:
    memory = sites()["ring-405b"].memory
    assert memory
    drawn = picture("ring-405b", memory)
    assert [text.text for text in drawn.texts if text.style == "name"] == [
        "spark1, spark3",
        "spark2",
    ]
    bars: dict[int, list[BarSegment]] = {}
    for part in drawn.parts:
        bars.setdefault(part.y, []).append(part)
    *rows, legend = bars.values()
    assert len(rows) == 2
    fills = [f"fill{kind}" for kind in range(len(LEGEND) - 1)]
    assert [part.fill for part in legend] == [*fills[:UNSURE], "hatched", *fills[UNSURE:]]
    for row, (edge, _) in zip(rows, drawn.edges, strict=True):
        # The parts adjoin, up to the end of the node's memory.
        assert [part.x + part.width for part in row[:-1]] == [part.x for part in row[1:]]
        assert abs(row[-1].x + row[-1].width - edge) <= 1
    assert all(f"{word} " in drawn.description for word in LEGEND)


def test_svg_can_be_rendered(tmp_path: Path) -> None:
    require("rsvg-convert")
    pictures = [("lab-mesh", "cabling"), ("rack-switch", "cabling"), ("ring-405b", "memory")]
    for name, what in pictures:
        out = tmp_path / f"{name}.png"
        svg = BY_NAME[name].folder / f"{what}.svg"
        subprocess.run(("rsvg-convert", "--output", out, svg), check=True)
        assert out.read_bytes().startswith(b"\x89PNG")


def test_light_and_dark_palettes_have_the_same_size() -> None:
    svg = cabling(sites()["lab-mesh"])
    light, _, dark = svg.partition("@media (prefers-color-scheme: dark)")
    pattern = r"\.stroke(\d) \{ stroke: (#\w{6}); \}"
    colors = [dict(re.findall(pattern, part)) for part in (light, dark)]
    assert colors[0].keys() == colors[1].keys()
    assert all(color != colors[1][number] for number, color in colors[0].items())


def test_text_diagram(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("diagram", LAB_MESH, "--format", "ascii", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == PLAIN


PLAIN = """\
spark1, rank 0                  spark2, rank 1                  spark3, rank 2
+-------------------+           +-------------------+           +-------------------+
| RJ45 [ p0 ][ p1 ] |           | RJ45 [ p0 ][ p1 ] |           | RJ45 [ p0 ][ p1 ] |
+-------------------+           +-------------------+           +-------------------+
         |     |                         |     |                         |     |
         +-----|----------- 1 -----------|-----+                         |     |
               |                         |                               |     |
               |                         +-------------- 2 --------------|-----+
               |                                                         |
               +--------------------------- 3 ---------------------------+

CABLE  FROM       TO         SUBNETS                             KIND  LENGTH  LABEL
1      spark1:p0  spark2:p1  192.168.177.0/24, 192.168.178.0/24  -     -       -
2      spark2:p0  spark3:p1  192.168.197.0/24, 192.168.198.0/24  -     -       -
3      spark3:p0  spark1:p1  192.168.187.0/24, 192.168.188.0/24  -     -       -
"""


@each_site
def test_text_diagram_is_ascii_and_has_every_cable(site: Site) -> None:
    picture = drawing(site)
    assert picture.isascii()
    for cable in site.cables:
        assert re.search(rf"^{cable.number} +{re.escape(str(cable.a))} ", picture, re.MULTILINE)


@each_site
def test_graph_has_one_edge_per_cable(site: Site) -> None:
    edges = re.findall(r'^  (\w+) ---\|"(.*)"\| (\w+)$', graph(site), re.MULTILINE)
    assert len(edges) == len(site.cables)
    for _, label, _ in edges:
        assert not re.search(r"[<>&\"]", label.replace("<br/>", ""))


def test_graph_shows_the_gateways_routes() -> None:
    site = sites()["gateway"]
    legend = """\
All models at http://10.0.0.15:8088, the gateway on spark5
assistant: chat, chat-b
qwen3-embedding-8b: embed
gpt-oss-20b: coder
"""
    assert drawing(site).endswith(f"\n\n{legend}")
    assert set(legend.splitlines()) <= {text.text for text in layout(site).texts}
    assert "10.0.0.15, gateway" in {text.text for text in layout(site).texts}
    ways = re.findall(r'^  gateway -\.->\|"(.*)"\| (\w+)$', graph(site), re.MULTILINE)
    assert ways == [
        ("assistant", "n0"),
        ("assistant", "n2"),
        ("qwen3-embedding-8b", "n4"),
        ("gpt-oss-20b", "n4"),
    ]


def test_groups_of_a_graph() -> None:
    """A node is in one frame only: a group that overlaps another is a label with lines to nodes."""
    found = graph(sites()["groups-of-a-ring"]).splitlines()
    start = found.index('  subgraph g0["a: gpt-oss-20b as of-a"]')
    assert found[start : start + 12] == [
        '  subgraph g0["a: gpt-oss-20b as of-a"]',
        '    subgraph g1["b: gpt-oss-20b as of-b"]',
        '      subgraph g4["c: gpt-oss-20b as of-c"]',
        "        n1",
        "      end",
        "      n0",
        "    end",
        "  end",
        '  subgraph g2["d: gpt-oss-20b as of-d"]',
        "    n3 & n2",
        "  end",
        '  g3(["e: gpt-oss-20b as of-e"]) -.- n1 & n2',
    ]


def test_groups_of_a_text_diagram() -> None:
    """In a row, the upper sides of their frames are drawn; on a switch, there is a table."""
    assert drawing(sites()["groups-of-a-ring"]).startswith(PLAIN_GROUPS)
    assert "\nf      spark2, spark3, spark7, spark8  of-f " in drawing(
        sites()["groups-on-a-switch"]
    )


PLAIN_GROUPS = """\
                                +- e: gpt-oss-20b as of-e -----------------------------------+
+- b: gpt-oss-20b as of-b -----------------------------------+
+- a: gpt-oss-20b as of-a -----------------------------------+
"""


def test_single_node(tmp_path: Path, sparkgen: Command) -> None:
    site = ROOT / "sites/single.yaml"
    ElementTree.fromstring(sparkgen("diagram", site, cwd=tmp_path).out)
    assert "RJ45" in sparkgen("diagram", site, "--format", "ascii", cwd=tmp_path).out
    assert not (ROOT / "out/single/cabling.svg").exists()


def test_long_text_is_cut() -> None:
    assert fitted("short", "small", 100) == "short"
    cut = fitted("x" * 100, "small", 100)
    assert cut.endswith("x\u2026")
    assert width_of(cut, "small") <= 100 < width_of(cut + "x", "small")
    assert width_of("\u65e5\u672c", "small") > width_of("ab", "small")


@pytest.mark.parametrize(("anchor", "left"), [("start", 50), ("middle", 30), ("end", 10)])
def test_box_of_a_text(anchor: str, left: int) -> None:
    text = Label("x" * 6, 50, 20, "small", anchor)  # type: ignore[arg-type]
    assert text.box == Box(left, 11, 40, 12)
