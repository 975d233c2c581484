"""`sparkgen fix` applies what findings propose, and nothing else: layout, properties, the command.

Its effect on every error case is tested in `test_errors.py`.
"""

import os
import re
import stat
import subprocess
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from draws import sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import require
from site_files import changed_site_files, damaged_texts, site_files, written
from typos.text import Site as Written

from generator.diagnostics import Add, weight
from generator.fixing.keeping import kept
from generator.fixing.layout import UnsettledError
from generator.fixing.repair import Repair, repair, spliced
from generator.fixing.splicing import Splicer
from generator.pipeline import read_site
from generator.reports.text import difference
from generator.resources import ROOT
from generator.sitefile import source


def shown(done: Repair) -> str:
    return difference(done.before.document, done.after.document)


TODAY = ROOT / "tests/typos/today"


# --- layout stays -------------------------------------------------------------------------------

SITE = """\
# The lab
version: 1
name: lab   # its name
nodes:
  - {name: spark1, management: {address: 10.0.0.11/24}}  # ü日本語😀
  - {name: spark2, management: {address: 10.0.0.12/24}}
cabling:
  - endpoints: [spark1:p0, spark2:p0]
topology: {kind: direct}
model: {name: gpt-oss-120b}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  parallel: {pipeline: 2}
"""


def changed(old: str, new: str) -> bytes:
    assert SITE.count(old) == 1
    return SITE.replace(old, new).encode()


@pytest.mark.parametrize(
    ("old", "wrong", "right"),
    [
        ("kind: direct", "kind: 'dircet'", "kind: 'direct'"),
        ("kind: direct", 'kind: "dircet"', 'kind: "direct"'),
        ("kind: direct", "kind:  dircet ", "kind:  direct "),
        ("{kind: direct}", "{'knd': direct}", "{'kind': direct}"),
        ("{kind: direct}", "{? knd : direct}", "{? kind : direct}"),
        ("{kind: direct}", "{kind: direct, mtuu: 9000}", "{kind: direct, mtu: 9000}"),
        ("# ü日本語😀", "# ü日本語😀", "# ü日本語😀"),
        ("[spark1:p0, spark2:p0]", "[spark1:p0, spark2-p0]", "[spark1:p0, spark2:p0]"),
        (
            "[spark1:p0, spark2:p0]",
            "\n    - spark1:p0\n    - spark2:P0",
            "\n    - spark1:p0\n    - spark2:p0",
        ),
        ("name: gpt-oss-120b", "name: gpt-os-120b", "name: gpt-oss-120b"),
        ("name: gpt-oss-120b", "name: &model gpt-os-120b", "name: gpt-oss-120b"),
    ],
)
def test_only_the_mistake_is_changed(old: str, wrong: str, right: str) -> None:
    raw = changed(old, wrong)
    for ends in ("\n", "\r\n", "\r"):
        for mark in (b"", b"\xef\xbb\xbf"):
            done = repair("site.yaml", mark + raw.replace(b"\n", ends.encode()))
            assert not done.after.findings
            assert done.raw == mark + changed(old, right).replace(b"\n", ends.encode())


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (
            "  env: {NCCL_DEBUG: INFO,\n        NCCL_DEBG_FILE: x}\n",
            "  env: {NCCL_DEBUG: INFO,\n        NCCL_DEBUG_FILE: x}\n",
        ),
        (
            "  args: {tool-call-parser: openai}\n",
            "  args: {tool-call-parser: openai, enable-auto-tool-choice: true}\n",
        ),
        (
            "  args:\n    tool-call-parser: openai # the parser\n    # and more\n    seed: 1\n",
            "  args:\n    tool-call-parser: openai # the parser\n"
            "    enable-auto-tool-choice: true\n    # and more\n    seed: 1\n",
        ),
        (
            "  args:\n    tool-call-parser: openai",
            "  args:\n    tool-call-parser: openai\n    enable-auto-tool-choice: true",
        ),
        ("  args: {max-num-seqs: 8}\n", ""),
    ],
)
def test_keys_are_added_and_moved_as_whole_lines(wrong: str, right: str) -> None:
    done = repair("site.yaml", SITE.encode() + wrong.encode())
    assert not done.after.findings
    moved = "  max_sequences: 8\n" if "max-num-seqs" in wrong else ""
    expected = (
        SITE.replace("model: {name: gpt-oss-120b}", "model: {name: gpt-oss-120b, max_sequences: 8}")
        if moved
        else SITE
    )
    assert done.raw.decode() == expected + right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("  env:\n    NCCL_TIMEOUT: 9\n", ""),
        (
            "  env:\n    NCCL_TIMEOUT: 9   # gone\n    NCCL_DEBUG: INFO # stays\n",
            "  env:\n    NCCL_DEBUG: INFO # stays\n",
        ),
        (
            "  env:\n    # above\n    NCCL_TIMEOUT: 9\n    # below\n    NCCL_DEBUG: INFO\n",
            "  env:\n    # above\n    # below\n    NCCL_DEBUG: INFO\n",
        ),
        ("  env: {NCCL_TIMEOUT: 9, NCCL_DEBUG: INFO}\n", "  env: {NCCL_DEBUG: INFO}\n"),
        (
            "  env: {NCCL_DEBUG: INFO, NCCL_TIMEOUT: 9 } # both\n",
            "  env: {NCCL_DEBUG: INFO } # both\n",
        ),
        ("  secrets:\n  - HF_TOKEN\n  - HF_TOKEN # twice\n", "  secrets:\n  - HF_TOKEN\n"),
        ("  secrets: [HF_TOKEN, HF_TOKEN]", "  secrets: [HF_TOKEN]"),
        ("  secrets:\n  - HF_TOKEN\n  - HF_TOKEN", "  secrets:\n  - HF_TOKEN\n"),
    ],
)
def test_keys_are_removed_as_whole_lines_once_a_person_has_decided(wrong: str, right: str) -> None:
    text = SITE + wrong
    assert chosen(text) == SITE + right
    done = repair("site.yaml", text.encode())
    assert not done.fixed
    assert done.requested


# What was written is never removed or overwritten by itself.

NOT_LOST = {
    "cable with its subnets": (
        "cabling:\n",
        "cabling:\n  - endpoints: [spark1:p0, spark2:p0]\n    subnets: [10.1.0.0/24, 10.1.1.0/24]"
        "\n",
    ),
    "flags among variables": (
        "  parallel",
        "  env:\n    max-num-batched-tokens: 16384\n  parallel",
    ),
    "secrets among variables": ("  parallel", "  env:\n    secrets: [HF_TOKEN]\n  parallel"),
    "secrets as a switch": ("  parallel", "  secrets: true\n  parallel"),
    "flags under another name": (
        "  parallel",
        "  command:\n    max-num-batched-tokens: 16384\n    seed: 3\n  parallel",
    ),
    "routes outside the topology": ("topology: {", "routes: true\ntopology: {"),
    "an order of one engine": ("topology: {", "services: {guard: {order: [chat]}}\ntopology: {"),
    "rank in place of host": ("{name: spark2,", "{name: spark2, rank: 22,"),
    "another size": ("{pipeline: 2}", "{tensor: 3}"),
}


MOVED = ("routes outside the topology", "flags under another name", "flags among variables")


@pytest.mark.parametrize("case", NOT_LOST)
def test_nothing_that_was_written_is_lost(case: str) -> None:
    old, wrong = NOT_LOST[case]
    raw = changed(old, wrong)
    done = repair("site.yaml", raw)
    assert done.before.findings
    was, now = (Counter(WORDS.findall(text.decode())) for text in (raw, done.raw))
    # A flag that is moved to an engine without flags brings their key along, and may leave an empty
    # one behind.
    assert set(was - now) <= ({"env"} if case == "flags among variables" else set())
    assert set(now - was) <= {"args"}
    if case not in MOVED:
        assert not done.fixed


WORDS = re.compile(r"[\w.]+")


def test_lines_of_assignments_become_variables() -> None:
    wrong = "  env:\n    NCCL_DEBUG=INFO\n    NCCL_DEBUG_FILE=/tmp/nccl\n  parallel"
    done = repair("site.yaml", changed("  parallel", wrong))
    assert not done.after.findings
    assert b"  env:\n    NCCL_DEBUG: INFO\n    NCCL_DEBUG_FILE: /tmp/nccl\n" in done.raw


def test_comment_between_braces_goes_behind_them() -> None:
    wrong = "{name: spark2 # the second, management: {address: 10.0.0.12/24}}"
    right = "{name: spark2, management: {address: 10.0.0.12/24}}"
    done = repair("site.yaml", changed(right, wrong))
    assert done.raw == changed(right, f"{right}  # the second")


def test_comment_behind_a_moved_key_goes_with_it() -> None:
    done = repair("site.yaml", changed("  parallel", "  max_sequences: 8  # agreed\n  parallel"))
    assert not done.fixed, "the comment has no place in the braces of 'model'"
    block = SITE.replace("model: {name: gpt-oss-120b}", "model:\n  name: gpt-oss-120b")
    text = block.replace("  parallel", "  context_length: auto  # agreed\n  parallel")
    right = block.replace("gpt-oss-120b\n", "gpt-oss-120b\n  context_length: auto  # agreed\n")
    assert repair("site.yaml", text.encode()).raw.decode() == right


@pytest.mark.parametrize(
    ("before", "after", "is_kept"),
    [
        ("a: 1\nb: two\n", "b: two\na: 1\n", True),
        ("a: 1\n", "a: 1\nb: 2\n", True),
        ("nmae: spark1\n", "name: spark1\n", True),
        ("a: yes\nb: 90%\n", "a: true\nb: 0.9\n", True),
        ("a: spark1:p0, spark2:p0\n", "a: [spark1:p0, spark2:p0]\n", True),
        ("a: kind:ring\n", "a: {kind: ring}\n", True),
        ("a: 1  # why\n", "b:\n  # why\n  a: 1\n", True),
        ("a: 1\nb: 1\n", "a: 1\n", False),
        ("a: [x, x]\n", "a: [x]\n", False),
        ("a: 22\n", "a: 2\n", False),
        ("a: 1  # why\n", "a: 1\n", False),
        ("a: true\n", "", False),
        ("a: {b: 3}\n", "a: true\n", False),
        ("a: [1\nb: 2\n", "a: [1]\nb: 2\n", True),
        ("a: [1\nb: 2\n", "a: [1]\n", False),
    ],
)
def test_what_is_kept(before: str, after: str, is_kept: bool) -> None:
    assert kept(*(source.read("", text.encode()) for text in (before, after))) is is_kept


PARTS = (
    *("ollama/{}", "ghcr.io/x/{}", "{}-hf", "{}:q4", "{}@main", "{}/v1", "/{}", "~/{}", "${}"),
    *("{}.local", "{} old", "{}%", "nvidia@{}", "{}-instruct"),
)


@pytest.mark.parametrize("path", sorted(TODAY.glob("*.yaml")), ids=lambda path: path.stem)
def test_part_of_a_text_is_missed(path: Path) -> None:
    """An owner, a registry, a tag, a domain, or a sign that makes a path or a variable."""
    site = Written(path.read_text())
    after = source.read("", site.text.encode())
    names = [value for value in site.values if value.plain and value.text.isidentifier()]
    names = [value for value in names if value.text not in ("true", "false")]
    texts = [site.replaced(name, part.format(name.text)) for name in names for part in PARTS]
    assert len(texts) > 100
    assert [text for text in texts if kept(source.read("", text.encode()), after)] == []


@pytest.mark.parametrize("path", sorted(TODAY.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_is_gone_is_missed(path: Path) -> None:
    """Each value that is left out, or replaced by another one, and each line that is left out."""
    site = Written(path.read_text())
    texts = [site.replaced(value, text) for value in site.values for text in ("", "mjolnir")]
    texts += [site.with_line(key.line) for key in site.keys if site.is_line(key)]
    before = source.read("", site.text.encode())
    assert len(texts) > 60
    assert [text for text in texts if kept(before, source.read("", text.encode()))] == []


def test_cables_are_written_like_the_other_lists() -> None:
    site = re.sub(r"cabling:\n.*\n", "", SITE)
    assert chosen(site) == SITE
    dense = site.replace("\n  - {", "\n- {")
    assert "\ncabling:\n- endpoints: [spark1:p0, spark2:p0]\n" in chosen(dense)


def chosen(text: str) -> str:
    """The text with its only finding's proposal applied, even one that a person must decide on."""
    (finding,) = read_site("site.yaml", text.encode()).findings
    (proposal,) = finding.proposals
    return spliced(text.encode(), Splicer(text).splices(proposal)).decode()


# --- left to people -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        # An alias repeats the value that would change.
        SITE.replace("direct", "&kind dircet") + "description: *kind\n",
        # One of two is wrong, and nobody knows which.
        SITE + "topology: {kind: ring}\n",
        SITE.replace("[spark1:p0, spark2:p0]", "[spark3:p0, spark4:p0]"),
        # A comment stands within the text that would be removed.
        SITE + "waivers:\n  - rule: SG609\n    # why\n    path: engine.image\n    reason: none\n",
        # It can't be read.
        SITE + "\t- x\n",
        SITE + "  {",
        # Another owner's model is another model.
        SITE.replace("name: gpt-oss-120b", "name: ollama/llama-3.1-70b-instruct"),
        "",
        "[]",
    ],
)
def test_ambiguous_mistake_is_left_alone(text: str) -> None:
    done = repair("site.yaml", text.encode())
    assert done.before.findings
    assert (done.raw, done.fixed, done.fewer) == (text.encode(), (), False)


def test_alias_in_place_of_a_value_is_replaced_there_alone() -> None:
    text = SITE.replace("name: gpt-oss-120b", "name: *it").replace("name: lab ", "name: &it lab ")
    done = repair("site.yaml", text.encode())
    assert not done.fixed  # no model has a similar name
    text = SITE.replace("kind: direct", "kind: *it").replace("name: lab ", "name: &it dircet ")
    done = repair("site.yaml", text.encode())
    assert done.raw.decode() == text.replace("kind: *it", "kind: direct")


def test_equally_close_names_are_alternatives() -> None:
    done = repair(
        "site.yaml", SITE.replace("spark1:p0, spark2:p0", "spark3:p0, spark4:p0").encode()
    )
    assert [finding.help for finding in done.requested] == [
        "did you mean 'spark1' or 'spark2'?"
    ] * 2
    assert [len(finding.proposals) for finding in done.requested] == [2, 2]


def test_name_without_a_cable_is_preferred() -> None:
    done = repair("site.yaml", SITE.replace("spark2:p0", "spark3:p0").encode())
    assert done.raw.decode() == SITE


def test_fix_that_uncovers_as_much_is_shown_and_not_written(
    tmp_path: Path, sparkgen: Command
) -> None:
    """A section that can't be read hides the mistakes in it."""
    text = SITE.replace("\nengine:", "\nenigne:").replace(
        "pipeline: 2}", "pipeline: 2}\n  memory_utilization: 0.98"
    )
    (tmp_path / "site.yaml").write_text(text, encoding="utf-8")
    outcome = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert outcome.code == 3
    assert "-enigne:\n+engine:\n" in outcome.out
    assert outcome.err.endswith(
        "site.yaml: nothing is written: 1 error would take the place of 1 error\n"
    )
    assert (tmp_path / "site.yaml").read_text(encoding="utf-8") == text


def test_value_set_by_a_fix_is_kept() -> None:
    done = repair("site.yaml", changed("  parallel", "  memory_utilization: 90\n  parallel"))
    assert b"memory_utilization: 0.9\n" in done.raw
    assert [finding.severity for finding in done.requested] == ["warning"]
    assert done.fewer


def test_flag_is_added_after_a_key_of_its_section() -> None:
    """`after` names an existing key; a key within `parallel` comes last."""
    for key, after in [("max-model-len", ""), ("gpu-memory-utilization", "image"), ("tp", "")]:
        args = f"  args: {{{key}: 1}}\n  parallel"
        finding, *_ = read_site("site.yaml", changed("  parallel", args)).findings
        assert [edit.after for edit in finding.proposals[0] if isinstance(edit, Add)] == [after]


@pytest.mark.parametrize(
    ("old", "wrong"),
    [
        ("  parallel", "  args: {enable-foo: true}\n  parallel"),
        ("  parallel", "  args: {enable-thinking: true}\n  parallel"),
        ("{name: spark1,", "{name: spark1, serial: A1,"),
        ("{name: spark1,", "{name: spark1, os: dgx,"),
        ("{name: gpt-oss-120b}", "{name: gpt-oss-120b, kv_cache_dtype: fp4}"),
    ],
)
def test_merely_similar_word_is_left_alone(old: str, wrong: str) -> None:
    done = repair("site.yaml", changed(old, wrong))
    assert len(done.before.findings) == 1
    assert not done.fixed


def test_key_in_another_section_is_moved_to_its_own() -> None:
    done = repair("site.yaml", changed("  parallel", "  quantization: mxfp4\n  parallel"))
    assert len(done.before.findings) == 1
    assert not done.after.findings
    assert b"{name: gpt-oss-120b, quantization: mxfp4}" in done.raw
    assert done.raw.count(b"quantization") == 1


def test_conflicting_proposals_are_applied_one_after_the_other() -> None:
    """A key and its value are both wrong, and fixing them uncovers another mistake."""
    text = SITE.replace("{kind: direct}", "{knd: dircet, mtuu: '900O0'}")
    done = repair("site.yaml", text.encode())
    assert b"{kind: direct, mtu: '900O0'}" in done.raw


# --- properties ---------------------------------------------------------------------------------

quick = settings(
    max_examples=sample(25),
    deadline=None,
    database=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def misspelt_texts(draw: st.DrawFn) -> bytes:
    """Sites with missing and doubled letters, and comments in between."""
    lines = written(draw(site_files()), flow=False).decode().split("\n")[:-1]
    for number in draw(st.lists(st.integers(0, len(lines) - 1), max_size=3)):
        at = draw(st.integers(0, len(lines[number])))
        width = draw(st.sampled_from([0, 1, 2]))
        lines[number] = (
            lines[number][:at] + lines[number][at : at + 1] * width + (lines[number][at + 1 :])
        )
    numbered = [f"{' ' * draw(st.integers(0, 4))}# {n} ü" for n in range(len(lines))]
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    mixed = chain.from_iterable(zip(numbered, lines, strict=True))
    return ends.join(mixed).encode()


@pytest.mark.long
@pytest.mark.drawn
@quick
@given(misspelt_texts())
def test_fixing_a_misspelt_site_keeps_its_comments(raw: bytes) -> None:
    done = repair("site.yaml", raw)
    check_repair(raw, done)
    comments = rb"^ *# \d+ \xc3\xbc\r?$"
    assert re.findall(comments, done.raw, re.MULTILINE) == re.findall(comments, raw, re.MULTILINE)


@pytest.mark.drawn
@quick
@given(changed_site_files(), st.booleans())
def test_changed_site_is_never_made_worse(site: Any, flow: bool) -> None:
    raw = written(site, flow)
    check_repair(raw, repair("site.yaml", raw))


@pytest.mark.drawn
@quick
@given(damaged_texts())
def test_damaged_text_is_never_made_worse(raw: bytes) -> None:
    check_repair(raw, repair("site.yaml", raw))


def check_repair(raw: bytes, done: Repair) -> None:
    """Findings weigh less afterwards, or nothing is to be written; a second run changes nothing."""
    before, after = (read_site("site.yaml", data).findings for data in (raw, done.raw))
    assert (before, after) == (done.before.findings, done.after.findings)
    assert done.fewer is (weight(after) < weight(before))
    assert bool(done.fixed) is (raw != done.raw)
    if done.fewer and not done.stuck:
        assert repair("site.yaml", done.raw).raw == done.raw
    shown(done)


@pytest.mark.drawn
@quick
@given(st.data(), misspelt_texts())
def test_bytes_outside_an_edit_are_kept(data: st.DataObject, raw: bytes) -> None:
    reading = read_site("site.yaml", raw)
    proposals = [proposal for f in reading.findings for proposal in f.proposals]
    if not proposals:
        return
    try:
        splices = Splicer(reading.document.text).splices(data.draw(st.sampled_from(proposals)))
    except UnsettledError:
        return
    newline = b"\r\n" if b"\r\n" in raw else b"\n"
    lines = reading.document.text.split("\n")
    rest, place = [], (0, 0)
    for splice in sorted(splices):
        rest.append(between(lines, place, splice.start))
        place = splice.end
    rest.append(between(lines, place, (len(lines) - 1, len(lines[-1]))))
    pieces = [piece.encode().replace(b"\n", newline) for piece in rest]
    now = spliced(raw, splices)
    assert now.startswith(pieces[0])
    assert now.endswith(pieces[-1])
    assert all(piece in now for piece in pieces)


def between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0]][start[1] : end[1]]
    if start[0] >= len(lines):
        return ""
    middle = lines[start[0] + 1 : end[0]]
    last = lines[end[0]][: end[1]] if end[0] < len(lines) else ""
    return "\n".join([lines[start[0]][start[1] :], *middle, last])


# --- the command --------------------------------------------------------------------------------

APPLIED = (
    "applied: error[SG104] at topology.kind: 'kind: dircet' is not allowed; "
    "one of: single, direct, pairs, ring, switch, mixed; did you mean 'direct'?\n"
)
WRONG, RIGHT = changed("kind: direct", "kind: dircet"), SITE.encode()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.write_bytes(WRONG)
    return path


def test_diff_writes_nothing(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("fix", "site.yaml", cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.err == (
        f"{APPLIED}site.yaml: 1 error before, no finding after; not written; --write does it\n"
    )
    assert site.read_bytes() == WRONG
    require("patch")
    patched = subprocess.run(["patch", str(site)], input=outcome.out.encode(), check=False)
    assert patched.returncode == 0
    assert site.read_bytes() == RIGHT


def test_file_is_written_once(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert outcome.code == 0
    assert outcome.out.startswith("--- site.yaml\n+++ site.yaml\n")
    assert outcome.err == f"{APPLIED}site.yaml: 1 error before, no finding after; written\n"
    assert site.read_bytes() == RIGHT
    again = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert (again.code, again.out) == (0, "")
    assert again.err == "site.yaml: fine, nothing to fix\n"
    assert list(tmp_path.iterdir()) == [site]


def test_remaining_errors_exit_with_3(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_bytes(WRONG.replace(b"version: 0.33.0", b"version: new version"))
    outcome = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert outcome.code == 3
    assert b"kind: direct" in site.read_bytes()
    assert "nothing to propose: error[SG106] at engine.version" in outcome.err
    assert outcome.err.endswith("site.yaml: 2 errors before, 1 error after; written\n")


def test_alternatives_are_listed(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_bytes(RIGHT + b"model: {name: gpt-oss-20b}\n")
    outcome = sparkgen("fix", "site.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == (
        "choose one: error[SG003] at model: the key 'model' is written twice; keep one of the two\n"
        "site.yaml: 1 error, none of them can be fixed here\n"
    )


def test_remaining_findings_are_in_file_order(site: Path, tmp_path: Path, process: Command) -> None:
    """Whatever the order in which a run of Python keeps the names of keys."""
    site.write_bytes(b"version: 1\n")
    missing = ["name", "nodes"]
    for seed in "123":
        outcome = process("fix", "site.yaml", cwd=tmp_path, env={"PYTHONHASHSEED": seed})
        assert re.findall(r"the key '(\w+)' is missing", outcome.err) == missing


def test_invalid_yaml_exits_with_3(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.write_bytes(b"\xff\xfe")
    outcome = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.out, site.read_bytes()) == (3, "", b"\xff\xfe")


def test_no_secret_is_shown(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    token = "hf_" + "a1B2" * 8
    site.write_bytes(
        WRONG.replace(b"version: 1", f"version: 1 # {token}".encode())
        + f"""\
  env:
    HF_TOKEN: {token}
    DB_PASSWORD: swordfish
    NCCL_DEBG: INFO
""".encode()
    )
    outcome = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert outcome.code == 3
    assert token not in outcome.out + outcome.err
    assert "swordfish" not in outcome.out + outcome.err
    assert token.encode() in site.read_bytes()
    assert "+    NCCL_DEBUG: INFO\n" in outcome.out


def test_mode_and_link_are_kept(site: Path, tmp_path: Path, sparkgen: Command) -> None:
    site.chmod(0o640)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "link.yaml"
    link.symlink_to(site)
    assert sparkgen("fix", "--write", "link.yaml", cwd=folder).code == 0
    assert link.is_symlink()
    assert site.read_bytes() == RIGHT
    assert stat.S_IMODE(site.stat().st_mode) == 0o640
    assert list(folder.iterdir()) == [link]


def test_missing_file_exits_with_4(tmp_path: Path, sparkgen: Command) -> None:
    outcome = sparkgen("fix", "none.yaml", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (4, "sparkgen: none.yaml: No such file or directory\n")


@pytest.mark.parametrize("call", ["fsync", "fchmod", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_interrupted_write_keeps_the_file(
    call: str,
    error: BaseException,
    site: Path,
    tmp_path: Path,
    sparkgen: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path if call == "replace" else os, call, fail)
    outcome = sparkgen("fix", "--write", "site.yaml", cwd=tmp_path)
    assert outcome.code == (4 if isinstance(error, OSError) else 1)
    assert site.read_bytes() == WRONG
    assert list(tmp_path.iterdir()) == [site]


def test_example_sites_need_no_fix(tmp_path: Path, sparkgen: Command) -> None:
    for file in sorted((ROOT / "sites").rglob("*.yaml")):
        assert sparkgen("fix", file, cwd=tmp_path).code == 0


def test_section_that_is_wrongly_a_list_is_no_home_of_an_entry() -> None:
    text = "version: 1\nnodes: [{name: a}, {endpoints: [a:p0, b:p0]}]\ntopology: [{kind: direct}]\n"
    found = repair("lab.yaml", text.encode()).before.findings
    assert "SG901" not in {finding.rule for finding in found}


def test_long_file_with_many_findings_is_read_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading takes as much longer: half a MiB must end within ten seconds."""
    read: list[str] = []

    def counted(name: str, raw: bytes, beside: Any) -> Any:
        read.append(name)
        return read_site(name, raw, beside)

    monkeypatch.setattr("generator.fixing.repair.read_site", counted)
    text = (ROOT / "sites/single.yaml").read_text() + "".join(
        f"k{number}:\u00a0b\n" for number in range(2000)
    )
    repair("single.yaml", text.encode())
    assert len(read) <= 6
