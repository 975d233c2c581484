"""What the files of a bundle make of a cluster, and what a change of them takes."""

from pathlib import Path

import pytest
from valid_sites import valid_file

from generator.bundle.access import forwards
from generator.bundle.render import render
from generator.operation.reading import desired
from generator.operation.state import Desired
from generator.resources import ROOT
from generator.services.proxy import Proxy
from generator.site import Site

SITES = sorted([*ROOT.glob("sites/**/*.yaml"), *ROOT.glob("tests/golden/*/site.yaml")])


def read(site: Site) -> Desired:
    """What the bundle of a site makes of its cluster."""
    cables = ((str(cable.number), (str(cable.a), str(cable.b))) for cable in site.cables)
    return desired(render(site, ""), [node.name for node in site.nodes], cables, {})


@pytest.mark.parametrize("path", SITES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_say_what_the_site_does(path: Path) -> None:
    """Engines, their nodes, names and addresses are in the files as they are in the site."""
    site = valid_file(path).site
    found = read(site)
    assert [(e.group, e.nodes, e.names, e.url, e.is_active) for e in found.engines] == [
        (
            part.group,
            tuple(node.name for node in part.nodes),
            (part.model.served_name, *part.model.aliases),
            part.engine.api.url,
            part.is_active,
        )
        for part in site.parts
    ]
    proxy = Proxy.of(site)
    apis = [each for each in forwards(site) if each.title.startswith("API")]
    assert len(found.doors) == (1 if proxy else len(site.parts)) or not apis
    if proxy:
        assert found.doors[0].url == proxy.url
    for node in site.nodes:
        secrets = {
            need.name
            for program in found.folders[node.name].programs.values()
            for need in program.needs
            if need.kind == "secret"
        }
        assert secrets == {*site.secrets(node)}
