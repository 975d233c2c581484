"""Gives damaged files to every command that reads any: `python tests/fuzz.py [COUNT] [SEED]`.

Each input is a command in a folder of files, of which one is damaged: a site, its base, its lock, a
policy, a catalog, measurements, files beside a site, an archive of a node, other programs' files,
logs, answers of engines, or a text that an editor has open. A fault is a traceback, SG901, more
than ten seconds of CPU, or more memory than 512 MiB, of which the process has no more. Set
PYTHONPATH to `.:tests`.
"""

import io
import json
import random
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path

from click.testing import CliRunner
from lsprotocol import types
from pygls.workspace import PositionCodec

from generator.cli import main
from generator.editors.answers import Answers
from generator.pipeline import read_site
from generator.records import record
from generator.resources import ROOT

SECONDS = 10
MEMORY = 512 * 2**20
TESTS = ROOT / "tests"
SITES = [
    *(ROOT / "sites").glob("*.yaml"),
    *(TESTS / "right").glob("*.yaml"),
    *(TESTS / "golden").glob("*/site.yaml"),
    *(TESTS / "errors").glob("*.yaml"),
]
OF_OTHERS = [path for path in (TESTS / "adopted").iterdir() if path.is_file()]
OUTPUT = [*(TESTS / "transcripts").glob("*.*"), *(TESTS / "documents").glob("*.txt")]
PAIR = (ROOT / "sites/pair-chatbot.yaml").read_text("utf-8")
LOG = """INFO Loading weights took 41.20 seconds
INFO Model loading took 33.9 GiB and 52.1 seconds
INFO Available KV cache memory: 51.2 GiB
INFO GPU KV cache size: 1,048,576 tokens
INFO Maximum concurrency for 16,384 tokens per request: 64.00x
"""
ANSWER = (
    '{"stage": "start", "site": "pair-chatbot", "group": "", "node": "spark1", "image": "a/b:1", '
    '"digest": "sha256:1", "settings": "0"}\n{"stage": "arguments", "status": "accepted"}\n'
    '{"stage": "plan", "status": "accepted", "found": {"parameter_bytes": 36400000000}}\n'
    '{"stage": "end", "status": "accepted"}\n'
)
POLICY = """version: 1
rules:
  SG609: {level: error, reason: what runs is what was reviewed}
  SG704: {level: off, reason: the proxy asks for a key}
survives: [cable, node]
"""
LOCK = """version: 1
images:
  - {image: vllm/vllm-openai:v0.33.0, digest: sha256:DIGEST}
models:
  - {source: nvidia/Llama-3.1-70B-Instruct-FP8, revision: main, commit: COMMIT}
""".replace("DIGEST", "a1" * 32).replace("COMMIT", "b2" * 20)
CALIBRATION = """- {model: gpt-oss-120b, engine: vllm, version: 0.33.0, reserve_gib: 6.2}
- {model: llama-3.1-70b-instruct-fp8, engine: vllm, version: 0.32.0, reserve_gib: 9}
"""
CONFIG = """{"architectures": ["GptOssForCausalLM"], "num_hidden_layers": 36, "hidden_size": 2880,
"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
"num_local_experts": 128, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}
"""
# The site's own command lines: `{}` is the file, `.` the folder in which it is.
OF_NODES = (
    *("import spark1.tar.gz", "audit spark1.tar.gz", "lock site.yaml spark1.tar.gz"),
    *("check site.yaml --live spark1.tar.gz", "check-engine site.yaml spark1.tar.gz"),
)
OF_THEIRS = ("import {}", "audit {}", "init --yes --from {}", "audit --format json {}")
OF_A_SITE = (
    *("validate {}", "build {} --out out", "show {}", "fit {} --compare", "fix {}", "diff {}"),
    *("check {}", "failures {}", "diagram {}", "models --fits {}", "validate --format sarif {}"),
)


@record
class Input:
    """A command with its files, the first of which is damaged."""

    words: Sequence[str]
    files: Sequence[tuple[str, bytes]]


def inputs(dice: random.Random) -> Iterator[Input]:
    """Commands with files that are damaged, for ever."""
    while True:
        yield dice.choice(_KINDS)(dice)


def _of_a_site(dice: random.Random) -> Input:
    raw = damaged(dice.choice(SITES).read_bytes().partition(b"#=>")[0], dice)
    command = dice.choice(OF_A_SITE)
    return Input(command.format("site.yaml").split(), [("site.yaml", raw)])


def _beside_a_site(dice: random.Random) -> Input:
    name, text, more = dice.choice(
        [
            ("site.lock.yaml", LOCK, ""),
            ("policy.yaml", POLICY, ""),
            ("base.yaml", PAIR, "extends: base.yaml\n"),
            ("calibration.yaml", CALIBRATION, "fit: {calibration: calibration.yaml}\n"),
            ("catalogs/vllm-0.33.0.tsv", _catalog(), ""),
        ]
    )
    site = f"{more}version: 1\nname: pair\n" if name == "base.yaml" else PAIR + more
    command = dice.choice(OF_A_SITE).format("site.yaml").split()
    files = [(name, damaged(text.encode(), dice)), ("site.yaml", site.encode())]
    return Input(command, files)


@cache
def _engine() -> str:
    """What an engine says of its own settings."""
    from test_added_catalogs import description, known

    said = json.loads(description(known()))
    return json.dumps(said | {"flags": said["flags"][:12], "variables": {"VLLM_USE_V1": "int"}})


@cache
def _catalog() -> str:
    """What `catalog add` keeps of an engine."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("engine.json").write_text(_engine(), "utf-8")
        CliRunner().invoke(main, ["catalog", "add", "engine.json"])
        (kept,) = Path(folder).rglob("*.tsv")
        return kept.read_text("utf-8")


def _of_an_editor(dice: random.Random) -> Input:
    raw = damaged(dice.choice(SITES).read_bytes().partition(b"#=>")[0], dice)
    return Input(["lsp"], [("site.yaml", raw)])


def _of_others(dice: random.Random) -> Input:
    file = dice.choice(OF_OTHERS + OUTPUT)
    command = dice.choice(
        ["import {}", "audit {}", "init --yes --from {}", "audit --format json {}"]
    )
    raw = damaged(file.read_bytes(), dice)
    return Input(command.format(file.name).split(), [(file.name, raw)])


def _of_a_node(dice: random.Random) -> Input:
    members = dict(_members())
    path = dice.choice(sorted(members))
    members[path] = damaged(members[path], dice)
    raw = _archived(members)
    # The archive itself is seldom what is damaged.
    raw = damaged(raw, dice) if dice.random() < 0.1 else raw
    command = dice.choice(OF_NODES)
    return Input(command.split(), [("spark1.tar.gz", raw), ("site.yaml", PAIR.encode())])


def _of_text(dice: random.Random) -> Input:
    command, name, text = dice.choice(
        [
            ("fit site.yaml --measured log", "log", LOG),
            ("check-engine site.yaml answer.json", "answer.json", ANSWER),
            ("catalog add engine.json", "engine.json", _engine()),
            ("describe-model config.json", "config.json", CONFIG),
        ]
    )
    raw = damaged(text.encode(), dice)
    return Input(command.split(), [(name, raw), ("site.yaml", PAIR.encode())])


_KINDS = (_of_a_site, _of_a_site, _beside_a_site, _of_an_editor, _of_others, _of_a_node, _of_text)


@cache
def _members() -> dict[str, bytes]:
    """The files in the archive of a node."""
    from test_capture import NODE

    with tempfile.TemporaryDirectory() as folder, tarfile.open(NODE.capture(Path(folder))) as tar:
        found = ((member, tar.extractfile(member)) for member in tar if member.isfile())
        return {member.name: stream.read() for member, stream in found if stream}


def _archived(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as tar:
        for name, raw in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            tar.addfile(entry, io.BytesIO(raw))
    return stream.getvalue()


SIGNS = (
    *(
        "[",
        "]",
        "{",
        "}",
        ":",
        ": ",
        ",",
        "-",
        "- ",
        "#",
        "'",
        '"',
        "&a ",
        "*a",
        "!",
        "|",
        ">",
        "%",
    ),
    *(
        "@",
        "`",
        "\t",
        "\n",
        "\n\n",
        "\0",
        "\r",
        "\ufeff",
        "\u2028",
        "é",
        "\\",
        "<<: ",
        "?",
        "$",
        "=",
    ),
    *("9" * 400, "-1", "1e999", ".nan", "0x10", "null", "true", "~", "0" * 30, "a" * 5000),
    *("!!python/object:os.system ", "!!binary ", "---\n", "...\n", "10.0.0.1/33", "../" * 20, "%s"),
)


def damaged(raw: bytes, dice: random.Random) -> bytes:
    """A file with one to four faults: of signs, words, lines, indentation or bytes."""
    text = raw.decode("utf-8", "surrogateescape")
    for _ in range(dice.randint(1, 4)):
        text = _damaged(text, dice)
    raw = text.encode("utf-8", "surrogateescape")
    if dice.random() < 0.05 and raw:
        at = dice.randrange(len(raw))
        raw = raw[:at] + dice.randbytes(dice.randint(1, 6)) + raw[at + dice.randint(0, 3) :]
    return raw


def _damaged(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    at, line = dice.randrange(len(text) + 1), dice.randrange(len(lines))
    other = dice.randrange(len(lines))
    match dice.randrange(10):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[at + dice.randint(1, 8) :]
        case 2 | 3:
            return text[:at] + dice.choice(SIGNS) + text[at:]
        case 4:
            lines.insert(line, lines[other])
        case 5:
            del lines[line]
        case 6:
            lines[line] = " " * dice.randint(0, 10) + lines[line].lstrip()
        case 7:
            lines[line], lines[other] = lines[other], lines[line]
        case 8:
            key, _, _ = lines[line].partition(":")
            lines[line] = f"{key}: {dice.choice(SIGNS)}"
        case _:
            words = text.split() or [""]
            return text.replace(dice.choice(words), dice.choice([*SIGNS, *words[:50]]), 1)
    return "\n".join(lines)


def run(one: Input, dice: random.Random) -> str:
    """What went wrong with an input, or nothing."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        if one.words == ["lsp"]:
            _edit(one.files[0][1].decode("utf-8", "replace"), dice)
            return ""
        outcome = CliRunner().invoke(main, one.words, prog_name="sparkgen")
    except Exception:
        return traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    error = outcome.exception
    if error and not isinstance(error, SystemExit):
        return "".join(traceback.format_exception(error, limit=-3))
    _, sign, rest = outcome.stderr.partition("SG901")
    return f"{sign}{rest[:300]}"


def _edit(text: str, dice: random.Random) -> None:
    """What an editor asks about a text, at places of it."""
    answers = Answers("file:///site.yaml", read_site("site.yaml", text.encode()), PositionCodec())
    answers.diagnostics()
    lines = text.split("\n")
    for _ in range(4):
        line = dice.randrange(len(lines))
        position = types.Position(line, dice.randint(0, len(lines[line])))
        answers.hover(position)
        answers.completion(position)
    answers.actions(range(len(lines)))


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def faults(count: int, seed: int) -> Iterator[tuple[Input, str]]:
    """What went wrong with this many inputs."""
    dice = random.Random(seed)
    drawn = inputs(dice)
    _members()
    signal.signal(signal.SIGPROF, _too_slow)
    for _ in range(count):
        one = next(drawn)
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            for name, raw in one.files:
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(raw)
            if fault := run(one, dice):
                yield one, fault


def _main() -> None:
    count, seed = [*map(int, sys.argv[1:]), *(1000, random.randrange(10**6))[len(sys.argv) - 1 :]]
    print(f"seed {seed}")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    kept, began, seen = Path(tempfile.mkdtemp()), time.time(), Counter[str]()
    for one, fault in faults(count, seed):
        last = fault.strip().split("\n")[-3:]
        seen[str(last)] += 1
        if seen[str(last)] == 1:
            print(" ".join(one.words), fault, sep="\n", flush=True)
            folder = kept / str(len(seen))
            folder.mkdir()
            for name, raw in one.files:
                (folder / name.replace("/", "-")).write_bytes(raw)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} inputs in {time.time() - began:.0f} s, {sum(seen.values())} faults")
    print(f"at most {most:.0f} MiB; kept in {kept}" if seen else f"at most {most:.0f} MiB")
    if not seen:
        shutil.rmtree(kept)


if __name__ == "__main__":
    _main()
