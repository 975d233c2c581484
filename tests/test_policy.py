"""A repository's policy: how it changes findings, and what it requires."""

import json
from pathlib import Path

import pytest
from conftest import Command
from documents import block
from racks import site_text

from generator.rules.policy import read_policy

DIGEST = f"@sha256:{'0' * 64}"
MOVING = "rules: {SG609: {level: LEVEL, reason: what runs is what was reviewed}}\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A repository with a site whose image tag moves."""
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites/lab.yaml").write_text(site_text(image="latest"))
    return tmp_path


def rule(cluster: Path, text: str) -> None:
    (cluster / "policy.yaml").write_text(f"version: 1\n{text}")


@pytest.mark.parametrize(
    ("level", "code", "shown"),
    [("error", 3, "error[SG609]"), ("warning", 0, "warning[SG609]"), ("note", 0, "note[SG609]")],
)
def test_severity_of_a_rule(
    level: str, code: int, shown: str, cluster: Path, sparkgen: Command
) -> None:
    rule(cluster, MOVING.replace("LEVEL", level))
    for command in ("validate", "build"):
        outcome = sparkgen(command, cwd=cluster)
        assert outcome.code == code
        assert outcome.err.startswith(f"{shown}: the tag 'latest' can name another image")
        assert f"policy.yaml makes it a{'n' * (level == 'error')} {level} (what runs" in outcome.err
    assert (cluster / "out").exists() is (code == 0)


def test_rule_that_is_off(cluster: Path, sparkgen: Command) -> None:
    rule(cluster, MOVING.replace("LEVEL", "off"))
    outcome = sparkgen("validate", "--strict", cwd=cluster)
    assert (outcome.code, outcome.err) == (0, "")


def test_style_is_a_rule_too(cluster: Path, sparkgen: Command) -> None:
    (cluster / "sites/lab.yaml").write_text(site_text().replace("{kind", "{ kind"))
    assert "warning[SG011]" in sparkgen("validate", cwd=cluster).err
    rule(cluster, "rules: {SG011: {level: error, reason: diffs are read}}\n")
    assert sparkgen("validate", cwd=cluster).code == 3


def test_no_waiver_against_the_policy(cluster: Path, sparkgen: Command) -> None:
    waiver = "waivers:\n  - {rule: SG609, path: engine.image, reason: we like it}\n"
    (cluster / "sites/lab.yaml").write_text(site_text(image="latest") + waiver)
    assert sparkgen("validate", "--strict", cwd=cluster).code == 0
    rule(cluster, MOVING.replace("LEVEL", "error"))
    outcome = sparkgen("validate", cwd=cluster)
    assert outcome.code == 3
    assert outcome.err.count("[SG") == 1


def test_required_settings(cluster: Path, sparkgen: Command) -> None:
    rule(cluster, "require: {api_key: A, image_digests: B, model_revision: C}\n")
    site = cluster / "sites/lab.yaml"
    text = site_text() + "services: {monitoring: true}\n"
    site.write_text(text)
    outcome = sparkgen("validate", "--format", "json", cwd=cluster)
    findings = json.loads(outcome.out)["findings"]
    assert outcome.code == 3
    assert {finding["rule"] for finding in findings} == {"SG821"}
    places = [finding["path"] for finding in findings]
    assert sorted(places) == [
        *("engine", "engine.image", "model", "services.monitoring", "services.monitoring"),
    ]
    site.write_text(
        text.replace("v0.33.0", f"v0.33.0{DIGEST}", 1)
        .replace("8192}", f"8192, revision: {'a' * 40}}}")
        .replace("  parallel:", "  secrets: [VLLM_API_KEY]\n  parallel:")
        .replace("services: {monitoring: true}\n", "")
    )
    assert sparkgen("validate", cwd=cluster).err.count("SG821") == 0


def test_required_key(cluster: Path, sparkgen: Command) -> None:
    rule(cluster, "require: {api_key: A}\n")
    site = cluster / "sites/lab.yaml"
    site.write_text(site_text().replace("  parallel:", "  bind: local\n  parallel:"))
    assert sparkgen("validate", cwd=cluster).code == 0


def test_place_of_the_policy(cluster: Path, sparkgen: Command) -> None:
    """Found beside the folder of the sites, wherever it is called from, or where an option says."""
    rule(cluster, MOVING.replace("LEVEL", "error"))
    for folder, file in ((cluster, "sites/lab.yaml"), (cluster / "sites", "lab.yaml")):
        assert sparkgen("validate", file, cwd=folder).code == 3
    assert sparkgen("validate", cluster / "sites/lab.yaml", cwd=cluster.parent).code == 3
    (cluster / "policy.yaml").rename(cluster / "house.yaml")
    assert sparkgen("validate", cwd=cluster).code == 0
    for command in ("validate", "build"):
        assert sparkgen(command, "--policy", "house.yaml", cwd=cluster).code == 3
    missing = sparkgen("validate", "--policy", "none.yaml", cwd=cluster)
    assert (missing.code, missing.err) == (4, "sparkgen: none.yaml: No such file or directory\n")


def test_policy_of_standard_input(cluster: Path, sparkgen: Command) -> None:
    rule(cluster, MOVING.replace("LEVEL", "error"))
    assert sparkgen("validate", "-", cwd=cluster, stdin=site_text(image="latest")).code == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: {SG609: {level: fatal, reason: A}}\n", "there is no level 'fatal'"),
        ("rules: {SG609: error}\n", "a rule has a level and a reason"),
        ("rules: {SG609: {level: error}}\n", "a rule has a level and a reason"),
        ("rules: {SG609: {level: error, reason: }}\n", "a reason is a sentence"),
        ("rules: {SG204: {level: off, reason: A}}\n", "SG204 is always an error"),
        ("rules: {SG608x: {level: off, reason: A}}\n", "no rule about a site is called 'SG608x'"),
        ("rules: {SG802: {level: off, reason: A}}\n", "no rule about a site is called 'SG802'"),
        ("rules: [SG609]\n", "'rules' is a mapping"),
        ("require: {api_kez: A}\n", "there is no requirement 'api_kez'"),
        ("require: {api_key: [A]}\n", "a requirement has a reason"),
        ("requires: {api_key: A}\n", "a policy has no key 'requires'"),
        ("rules: {SG609: [\n", "SG001"),
    ],
)
def test_malformed_policy(text: str, message: str, cluster: Path, sparkgen: Command) -> None:
    rule(cluster, text)
    outcome = sparkgen("build", cwd=cluster)
    assert (outcome.code, outcome.out) == (3, "")
    assert message in outcome.err
    assert " --> policy.yaml:" in outcome.err
    assert not (cluster / "out").exists()
    shown = json.loads(sparkgen("validate", "--format", "json", cwd=cluster).out)
    assert {finding["file"] for finding in shown["findings"]} == {"policy.yaml"}


@pytest.mark.parametrize("text", ["", "[]\n", "version: 2\n", "just words\n"])
def test_file_that_is_no_policy(text: str) -> None:
    _, findings, policy = read_policy("policy.yaml", text.encode())
    assert findings
    assert policy is None


def test_documented_policy() -> None:
    text = block("sites/reviews.md", "yaml", "require:")
    _, findings, policy = read_policy("policy.yaml", text.encode())
    assert (findings, bool(policy)) == ([], True)


def test_digest_of_an_image_that_is_built(cluster: Path, sparkgen: Command) -> None:
    """What is built on a node is as fixed as the image that it is built from."""
    rule(cluster, "require: {image_digests: A}\n")
    site = cluster / "sites/lab.yaml"
    for digest, code in (("", 3), (DIGEST, 0)):
        image = f"{{name: own:1, from: vllm/vllm-openai:v0.33.0{digest}, run: [pip install a]}}"
        site.write_text(site_text().replace("vllm/vllm-openai:v0.33.0", image, 1))
        outcome = sparkgen("validate", "--format", "json", cwd=cluster)
        found = json.loads(outcome.out)["findings"]
        places = [each["path"] for each in found if each["rule"] == "SG821"]
        assert places == (["engine.image.from"] if code else [])
