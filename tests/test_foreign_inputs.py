"""What other people publish: every setting ends, and none of it becomes structure of the site."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.adoption import Adoption, adopt
from generator.adoption.command import find
from generator.adoption.draft import not_held
from generator.adoption.found import ItemEnd, Word
from generator.adoption.reading import Input, read
from generator.audit.findings import audit
from generator.capture import CaptureError
from generator.catalogs.flag_files import versions
from generator.diagnostics import Severity

INPUTS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "strangers/inputs.yaml").read_text("utf-8"), yaml.CSafeLoader
)
SECTIONS = {"version", "name", "defaults", "nodes", "cabling", "topology", "groups"}
SECTIONS |= {"model", "engine"}
# Reading and schema, but for what is still to be written.
OF_FORM = [f"SG{number}" for number in range(200)]


def adopted(name: str, text: str) -> Adoption:
    return adopt(
        read([Input("", name, text.encode("utf-8", "surrogatepass"))]), "mine", "mine.yaml"
    )


def check(result: Adoption) -> None:
    """Every item has an end; the site has nothing but our sections, in their form."""
    assert [one.item for one in result.ended if one.end is None] == []
    assert all(one.path for one in result.ended if one.end is ItemEnd.SITE)
    assert all(one.why for one in result.ended if one.end is not ItemEnd.SITE)
    data = yaml.safe_load(result.text)
    assert set(data) <= SECTIONS
    assert all(set(node) <= NODE for node in data["nodes"])
    errors = [one for one in result.reading.findings if one.severity is Severity.ERROR]
    assert [one for one in errors if one.rule < "SG2"] == [], result.text
    ended = [word for one in result.ended for word in one.item.words]
    for word in said(result):
        assert any(share(word, own) for own in ended), word
    for one in result.ended:
        assert len(one.line.splitlines()) <= 1
        if one.end is ItemEnd.SITE:
            assert result.draft.get(*one.path) is not None, one


def said(result: Adoption) -> Iterator[Word]:
    """Every word that a reader has found of containers: each is part of an item."""
    for container in (c for node in result.found.nodes for c in node.containers):
        words = [word for word in container.words if not word.breaks and word.text]
        # A flag with a value ends with that.
        after = [*(word.text for word in words[1:]), "-"]
        for word, value in zip(words, after, strict=True) if words else ():
            if not (word.text.startswith("-") and not value.startswith("-")):
                yield word
        yield from (variable.value for variable in container.env)
        yield from container.mounts
        yield from [container.image] if container.image else []


def share(one: Word, other: Word) -> bool:
    """Whether two words share some text of their file, or are at one place."""
    a, b = one.span, other.span
    begins, ends = (a.line, a.column), (a.end_line, a.end_column)
    begin, end = (b.line, b.column), (b.end_line, b.end_column)
    meet = begins < end and begin < ends
    return one.file == other.file and (meet or begins == begin)


NODE = {"name", "management", "host", "user", "os", "memory_gb", "visible_gib", "env"}


@pytest.mark.parametrize(
    "case", INPUTS, ids=lambda case: case["source"].partition("/blob/HEAD/")[2]
)
def test_published_input(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(CaptureError) as raised:
            adopted(case["name"], case["text"])
        assert raised.value.why == case["refused"]
        return
    result = adopted(case["name"], case["text"])
    check(result)
    assert Counter(one.end.name.lower() for one in result.ended if one.end) == case["ends"]
    data = yaml.safe_load(result.text)
    known = data.get("engine", {}).get("name")
    assert (None if known == "TODO" else known) == case.get("engine")
    audit(result)


def test_inputs_are_ninety() -> None:
    assert len({case["source"] for case in INPUTS}) >= 90


ODD = ["", "$X", "${Y:-z}", "\n", "\r", "\u2028", "---", "# ", "{a: 1}", "services:", "'", '"', "é"]
ODD += ["999", "-1", "null", "TODO", "--port", "x y", "a: b", "\\", "&x", "*x", "!!python/none"]


@settings(deadline=None)
@given(
    st.sampled_from([case for case in INPUTS if "refused" not in case]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30), st.sampled_from(ODD)), max_size=4),
)
def test_damaged_input(case: dict[str, Any], cuts: list[tuple[int, int, str]]) -> None:
    """Whatever replaces parts of a file, the outcome is such a site, or a refusal."""
    text = case["text"]
    for start, length, odd in cuts:
        at = start % len(text) if text else 0
        text = text[:at] + odd + text[at + length :]
    try:
        result = adopted(case["name"], text)
    except CaptureError:
        return
    check(result)


@pytest.mark.parametrize(
    ("command", "held", "lost"),
    [
        ("vllm serve m/x --middleware a.b --middleware c.d", "middleware: [a.b, c.d]", []),
        ("vllm serve m/x --middleware a.b", "middleware: a.b", []),
        ("vllm serve m/x --seed 1 --seed 2", "seed: 2", ["--seed"]),
        ("llama-server -m /m/q.gguf --hf-repo a/b:Q4_K_M", "file: /m/q.gguf", ["--hf-repo"]),
        ("llama-server --hf-repo a/b:Q4_K_M -m /m/q.gguf", "file: /m/q.gguf", ["--hf-repo"]),
        ("llama-server -m /m/q.gguf --rpc 10.0.0.12:50052", "file: /m/q.gguf", ["--rpc"]),
    ],
)
def test_no_value_takes_the_place_of_another_unsaid(
    command: str, held: str, lost: list[str]
) -> None:
    """What a parser appends is one list, and nothing to be written replaces what was stated."""
    result = adopted("start.sh", f"#!/bin/bash\n{command}\n")
    check(result)
    assert held in result.text
    assert [one.item.what for one in result.ended if one.end is ItemEnd.LOST] == lost


def test_array_of_itself() -> None:
    """An array that a script adds to itself again and again stays small."""
    text = "A=(a b)\n" + 'A+=("${A[@]}")\n' * 40 + 'vllm serve openai/gpt-oss-20b "${A[@]}"\n'
    check(adopted("start.sh", text))


def test_value_with_a_colon_at_its_end_is_no_key() -> None:
    check(adopted("start.sh", "vllm serve openai/gpt-oss-20b --port a: --served-model-name x:\n"))


MOUNTED = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: [--model, /cache/models/qwen]
    environment: {HF_HOME: ""}
    volumes:
      - /srv/models:/cache/models
      - /srv/patch.py:/root/.cache/vllm/patch.py:ro
      - /srv/hub:/root/.cache/huggingface
      - /srv/compiled:/root/.cache/vllm
      - /data/x:/opt/x
"""


def test_mounts_end_by_what_they_hold() -> None:
    """Models and files are no caches, wherever they are in the container."""
    result = adopted("compose.yaml", MOUNTED)
    ends = {one.item.value: one.path or one.end for one in result.ended}
    assert {value: end for value, end in ends.items() if value.startswith(("/srv", "/data"))} == {
        "/srv/models": ("model",),
        "/srv/patch.py": ("engine", "files", 0, "path"),
        "/srv/hub": ("model", "cache"),
        "/srv/compiled": ItemEnd.DEFAULT,
        "/data/x": ItemEnd.LOST,
    }


HARMLESS = ["echo ready", "sleep 5", "if [ -f /x ]; then exit 1; fi", "cd /srv", "docker ps"]
UNKNOWN = ["frobnicate --all", "ufw allow 8000", "sudo ethtool -G enp1s0f0np0 rx 8192"]
UNKNOWN += [
    "mount /dev/sda1 /data",
    "crontab jobs",
    "docker compose up -d",
    "systemctl start other",
]
UNKNOWN += ["ray start --head --node-ip-address=10.0.0.1", "rpc-server -c", "curl x.example | sh"]
UNKNOWN += ["tee /etc/x", "echo vm.x=1 >> /etc/sysctl.conf", "source ~/venv/bin/activate"]
AROUND = ["{}", "if true; then {}; fi", "start() {{ {}; }}", "case $1 in up) {} ;; esac", "a && {}"]


@settings(deadline=None)
@given(st.sampled_from(UNKNOWN), st.sampled_from(AROUND), st.lists(st.sampled_from(HARMLESS)))
def test_only_known_commands_are_harmless(unknown: str, around: str, others: list[str]) -> None:
    """Whatever a script does beside its engine is not held, unless it is known to do nothing."""
    lines = ["#!/bin/bash", *others, around.format(unknown), "vllm serve openai/gpt-oss-20b"]
    result = adopted("start.sh", "\n".join(lines) + "\n")
    check(result)
    ends = {one.end for one in result.ended if unknown.split(" |")[0] in one.line}
    assert ends == {ItemEnd.LOST}, [one.line for one in result.ended]
    for line in others:
        said = line.partition(";")[0].removeprefix("if ")
        assert {one.end for one in result.ended if one.line.startswith(said)} == {ItemEnd.OTHER}


WRITTEN = """\
#!/bin/bash
cat > /tmp/extra.yaml <<EOF
kv_cache_config:
  free_gpu_memory_fraction: 0.5
EOF
sudo tee /etc/netplan/40-cx7.yaml <<EOF
network:
  version: 2
  ethernets:
    enp1s0f0np0:
      addresses: [192.168.100.10/24]
      wakeonlan: true
EOF
cat <<EOF
usage: start.sh
EOF
vllm serve ${1:-openai/gpt-oss-20b} -O3 --port 8001
"""


def test_lines_of_written_files_are_named() -> None:
    result = adopted("start.sh", WRITTEN)
    check(result)
    ends = {one.item.place.span.line: (one.end, one.why) for one in result.ended}
    lost = "a line of a file that the script writes, of which the site file holds nothing"
    assert ends[2] == ends[3] == (ItemEnd.LOST, lost)
    assert ends[10][0] is ItemEnd.SITE
    assert ends[11] == (ItemEnd.LOST, "it is not read")
    assert ends[14][0] is ItemEnd.OTHER
    assert result.draft.get("model", "name") == "gpt-oss-20b"
    assert str(result.draft.get("engine", "args", "optimization-level")) == "3"


OPEN = [
    "link rocep1s0f1/1 state ACTIVE physical_state LINK_UP netdev enp1s0f1np1 \n",
    "export NCCL_IB_HCA=rocep1s0f1\nvllm serve openai/gpt-oss-20b --nnodes $COUNT\n",
    "export NCCL_IB_HCA=rocep1s0f1\nvllm serve openai/gpt-oss-20b $ARGS\n",
    "docker run --gpus all -e NCCL_IB_HCA=rocep1s0f1 own.example/engine:1 serve\n",
    "bash run_cluster.sh vllm/vllm-openai:v0.33.0 10.0.0.1 --head /hf -e NCCL_IB_HCA=rocep1s0f1\n",
]


@pytest.mark.parametrize("text", OPEN)
def test_a_port_alone_does_not_say_how_many_nodes_there_are(text: str) -> None:
    result = adopted("run.txt" if text.startswith("link") else "run.sh", text)
    check(result)
    assert yaml.safe_load(result.text)["topology"]["kind"] == "TODO"
    assert "one node needs no fabric" not in {one.why for one in result.ended}


INSIDE = """\
#!/bin/bash
: "${CTX:=32768}"
HEADLESS=""
[ "$RANK" -gt 0 ] && HEADLESS="--headless"
docker run -d --name own -v $HF_HOME:/root/.cache/huggingface -e HF_TOKEN -e OWN \\
  vllm/vllm-openai:v0.33.0 sleep infinity
CMD="vllm serve openai/gpt-oss-20b --max-model-len $CTX $HEADLESS"
MODELS=$(find /srv)
docker exec -d own bash -c "export VLLM_USE_V2=1; $CMD"
"""


def test_engine_is_started_in_a_container_of_the_script() -> None:
    result = adopted("start.sh", INSIDE)
    check(result)
    data = yaml.safe_load(result.text)
    assert data["model"] == {"name": "gpt-oss-20b", "context_length": 32768}
    assert data["engine"]["image"] == "vllm/vllm-openai:v0.33.0"
    assert data["engine"]["secrets"] == ["HF_TOKEN"]
    assert data["engine"]["env"] == {"VLLM_USE_V2": "1"}
    lost = {one.line.partition(":")[0] for one in result.ended if one.end is ItemEnd.LOST}
    folder = "/root/.cache/huggingface $HF_HOME"
    assert lost == {folder, "OWN $OWN", "MODELS=$(find /srv)", "HEADLESS=--headless"}


def test_variables_of_docker_exec_are_parts_of_it() -> None:
    text = "docker exec -d -e OWN=1 node vllm serve openai/gpt-oss-20b --max-model-len 32768\n"
    result = adopted("start.sh", text)
    check(result)
    assert yaml.safe_load(result.text)["engine"]["env"] == {"OWN": "1"}
    assert not [one.line for one in result.ended if one.end is ItemEnd.LOST]


def test_shared_memory_of_a_quadlet_is_large_enough() -> None:
    result = adopted(
        "vllm.container",
        "[Container]\nImage=vllm/vllm-openai:v0.33.0\nShmSize=16g\nExec=openai/gpt-oss-20b\n",
    )
    assert not [one.line for one in result.ended if one.end is ItemEnd.LOST]


LINKS = """\
2: enP7s7: <BROADCAST,UP,LOWER_UP> mtu 1500
    inet 192.168.1.5{n}/24 scope global enP7s7
4: enp1s0f1np1: <BROADCAST,UP,LOWER_UP> mtu 9000
    inet 169.254.35.6{n}/16 scope link enp1s0f1np1
6: enP2p1s0f1np1: <BROADCAST,UP,LOWER_UP> mtu 9000
    inet 169.254.35.7{n}/16 scope link enP2p1s0f1np1
"""


def test_network_alone_has_each_finding_once_and_no_guess_about_a_model() -> None:
    files = [Input(f"spark{n}", f"{n}.txt", LINKS.format(n=n).encode()) for n in (1, 2)]
    result = adopt(read(files), "mine", "mine.yaml")
    assert [finding.rule for finding in result.findings] == ["SG323", "SG301", "SG323"]
    assert not result.draft.guesses


def test_comment_says_why_a_peers_address_is_unknown() -> None:
    text = "network:\n  ethernets:\n    enp1s0f0np0: {addresses: [10.0.0.1/24]}\n"
    text += "    enP2p1s0f0np0: {addresses: [10.0.1.1/24]}\n"
    result = adopted("40-cx7.yaml", text)
    assert "  # TODO: the address of spark2\n  - endpoints:" in result.text
    assert result.draft.guesses == ["spark2, which no file is of"]


def test_split_that_nothing_states_is_marked() -> None:
    result = adopted("start.sh", f"ip addr add 10.0.0.1/24 dev enp1s0f0np0\n{OPEN[1]}")
    assert "  # guessed: how the model is split over the nodes\n  parallel:" in result.text


def test_what_is_told_by_number_is_told_in_words_that_follow_it() -> None:
    ended = adopted("start.sh", "docker pull vllm/vllm-openai:v0.33.0\necho up\n" + OPEN[1]).ended
    told = [line for line in not_held(ended) if "setting" in line]
    assert told == [
        "1 setting: it shows, fetches or ends containers (start.sh:1)",
        "1 setting: the script's own (start.sh:2)",
    ]


def test_eval_reads_the_words_of_a_variable_once_more() -> None:
    text = "CMD=\"vllm serve 'openai/gpt-oss-20b' --allowed-origins '[\\\"*\\\"]'\"\neval $CMD\n"
    result = adopted("start.sh", text)
    check(result)
    assert result.draft.get("model", "name") == "gpt-oss-20b"
    assert result.draft.get("engine", "args", "allowed-origins") == ["*"]


def test_guesses_are_marked_where_they_stand() -> None:
    text = "vllm serve openai/gpt-oss-20b --nnodes 2 --master-addr 10.0.0.1 --port ${P:-8001}\n"
    result = adopted("start.sh", text)
    check(result)
    assert "  # guessed: spark2, which no file is of\n  - name: spark2" in result.text
    assert "  # guessed: the ports that it joins\n  - endpoints:" in result.text
    assert "  # the default of $P, which may be changed\n  port: 8001" in result.text
    ends = {one.item.what: one.end for one in result.ended}
    assert ends["--master-addr"] is ItemEnd.LOST


@pytest.mark.parametrize("interface", ["enp1s0f0np0", "enP7s7"])
def test_guessed_prefix_is_marked(interface: str) -> None:
    result = adopted(".env", f"CLUSTER_NODES=10.0.0.1,10.0.0.2\nETH_IF={interface}\n")
    assert "# guessed: the length of the prefix\n" in result.text


def test_variables_under_a_condition_are_not_in_the_site() -> None:
    text = "if q; then\n  export NCCL_DEBUG=INFO\nfi\nvllm serve openai/gpt-oss-20b\n"
    result = adopted("start.sh", text)
    check(result)
    assert "NCCL_DEBUG" not in result.text.partition("# What this file")[0]
    assert any(one.line.startswith("NCCL_DEBUG INFO: only in a loop or") for one in result.ended)


def test_text_that_is_evaluated_is_no_text() -> None:
    text = 'print() {\n  cat <<EOF\nvllm serve openai/gpt-oss-20b\nEOF\n}\neval "$(print)"\n'
    assert adopted("start.sh", text).draft.get("model", "name") == "gpt-oss-20b"


@pytest.mark.parametrize(
    "text",
    [
        "VLLM_CPU_MOE_PREPACK=1 vllm serve openai/gpt-oss-20b --unheard-of 3\n",
        "export SGLANG_NEW_NAME=1\n"
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b\n",
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b "
        "--speculative-skip-dp-mlp-sync\n",
    ],
)
def test_guessed_release_knows_what_the_command_says(text: str) -> None:
    """What the newest release no longer has is no mistake of whoever runs an older one."""
    result = adopted("run.sh", f"#!/bin/bash\n{text}")
    engine = result.draft.data["engine"]
    assert engine["version"] == versions(engine["name"])[-2]
    assert result.draft.comments["engine", "version"].startswith("guessed: ")


@pytest.mark.parametrize(
    ("line", "is_file"),
    [
        ('echo ">> it starts in 5 s"', False),
        ("printf 'a > b\\n'", False),
        ("echo ready >/dev/null", False),
        ("echo 'it starts' >> start.log", True),
        ("cat settings.env >/srv/settings.env", True),
    ],
)
def test_a_sign_in_quotes_is_no_redirection(line: str, is_file: bool) -> None:
    ended = adopted("start.sh", f"#!/bin/bash\n{line}\nvllm serve openai/gpt-oss-20b\n").ended
    (found,) = (one for one in ended if one.item.what == line.split()[0])
    assert ("writes a file" in found.why) is is_file


@pytest.mark.parametrize("before", ["", 'X=""\n'])
def test_a_value_that_only_a_condition_sets_is_marked(before: str) -> None:
    """A variable that begins as nothing is as little certain as one without a beginning."""
    run = "docker run --gpus all -v $X:/root/.cache/huggingface vllm/vllm-openai:v0.33.0"
    text = f"{before}if [ -d /data ]; then X=/data/hf; fi\n{run} --model openai/gpt-oss-20b\n"
    draft = adopted("start.sh", text).draft
    assert draft.get("model", "cache") == "/data/hf"
    assert "under a condition" in draft.comments["model", "cache"]


@pytest.mark.parametrize(
    "before",
    [
        *("timeout 3600", "nice -n 10", "ionice -c 2", "stdbuf -oL", "flock /run/lock/gpu"),
        *("systemd-run --user --scope", "sudo timeout --foreground 1d", "setsid nohup", "time"),
    ],
)
def test_a_program_that_runs_the_engine_hides_nothing(before: str) -> None:
    draft = adopted("start.sh", f"{before} vllm serve openai/gpt-oss-20b --port 8012\n").draft
    assert (draft.get("model", "name"), draft.get("engine", "port")) == ("gpt-oss-20b", "8012")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("if q; then P=8011; else P=8012; fi", "8011 or 8012"),
        ("P=8011; if q; then P=8012; fi", "8011 or 8012"),
        ("case $1 in a) P=8011 ;; b) P=8012 ;; c) P=8013 ;; esac", "8011 or 8012 or 8013"),
    ],
)
def test_values_of_conditions_are_all_named(before: str, told: str) -> None:
    result = adopted("start.sh", f"{before}\nvllm serve openai/gpt-oss-20b --port $P\n")
    check(result)
    assert result.draft.get("engine", "port") is None
    (lost,) = (one.why for one in result.ended if one.item.what == "--port")
    assert lost.endswith(f": {told}")


@pytest.mark.parametrize("behind", ["-Z3", '<<< "yes"', "> start.log"])
def test_a_word_that_is_no_variable_leaves_where_the_engine_listens(behind: str) -> None:
    result = adopted("start.sh", f"vllm serve openai/gpt-oss-20b {behind}\n")
    check(result)
    assert result.draft.get("engine", "bind") == "all"
    unread = {one.item.value for one in result.ended if one.why.startswith("an argument")}
    assert unread == {text for text in [behind] if text.startswith("-")}


def test_nothing_is_read_behind_a_quote_that_nothing_closes() -> None:
    line = "vllm serve openai/gpt-oss-20b --port"
    result = adopted("start.sh", f'{line} 8011\necho "open\n{line} 8012\n')
    assert result.draft.get("engine", "port") == "8011"
    assert "8012" not in result.text


def test_thousands_of_options_are_read_in_seconds() -> None:
    """Each is looked up among the flags of each release."""
    flags = "".join(f" --own-{number} {number}" for number in range(2000))
    known = read([Input("", "start.sh", f"vllm serve openai/gpt-oss-20b{flags}\n".encode())])
    began = time.process_time()
    assert find(known.nodes[0].containers[0], {})
    assert time.process_time() - began < 10


HANDED_ON = """podman run -d --network host --entrypoint /bin/bash vllm/vllm-openai:v0.25.0 \\
  -lc 'unset NCCL_GRAPH_FILE; exec vllm serve "$@"' \\
  -- /root/.cache/huggingface/hub/models--openai--gpt-oss-20b/snapshots/$(ls /tmp) --port 8001 -O3
"""
RANKS = """services:
  head:
    image: vllm/vllm-openai:v0.25.0
    network_mode: host
    command: vllm serve openai/gpt-oss-20b --tensor-parallel-size 2 --nnodes 2 --node-rank 0
  other:
    image: vllm/vllm-openai:v0.25.0
    network_mode: host
    command: >-
      vllm serve openai/gpt-oss-20b --tensor-parallel-size 2 --nnodes 2 --node-rank 1 --headless
"""
UNIT = """[Service]
ExecStart=/opt/ds4/ds4-server --model /srv/models/flash.gguf --port 8123
"""
POD = """apiVersion: v1
kind: Pod
spec:
  hostNetwork: true
  nodeSelector:
    kubernetes.io/hostname: gx10-two
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.25.0
      args: [--model, openai/gpt-oss-20b]
      volumeMounts:
        - {name: hub, mountPath: /root/.cache/huggingface}
  volumes:
    - {name: hub, hostPath: {path: /srv/hub}}
"""


def test_arguments_that_a_script_hands_on_are_the_engines() -> None:
    """The word before them is the script's name; a snapshot that only runs tell names its model."""
    result = adopted("start.sh", HANDED_ON)
    check(result)
    assert result.draft.get("model", "name") == "gpt-oss-20b"
    assert str(result.draft.get("engine", "port")) == "8001"
    assert result.draft.get("engine", "args") == {"optimization-level": "3"}


def test_further_rank_is_on_a_node_of_its_own() -> None:
    result = adopted("compose.yaml", RANKS)
    check(result)
    assert [node["name"] for node in result.draft.data["nodes"]] == ["spark1", "spark2"]
    assert not any("no part of the site" in one.why for one in result.ended)


def test_path_that_nothing_mounts_is_marked() -> None:
    """What is in an image, or in a volume that is not stated, is on no path of the nodes."""
    start = "docker run --network host vllm/vllm-openai:v0.25.0 --model /srv/model --port 8001"
    assert "# the container's own path, which nothing" in adopted("start.sh", f"{start}\n").text
    mounted = start.replace("--network", "-v /srv:/srv --network")
    assert "the container's own path" not in adopted("start.sh", f"{mounted}\n").text


def test_unknown_program_of_a_unit_is_named() -> None:
    result = adopted("ds4.service", UNIT)
    check(result)
    assert ("engine", "name") in result.draft.todo
    assert result.draft.get("engine", "port") == 8123


def test_pod_is_on_the_node_that_it_is_pinned_to() -> None:
    result = adopted("pod.yaml", POD)
    check(result)
    assert result.draft.get("nodes", 0, "name") == "gx10-two"
    assert result.draft.get("model", "cache") == "/srv/hub"
    lost = [one.item.what for one in result.ended if one.end is ItemEnd.LOST]
    assert lost == []


@pytest.mark.parametrize(
    ("calls", "held"),
    [
        ("f 8001 openai/gpt-oss-120b 4096", (8001, "gpt-oss-120b", 4096)),
        ("P=8001\nf $P openai/gpt-oss-120b", (None, "gpt-oss-120b", 8192)),
        ("f 8001 a/b\nf 8002 openai/gpt-oss-120b", (None, "TODO", None)),
        ("if true; then f 8001 a/b; fi", (None, "TODO", None)),
    ],
)
def test_arguments_of_functions_are_those_of_the_only_call(
    calls: str, held: tuple[Any, ...]
) -> None:
    """A default of the script's own arguments is no default of a function's."""
    run = 'docker run vllm/vllm-openai:v0.33.0 "$2" --port "$1" --max-model-len ${3:-8192}'
    result = adopted("run.sh", f"#!/bin/bash\nf() {{\n  {run}\n}}\n{calls}\n")
    site = yaml.safe_load(result.text)
    model = site["model"]
    found = (site["engine"].get("port"), model["name"], model.get("context_length"))
    assert found == held


def test_ranks_of_data_parallel_attention_are_those_of_the_tensors() -> None:
    serve = "sglang.launch_server --model-path a/b --tp 2 --dp 2 --enable-dp-attention"
    result = adopted("run.sh", f"docker run lmsysorg/sglang:v0.5.5 python3 -m {serve}\n")
    assert len(result.draft.data["nodes"]) == 2
    assert yaml.safe_load(result.text)["engine"]["parallel"] == {"tensor": 2}


def test_a_part_of_a_quotation_does_not_end_it() -> None:
    text = '$KIT/a.env"\ncat > "$KIT/b" <<EOF\nNODE_RANK=$NODE_RANK\nNCCL_IB_HCA=$H\nEOF\n"\n'
    check(adopted("render-env.sh", f"#!/bin/bash\n{text}"))


def test_a_command_that_is_shown_under_a_condition_is_no_second_one() -> None:
    """Its flags end with the values that they have where it is executed."""
    run = "docker run -v /srv/m:/models -e OMP_NUM_THREADS=4 vllm/vllm-openai:v0.33.0 /models/a"
    shown = 'if [ "$DRY" ]; then printf %q "${cmd[@]}"; exit 0; fi'
    result = adopted("run.sh", f'#!/bin/bash\ncmd=( {run} )\n{shown}\n"${{cmd[@]}}"\n')
    assert not {"-v", "-e"} & {one.item.what for one in result.ended}


def test_array_in_a_script_of_compose_is_expanded_by_the_container() -> None:
    script = 'args=(--max-model-len "$${LEN}" --nnodes 2)\n        vllm serve a/b "$${args[@]}"'
    text = (
        "services:\n  a:\n    image: vllm/vllm-openai:v0.33.0\n    environment: {LEN: 8192}\n"
        f"    entrypoint: [bash, -c]\n    command:\n      - |\n        {script}\n"
    )
    result = adopted("compose.yaml", text)
    assert str(result.draft.get("model", "context_length")) == "8192"
    assert len(result.draft.data["nodes"]) == 2


def test_container_that_is_created_is_read_like_one_that_is_run() -> None:
    text = "docker container create --network host vllm/vllm-openai:v0.33.0 openai/gpt-oss-120b\n"
    assert adopted("run.sh", text).draft.get("model", "name") == "gpt-oss-120b"
    with pytest.raises(CaptureError):
        adopted("run.sh", "docker network create vllm/vllm-openai:v0.33.0\n")


def test_what_a_template_inserts_is_one_word() -> None:
    text = (
        "[Service]\nExecStart=/usr/bin/docker run -p {{ bind }}:{{ port }}:8000 {{ vllm_image }}"
        " vllm serve a/b --gpu-memory-utilization {{ share }}\n"
    )
    result = adopted("vllm.service", text)
    site = yaml.safe_load(result.text)
    assert (site["engine"]["image"], site["model"]) == ("TODO", {"source": "a/b"})
    assert "# what is said is known only when it runs: vLLM's own" in result.text
    assert any(one.item.value == "{{ vllm_image }}" for one in result.ended)
