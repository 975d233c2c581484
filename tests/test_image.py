"""The image that a site derives: its inputs, its single build, and how the other nodes get it."""

import shutil
from pathlib import Path

import pytest
from bundles import BUNDLES, NodeFolder, on_node
from conftest import Command
from stand_ins import StandIns

import generator
from generator.pipeline import read_site
from generator.sitefile.beside import Source, SourceFile, nothing_beside

BUNDLE = next(bundle for bundle in BUNDLES if bundle.name == "golden-direct-image")
BUILD = BUNDLE.part.image_build
HEAD = NodeFolder(BUNDLE, "spark1")

# It remembers the label and the layers of the image that it built.
DOCKER = """\
#!/bin/bash
printf '%s\\n' "$*" >>"$CALLS/docker"
case "$1 $2" in
  'build --help') echo '      --provenance string' ;;
  image*) cat "$CALLS/label" 2>/dev/null ;;
  build*) sed -n 's/^LABEL sparkgen.build=\\(.*\\)/\\1 ["sha256:1"]/p' Dockerfile >"$CALLS/label" ;;
  save*) echo an image ;;
esac
"""
SSH = """\
#!/bin/bash
printf '%s\\n' "$*" >>"$CALLS/ssh"
case "$*" in
  *inspect*) cat "$CALLS/other" 2>/dev/null ;;
  *load*) cat >"$CALLS/loaded" && cp "$CALLS/label" "$CALLS/other" ;;
esac
[[ ! -e $CALLS/refused ]]
"""


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    result = StandIns(tmp_path)
    result.add("docker", DOCKER)
    result.add("ssh", SSH)
    return result


def build(tmp_path: Path, stand_ins: StandIns, *options: str) -> tuple[int, str]:
    folder = tmp_path / "image"
    if not folder.exists():
        shutil.copytree(BUNDLE.folder / "operator/image", folder)
        HEAD.copy(tmp_path / "trees")
    script = on_node(tmp_path / "trees" / HEAD.name, "bash", str(folder / "build.sh"), *options)
    done = stand_ins.run(*script)
    return done.returncode, done.stdout + done.stderr


def test_image_is_built_once_and_loaded_on_the_others(tmp_path: Path, stand_ins: StandIns) -> None:
    assert BUILD
    assert build(tmp_path, stand_ins, "--check")[0] == 1
    status, output = build(tmp_path, stand_ins)
    assert (status, output) == (0, "spark2 has it now\n")
    calls = (stand_ins.calls / "docker").read_text()
    wanted = "build --provenance=false --sbom=false --tag vllm-own:1 --file Dockerfile context"
    assert calls.count(wanted) == 1
    assert (stand_ins.calls / "loaded").read_text() == "an image\n"
    assert (stand_ins.calls / "label").read_text().split()[0] == BUILD.inputs

    assert build(tmp_path, stand_ins) == (
        0,
        "vllm-own:1 is present already\nspark2 has it already\n",
    )
    assert (stand_ins.calls / "docker").read_text().count(wanted) == 1
    assert build(tmp_path, stand_ins, "--check")[0] == 0


def test_other_build_of_the_same_inputs_is_replaced(tmp_path: Path, stand_ins: StandIns) -> None:
    """Packages that are fetched during the build change from day to day."""
    assert BUILD
    (stand_ins.calls / "other").write_text(f'{BUILD.inputs} ["sha256:2"]\n')
    assert build(tmp_path, stand_ins) == (0, "spark2 has it now\n")
    assert (stand_ins.calls / "other").read_text() == f'{BUILD.inputs} ["sha256:1"]\n'


def test_node_that_cannot_be_reached_is_named(tmp_path: Path, stand_ins: StandIns) -> None:
    (stand_ins.calls / "refused").touch()
    status, output = build(tmp_path, stand_ins)
    assert status == 1
    assert "spark2 did not get vllm-own:1" in output


@pytest.mark.parametrize(
    ("name", "pulled"),
    [
        ("registry.lan/vllm:1", True),
        ("localhost:5000/own/vllm:1", True),
        ("localhost/vllm:1", True),
        ("own/vllm:1", False),
        ("own/a.b:1", False),
        ("vllm:1.2", False),
    ],
)
def test_registry_in_the_name_is_used(
    name: str, pulled: bool, tmp_path: Path, stand_ins: StandIns
) -> None:
    HEAD.copy(tmp_path / "trees")
    shutil.copytree(BUNDLE.folder / "operator/image", tmp_path / "image")
    facts = tmp_path / "image/image.env"
    facts.write_text(facts.read_text().replace("IMAGE=vllm-own:1", f"IMAGE={name}"))
    assert build(tmp_path, stand_ins) == (0, "spark2 has it now\n")
    calls = (stand_ins.calls / "docker").read_text().splitlines()
    assert (f"push {name}" in calls, f"save {name}" in calls) == (pulled, not pulled)
    assert (f"docker pull {name}" in (stand_ins.calls / "ssh").read_text()) is pulled


@pytest.mark.parametrize(
    ("engine", "version", "added", "line"),
    [
        ("vllm", "0.33.0", "ray", "pip install --no-cache-dir 'ray[default]=="),
        ("tensorrt-llm", "1.3.0rc29", "ssh", "openssh-server"),
        ("llama.cpp", "10776", "rpc", "git -C /llama.cpp checkout b10776"),
        ("llama.cpp", "0.5.0-dev", "rpc", "checkout 0c1e57098bba43ac29e6e3b677cdceebdd22334f"),
    ],
)
def test_dockerfile_has_what_several_nodes_need(
    engine: str, version: str, added: str, line: str
) -> None:
    model = "file: /srv/m.gguf, source: example/m" if added == "rpc" else "name: gpt-oss-20b"
    site = generator.parse(f"""\
version: 1
name: lab
nodes:
  - {{name: spark1, management: {{address: 10.0.0.11/24}}}}
  - {{name: spark2, management: {{address: 10.0.0.12/24}}}}
cabling: [{{endpoints: [spark1:p0, spark2:p0]}}]
topology: {{kind: direct}}
model: {{{model}, context_length: 4096}}
engine:
  name: {engine}
  version: {version}
  image: {{name: own:1, from: "example.org/base:1", adds: [{added}]}}
  parallel: {{{"pipeline" if added == "rpc" else "tensor"}: 2}}
""")
    assert site.is_valid, site.report()
    text = site.tree()["operator/image/Dockerfile"].text
    assert line in text
    assert text.count("\nFROM ") == (2 if added == "rpc" else 1)


def test_node_needs_no_bundle_yet(tmp_path: Path, stand_ins: StandIns) -> None:
    """A change is prepared while the old bundle is still serving from another image."""
    shutil.copytree(BUNDLE.folder / "operator/image", tmp_path / "image")
    done = stand_ins.run("bash", str(tmp_path / "image/build.sh"))
    assert (done.returncode, done.stdout + done.stderr) == (0, "spark2 has it now\n")
    assert "--tag vllm-own:1 " in (stand_ins.calls / "docker").read_text()


def test_worker_builds_nothing(tmp_path: Path, stand_ins: StandIns) -> None:
    worker = NodeFolder(BUNDLE, "spark2")
    worker.copy(tmp_path / "trees")
    shutil.copytree(BUNDLE.folder / "operator/image", tmp_path / "image")
    script = ("bash", str(tmp_path / "image/build.sh"))
    done = stand_ins.run(*on_node(tmp_path / "trees/spark2", *script))
    assert done.returncode == 2
    assert done.stderr.startswith("build.sh: this is spark2; run it on spark1, ")
    assert not (stand_ins.calls / "docker").exists()


def test_docker_without_buildkit(tmp_path: Path, stand_ins: StandIns) -> None:
    stand_ins.add("docker", DOCKER.replace("--provenance string", "--progress string"))
    assert build(tmp_path, stand_ins)[0] == 0
    calls = (stand_ins.calls / "docker").read_text().splitlines()
    assert "build --tag vllm-own:1 --file Dockerfile context" in calls


def test_other_build_under_the_same_name_restarts_the_engine(
    tmp_path: Path, sparkgen: Command
) -> None:
    shutil.copytree(BUNDLE.file.parent, tmp_path, dirs_exist_ok=True)
    site = tmp_path / "site.yaml"
    assert sparkgen("build", "site.yaml", cwd=tmp_path).code == 0
    site.write_text(site.read_text().replace("ray==2.55.0", "ray==2.56.0"))
    output = sparkgen("diff", "--stat", "site.yaml", cwd=tmp_path).out
    assert "build and load the image first, as README.md says: vllm-own:1: spark1, spark2" in output
    assert output.index("build and load") < output.index("start the engine, the head last")


def test_unknown_option(tmp_path: Path, stand_ins: StandIns) -> None:
    assert build(tmp_path, stand_ins, "--all")[0] == 2
    assert not (stand_ins.calls / "docker").exists()


def test_label_changes_with_every_input(tmp_path: Path, sparkgen: Command) -> None:
    site = tmp_path / "site.yaml"
    shutil.copytree(BUNDLE.file.parent, tmp_path, dirs_exist_ok=True)

    def label() -> str:
        assert sparkgen("build", "site.yaml", "--force", cwd=tmp_path).code == 0
        text = (tmp_path / "out/direct-image/operator/image/Dockerfile").read_text()
        return text.rpartition("=")[2]

    labels = [label()]
    (tmp_path / "files/parser.py").write_text("changed\n")
    labels.append(label())
    (tmp_path / "mods/fix-template/template.jinja").chmod(0o755)
    labels.append(label())
    site.write_text(site.read_text().replace("ray==2.55.0", "ray==2.56.0"))
    labels.append(label())
    site.write_text(site.read_text().replace("vllm-openai:v0.33.0", "vllm-openai:v0.33.0-1"))
    labels.append(label())
    assert len(set(labels)) == len(labels)


def test_prepared_engine_is_started_by_the_script() -> None:
    container = HEAD.node.container
    assert container.entrypoint == "bash"
    first = container.command[0]
    assert first == ("/opt/sparkgen/files/prepare.sh", "vllm", "serve")
    assert any(mount.inside == first[0] and mount.read_only for mount in container.mounts)


@pytest.mark.parametrize(
    ("script", "rules"),
    [
        ('cp /a /b\nexec "$@"', set()),
        ('cp /a /b && exec "${@}" # the engine', set()),
        ('exec numactl --interleave=all "$@"', set()),
        ("echo 'no; curl' # pip install\nexec \"$@\"", set()),
        ('curl_options=1\nexec "$@"', set()),
        ('"$@"', {"SG698"}),
        ("exec $@", {"SG698"}),
        ('exec "$@"\necho done', {"SG698"}),
        ('set -e; DEBIAN_FRONTEND=noninteractive apt-get update\nexec "$@"', {"SG699"}),
        ('key="$(timeout 30 curl http://example.org)"\nexec "$@"', {"SG699"}),
        ('if ! command -v x; then python3 -m pip install x; fi\nexec "$@"', {"SG699"}),
        ('(cd /x && /usr/bin/git pull)\nexec "$@"', {"SG699"}),
    ],
)
def test_script_before_the_engine_is_read(script: str, rules: set[str]) -> None:
    site = """\
version: 1
name: lab
nodes: [{name: spark1}]
topology: {kind: single}
model: {name: gpt-oss-20b, context_length: 4096}
engine: {name: vllm, version: 0.33.0, image: "example.org/base:1", prepare: prepare.sh}
"""
    its = Source((SourceFile("", f"#!/bin/bash\n{script}\n".encode(), is_executable=True),))
    reading = read_site(
        "lab.yaml",
        site.encode(),
        lambda path: its if path == "prepare.sh" else nothing_beside(path),
    )
    assert {finding.rule for finding in reading.findings} == rules
