"""`lock`: records what names stood for on the nodes; build, validate and models.sh use it."""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from captured_nodes import Container, Machine, stand_in, write
from conftest import Command
from documents import block
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE

from generator.capture.archive import read
from generator.locking.locking import commit_on, lock_of
from generator.pipeline import read_site
from generator.services.monitoring import GPU_IMAGE, NODE_IMAGE
from generator.sitefile.defaults import default
from generator.sitefile.lock import Lock, LockedFile, LockedImage, LockedModel, LockError, parse

IMAGE, DIGEST = "vllm/vllm-openai:v0.33.0", "sha256:" + "a1" * 32
COMMIT, OTHER = "b2" * 20, "c3" * 20
SITE = f"""\
version: 1
name: lab
nodes:
  - name: spark1
    management: {{interface: enP7s7, address: 10.0.0.11/24}}
  - name: spark2
    management: {{interface: enP7s7, address: 10.0.0.12/24}}
cabling:
  - endpoints: [spark1:p0, spark2:p0]
topology: {{kind: direct}}
model: {{name: gpt-oss-120b, context_length: 32768, max_sequences: 4}}
engine:
  name: vllm
  version: 0.33.0
  image: {IMAGE}
  parallel: {{tensor: 2}}
services: {{models: true}}
"""
LOCK = f"""\
# What the site's names stood for on its nodes. Written by 'sparkgen lock'; not to be edited.
version: 1
locked:
  - {{image: {IMAGE}, digest: {DIGEST}}}

  - {{source: openai/gpt-oss-120b, revision: main, commit: {COMMIT}}}
"""
HUB = "home/nvidia/.cache/huggingface/hub/models--openai--gpt-oss-120b"


def node(name: str, commit: str = COMMIT, image: Mapping[str, object] | None = None) -> Machine:
    """A node that has the image and the model."""
    files = {f"{HUB}/refs/main": commit, f"{HUB}/snapshots/{commit}/config.json": "{}"}
    settings = {"digests": [f"vllm/vllm-openai@{DIGEST}"], **(image or {})}
    settings.setdefault("image", IMAGE)
    return Machine(name, files, {}, [Container("vllm", **settings)])  # type: ignore[arg-type]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(SITE)
    return tmp_path


def locked(
    lab: Path, sparkgen: Command, *nodes: Machine, form: str = "text"
) -> tuple[int, str, str]:
    archives = [machine.capture(lab) for machine in nodes]
    outcome = sparkgen("lock", "lab.yaml", *archives, "--format", form, cwd=lab)
    return outcome.code, outcome.out, outcome.err


def test_build_uses_the_lock(lab: Path, sparkgen: Command) -> None:
    assert sparkgen("build", "lab.yaml", cwd=lab).code == 0
    before = json.loads((lab / "out/lab/MANIFEST.json").read_text())
    code, out, err = locked(lab, sparkgen, node("spark1"), node("spark2"))
    assert (code, err) == (0, "")
    assert (lab / "lab.lock.yaml").read_text() == LOCK
    assert out.splitlines() == [
        f"{IMAGE}: new -> {DIGEST[:19]}",
        f"openai/gpt-oss-120b, revision main: new -> {COMMIT[:12]}",
        "lab.lock.yaml is written",
    ]
    changes = sparkgen("diff", "lab.yaml", cwd=lab)
    assert DIGEST in changes.out
    assert sparkgen("build", "lab.yaml", cwd=lab).err == ""
    after = json.loads((lab / "out/lab/MANIFEST.json").read_text())
    assert before["site"]["sha256"] != after["site"]["sha256"]
    compose = yaml.safe_load((lab / "out/lab/spark1/opt/sparkgen/compose.yaml").read_text())
    assert compose["services"]["engine"]["image"] == f"{IMAGE}@{DIGEST}"
    facts = (lab / "out/lab/spark1/etc/sparkgen/node.env").read_text()
    assert f"MODEL=model openai/gpt-oss-120b main {COMMIT}\n" in facts
    assert "--revision" not in (lab / "out/lab/spark1/opt/sparkgen/compose.yaml").read_text()
    assert (lab / "lab.yaml").read_text() == SITE
    # A site that is already locked stays as it is written.
    assert sparkgen("lock", "lab.yaml", "spark1.tar.gz", "spark2.tar.gz", cwd=lab).out == (
        "nothing has moved\nlab.lock.yaml is written\n"
    )
    assert (lab / "lab.lock.yaml").read_text() == LOCK


def test_nodes_that_differ(lab: Path, sparkgen: Command) -> None:
    code, out, err = locked(lab, sparkgen, node("spark1"), node("spark2", OTHER))
    assert (code, out) == (1, "")
    assert err == (
        "SG852: openai/gpt-oss-120b, revision main is not the same on all nodes: "
        f"spark1 has {COMMIT[:12]}, spark2 has {OTHER[:12]}\n"
        "nothing was written; fetch it anew on the nodes that are behind\n"
    )
    assert not (lab / "lab.lock.yaml").exists()


def test_an_image_without_a_registry_is_locked_by_its_layers(lab: Path, sparkgen: Command) -> None:
    code, out, _ = locked(lab, sparkgen, node("spark1", image={"digests": []}), form="json")
    data = json.loads(out)
    assert (code, data["written"], data["missing"]) == (0, True, ["spark2 is not captured"])
    (image,) = parse("", (lab / "lab.lock.yaml").read_bytes()).images
    assert (image.digest, image.pinned, len(image.layers)) == ("", IMAGE, 71)


def test_images_of_services_are_locked_too(lab: Path, sparkgen: Command) -> None:
    """The page runs on the head, the exporters on both nodes."""
    text = SITE.replace("services: {models: true}", "services: {web_ui: true, monitoring: true}")
    (lab / "lab.yaml").write_text(text)
    page, pinned = default("services.web_ui.image"), "sha256:" + "d4" * 32
    images = {"spark1": (page, NODE_IMAGE, GPU_IMAGE), "spark2": (NODE_IMAGE, GPU_IMAGE)}
    nodes = [node(name) for name in images]
    for machine in nodes:
        for number, image in enumerate(images[machine.name]):
            digests = [f"{image.rpartition(':')[0]}@{pinned}"]
            container = Container(
                f"beside-{number}", image, digests=digests, image_id=f"sha256:{number}{'0' * 63}"
            )
            machine.containers.append(container)  # type: ignore[attr-defined]
    assert locked(lab, sparkgen, *nodes)[0] == 0
    found = {image.image: image.digest for image in parse("", read_lock(lab)).images}
    assert found == {IMAGE: DIGEST, page: pinned, NODE_IMAGE: pinned, GPU_IMAGE: pinned}
    assert sparkgen("build", "lab.yaml", cwd=lab).err == ""
    files = {
        (lab / f"out/lab/{name}/opt/sparkgen/{file}.yaml").read_text()
        for name, file in (("spark1", "web-ui"), ("spark1", "monitoring"), ("spark2", "monitoring"))
    }
    assert sum(text.count(f"@{pinned}") for text in files) >= 3
    # A lock older than the service does not mention it.
    (lab / "lab.yaml").write_text(text.replace("web_ui: true", "web_ui: {image: 'page:2'}"))
    assert "SG851" in sparkgen("validate", "lab.yaml", cwd=lab).err


def read_lock(lab: Path) -> bytes:
    return (lab / "lab.lock.yaml").read_bytes()


BUILT_IMAGE = """\
  image: {name: own:1, from: vllm/vllm-openai:v0.33.0, run: [echo 1]}"""


def test_an_image_that_the_site_builds_is_locked_by_its_inputs(
    lab: Path, sparkgen: Command
) -> None:
    text = SITE.replace(f"  image: {IMAGE}", BUILT_IMAGE)
    (lab / "lab.yaml").write_text(text)
    assert sparkgen("build", "lab.yaml", cwd=lab).code == 0
    recipe = (lab / "out/lab/operator/image/Dockerfile").read_text()
    (inputs,) = re.findall(r"(?m)^LABEL sparkgen.build=(\w+)$", recipe)
    settings = {"image": "own:1", "digests": [], "build": inputs}
    code, out, _ = locked(lab, sparkgen, *(node(n, image=settings) for n in ("spark1", "spark2")))
    (image,) = parse("", (lab / "lab.lock.yaml").read_bytes()).images
    assert (code, image.image, image.inputs, len(image.layers)) == (
        0,
        "own:1",
        f"sha256:{inputs}",
        71,
    )
    assert "own:1: new ->" in out
    assert "SG851" not in sparkgen("validate", "lab.yaml", cwd=lab).err
    (lab / "lab.yaml").write_text(text.replace("echo 1", "echo 2"))
    warnings = sparkgen("validate", "lab.yaml", cwd=lab).err
    assert (
        "warning[SG851]: the lock does not cover the image own:1 as it is built now\n" in warnings
    )
    archives = ["spark1.tar.gz", "spark2.tar.gz"]
    assert sparkgen("lock", "lab.yaml", *archives, cwd=lab).err == (
        "not locked: own:1 on spark1, spark2 differs from what the site builds: run build.sh\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        (IMAGE, "vllm/vllm-openai:v0.32.0", "the image vllm/vllm-openai:v0.32.0"),
        ("gpt-oss-120b, c", "gpt-oss-20b, c", "openai/gpt-oss-20b, revision main"),
        ("gpt-oss-120b, c", "gpt-oss-120b, revision: v2, c", "openai/gpt-oss-120b, revision v2"),
    ],
)
def test_stale_lock(old: str, new: str, subject: str, lab: Path, sparkgen: Command) -> None:
    text = SITE.replace(old, new).replace(
        "0.33.0\n  image: vllm/vllm-openai:v0.32", "0.32.0\n  image: vllm/vllm-openai:v0.32"
    )
    (lab / "lab.yaml").write_text(text)
    (lab / "lab.lock.yaml").write_text(LOCK)
    outcome = sparkgen("validate", "lab.yaml", cwd=lab)
    assert outcome.code == 0
    assert f"warning[SG851]: the lock does not cover {subject}\n" in outcome.err
    assert outcome.err.count("warning[") == 1


def test_a_pinned_tag_may_move(lab: Path, sparkgen: Command) -> None:
    moving = "vllm/vllm-openai:latest"
    (lab / "lab.yaml").write_text(SITE.replace(IMAGE, moving))
    assert "SG609" in sparkgen("validate", "lab.yaml", cwd=lab).err
    (lab / "lab.lock.yaml").write_text(LOCK.replace(IMAGE, moving))
    assert sparkgen("validate", "--strict", "lab.yaml", cwd=lab).err == ""


def test_check_says_what_a_lock_lacks(lab: Path, sparkgen: Command) -> None:
    (lab / "lab.lock.yaml").write_text(LOCK)
    good = sparkgen("lock", "lab.yaml", "--check", cwd=lab)
    assert (good.code, good.out) == (0, "lab.lock.yaml has all that the site names\n")
    (lab / "lab.yaml").write_text(SITE.replace("gpt-oss-120b, c", "gpt-oss-120b, revision: v2, c"))
    outcome = sparkgen("lock", "lab.yaml", "--check", cwd=lab)
    assert (outcome.code, outcome.out.splitlines()) == (
        1,
        [
            "openai/gpt-oss-120b, revision v2: not locked yet",
            "openai/gpt-oss-120b, revision main: no longer in the site",
        ],
    )
    (lab / "lab.yaml").write_text(SITE)
    archives = [node(name, OTHER).capture(lab) for name in ("spark1", "spark2")]
    moved = sparkgen("lock", "lab.yaml", *archives, "--check", cwd=lab)
    line = f"openai/gpt-oss-120b, revision main: {COMMIT[:12]} -> {OTHER[:12]}\n"
    assert (moved.code, moved.out) == (1, line)
    assert (lab / "lab.lock.yaml").read_text() == LOCK
    assert sparkgen("lock", "lab.yaml", cwd=lab).code == 2


def test_files_that_the_site_carries_are_locked(lab: Path, sparkgen: Command) -> None:
    (lab / "chat.jinja").write_text("{{ messages }}\n")
    files = "parallel: {tensor: 2}\n  files: [{source: chat.jinja}]"
    (lab / "lab.yaml").write_text(SITE.replace("parallel: {tensor: 2}", files))
    assert locked(lab, sparkgen, node("spark1"), node("spark2"))[0] == 0
    assert "\n  - {file: chat.jinja, sha256: " in (lab / "lab.lock.yaml").read_text()
    assert sparkgen("lock", "lab.yaml", "--check", cwd=lab).code == 0
    (lab / "chat.jinja").write_text("{{ messages[0] }}\n")
    outcome = sparkgen("lock", "lab.yaml", "--check", cwd=lab)
    assert (outcome.code, outcome.out.partition(",")[0]) == (1, "chat.jinja: changed")


GROUPS = """\
version: 1
name: lab
nodes:
  - {name: spark1, management: {address: 10.0.0.11/24}}
  - {name: spark2, management: {address: 10.0.0.12/24}}
topology: {kind: single}
groups:
  - name: chat
    nodes: [spark1]
    model: {name: gpt-oss-120b, context_length: 32768, max_sequences: 4}
    engine: {name: vllm, version: 0.33.0, image: 'vllm/vllm-openai:v0.33.0'}
  - name: code
    nodes: [spark2]
    model: {name: gpt-oss-20b, context_length: 32768, max_sequences: 4}
    engine: {name: vllm, version: 0.32.0, image: 'vllm/vllm-openai:v0.32.0'}
"""


@pytest.mark.parametrize("before", [True, False], ids=["locked before", "first on both branches"])
def test_locks_of_two_groups_are_merged(before: bool, lab: Path, sparkgen: Command) -> None:
    """Each branch locks the group whose node it captured; the other group's entries stay."""
    (lab / "lab.yaml").write_text(GROUPS)
    (lab / ".gitattributes").write_text(block("sites/reviews.md", "", "merge=union"))
    git(lab, "init", "--initial-branch", "main")
    both = [of_group(1, "v0.33.0", "120b", "a1"), of_group(2, "v0.32.0", "20b", "a2")]
    assert not before or locked(lab, sparkgen, *both)[0] == 0
    commit(lab)
    for branch, moved in (
        ("chat", of_group(1, "v0.33.0", "120b", "b1")),
        ("code", of_group(2, "v0.32.0", "20b", "b2")),
    ):
        git(lab, "checkout", "-b", branch, "main")
        (lab / branch).mkdir()
        archive = moved.capture(lab / branch)
        outcome = sparkgen("lock", "lab.yaml", archive, cwd=lab)
        assert "no longer in the site" not in outcome.out
        assert outcome.err.count(": it stays as it is locked\n") == (2 if before else 0)
        commit(lab)
    git(lab, "checkout", "main")
    for branch in ("chat", "code"):
        git(lab, "merge", "--no-edit", branch)
    merged = parse("", read_lock(lab))
    assert {image.digest[7:9] for image in merged.images} == {"b2", "b1"}
    assert {model.commit[:2] for model in merged.models} == {"b1", "b2"}
    assert sparkgen("lock", "lab.yaml", "--check", cwd=lab).code == 0


LOCKS = st.builds(
    Lock,
    st.lists(st.sampled_from("abcd"), unique=True).map(
        lambda names: tuple(LockedImage(name, digest=DIGEST) for name in names)
    ),
    st.lists(st.sampled_from("efgh"), unique=True).map(
        lambda names: tuple(LockedModel(name, "main", COMMIT) for name in names)
    ),
    files=st.lists(st.sampled_from("ijkl"), unique=True).map(
        lambda names: tuple(LockedFile(name, "d4" * 32) for name in names)
    ),
)


@settings(max_examples=50, deadline=None)
@given(LOCKS, LOCKS)
def test_git_makes_the_union_of_two_new_locks(ours: Lock, theirs: Lock) -> None:
    with TemporaryDirectory() as folder:
        names = ("ours", "base", "theirs")
        for name, lock in zip(names, (ours, None, theirs), strict=True):
            Path(folder, name).write_text(lock.text() if lock else "")
        git(Path(folder), "merge-file", "--union", *names)
        merged = parse("", Path(folder, "ours").read_bytes())
    for kind in ("images", "models", "files"):
        assert {*getattr(merged, kind)} == {*getattr(ours, kind), *getattr(theirs, kind)}


def of_group(number: int, tag: str, size: str, content: str) -> Machine:
    """A node of a group, with an image and a commit that begin with two digits."""
    hub, revision = (
        f"home/nvidia/.cache/huggingface/hub/models--openai--gpt-oss-{size}",
        content * 20,
    )
    files = {f"{hub}/refs/main": revision, f"{hub}/snapshots/{revision}/config.json": "{}"}
    digests = [f"vllm/vllm-openai@sha256:{content * 32}"]
    engine = Container("vllm", f"vllm/vllm-openai:{tag}", digests=digests)
    return Machine(f"spark{number}", files, {}, [engine])


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "lock")


def test_the_cache_of_the_site_counts(lab: Path, sparkgen: Command) -> None:
    """Another one has an older commit; before anything is installed, nothing names the site's."""
    (lab / "lab.yaml").write_text(
        SITE.replace("max_sequences: 4}", "max_sequences: 4, cache: /srv/cache}")
    )
    nodes = [node(name) for name in ("spark1", "spark2")]
    own = "srv/cache/hub/models--openai--gpt-oss-120b"
    more = {f"{own}/refs/main": OTHER, f"{own}/snapshots/{OTHER}/config.json": "{}"}
    nodes = [replace(one, files={**one.files, **more}) for one in nodes]
    assert locked(lab, sparkgen, *nodes)[0] == 0
    (model,) = parse("", read_lock(lab)).models
    assert model.commit == OTHER


def test_caches_and_images_that_only_the_bundle_names(lab: Path, sparkgen: Command) -> None:
    """A cache elsewhere, an image that waits for its turn, and what an image is built from."""
    hub, base = "srv/hub", "sha256:" + "e5" * 32
    files = {
        f"{hub}/models--openai--gpt-oss-120b/refs/main": COMMIT,
        f"{hub}/models--openai--gpt-oss-120b/snapshots/{COMMIT}/config.json": "{}",
        "etc/sparkgen/node.env": "HUB=/srv/hub\nIMAGE=own:1\nIMAGE_BASE=vllm/vllm-openai:v0.33.0\n",
        "etc/sparkgen/groups/turn.node.env": f"IMAGE={IMAGE}\n",
    }
    machine = Machine("spark1", files, {}, [Container("x", IMAGE, image_id=IMAGE)])
    archive = machine.capture(lab)
    capture = read(archive.name, archive.read_bytes())
    assert commit_on(capture, "openai/gpt-oss-120b", "main") == COMMIT
    named = [text.splitlines()[0] for path, text in capture.texts.items() if "images/" in path]
    assert sorted(named) == ['image "own:1"', f'image "{IMAGE}"']
    (lab / "lab.yaml").write_text(SITE.replace(f"  image: {IMAGE}", BUILT_IMAGE))
    reading = read_site("lab.yaml", (lab / "lab.yaml").read_bytes())
    digests = [f"vllm/vllm-openai@{base}"]
    held = replace(machine, containers=[Container("y", IMAGE, digests=digests)])
    other = held.capture(lab / "other")
    assert reading.declaration
    found = lock_of(
        Lock((LockedImage(IMAGE),), ()),
        ["spark1"],
        [read(other.name, other.read_bytes())],
        Lock((), ()),
        {},
        ["vllm/vllm-openai:v0.33.0"],
    )
    assert LockedImage(IMAGE, digest=base) in found.lock.images


UNREADABLE = {
    "it is not a lock": "- a\n",
    "it was written by another version of sparkgen": "version: 2\n",
    "'images' is not a list": "version: 1\nimages: {a: b}\n",
    "an entry lacks a key, or has other ones": (
        "version: 1\nlocked:\n  - {source: a, revision: b, x: c}\n"
    ),
    "'digest' of an entry has another form": ("version: 1\nlocked:\n  - {image: a, digest: b}\n"),
    "'commit' of an entry has another form": LOCK.replace(COMMIT, "main"),
    "openai/gpt-oss-120b main is locked in two ways: lock it anew": (
        LOCK + f"  - {{source: openai/gpt-oss-120b, revision: main, commit: {OTHER}}}\n"
    ),
}


@pytest.mark.parametrize("why", UNREADABLE)
def test_a_lock_that_cannot_be_read(why: str, lab: Path, sparkgen: Command) -> None:
    with pytest.raises(LockError, match=f"^{why}$"):
        parse("lab.lock.yaml", UNREADABLE[why].encode())
    (lab / "lab.lock.yaml").write_text(UNREADABLE[why])
    outcome = sparkgen("build", "lab.yaml", cwd=lab)
    assert outcome.code == 3
    assert f"error[SG850]: the lock lab.lock.yaml can't be used: {why}\n" in outcome.err
    assert not (lab / "out").exists()
    checked = sparkgen("lock", "lab.yaml", "--check", cwd=lab)
    assert (checked.code, checked.out) == (3, "")
    assert f"can't be used: {why}\n" in checked.err


def test_lock_round_trip() -> None:
    lock = parse("", LOCK.encode())
    assert Lock(lock.images, lock.models).text() == LOCK


HF = """\
revision=; while [ $# -gt 0 ]; do [ "$1" = --revision ] && revision=$2; shift; done
mkdir -p "$HF_HUB_CACHE/models--openai--gpt-oss-120b/snapshots/$revision"
"""


def test_models_are_fetched_by_their_commit(lab: Path, sparkgen: Command) -> None:
    """It is also found offline, by branch name: refs/main holds the commit, without a newline."""
    (lab / "lab.lock.yaml").write_text(LOCK)
    assert sparkgen("build", "lab.yaml", cwd=lab).code == 0
    node = lab / "out/lab/spark1"
    facts = node / "etc/sparkgen/node.env"
    hub = lab / "hub"
    lines = [
        f"HUB={hub}" if line.startswith("HUB=") else line for line in facts.read_text().splitlines()
    ]
    kept = [line for line in lines if not line.startswith(("COPY=", "VOCABULAR"))]
    write(facts, "\n".join(kept) + "\n")
    stand_in(lab / "bin/hf", HF)
    env = {"PATH": f"{lab / 'bin'}:/usr/bin:/bin", "HOME": str(lab)}
    script = node / "opt/sparkgen/models.sh"
    done = subprocess.run(
        ["bash", script], env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (hub / "models--openai--gpt-oss-120b/refs/main").read_bytes() == COMMIT.encode()
    assert (hub / f"models--openai--gpt-oss-120b/snapshots/{COMMIT}").is_dir()
