"""What `import` makes of drawn inputs: all of it ends once, and nothing in the site is invented."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from test_foreign_inputs import adopted, check

from generator.adoption import Adoption
from generator.adoption.found import End
from generator.catalogs.flag_files import catalog, versions
from generator.catalogs.flags import Flag

# An image of each engine, and how its server is started with a model.
STARTS = {
    "vllm": ("vllm/vllm-openai:v0.33.0", "vllm serve openai/gpt-oss-20b"),
    "sglang": (
        "lmsysorg/sglang:v0.5.23",
        "python3 -m sglang.launch_server --model-path openai/gpt-oss-20b",
    ),
    "llama.cpp": ("ghcr.io/ggml-org/llama.cpp:server-cuda", "llama-server -m /models/x.gguf"),
    "tensorrt-llm": (
        "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc29",
        "trtllm-serve serve openai/gpt-oss-20b",
    ),
}
# Written with one value for many nodes, each of which has its own.
MANY_NODES = re.compile(
    r"nnodes|parallel|[tpde]p-size|node-rank|rpc|.*addr.*|master.*|api-server.*"
)
# What a site says without being told: its form, names for nodes, and marked guesses and defaults.
STATED = {"1", "mine", "spark1", "single", "TODO", "true", "false"}
MARKED = re.compile(r"# (guessed|nobody says|not stated anywhere|TODO): ?")


def value(flag: Flag) -> st.SearchStrategy[str]:
    """A value of a flag's type, as no default has."""
    if flag.choices:
        return st.sampled_from(flag.choices)
    of_type = {
        "int": st.integers(11, 97).map(str),
        "float": st.integers(11, 87).map(lambda hundredths: f"0.{hundredths}"),
        "switch": st.just(""),
        "json": st.integers(11, 97).map(lambda number: f'{{"drawn": {number}}}'),
    }
    return of_type.get(flag.type, st.integers(11, 97).map(lambda number: f"drawn{number}"))


@st.composite
def arguments(draw: st.DrawFn, engine: str) -> list[tuple[str, str]]:
    """Flags of an engine, each once, and values."""
    known = catalog(engine, versions(engine)[-1])
    assert known
    flags = [f for f in known.flags() if not MANY_NODES.search(f.name) and f.name != "help"]
    own = draw(st.lists(st.sampled_from(flags), max_size=5, unique_by=lambda flag: flag.name))
    return [(flag.names[0], draw(value(flag))) for flag in own if not flag.many.isdecimal()]


@st.composite
def line(draw: st.DrawFn, start: str, own: list[tuple[str, str]]) -> tuple[str, str]:
    """Assignments of variables, and a command with the arguments in drawn forms."""
    before, words = "", start
    for number, (flag, word) in enumerate(own):
        form = draw(st.sampled_from(["equals", "space", "variable", "quoted", "default"]))
        text = shlex.quote(word)
        if not word:
            text = ""
        elif form == "variable" and "{" not in word:
            before += f"OWN{number}={text}\n"
            text = f'"$OWN{number}"'
        elif form == "default" and "{" not in word:
            text = f"${{OWN{number}:-{word}}}"
        elif form == "quoted" and "{" not in word:
            text = f'"{word}"'
        between = "=" if form == "equals" and text and flag.startswith("--") else " "
        words += draw(st.sampled_from([" ", " \\\n  "])) + f"{flag}{between if text else ''}{text}"
    return before, words


def written(kind: str, image: str, before: str, command: str) -> tuple[str, str]:
    """The name and text of a file that starts a command."""
    if kind == "docker":
        return "run.sh", f"{before}docker run --gpus all {image} {command}\n"
    if kind == "exec":
        start = f"docker run -d --name own --gpus all {image} sleep infinity\n"
        return "run.sh", f"{before}{start}docker exec -it own {command}\n"
    if kind == "bare":
        return "run.sh", f"{before}{command}\n"
    # These forms have no shell's variables.
    joined = re.sub(r"\$\{OWN\d+:-(.*?)\}", r"\1", command.replace("\\\n", ""))
    for found in re.finditer(r"(?m)^(OWN\d+)=(.*)$", before):
        joined = joined.replace(f'"${found[1]}"', found[2])
    if kind == "compose":
        service = {"image": image, "command": shlex.split(joined)}
        return "compose.yaml", yaml.safe_dump({"services": {"own": service}}, width=999)
    if kind == "unit":
        return (
            "own.service",
            f"[Service]\nExecStart=/usr/bin/docker run --gpus all {image} {joined}\n",
        )
    return "own.container", f"[Container]\nImage={image}\nExec={joined}\n"


KINDS = ["docker", "exec", "bare", "compose", "unit", "quadlet"]


@st.composite
def drawn(draw: st.DrawFn) -> tuple[str, str, list[tuple[str, str]]]:
    """A file's name, its text, and the flags in it with their values."""
    engine = draw(st.sampled_from(list(STARTS)))
    image, start = STARTS[engine]
    own = draw(arguments(engine))
    before, command = draw(line(start, own))
    name, text = written(draw(st.sampled_from(KINDS)), image, before, command)
    return name, text, own


def scalars(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The scalars of a document, with their paths."""
    if isinstance(value, dict):
        for key, own in value.items():
            yield from scalars(own, (*path, key))
    elif isinstance(value, list):
        for number, own in enumerate(value):
            yield from scalars(own, (*path, number))
    else:
        yield path, str(value)


def marked(result: Adoption) -> set[tuple[str | int, ...]]:
    """The paths of values that the file marks as guesses, or as defaults that nobody says."""
    return {path for path, text in result.draft.comments.items() if MARKED.match(f"# {text}")}


@settings(deadline=None, max_examples=200)
@given(drawn())
def test_drawn_input(case: tuple[str, str, list[tuple[str, str]]]) -> None:
    name, text, own = case
    result = adopted(name, text)
    check(result)
    ended = result.ended
    places = Counter(w for one in ended for w in {*one.item.words} if w.text.strip())
    assert [word for word, times in places.items() if times > 1] == []
    lines = [one.line.replace("_", "-") for one in ended]
    for flag, own_value in own:
        named = flag.lstrip("-").replace("_", "-")
        assert any(named in line or (own_value and own_value in line) for line in lines), flag
    data = yaml.load(result.text, yaml.BaseLoader)
    known = marked(result)
    for path, scalar in scalars(data):
        is_said = scalar in text or scalar.lower() in text.lower()
        is_known = scalar in {*STATED, *STARTS} or path in known
        assert is_said or is_known, (path, scalar, text)
    for one in result.ended:
        if one.end is End.SITE:
            there = [s for _, s in scalars(result.draft.get(*one.path))]
            assert there, one
