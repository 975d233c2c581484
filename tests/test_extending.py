"""Sites that extend a base: what is merged, which file a finding names, which one a fix edits."""

from pathlib import Path

import pytest
from conftest import Command
from test_json_schema import objections

from generator.fixing.repair import repair
from generator.pipeline import Reading, read_site
from generator.reports import remarks
from generator.reports.text import text
from generator.sitefile.beside import ReadBeside, Source, SourceFile, nothing_beside

BASE = """\
version: 1
user: ops
nodes:
  - {name: spark1, management: {address: 10.0.0.11/24}}
  - {name: spark2, management: {address: 10.0.0.12/24}}
cabling: [{endpoints: [spark1:p0, spark2:p0]}]
topology: {kind: direct}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  parallel: {tensor: 2}
  env: {NCCL_DEBUG: INFO, VLLM_LOGGING_LEVEL: INFO}
"""
SITE = """\
extends: bases/rack.yaml
name: lab
model: {name: gpt-oss-120b}
engine:
  env: {NCCL_DEBUG: WARN}
"""


def over(base: str) -> ReadBeside:
    def beside(path: str) -> Source:
        if path != "bases/rack.yaml":
            return nothing_beside(path)
        return Source((SourceFile("", base.encode(), is_executable=False),))

    return beside


def reading(site: str = SITE, base: str = BASE) -> Reading:
    return read_site("sites/lab.yaml", site.encode(), over(base))


def places(found: Reading) -> list[tuple[str, str, int | None]]:
    return [(r.rule, r.place.file, r.place.line) for r in remarks(found.document, found.findings)]


def test_mappings_are_merged_and_all_else_is_replaced() -> None:
    site = reading(SITE + "  image: vllm/vllm-openai:v0.33.0-aarch64\n").site
    assert site
    assert site.nodes[0].user == "ops"
    assert site.engine.image.endswith("aarch64")
    variables = site.head.env
    assert variables["NCCL_DEBUG"] == "WARN"
    assert variables["VLLM_LOGGING_LEVEL"] == "INFO"
    # The site's list replaces the base's entirely: a cable of the base ends at a missing node.
    alone = reading(SITE + "nodes: [{name: spark1, management: {address: 10.0.0.11/24}}]\n")
    assert ("SG203", "sites/bases/rack.yaml", 6) in places(alone)


@pytest.mark.parametrize(
    ("site", "base", "expected"),
    [
        ("", "", []),
        ("  memory_utilisation: 0.8\n", "", [("SG101", "sites/lab.yaml", 6)]),
        ("", "  memory_utilisation: 0.8\n", [("SG101", "sites/bases/rack.yaml", 14)]),
        ("  image: UPPER\n", "", [("SG106", "sites/lab.yaml", 6)]),
        # The base's own text, even if the site overrides it.
        ("user: me\n", "user: other\n", [("SG003", "sites/bases/rack.yaml", 14)]),
        ("", "  args: {kv-transfer: [1, 2}\n", [("SG001", "sites/bases/rack.yaml", 14)]),
        ("", "extends: other.yaml\n", [("SG013", "sites/bases/rack.yaml", 14)]),
        # A password in the base is reported there, but never shown.
        ("", "  args: {api-key: hunter2hunter2}\n", [("SG711", "sites/bases/rack.yaml", 14)]),
    ],
)
def test_finding_names_the_file_that_it_is_about(
    site: str, base: str, expected: list[tuple[str, str, int | None]]
) -> None:
    found = reading(SITE + site, BASE + base)
    assert places(found) == expected
    assert "hunter2" not in text(found.document, found.findings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bases/rack.yaml", "bases/none.yaml"),
        ("bases/rack.yaml", "../rack.yaml"),
        ("bases/rack.yaml", "/etc/rack.yaml"),
        ("bases/rack.yaml", "[bases/rack.yaml]"),
        ("bases/rack.yaml", ""),
    ],
)
def test_missing_base_is_one_finding(old: str, new: str) -> None:
    assert places(reading(SITE.replace(old, new))) == [("SG013", "sites/lab.yaml", 1)]


@pytest.mark.parametrize("base", ["- a list\n", "words\n", "", "\0", "a: &a [*a]\n"])
def test_fault_in_the_base_is_reported_there(base: str) -> None:
    found = reading(base=base)
    assert {file for _, file, _ in places(found)} == {"sites/bases/rack.yaml"}
    assert not found.site


def test_site_that_extends_itself_is_reported(tmp_path: Path, sparkgen: Command) -> None:
    (tmp_path / "lab.yaml").write_text("extends: lab.yaml\nname: lab\n")
    outcome = sparkgen("validate", "lab.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.err.count("SG013]")) == (3, 1)


def test_fix_edits_the_file_where_the_mistake_is() -> None:
    wrong = BASE.replace("VLLM_LOGGING_LEVEL", "NCCL_DEBGU_FILE")
    wrong = wrong.replace("parallel: {tensor: 2}", "parallel: {tensr: 2}")
    done = repair("sites/lab.yaml", (SITE + "  versoin: 0.33.0\n").encode(), over(wrong))
    assert done.after.findings == ()
    # The site's version overrides the base's.
    assert done.raw.decode() == SITE + "  version: 0.33.0\n"
    mended = done.after.raw["sites/bases/rack.yaml"].decode()
    assert mended == BASE.replace("VLLM_LOGGING_LEVEL", "NCCL_DEBUG_FILE")


def test_checksum_covers_both_files() -> None:
    sums = {
        reading(SITE, BASE).sha256,
        reading(SITE + "\n").sha256,
        reading(base=BASE + "\n").sha256,
    }
    assert len(sums) == 3


def test_base_is_no_site_among_sites_and_its_change_is_drift(
    tmp_path: Path, sparkgen: Command
) -> None:
    sites = tmp_path / "sites"
    sites.mkdir()
    (sites / "base.yaml").write_text(BASE)
    (sites / "lab.yaml").write_text(SITE.replace("bases/rack.yaml", "base.yaml"))
    (sites / "two.yaml").write_text(
        SITE.replace("bases/rack.yaml", "'base.yaml'").replace("lab", "two")
    )
    built = sparkgen("build", "sites/base.yaml", "sites/lab.yaml", "sites/two.yaml", cwd=tmp_path)
    assert (built.code, built.out.count(" files for ")) == (0, 2)
    assert sparkgen("check", cwd=tmp_path).code == 0
    (sites / "base.yaml").write_text(BASE.replace("kind: direct", "kind: direct, mtu: 1500"))
    stale = sparkgen("check", cwd=tmp_path)
    assert (stale.code, stale.out.count("MANIFEST.json: stale")) == (1, 2)
    why = sparkgen("show", "sites/lab.yaml", "--why", "spark1/etc/sparkgen/node.env", cwd=tmp_path)
    assert " of sites/base.yaml)" in why.out


def test_editor_schema_requires_no_key_that_a_base_may_have() -> None:
    assert objections(reading().document.parts[0]) == []
    assert objections(reading(base=BASE).document.parts[1])
    assert objections(reading(SITE + "  memory_utilisation: 0.8\n").document.parts[0])
