"""What `import` makes of drawn inputs: all of it ends once, and nothing in the site is invented."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from draws import sample
from hypothesis import given, settings
from hypothesis import strategies as st
from test_foreign_inputs import adopted, check

from generator.adoption import Adoption
from generator.adoption.found import Ended, ItemEnd
from generator.capture import CaptureError
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
        "float": st.integers(11, 87)
        .filter(lambda n: n % 10)
        .map(lambda hundredths: f"0.{hundredths}"),
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


def plain(text: str) -> str:
    """A text without what may be written differently: quotes, spaces, case, and the two dashes."""
    return re.sub(r"[\s\"']", "", text).replace("_", "-").lower()


@pytest.mark.drawn
@settings(deadline=None, max_examples=sample(80))
@given(drawn())
def test_drawn_input(case: tuple[str, str, list[tuple[str, str]]]) -> None:
    """All words end once, no value is invented, and what is in the site is what the file says."""
    name, text, own = case
    result = adopted(name, text)
    check(result)
    ended = result.ended
    places = Counter(w for one in ended for w in {*one.item.words} if w.text.strip())
    assert [word for word, times in places.items() if times > 1] == []
    for flag, said in own:
        found = [one for one in ended if one.item.what == flag]
        assert plain(said) in plain(found[-1].item.value if found else "nothing"), (flag, text)
    known = marked(result)
    for path, scalar in scalars(yaml.load(result.text, yaml.BaseLoader)):
        is_said = scalar.lower() in text.lower() or scalar in {*STATED, *STARTS}
        # The name of the variable for a key, whose value is not in a site.
        is_name = path[:2] == ("engine", "secrets")
        assert is_said or is_name or path in known, (path, scalar, text)
    for one in ended:
        if one.end is ItemEnd.SITE:
            assert agrees(result, one), (one, text)


def agrees(result: Adoption, one: Ended) -> bool:
    """Whether the site has at the end's path what the item says; names and shares are derived."""
    there = [plain(scalar) for _, scalar in scalars(result.draft.get(*one.path))]
    derived = {("engine", "name"), ("model", "name"), ("engine", "bind"), ("engine", "launcher")}
    if one.path in derived or one.path[-1] in ("memory_utilization", "context_length", "secrets"):
        return there != []
    said = plain(one.item.value)
    switch = {"true", "false"} if not said else set()
    return any(own in said or said in own or own in switch for own in there)


@pytest.mark.drawn
@settings(deadline=None, max_examples=sample(25))
@given(drawn())
def test_drawn_engine_gets_the_same_arguments(case: tuple[str, str, list[tuple[str, str]]]) -> None:
    """What a bundle of the site starts has each argument of the file that the site holds."""
    name, text, _ = case
    result = adopted(name, text)
    site = result.assumed.site
    if site is None:
        return
    _, member = site.parts_of(site.nodes[0].name)[0]
    command = plain(" ".join(word for words in member.container.command for word in words))
    for one in result.ended:
        if one.end is ItemEnd.SITE and one.path[:2] == ("engine", "args"):
            # Where a flag is on or off, llama.cpp takes more words than these two.
            on, off = ("enabled", "1", "true"), ("disabled", "0", "false")
            words = dict.fromkeys(on, "on") | dict.fromkeys(off, "off")
            said = plain(one.item.value)
            assert said in command or words.get(said, said) in command, (one.item, command)


# What a script has beside its engine, of which nothing is executed; `{}` starts another engine.
DECOYS = [
    "cat <<EOF\ndon't run {}\nEOF\n",
    "cat > notes.txt <<-'END'\n\t{}\nEND\n",
    "unused() {{\n  {}\n}}\n",
    "unused() {{ {}; }}\n",
    "# {}\n",
    "echo '{}'\n",
    "false && {}\n",
    ": <<'EOF'\nif \"; then {}\nEOF\n",
]
# How a command has an argument: certainly, under conditions that nobody knows here, and never.
CERTAIN = ["A+=({})\n", "A+=(\n  {} # why\n)\n", "true && A+=({})\n", "cd /srv && A+=({})\n"]
DOUBTFUL = [
    "[[ $Q = 1 ]] && A+=({})\n",
    '[ -n "$Q" ] || A+=({})\n',
    "if [ -f /q ]; then\n  A+=({})\nfi\n",
    "if q; then :; else A+=({}); fi\n",
    "case $1 in\n  q) A+=({}) ;;\nesac\n",
    "while q; do A+=({}); done\n",
    "if q; then if r; then :; fi; A+=({}); fi\n",
    "false && A+=({})\n",
]
# What a command is in, and whether the file has to say so.
WRAPS = [
    ("{}\n", False),
    ("exec {}\n", False),
    ("Z=1 {}\n", False),
    ("start() {{\n  {}\n}}\nstart\n", False),
    ("cd /srv && {}\n", False),
    ("if q; then\n  {}\nfi\n", True),
    ("if q; then :; else {}; fi\n", True),
    ("[[ $Q ]] && {}\n", True),
    ("case $1 in\n  up) {} ;;\nesac\n", True),
    ("for p in 8000 8001; do\n  {}\ndone\n", True),
]


@st.composite
def scripts(draw: st.DrawFn) -> tuple[str, dict[str, bool], str, bool]:
    """A script, its arguments and whether each is certain, its engine, and if that has a remark."""
    engine = draw(st.sampled_from(list(STARTS)))
    image, start = STARTS[engine]
    decoy = f"{start.replace('gpt-oss-20b', 'decoy')} --decoy 4711"
    text, certain = "#!/bin/bash\nA=()\n", {}
    # What the command has already is in the site, whatever else is said.
    for flag, said in [own for own in draw(arguments(engine)) if own[0] not in start.split()]:
        certain[flag] = draw(st.booleans())
        form = draw(st.sampled_from(CERTAIN if certain[flag] else DOUBTFUL))
        text += form.format(f"{flag} {shlex.quote(said)}" if said else flag)
        text += draw(st.sampled_from(["", *DECOYS])).format(decoy)
    before = draw(st.sampled_from(["", f"docker run --gpus all {image} "]))
    wrap, is_remarked = draw(st.sampled_from(WRAPS))
    text += wrap.format(f'{before}{start} "${{A[@]}}"')
    return text + draw(st.sampled_from(["", *DECOYS])).format(decoy), certain, engine, is_remarked


@pytest.mark.drawn
@settings(deadline=None, max_examples=sample(60))
@given(scripts())
def test_drawn_script(case: tuple[str, dict[str, bool], str, bool]) -> None:
    """Nothing that isn't executed is in the site, nor what is only under a condition, unmarked."""
    text, certain, engine, is_remarked = case
    result = adopted("start.sh", text)
    check(result)
    places = Counter(w for one in result.ended for w in {*one.item.words} if w.text.strip())
    assert [word for word, times in places.items() if times > 1] == [], text
    data = yaml.load(result.text, yaml.BaseLoader)
    values = [scalar for _, scalar in scalars(data)]
    assert not any("decoy" in scalar or "4711" in scalar for scalar in values), text
    assert data["engine"]["name"] == engine
    assert (("engine",) in result.draft.comments) == is_remarked, text
    for flag, is_certain in certain.items():
        ends = {one.end for one in result.ended if one.item.what == flag}
        assert ends != set(), (flag, text)
        assert is_certain or ItemEnd.SITE not in ends, (flag, text)


# How a script may come to a command, and what that means for it: it is certain, the default, or
# never executed.
WAYS = {
    "{}": "certain",
    "( exit 1 )\n{}": "certain",
    "(\n{}\n)": "certain",
    "exit 0\n{}": "never",
    "sleep 1 && exit\n{}": "certain",
    "q || exit\n{}": "certain",
    "q && {{ echo q; exit; }}\n{}": "certain",
    "cd /srv && {{ sleep 1; exit; }}\n{}": "certain",
    "exec sleep 5\n{}": "never",
    "first() {{\n{}\n}}\nfirst": "certain",
    "first() {{\n{}\n}}": "never",
    "function first {{\n{}\n}}\nfirst now": "certain",
    'A=yes\nif [ "$A" = yes ]; then\n{}\nfi': "certain",
    "A=no\nif [[ $A == yes ]]; then\n{}\nfi": "never",
    "A=no\nif [ $A = yes ]; then\nexit 1\nelse\n{}\nfi": "certain",
    'A=3\nif [ "$A" -lt 2 ]; then\ntrue\nelif (( $A > 2 )); then\n{}\nfi': "certain",
    'A=3\nif [ "$A" -lt 4 ]; then\ntrue\nelif (( $A > 2 )); then\n{}\nfi': "never",
    'A=\n[ -n "$A" ] || {{\n{}\n}}': "certain",
    'A=\n[ -z "$A" ] || {{\n{}\n}}': "never",
    'A=no\n[ "$A" = no ] && {{\n{}\n}}': "certain",
    'A=${{A:-yes}}\nif [ "$A" = yes ]; then\n{}\nfi': "default",
    "A=yes\nwhile [ $# -gt 0 ]; do\ncase $1 in\n--no-a) A=no; shift ;;\nesac\ndone\n"
    'if [ "$A" = yes ]; then\n{}\nfi': "default",
    'if [ -z "${{A:-}}" ]; then exit 1; fi\n{}': "certain",
}
# The innermost way, whose command is a text in it.
CARRIED = {
    "{}": "certain",
    "ssh spark2 '{}'": "certain",
    "ssh spark2 bash -s <<'EOF'\n{}\nEOF": "certain",
    "bash -c '{}'": "certain",
    "TEXT=$(cat <<'EOF'\n{}\nEOF\n)": "never",
    "cat <<'EOF'\n{}\nEOF": "never",
    "cat > /tmp/own.sh <<'EOF'\n{}\nEOF": "never",
    "cat > /tmp/own.sh <<'EOF'\n{}\nEOF\nbash /tmp/own.sh": "certain",
    "false && ssh spark2 bash -s <<'EOF'\n{}\nEOF": "never",
}


@pytest.mark.drawn
@settings(deadline=None, max_examples=sample(60))
@given(
    st.sampled_from(list(WAYS)),
    st.sampled_from(list(WAYS)),
    st.sampled_from(list(CARRIED)),
    st.integers(1111, 9999),
)
def test_drawn_way_to_a_command(outer: str, inner: str, carried: str, length: int) -> None:
    """A value is in the site if the script comes to it, and marked if that is only a default."""
    image, start = STARTS["vllm"]
    command = f"docker run --gpus all {image} {start} --max-model-len {length}"
    within = inner.replace("A", "B").replace("first", "second").replace("no-a", "no-b")
    text = f"#!/bin/bash\n{outer.format(within.format(carried.format(command)))}\n"
    ways = {WAYS[outer], WAYS[inner], CARRIED[carried]}
    try:
        result = adopted("run.sh", text)
    except CaptureError:
        assert "never" in ways, text
        return
    check(result)
    there = result.draft.get("model", "context_length")
    assert there == (None if "never" in ways else str(length)), text
    if there:
        comment = result.draft.comments.get(("model", "context_length"), "")
        assert ("which may be changed" in comment) is ("default" in ways), text
