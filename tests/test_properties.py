"""Properties of every valid site, whatever it looks like, and of every site that is not.

Sites come from `site_files`: in CI the same ones each time, elsewhere new ones.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from ipaddress import IPv4Interface, IPv4Network
from itertools import chain
from random import Random
from typing import Any, NamedTuple

import pytest
import test_golden
import yaml
from draws import sample
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from node_programs import loaded
from site_files import (
    FIRST_HOST,
    KINDS,
    SiteFile,
    beside,
    changed_site_files,
    damaged_texts,
    free_ports,
    reading_of,
    rearranged,
    site_files,
    with_a_node_more,
    with_a_node_renamed,
    with_all_ports,
    written,
)
from valid_sites import valid
from waiting import PATIENCE

from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.diagnostics import Span, has_errors
from generator.pipeline import Reading, read_site
from generator.reports.text import text
from generator.site import Node, Site
from generator.sitefile.beside import Source, SourceFile
from generator.sitefile.lint import lint

settings.register_profile(
    "sparkgen",
    derandomize=bool(os.environ.get("CI")),
    database=None,
    deadline=None,
    max_examples=50,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("sparkgen")
few = settings(max_examples=20)
many = settings(max_examples=sample(60))

INTERFACES = {
    ("p0", 0): "enp1s0f0np0",
    ("p0", 1): "enP2p1s0f0np0",
    ("p1", 0): "enp1s0f1np1",
    ("p1", 1): "enP2p1s0f1np1",
}
HCAS = {
    "enp1s0f0np0": "rocep1s0f0",
    "enP2p1s0f0np0": "roceP2p1s0f0",
    "enp1s0f1np1": "rocep1s0f1",
    "enP2p1s0f1np1": "roceP2p1s0f1",
}


class Built(NamedTuple):
    """A valid site file, its contents, and the bundle."""

    file: SiteFile
    flow: bool
    site: Site
    tree: Tree

    def text(self, node: Node, path: str) -> str:
        return self.tree[f"{node.name}/{path}"].text


def build(file: SiteFile, flow: bool = False) -> Built:
    reading = reading_of(written(file, flow))
    assert reading.site, text(reading.document, reading.findings)
    return Built(file, flow, reading.site, render(reading.site, reading.sha256))


def site_of(file: SiteFile) -> Site:
    return valid(written(file, flow=True), files=beside).site


# Twice as many switches: of these alone there are nodes to add.
BUILT = st.builds(build, site_files((*KINDS, "switch")), st.booleans())

Property = Callable[[Built], None]
Comparison = Callable[[Built, Random], None]
OF_BUNDLES: list[Property] = []
OF_CLUSTERS: list[Property] = []
OF_OTHERS: list[Comparison] = []


def of_every_bundle(holds: Property) -> Property:
    OF_BUNDLES.append(holds)
    return holds


def of_every_cluster(holds: Property) -> Property:
    OF_CLUSTERS.append(holds)
    return holds


def beside_another(holds: Comparison) -> Comparison:
    """Properties of a site and one derived from it."""
    OF_OTHERS.append(holds)
    return holds


# --- what every bundle says ---------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.drawn
@settings(max_examples=sample(50))
@given(BUILT, st.integers(0, 2**32))
def test_every_bundle(built: Built, seed: int) -> None:
    """All properties of one site in turn: drawing a site takes longer than checking it."""
    for holds in OF_BUNDLES:
        holds(built)
    for holds in OF_CLUSTERS if built.site.kind != "single" else ():
        holds(built)
    for compares in OF_OTHERS:
        compares(built, Random(seed))


@of_every_bundle
def every_bundle_is_in_the_form_of_the_golden_ones(built: Built) -> None:
    generated = test_golden.of_sparkgen(built.tree)
    test_golden.test_text_is_plain(generated)
    test_golden.test_first_comment_names_generator_and_site(generated)
    test_golden.test_scripts_are_executable(generated)
    test_golden.test_nccl_conf_agrees_with_the_engines_environment(built.tree)
    test_golden.test_nccl_conf_is_in_the_grammar_of_nccl(built.tree)
    test_golden.test_environment_is_one_that_docker_systemd_and_a_shell_read_alike(built.tree)
    test_golden.test_manifest_lists_all_other_files(built.tree)
    test_golden.test_checksums_list_all_other_files_of_the_node(built.tree)


@of_every_cluster
def netplan_gives_each_half_the_address_that_its_cable_means(built: Built) -> None:
    """No interface has two, and none is left out."""
    topology = built.file["topology"]
    renderer = {"renderer": topology["renderer"]} if "renderer" in topology else {}
    mtu = topology.get("mtu", 1500 if topology["kind"] == "switch" else 9000)
    for node in built.site.nodes:
        network = yaml.load(built.text(node, "etc/netplan/40-cx7.yaml"), yaml.CSafeLoader)[
            "network"
        ]
        assert network.keys() == {"version", "ethernets"}
        assert network["version"] == 2
        routes = [half.pop("routes", ()) for half in network["ethernets"].values()]
        assert any(routes) is bool(topology.get("routes"))
        assert network["ethernets"] == {
            interface: renderer
            | {
                "addresses": [str(address)],
                "mtu": mtu,
                "dhcp4": False,
                "dhcp6": False,
                "accept-ra": False,
                "link-local": [],
                "optional": True,
            }
            for interface, address in addresses(built.file)[node.name].items()
        }


def addresses(file: SiteFile) -> dict[str, dict[str, IPv4Interface]]:
    """Each node's addresses by interface, derived again from the site file alone.

    Cable i gets subnets 2i and 2i+1 of the pool; on a switch, port p gets 2p and 2p+1.
    """
    topology = file["topology"]
    pool = IPv4Network(topology.get("subnet_pool", "10.100.0.0/16"))
    hosts = {
        node["name"]: node.get("host", FIRST_HOST + index)
        for index, node in enumerate(file["nodes"])
    }
    found: dict[str, dict[str, IPv4Interface]] = {name: {} for name in hosts}
    for index, cable in enumerate(file["cabling"]):
        ends = [end.split(":") for end in cable["endpoints"]]
        for end, (name, port) in enumerate(ends):
            if name not in hosts:
                continue
            for half, pair in enumerate(cable.get("addresses", ())):
                found[name][INTERFACES[port, half]] = IPv4Interface(pair[end])
            if "addresses" in cable:
                continue
            subnets, pair = cable.get("subnets"), index
            if topology["kind"] == "switch":
                subnets, pair = subnets_of_port(file, port), int(port[1])
            for half in (0,) if topology.get("halves") == "first" else (0, 1):
                network = IPv4Network(subnets[half]) if subnets else subnet(pool, 2 * pair + half)
                address = IPv4Interface((int(network[0]) + hosts[name], network.prefixlen))
                found[name][INTERFACES[port, half]] = address
    return found


def subnets_of_port(file: SiteFile, port: str) -> Any:
    """The addresses of any cable at that port of a switch."""
    names = {f"{node['name']}:{port}" for node in file["nodes"]}
    cables = (cable for cable in file["cabling"] if names & set(cable["endpoints"]))
    return next((cable["subnets"] for cable in cables if "subnets" in cable), None)


def subnet(pool: IPv4Network, index: int) -> IPv4Network:
    return IPv4Network((int(pool[0]) + 256 * index, 24))


@of_every_cluster
def no_address_is_given_twice(built: Built) -> None:
    fabric = [interface.address.ip for node in built.site.nodes for interface in node.interfaces]
    management = [node.management.address.ip for node in built.site.nodes if node.management]
    assert len({*fabric, *management}) == len(fabric) + len(management)


@of_every_cluster
def links_look_the_same_from_both_ends(built: Built) -> None:
    """Half 0 meets half 0, half 1 meets half 1, and no peer is missing."""
    interfaces = {
        (node.name, interface.half): interface
        for node in built.site.nodes
        for interface in node.interfaces
    }
    others = len(built.site.nodes) - 1 if built.site.kind == "switch" else 1
    for (name, half), interface in interfaces.items():
        assert len({peer.node for peer in interface.peers} - {name}) == others
        for peer in interface.peers:
            there = interfaces[peer.node, peer.half]
            assert peer.half.half == half.half
            assert peer.address == str(there.address.ip)
            assert there.address.network == interface.address.network
            back = [(p.node, p.half, p.address) for p in there.peers]
            assert (name, half, str(interface.address.ip)) in back


@of_every_cluster
def control_traffic_stays_in_one_network(built: Built) -> None:
    (network,) = {node.control.network for node in built.site.nodes}
    controls = [node.control.address for node in built.site.nodes]
    assert all(address in network for address in controls)
    assert len(set(controls)) == len(controls)
    for node in built.site.nodes:
        assert node.env["MASTER_ADDR"] == str(controls[0])
        assert node.env["NCCL_SOCKET_IFNAME"] == f"={node.control.interface}"
        assert node.env["GLOO_SOCKET_IFNAME"] == node.control.interface


@of_every_cluster
def nccl_takes_exactly_the_halves_that_have_an_address_and_are_its_own(built: Built) -> None:
    for node in built.site.nodes:
        network = yaml.load(built.text(node, "etc/netplan/40-cx7.yaml"), yaml.CSafeLoader)[
            "network"
        ]
        listed = test_golden.settings(built.text(node, "etc/nccl.conf"))["NCCL_IB_HCA"]
        assert listed[0] == "="
        used = network["ethernets"]
        if built.file["topology"].get("rdma_halves") == "first":
            used = [name for name in used if not name.startswith("enP2")]
        assert sorted(listed[1:].split(",")) == sorted(f"{HCAS[i]}:1" for i in used)


@of_every_cluster
def hostfile_has_a_line_for_each_rank(built: Built) -> None:
    ranks = [
        f"{node.control.address} slots=1 # {entry['name']}, rank {rank}"
        for rank, (node, entry) in enumerate(
            zip(built.site.nodes, built.file["nodes"], strict=True)
        )
    ]
    for node in built.site.nodes:
        lines = built.text(node, "opt/sparkgen/hostfile").splitlines()
        assert [line for line in lines if not line.startswith("#")] == ranks


@of_every_cluster
def name_in_hosts_means_one_address(built: Built) -> None:
    """Whatever the nodes are called: the names of halves are derived from theirs."""
    like_a_half = f"{built.file['nodes'][0]['name'][:50]}-p0-h0"
    renamed = with_a_node_renamed(built.file, -1, like_a_half)
    reading = read_site("site.yaml", written(renamed, flow=True), beside)
    for node in reading.site.nodes if reading.site else ():
        names = [name for _, name in node.hosts]
        assert len(names) == len(set(names))


# --- command lines ------------------------------------------------------------------------------


def command(node: Node) -> list[str]:
    return list(chain.from_iterable(node.container.command))


@of_every_bundle
def compose_starts_the_derived_command(built: Built) -> None:
    for node in built.site.nodes if "image" in built.file["engine"] else ():
        engine = yaml.load(built.text(node, "opt/sparkgen/compose.yaml"), yaml.CSafeLoader)[
            "services"
        ]["engine"]
        assert [undoubled(word) for word in engine["command"]] == command(node)
        assert [undoubled(word) for word in engine["entrypoint"]] == [node.container.entrypoint]
        assert undoubled(engine["image"]) == built.file["engine"]["image"]
        # As launch.sh and verify.py read it.
        (read,) = COMPOSED(built.text(node, "opt/sparkgen/compose.yaml")).values()
        assert [*read["entrypoint"], *read["command"]] == [
            node.container.entrypoint,
            *command(node),
        ]


# verify.py finds the modules beside it.
loaded("node/verify.py")
COMPOSED = loaded("node/opt/sparkgen/running.py").composed


def undoubled(word: str) -> str:
    """The text that Compose produces: `$$` is a dollar, and a single one would be expanded."""
    assert not re.sub(r"\$\$", "", word).count("$")
    return word.replace("$$", "$")


@of_every_bundle
def arguments_reach_the_engine_as_the_site_says_them(built: Built) -> None:
    for name, value in built.file["engine"].get("args", {}).items():
        names = (f"--{name}", f"--no-{name}")
        groups = built.site.head.container.command
        matching = [words for words in groups if words and words[0].split("=")[0] in names]
        if name == "middleware":
            assert matching == [(f"--middleware={item}",) for item in value]
            continue
        (words,) = matching
        flag, _, text = words[0].partition("=")
        assert flag == names[value is False]
        if isinstance(value, list):
            assert list(words[1:] if len(value) > 1 else [text]) == value
        elif isinstance(value, dict):
            assert json.loads(text) == value
        elif isinstance(value, float):
            assert float(text) == value
        elif not isinstance(value, bool):
            assert text == str(value)


@few
@given(site_files(["single"]), st.sampled_from(["middleware", "logits-processors"]))
def test_name_of_what_is_imported_is_no_file(file: SiteFile, name: str) -> None:
    """A name may end like a file name."""
    file["engine"]["args"] = {name: ["owners.py", "auth.key"]}
    build(file)


@of_every_bundle
def bash_reads_every_script_and_the_derived_command(built: Built) -> None:
    scripts = {file.text for file in built.tree.values() if file.text.startswith(BASH)} - READ
    nodes = built.site.nodes if "venv" in built.file["engine"] else ()
    launchers = [built.text(node, "opt/sparkgen/engine.sh") for node in nodes]
    printing = "".join(map(printing_arguments, launchers))
    parsed = "".join(f"bash -n <<'{END}'\n{script}{END}\n" for script in sorted(scripts))
    # Over standard input: all scripts of a node are longer than an argument may be.
    run = subprocess.run(
        ["bash", "-eu"],
        input=(printing + parsed).encode(),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    READ.update(scripts)
    assert list(arrays(run.stdout)) == [command(node) for node in nodes]


BASH = "#!/usr/bin/env bash\n"
END = "END OF SCRIPT"
# Scripts that bash has parsed: most are the same in every bundle.
READ: set[str] = set()


def printing_arguments(script: str) -> str:
    """Bash that prints the number of a launch script's arguments, then each, terminated by NUL."""
    array = re.search(r"^arguments=\(\n.*?^\)\n", script, re.MULTILINE | re.DOTALL)
    assert array
    return f"""{array[0]}printf '%s\\0' "${{#arguments[@]}}" "${{arguments[@]}}"\n"""


def arrays(output: bytes) -> Iterator[list[str]]:
    words = iter(output.decode().split("\0")[:-1])
    for count in words:
        yield [next(words) for _ in range(int(count))]


# --- what means nothing -------------------------------------------------------------------------


def same_but_checksum(first: Tree, second: Tree) -> None:
    """Two bundles of one site, written in two ways."""

    def parts(tree: Tree) -> tuple[dict[str, str], Any]:
        files = {path: file.text for path, file in tree.items()}
        manifest = json.loads(files.pop("MANIFEST.json"))
        del manifest["site"]["sha256"]
        return files, manifest

    assert parts(first) == parts(second)


@of_every_bundle
def building_twice_gives_the_same_bytes(built: Built) -> None:
    reading_of.cache_clear()
    assert built.tree == build(deepcopy(built.file), built.flow).tree


@beside_another
def order_of_keys_and_style_of_yaml_mean_nothing(built: Built, dice: Random) -> None:
    other = rearranged(built.file, dice)
    same_but_checksum(built.tree, build(other, not built.flow).tree)


@beside_another
def site_over_a_base_means_the_same(built: Built, dice: Random) -> None:
    """Whatever part of it is in the base."""
    base, rest = apart(built.file, dice)
    raw = written(base, flow=True)

    def with_base(path: str) -> Source:
        its = (SourceFile("", raw, is_executable=False),)
        return Source(its) if path == "base.yaml" else beside(path)

    found = valid(written({"extends": "base.yaml", **rest}), files=with_base)
    same_but_checksum(built.tree, render(found.site, found.reading.sha256))


def apart(whole: dict[str, Any], dice: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a mapping into two that merge to it: a key is in one, or in both if it is a mapping."""
    base, rest = {}, {}
    for key, value in whole.items():
        place = dice.choice(["base", "own", "both"])
        if place == "both" and isinstance(value, dict) and value:
            base[key], rest[key] = apart(value, dice)
        else:
            (base if place == "base" else rest)[key] = value
    return base, rest


@beside_another
def order_of_endpoints_means_nothing(built: Built, dice: Random) -> None:
    other = deepcopy(built.file)
    for cable in other.get("cabling", ()):
        if dice.random() < 0.5:
            cable["endpoints"].reverse()
            for pair in cable.get("addresses", ()):
                pair.reverse()
    if other != built.file:
        same_but_checksum(built.tree, build(other, built.flow).tree)


@of_every_cluster
def node_at_the_end_renumbers_nothing(built: Built) -> None:
    if built.site.kind == "switch":
        assert numbers(built.site) <= numbers(site_of(with_a_node_more(built.file)))


@of_every_cluster
def cable_at_the_end_renumbers_nothing(built: Built) -> None:
    if built.site.kind in ("direct", "switch") and free_ports(built.file):
        assert numbers(built.site) <= numbers(site_of(with_all_ports(built.file)))


def numbers(site: Site) -> set[tuple[object, ...]]:
    """The counts: ranks, hosts, addresses and cables."""
    return {
        (node.rank, node.name, node.host, interface.name, interface.address, interface.cable)
        for node in site.nodes
        for interface in node.interfaces
    }


# --- sites that something befell ----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.drawn
@many
@given(changed_site_files())
def test_changed_site_is_refused_at_its_place_or_builds(file: SiteFile) -> None:
    check_reading(reading_of(written(file)))


@pytest.mark.long
@pytest.mark.drawn
@many
@given(damaged_texts())
def test_damaged_text_is_refused_at_its_place_or_builds(raw: bytes) -> None:
    check_reading(read_site("site.yaml", raw, beside))


def check_reading(reading: Reading) -> None:
    """Errors, each with a place in the text, or a valid site with a valid bundle."""
    assert bool(reading.site) is not has_errors(reading.findings)
    lines = reading.document.text.split("\n")
    for span in spans(reading):
        assert (span.line, span.column) <= (span.end_line, span.end_column)
        assert span.line < len(lines)
        assert span.column <= len(lines[span.line])
    printed = text(reading.document, reading.findings)
    assert all(line.isprintable() for line in printed.split("\n"))
    if reading.document.root:
        assert all(finding.span for finding in lint(reading.document))
    if reading.site:
        tree = render(reading.site, reading.sha256)
        generated = test_golden.of_sparkgen(tree)
        test_golden.test_text_is_plain(generated)
        test_golden.test_scripts_are_executable(generated)
        test_golden.test_manifest_lists_all_other_files(tree)


def spans(reading: Reading) -> Iterable[Span]:
    """The places of all findings; an empty or unreadable file may have none."""
    document = reading.document
    for finding in reading.findings:
        span = finding.span or document.locate(finding.path, finding.at_key)
        related = [document.locate(other.path) for other in finding.related]
        assert document.root is None or (span and all(related)), finding
        yield from filter(None, [span, *related])
