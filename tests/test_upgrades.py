"""Upgrades of sparkgen, from every bundle of the last commit of each earlier release."""

import re

import pytest
from plans import Plan, faults
from releases import RELEASED, bundles
from valid_sites import valid

from generator.bundle.committed import bundle_of
from generator.bundle.render import render
from generator.operation.needed import Change
from generator.operation.outcome import outcome
from generator.operation.plan import plan
from generator.review.impact import Before, Review, change_of, review

UPGRADES = [(folder.name, name) for folder in RELEASED.iterdir() for name in bundles(folder.name)]


@pytest.fixture(params=sorted(UPGRADES), ids="-".join)
def upgrade(request: pytest.FixtureRequest) -> tuple[Change, Review]:
    """The change from a released bundle to this version's, and its review."""
    version, name = request.param
    files, text = bundles(version)[name]
    reading = valid(text)
    tree = render(reading.site, reading.reading.sha256)
    before = Before(f"out/{name}", name, bundle_of(files, tree), reading.site, rebuilt=tree)
    return change_of(reading.site, tree, before), review(reading.site, tree, before)


# What an earlier release did not yet ask for.
NEW_THEN = (
    r"fetch the vocabulary first: .*",
    r"write WEBUI_ADMIN_EMAIL, WEBUI_ADMIN_PASSWORD into .*",
)
USUAL = (
    r"copy the folder \(operator/deploy\.sh --run\)",
    r"install\.sh --apply",
    r"stop the engine(, the head first)?",
    r"scancel --name=\S+",
    r"drop the page caches .*, then sbatch \S+",
    r"start the engine(, the head last)?",
    r"wait until these serve",
    r"load operator/\S+ into (Prometheus|Grafana)",
    r"systemctl restart sparkgen-[a-z-]+",
)


def test_an_upgrade_asks_for_nothing_that_is_there(upgrade: tuple[Change, Review]) -> None:
    """The site has not changed: its models, images, logins and addresses are in place."""
    change, found = upgrade
    moments = plan(change)
    assert not list(faults(Plan(change, moments, outcome(change, moments))))
    for step in found.outcome.steps:
        assert any(re.fullmatch(known, step.text) for known in (*USUAL, *NEW_THEN)), step.text
    assert found.outcome.lost == ()
    stopped = any(
        step.text.startswith(("stop the engine", "scancel")) for step in found.outcome.steps
    )
    assert stopped is bool(found.outcome.outages) or "systemctl restart" in str(found.outcome.steps)


def test_an_upgrade_names_the_cause_of_each_file(upgrade: tuple[Change, Review]) -> None:
    """Its versions, and for each file that differs an entry of the changes."""
    _, found = upgrade
    assert found.upgrade
    assert found.upgrade.files == found.all_files
    assert found.upgrade.mixed == ()
    named = {path for entry in found.upgrade.entries for path in entry.files}
    assert not sorted(_differing(found) - named)
    for entry in found.upgrade.entries:
        assert "<!--" not in entry.text


def _differing(found: Review) -> set[str]:
    return {file.path for file in found.all_files if not file.repeats}


def test_an_entry_is_no_cause_of_what_it_has_not_changed() -> None:
    """Without a gateway, its entry is not named."""
    files, text = bundles("0.2.0")["lab-mesh"]
    reading = valid(text)
    tree = render(reading.site, reading.reading.sha256)
    before = Before("out", "lab-mesh", bundle_of(files, tree), reading.site, rebuilt=tree)
    found = review(reading.site, tree, before).upgrade
    assert found
    assert not any("nginx" in entry.text for entry in found.entries)
    assert any("`jobs`" in entry.text for entry in found.entries)


def test_an_upgrade_of_an_unknown_site() -> None:
    """Only the bundle is there, and those of 0.1 say neither logins nor addresses."""
    files, text = bundles("0.1.0")["lab-mesh"]
    site = valid(text).site
    tree = render(site, "")
    found = review(site, tree, Before("out", "lab-mesh", bundle_of(files, tree)))
    assert not [
        step for step in found.outcome.steps if "by hand" in step.text or "login" in step.text
    ]
    assert found.outcome.outages
