"""Reviews in a real repository: what people are told to do about each kind of change."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from hypothesis import given
from hypothesis import strategies as st
from racks import site_text
from repositories import commit, data, git, lab, order, todo

from generator.operation.needed import Change
from generator.operation.plan import plan
from generator.operation.state import Desired, LiveCable, NodeFolder
from generator.resources import ROOT
from generator.review.edits import edits

COPY = "copy the folder (operator/deploy.sh --run)"
CONFIRMED = "install.sh --apply, then install.sh --confirm in a new session within 120 s"
STOP = "stop the engine, the head first: spark1 spark2"
WAIT = "wait until these serve: spark1"
START = "start the engine, the head last: spark2 spark1"


@pytest.fixture
def site(tmp_path: Path, sparkgen: Command) -> Path:
    """A site file whose bundle is built, both committed."""
    return lab(tmp_path, sparkgen)


def rewrite(site: Path, *pairs: tuple[str, str]) -> None:
    """Change a site file, or a file of a bundle."""
    text = site.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    site.write_text(text)


def test_bundle_of_an_older_version(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """An upgrade of sparkgen changes files of a site that nobody edited."""
    script = tmp_path / "out/lab/spark1/etc/sparkgen/engine.env"
    rewrite(script, ("VLLM_HOST_IP=", "VLLM_HOST="))
    rewrite(tmp_path / "out/lab/MANIFEST.json", ("sparkgen 0.", "sparkgen 0.0."))
    commit(tmp_path)
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    assert todo(found)["spark1"] == "engine restart"
    assert found["edits"] == []
    assert [file["path"] for file in found["nodes"][0]["files"]] == [
        "spark1/etc/sparkgen/engine.env"
    ]
    sparkgen("build", "--force", site, cwd=tmp_path)
    assert data(sparkgen, tmp_path, "--against", "HEAD")["changed"]


def test_causes_of_an_upgrade_with_an_edit(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """What another version changes by itself, what the site file does, and what both do."""
    rewrite(tmp_path / "out/lab/spark1/etc/sparkgen/engine.env", ("VLLM_HOST_IP=", "VLLM_HOST="))
    rewrite(tmp_path / "out/lab/spark1/opt/sparkgen/compose.yaml", ("--port", "--ports"))
    rewrite(tmp_path / "out/lab/MANIFEST.json", ("sparkgen 0.", "sparkgen 0.0."))
    commit(tmp_path)
    rewrite(site, ("8192", "4096"), ("spark2", "anna"))
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    causes = {f["path"]: f["cause"] for node in found["nodes"] for f in node["files"]}
    assert causes["spark1/etc/sparkgen/engine.env"] == "sparkgen"
    assert causes["spark1/opt/sparkgen/compose.yaml"] == "both"
    assert causes["anna/opt/sparkgen/compose.yaml"] == "site"
    text = sparkgen("diff", "sites/lab.yaml", "--against", "HEAD", cwd=tmp_path).out
    assert "is why 2 files differ, 1 of them because of the site file too; the" in text


def test_commit_without_bundles(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    git(tmp_path, "rm", "-r", "--quiet", "--cached", "out")
    git(tmp_path, "commit", "--quiet", "--message=Leave bundles to CI")
    rewrite(site, ("8192", "4096"))
    found = data(sparkgen, tmp_path, "--against", "main")
    assert found["against"].endswith("), built anew for want of a committed bundle")
    assert found["edits"] == ["model.context_length: 8192 -> 4096"]


def test_edits_memory_and_downtime_come_first(
    site: Path,
    tmp_path: Path,
    sparkgen: Command,
) -> None:
    rewrite(site, ("8192", "131072"))
    words = ("diff", "sites/lab.yaml", "--against", "main", "--format", "markdown")
    comment = sparkgen(*words, cwd=tmp_path).out
    assert comment.splitlines()[:5] == [
        "<!-- sparkgen diff -->",
        "### lab",
        "",
        "- model.context\\_length: 8192 -\\> 131072",
        "",
    ]
    pattern = (
        r"2 of 2 nodes change, \d files, \d of them of no node; "
        r"\*\*nobody answers to gpt-oss-120b in steps 2 to 5, "
        r"time limit 23 min\*\*; "
        r"memory left on the fullest node: \d+\.\d GiB -> \d+\.\d GiB\.\n"
    )
    assert re.search(pattern, comment)


def test_order_of_the_nodes_is_an_edit() -> None:
    """The first node is the head."""
    first, other, third = ({"name": name} for name in ("spark1", "spark2", "spark3"))
    swapped = edits({"nodes": [first, other]}, {"nodes": [other, third, first]})
    assert swapped == (
        "nodes.spark3: {name: spark3} is new",
        "nodes: the order is [spark2, spark3, spark1] now",
    )
    renamed = [other, {"name": "anna"}]
    assert edits({"nodes": [first, other]}, {"nodes": renamed}, {"spark1": "anna"}) == (
        "nodes.spark1: called anna now",
        "nodes: the order is [spark2, anna] now",
    )


def test_what_differs_between_long_values_is_shown() -> None:
    file = {"source": "files/chat.jinja", "target": "/opt/templates/chat.jinja"}
    before, after = {"files": [file]}, {"files": [file, {"path": "/srv/tools"}]}
    (edit,) = edits(before, after)
    assert edit == "files: .../chat.jinja}] -> .../chat.jinja}, {path: /srv/tools}]"


@given(st.text(alphabet="ab ", max_size=200), st.text(alphabet="ab ", max_size=200))
def test_values_that_differ_are_not_shown_alike(before: str, after: str) -> None:
    for edit in edits({"command": before}, {"command": after}):
        shown, _, new = edit.removeprefix("command: ").partition(" -> ")
        assert shown != new
        assert max(len(shown), len(new)) <= 60


def test_equal_nodes_are_folded_into_one(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(nodes=8))
    sparkgen("build", site, cwd=tmp_path)
    commit(tmp_path)
    rewrite(site, ("8192", "4096"))
    words = ("diff", "sites/lab.yaml", "--against", "main", "--format", "markdown")
    comment = sparkgen(*words, cwd=tmp_path).out
    folds = re.findall(r"<summary>(.*)</summary>", comment)
    assert folds == [
        "lab/spark1: engine restart (1 file)",
        "lab/spark2, spark3, spark4, spark5, spark6, spark7, spark8: engine restart (1 file, each)",
        "lab: files of no node (2 files)",
    ]
    assert comment.count("\n--- a/NODE/opt/sparkgen/compose.yaml\n") == 1
    assert comment.count("SHA256SUMS") == 0


def test_removed_site(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    """Its bundle, which nobody builds any more, is still what runs on the nodes."""
    other = tmp_path / "sites/other.yaml"
    other.write_text(site_text().replace("name: lab", "name: other").replace("10.0.0.", "10.0.1."))
    site.unlink()
    words = ("diff", "sites/other.yaml", "--against", "HEAD", "--format", "json")
    found = json.loads(sparkgen(*words, cwd=tmp_path).out)["sites"]
    assert [review["site"] for review in found] == ["other", "lab"]
    assert {node["state"] for node in found[1]["nodes"]} == {"removed"}
    assert order(found[1]) == [STOP, "install.sh --uninstall: spark1 spark2"]
    assert found[1]["notes"] == ["out/lab is left over; git rm -r out/lab"]

    checked = sparkgen("check", "sites/other.yaml", cwd=tmp_path)
    assert checked.code == 1
    assert "SG808: out/lab: left over, for there is no sites/lab.yaml" in checked.out


def test_renamed_site(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("name: lab\n", "name: rack\n"))
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    assert (found["site"], found["was"]) == ("rack", "lab")
    assert found["edits"] == ["name: lab -> rack"]
    assert {node["state"] for node in found["nodes"]} == {"changed"}
    checked = sparkgen("check", "sites/lab.yaml", cwd=tmp_path)
    assert "SG808: out/lab: left over, for sites/lab.yaml is the site rack" in checked.out


def test_renamed_site_file(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.rename(site.with_name("rack.yaml"))
    words = ("sites/rack.yaml", "--against", "HEAD", "--exit-code")
    outcome = sparkgen("diff", *words, cwd=tmp_path)
    assert (outcome.code, outcome.out.partition(" from ")[0]) == (0, "lab: nothing differs")
    assert sparkgen("check", "sites/rack.yaml", cwd=tmp_path).code == 0


def test_renamed_node(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("spark2", "anna"))
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    (renamed,) = (node for node in found["nodes"] if node["state"] == "renamed")
    assert (renamed["node"], renamed["was"]) == ("anna", "spark2")
    assert renamed["todo"].startswith("taken as the same machine as spark2, renamed: ")
    steps = order(found)
    assert "copy the folder (operator/deploy.sh --set-hostname --run anna): anna" in steps
    assert "copy the folder (operator/deploy.sh --run spark1): spark1" in steps
    assert "install.sh --set-hostname --apply: anna" in steps
    assert "install.sh --apply: spark1" in steps
    assert not [step for step in steps if "fetch" in step or "uninstall" in step or "cable" in step]


def test_node_in_the_middle(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_text(site_text(nodes=3))
    sparkgen("build", site, cwd=tmp_path)
    commit(tmp_path)
    management = "management: {interface: enP7s7, address: 10.0.0.9/16}"
    rewrite(
        site,
        ("  - name: spark2\n", f"  - name: anna\n    {management}\n  - name: spark2\n"),
        ("topology:", "  - endpoints: [anna:p0, rack:9]\ntopology:"),
        ("pipeline: 3", "pipeline: 4"),
    )
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    assert found["notes"] == [
        f"{name} has host number {new} in place of {old}: to leave it as it was, add nodes at the "
        f"end of the list, or write 'host: {old}'"
        for name, new, old in (("spark2", 13, 12), ("spark3", 14, 13))
    ]
    rewrite(site, ("  - name: spark2\n", "  - name: spark2\n    host: 77\n"))
    (note,) = data(sparkgen, tmp_path, "--against", "HEAD")["notes"]
    assert note.startswith("spark3 ")


def test_moved_cable(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("rack:2.0", "rack:7.0"))
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    assert order(found) == [
        STOP,
        "shut the node down: spark2",
        "unplug cable 2 from rack:2.0",
        "plug cable 2 into rack:7.0",
        "start the node again: spark2",
        "stop the engine, which the boot has started: spark2",
        "check the fabric: wait-fabric.sh 10: spark1 spark2",
        "see that each plugged port is up at 200000Mb/s (operator/cables.txt), "
        "and measure the cables (verify.py --bandwidth): spark2",
        START,
        WAIT,
    ]
    # The links of one node drop, and no rank goes on without the other.
    assert todo(found) == {
        "spark1": "engine restart, with the other ranks",
        "spark2": "another cable (links drop), engine restart",
    }
    assert found["downtimeSeconds"] is not None


ENDS = [f"spark{node}:p{port}" for node in range(1, 6) for port in (0, 1)]


@given(st.permutations(ENDS), st.permutations(ENDS), st.integers(0, 5), st.integers(0, 5))
def test_no_cable_is_plugged_into_a_port_that_is_taken(
    old: list[str], new: list[str], first: int, second: int
) -> None:
    before = [LiveCable(n + 1, "", (old[2 * n], old[2 * n + 1])) for n in range(first)]
    after = [LiveCable(n + 1, "", (new[2 * n], new[2 * n + 1])) for n in range(second)]
    folders = {f"spark{node}": NodeFolder(f"spark{node}", "", links="p") for node in range(1, 6)}
    ends = (Desired(folders, tuple(cables), (), ()) for cables in (before, after))
    moments = plan(Change(*ends, {}, (), (), lambda name, need: False))
    taken = {end for cable in before for end in cable.ends}
    off: set[str] = set()
    for moment in moments:
        words, nodes = moment.action.title, {moment.action.node}
        ports = {*re.findall(r"spark\d:p\d", words)}
        if words.startswith("unplug"):
            assert ports <= taken
            taken -= ports
        elif words.startswith("plug"):
            assert taken.isdisjoint(ports)
            assert {end.partition(":")[0] for end in ports} <= off
            taken |= ports
        elif words.startswith("shut"):
            off |= nodes
        elif words.startswith("start"):
            off -= nodes
    assert taken == {end for cable in after for end in cable.ends}
    assert not off


def test_secrets_of_a_new_node_come_between_its_installation_and_its_services(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    services = "services: {web_ui: true, guard: true}\nengine:\n  secrets: [HF_TOKEN]\n"
    rewrite(site, ("engine:\n", services))
    sparkgen("build", site, cwd=tmp_path)
    commit(tmp_path)
    site.write_text(site_text(nodes=3).replace("engine:\n", services))
    steps = order(data(sparkgen, tmp_path, "--against", "HEAD"))
    places = [
        steps.index(f"{CONFIRMED}: spark3"),
        steps.index("write HF_TOKEN into /etc/sparkgen/secrets.env: spark3"),
        next(i for i, step in enumerate(steps) if "start sparkgen-guard" in step),
    ]
    assert places == sorted(places)


def test_labelled_cables_that_were_swapped(tmp_path: Path, sparkgen: Command) -> None:
    text = (ROOT / "sites/lab-mesh.yaml").read_text()
    file = tmp_path / "sites/lab-mesh.yaml"
    file.parent.mkdir()
    ends = re.findall(r"endpoints: \[(.+?)\]", text)
    assert len(ends) == 3
    for number, pair in enumerate(ends):
        text = text.replace(f"endpoints: [{pair}]", f"label: L{number}\n    endpoints: [{pair}]")
    file.write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    sparkgen("build", file, cwd=tmp_path)
    commit(tmp_path)
    rewrite(file, ("label: L0", "label: X"), ("label: L1", "label: L0"), ("label: X", "label: L1"))
    outcome = sparkgen("diff", file, "--against", "HEAD", "--stat", cwd=tmp_path)
    assert "cable" not in outcome.out.partition("In this order:")[2].partition("FILE")[0]


def test_mtu_of_a_switch(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("{kind: switch}", "{kind: switch, mtu: 9000}"))
    assert order(data(sparkgen, tmp_path, "--against", "HEAD")) == [
        f"{COPY}: spark2 spark1",
        "set the MTU of every switch port to 9000",
        STOP,
        f"{CONFIRMED}: spark2 spark1",
        "check the fabric: wait-fabric.sh 10: spark1 spark2",
        START,
        WAIT,
    ]


def test_added_and_removed_service(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("engine:", "services: {guard: true, firewall: true, ssh: true}\nengine:"))
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    assert order(found) == [
        "install the package first: sudo apt-get install fail2ban: spark1 spark2",
        f"{COPY}: spark2 spark1",
        f"{CONFIRMED}: spark2 spark1",
        "/opt/sparkgen/firewall.sh, then firewall.sh --confirm in a new session within 120 s: "
        "spark2 spark1",
        "systemctl start sparkgen-guard: spark2 spark1",
        "systemctl restart fail2ban: spark2 spark1",
        "/opt/sparkgen/ssh-keys.sh: spark1",
    ]
    sparkgen("build", site, cwd=tmp_path)
    commit(tmp_path)
    rewrite(site, ("services: {guard: true, firewall: true, ssh: true}\n", ""))
    assert order(data(sparkgen, tmp_path, "--against", "HEAD")) == [
        f"{COPY}: spark2 spark1",
        "/opt/sparkgen/firewall.sh --remove: spark2 spark1",
        f"{CONFIRMED}: spark2 spark1",
        "systemctl restart fail2ban: spark2 spark1",
    ]


def test_image_of_a_service(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("engine:", "services: {web_ui: true}\nengine:"))
    steps = order(data(sparkgen, tmp_path, "--against", "HEAD"))
    assert re.fullmatch(r"fetch the image first: docker pull \S*open-webui\S*: spark1", steps[0])
    assert steps[2:] == [
        "install.sh --apply: spark1",
        "write WEBUI_ADMIN_EMAIL, WEBUI_ADMIN_PASSWORD into /etc/sparkgen/secrets.env: spark1",
        "systemctl start sparkgen-web-ui: spark1",
    ]


@pytest.mark.parametrize(
    ("change", "parts"),
    [(("max_sequences: 2", "max_sequences: 3"), 0), (("Q4_K_M-00001", "Q5_K_M-00001"), 3)],
    ids=["same", "new"],
)
def test_model_in_parts(
    change: tuple[str, str], parts: int, tmp_path: Path, sparkgen: Command
) -> None:
    """The engine is given only the first part, and reads all of them."""
    file = tmp_path / "pair.yaml"
    file.write_text((ROOT / "sites/more/pair-llamacpp.yaml").read_text())
    assert sparkgen("build", file, cwd=tmp_path).code == 0
    rewrite(file, change)
    found = json.loads(sparkgen("diff", file, "--format", "json", cwd=tmp_path).out)
    steps = [step["step"] for step in found["sites"][0]["order"]]
    assert sum(step.startswith("copy the model first: ") for step in steps) == parts


def test_user_and_cache_that_move_the_model(
    site: Path,
    tmp_path: Path,
    sparkgen: Command,
) -> None:
    rewrite(site, ("name: lab\n", "name: lab\nuser: lab\n"))
    fetched = "hf download openai/gpt-oss-120b: spark1 spark2"
    found = data(sparkgen, tmp_path, "--against", "HEAD")
    assert found["edits"] == ["user: lab is new"]
    assert order(found)[1] == (
        f"fetch or move the model first, into /home/lab/.cache/huggingface/hub: {fetched}"
    )


def test_secrets_and_keys(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("engine:\n", "engine:\n  secrets: [HF_TOKEN]\n"))
    steps = order(data(sparkgen, tmp_path, "--against", "HEAD"))
    assert "write HF_TOKEN into /etc/sparkgen/secrets.env: spark1 spark2" in steps


def test_keys_of_mpi(tmp_path: Path, sparkgen: Command) -> None:
    file = tmp_path / "sites/pair-trtllm-235b.yaml"
    file.parent.mkdir()
    file.write_text((ROOT / "sites/more/pair-trtllm-235b.yaml").read_text())
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    sparkgen("build", file, cwd=tmp_path)
    commit(tmp_path)
    found = reviewed(sparkgen, file, tmp_path)
    assert not found["changed"]
    name = re.findall(r"- name: (\S+)", file.read_text())[1]
    rewrite(file, (name, "anna"))
    steps = order(reviewed(sparkgen, file, tmp_path))
    assert [step for step in steps if step.startswith("make the keys of MPI, as README.md says: ")]


def reviewed(sparkgen: Command, file: Path, cwd: Path) -> dict[str, Any]:
    outcome = sparkgen("diff", file, "--against", "HEAD", "--format", "json", cwd=cwd)
    assert outcome.code == 0, outcome.err
    (found,) = json.loads(outcome.out)["sites"]
    return dict(found)


def test_change_of_a_mode_only(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    manifest = tmp_path / "out/lab/MANIFEST.json"
    content = json.loads(manifest.read_text())
    content["files"]["spark1/etc/netplan/40-cx7.yaml"]["mode"] = "0644"
    manifest.write_text(json.dumps(content, indent=2) + "\n")
    commit(tmp_path)
    outcome = sparkgen("diff", site, "--against", "HEAD", cwd=tmp_path)
    assert "\nspark1/etc/netplan/40-cx7.yaml: mode 0644 -> 0600\n" in outcome.out
    outcome = sparkgen("diff", site, "--against", "HEAD", "--stat", cwd=tmp_path)
    assert re.search(r"^mode +spark1/etc/netplan/40-cx7.yaml ", outcome.out, re.MULTILINE)


@pytest.mark.parametrize("ref", ["HEAD", "main"])
def test_history_of_a_folder_that_is_gone(
    ref: str,
    site: Path,
    tmp_path: Path,
    sparkgen: Command,
) -> None:
    subprocess.run(("rm", "-r", tmp_path / "out"), check=True)
    outcome = sparkgen("diff", site, "--against", ref, "--exit-code", cwd=tmp_path)
    assert outcome.code == 0


def test_bundle_of_a_later_version(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(tmp_path / "out/lab/MANIFEST.json", ('"sparkgen 0.', '"sparkgen 9.0.'))
    rewrite(site, ("8192", "4096"))
    refused = sparkgen("build", "sites/lab.yaml", cwd=tmp_path)
    assert refused.code == 1
    assert re.fullmatch(
        r"SG809: out/lab was made by sparkgen 9\.0\.\S+, and this is 0\.\S+\n"
        r"nothing was written; --force builds them with this version\n",
        refused.err,
    )
    checked = sparkgen("check", "sites/lab.yaml", cwd=tmp_path)
    assert re.search(
        r"note: out/lab: made by sparkgen 9\.0\.\S+, and this is 0\.\S+\n", checked.out
    )
    assert sparkgen("build", "--force", "sites/lab.yaml", cwd=tmp_path).code == 0
    assert sparkgen("check", "sites/lab.yaml", cwd=tmp_path).code == 0


def test_two_pull_requests_on_one_site(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    for branch, old, new in (("context", "8192", "4096"), ("image", "v0.33.0", "v0.33.0-aarch64")):
        git(tmp_path, "checkout", "--quiet", "-b", branch, "main")
        rewrite(site, (old, new))
        assert sparkgen("build", "sites/lab.yaml", cwd=tmp_path).code == 0
        commit(tmp_path)
    merge = ("git", "-C", str(tmp_path), "merge", "context")
    assert subprocess.run(merge, capture_output=True).returncode == 1
    assert "<<<<<<<" in (tmp_path / "out/lab/MANIFEST.json").read_text()

    site.write_text(site_text(image="v0.33.0-aarch64").replace("8192", "4096"))
    outcome = sparkgen("build", "sites/lab.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    assert sparkgen("check", "sites/lab.yaml", cwd=tmp_path).code == 0
    files = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not [path for path in files if "<<<<<<<" in path.read_text()]


def test_conflict_in_a_site_file(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    model = "model: {name: gpt-oss-120b, context_length: 8192}\n"
    sides = f"<<<<<<< HEAD\n{model}=======\n{model.replace('8192', '4096')}>>>>>>> context\n"
    rewrite(site, (model, sides))
    outcome = sparkgen("validate", "sites/lab.yaml", cwd=tmp_path)
    assert outcome.code == 3
    assert "error[SG001]: '<<<<<<< HEAD' is left of a conflict that git found\n" in outcome.err


def test_conflict_between_two_lines_of_a_section(
    site: Path, tmp_path: Path, sparkgen: Command
) -> None:
    site.write_text(
        site_text() + "  args:\n<<<<<<< HEAD\n    seed: 1\n=======\n    seed: 2\n>>>>>>> other\n"
    )
    outcome = sparkgen("validate", "sites/lab.yaml", cwd=tmp_path)
    assert "error[SG001]: '<<<<<<< HEAD' is left of a conflict that git found\n" in outcome.err


def test_last_site_that_is_removed(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.unlink()
    outcome = sparkgen("check", cwd=tmp_path)
    assert outcome.code == 1
    assert "SG808: out/lab: left over, for there is no lab.yaml" in outcome.out
    outcome = sparkgen("diff", "--against", "main", cwd=tmp_path)
    assert outcome.code == 0
    assert "install.sh --uninstall" in outcome.out
    for command in (("diff", "--with", "lab.yaml"), ("build",), ("validate",)):
        assert "name a site, or run it" in sparkgen(*command, cwd=tmp_path).err


def test_site_that_requires_a_later_version(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    rewrite(site, ("name: lab\n", 'name: lab\nrequires: ">=0.1"\n'))
    assert sparkgen("build", "sites/lab.yaml", cwd=tmp_path).code == 0
    rewrite(site, (">=0.1", ">=9.0"))
    for command in ("build", "check", "diff"):
        outcome = sparkgen(command, "sites/lab.yaml", cwd=tmp_path)
        assert outcome.code == 3
        assert "error[SG191]: the site requires sparkgen 9.0 or later" in outcome.err


def test_cable_whose_ends_change_places_stays_the_same() -> None:
    ends = ("spark1:p0", "spark2:p0")
    one, other = ({"cabling": [{"endpoints": [*order]}]} for order in (ends, ends[::-1]))
    assert edits(one, other) == (
        "cabling.spark2:p0 - spark1:p0.endpoints: [spark1:p0, spark2:p0] -> [spark2:p0, spark1:p0]",
    )
