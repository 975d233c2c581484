"""What the engines on a site's nodes said of their settings.

As `launch.sh --check-engine` prints it, each rank's answer is a line of JSON about what was asked,
and one for each stage of its start.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any

from generator.bundle.tree import Tree
from generator.diagnostics import Finding, KeyPath, Severity, listed
from generator.engines import handed_on
from generator.fit.assessment import NodeMemory
from generator.fit.formulas import GIB
from generator.records import record
from generator.rules.registry import documented
from generator.site import Member, Part, Site
from generator.site.complete import CompleteDeclaration, CompletePart
from generator.sitefile.lock import Lock, LockedAnswer

ACCEPTED, REFUSED, UNASKED = "accepted", "refused", "could not ask"
_OPTIONS = "/opt/sparkgen/options.yaml"
# What ranks of one engine must have in common, besides the versions of packages.
_SHARED = ("architecture", "dtype", "quantization", "max_model_len", "kv_cache_dtype", "block_size")
# How far the engine's figure for weights may be from the computed one.
_OFF = 0.05


class AnswerError(Exception):
    """A text is no answer; the message says why, in one line."""


@record
class Stage:
    """One stage of a start: its status, and what the engine said or made of the settings."""

    name: str
    status: str
    message: str
    where: str
    variable: str
    found: Mapping[str, Any]


@record
class Answer:
    """What one rank's engine said; `settings` is the checksum of what it was asked about."""

    site: str
    group: str
    node: str
    image: str
    settings: str
    stages: tuple[Stage, ...]

    @property
    def status(self) -> str:
        """A refusal, if there is one; else whether all stages could be asked and are accepted."""
        said = {stage.status for stage in self.stages} or {UNASKED}
        return next(each for each in (REFUSED, UNASKED, ACCEPTED) if each in said)

    def figure(self, name: str) -> Any:
        """What the engine made of its settings, by name; None if it did not say."""
        return next((each.found[name] for each in self.stages if name in each.found), None)


def parse(text: str) -> list[Answer]:
    """The answers in what one or more nodes printed; raises AnswerError."""
    records = []
    for line in text.splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    records = [each for each in records if isinstance(each, dict) and "stage" in each]
    if not records or records[0]["stage"] != "start":
        raise AnswerError("it is not what 'launch.sh --check-engine' prints")
    parted = groupby(records, _Counter())
    return [_answer(*lines) for _, lines in parted]


class _Counter:
    """Numbers records by the start that they belong to."""

    def __init__(self) -> None:
        self._starts = 0

    def __call__(self, each: Mapping[str, Any]) -> int:
        self._starts += each["stage"] == "start"
        return self._starts


def _answer(start: Mapping[str, Any], *stages: Mapping[str, Any]) -> Answer:
    names = ("site", "group", "node", "image", "settings")
    site, group, node, image, settings = (str(start.get(name, "")) for name in names)
    digest = str(start.get("digest", ""))
    image = f"{image.partition('@')[0]}@{digest}" if digest else image
    return Answer(site, group, node, image, settings, tuple(map(_stage, stages)))


def _stage(each: Mapping[str, Any]) -> Stage:
    said = str(each.get("message") or each.get("why", ""))
    status = str(each.get("status"))
    made = each.get("found")
    return Stage(
        str(each["stage"]),
        status if status in (ACCEPTED, REFUSED) else UNASKED,
        " ".join(said.split()),
        str(each.get("where", "")),
        str(each.get("variable", "")),
        made if isinstance(made, dict) else {},
    )


def checksum(part: Part, member: Member, tree: Tree) -> str:
    """The checksum of what a node is asked about, as launch.sh makes it."""
    words = (member.container.entrypoint, *(w for ws in member.container.command for w in ws))
    paths = [*member.container.env_files, part.place(_OPTIONS)]
    files = [tree[path] for each in paths if (path := f"{member.name}{each}") in tree]
    lines = (line for file in files for line in file.text.splitlines(keepends=True))
    text = "".join(f"{word}\0" for word in words) + "".join(x for x in lines if x[0] != "#")
    return sha256(text.encode()).hexdigest()


@record
class Rank:
    """A rank of a site, with its present settings and the answer to them, if there is one."""

    part: Part
    member: Member
    settings: str
    answer: Answer | None
    locked: LockedAnswer | None

    @property
    def name(self) -> str:
        """The node, with its group."""
        return f"{self.member.name} ({self.part.group})" if self.part.group else self.member.name

    @property
    def status(self) -> str:
        """What is known about its present settings; empty if they were not asked about."""
        if self.answer:
            return self.answer.status
        return self.locked.status if self.locked else ""

    @property
    def kept(self) -> LockedAnswer | None:
        """What a lock keeps of it."""
        if self.answer is None:
            return self.locked
        group, node, said = self.part.group, self.member.name, self.answer
        size = said.figure("parameter_bytes")
        weights = str(size) if isinstance(size, int) and size > 0 else ""
        return LockedAnswer(group, node, said.image, self.settings, said.status, weights)

    @property
    def memory(self) -> NodeMemory | None:
        """What was computed about its memory."""
        nodes = self.part.memory.nodes if self.part.memory else ()
        return next((each for each in nodes if each.node == self.member.name), None)


def ranks(
    site: Site, tree: Tree, answers: Sequence[Answer], locked: Sequence[LockedAnswer]
) -> list[Rank]:
    """All ranks that can be asked, each with the last answer to its present settings."""
    made = []
    for part in site.parts:
        for member in () if part.engine.is_in_pyxis else part.nodes:
            now = (part.group, member.name, checksum(part, member, tree))
            image = member.container.image
            said = [a for a in answers if (a.group, a.node, a.settings) == now]
            kept = [k for k in locked if (k.group, k.node, k.settings) == now]
            last = next((a for a in reversed(said) if _is_same(a.image, image)), None)
            before = next((k for k in kept if not last and _is_same(k.image, image)), None)
            made.append(Rank(part, member, now[-1], last, before))
    return made


def of_lock(site: Site, sha256: str, lock: Lock | None) -> list[Rank]:
    """All ranks, each with what a lock has of it; none if the lock has no answers at all."""
    from generator.bundle.render import render

    return ranks(site, render(site, sha256), (), lock.answers) if lock and lock.answers else []


def weights(known: Iterable[Rank], group: str) -> Mapping[str, int]:
    """The bytes of parameters on a group's nodes, where the engine said how many."""
    kept = ((rank.member.name, rank.kept) for rank in known if rank.part.group == group)
    return {node: int(each.weights) for node, each in kept if each and each.weights}


def unasked(known: Iterable[Rank], lock: Lock | None) -> Iterator[Finding]:
    """What engines were asked about before, but not with the present settings or image."""
    before = {(each.group, each.node) for each in (lock.answers if lock else ())}
    for _, of_part in groupby(known, lambda rank: rank.part.group):
        now = [r for r in of_part if not r.status and (r.part.group, r.member.name) in before]
        if now:
            nodes = listed((rank.member.name for rank in now), "and")
            yield _finding(
                "SG873",
                f"the engine was asked before, but not yet about these settings on {nodes}",
                (*now[0].part.written, "engine"),
                "run 'launch.sh --check-engine' there, and give what it prints to 'check-engine'",
            )


def _is_same(said: str, now: str) -> bool:
    """Whether an answer is of an image; a digest counts where both have one."""
    (name, _, digest), (other, _, pinned) = said.partition("@"), now.partition("@")
    return name == other and (digest == pinned or not digest or not pinned)


def to_lock(known: Iterable[Rank]) -> tuple[LockedAnswer, ...]:
    """What a lock keeps of the answers."""
    return tuple(kept for rank in known if (kept := rank.kept))


def judged(declared: CompleteDeclaration, known: Sequence[Rank]) -> Iterator[Finding]:
    """What is wrong: a refusal at its place, ranks that differ, and figures that are far off."""
    places = {part.group: part for part in declared.parts}
    for rank in known:
        for stage in rank.answer.stages if rank.answer else ():
            if stage.status == REFUSED:
                path = (*rank.part.written, *_place(stage, places[rank.part.group]))
                where = f", {stage.where}" if stage.where else ""
                asked = f"asked on {rank.name} about its {stage.name}{where}"
                yield _finding("SG870", stage.message, path, asked)
        yield from _weights(rank)
    for _, of_part in groupby(known, lambda rank: rank.part.group):
        yield from _differing(list(of_part))


def _place(stage: Stage, part: CompletePart) -> KeyPath:
    """The place of what a message names: a variable, a flag, a key for it, or a flag's value."""
    engine = part.engine
    if stage.variable:
        own = [each for each in engine.environment if each.name == stage.variable]
        return own[0].path if own else ("engine",)
    words = [word.strip("-").replace("_", "-") for word in re.findall(r"[\w-]+", stage.message)]
    given = {name: each for each in engine.settings for name in (each.name, each.name.lower())}
    keys = handed_on.owned(engine.name)
    for word in words:
        if word in given:
            return given[word].path()
        key = keys.get(word, "")
        if re.fullmatch(r"[a-z_.]+", key):
            return tuple(key.split("."))
    values = {str(each.value).replace("_", "-"): each for each in engine.settings}
    named = (values[word] for word in words if word in values and len(word) > 3)
    first = next(named, None)
    return first.path() if first else ("engine",)


def _weights(rank: Rank) -> Iterator[Finding]:
    size = rank.answer.figure("parameter_bytes") if rank.answer else None
    if rank.memory is None or not isinstance(size, int) or rank.memory.draft_gib:
        return
    theirs, ours = size / GIB, rank.memory.weights_gib
    if abs(theirs - ours) > _OFF * theirs:
        message = f"{rank.name} holds {theirs:.1f} GiB of weights by the engine, not {ours:.1f}"
        yield _finding("SG872", message, (*rank.part.written, "model"))


def _differing(of_part: Sequence[Rank]) -> Iterator[Finding]:
    """What ranks have to have in common, and have not."""
    answers = {rank.name: rank.answer for rank in of_part if rank.answer}
    for name in _SHARED:
        values = {rank: said.figure(name) for rank, said in answers.items()}
        given = {rank: value for rank, value in values.items() if value is not None}
        if len({*map(str, given.values())}) > 1:
            yield _different(name, given, of_part[0])
    versions = {rank: said.figure("versions") for rank, said in answers.items()}
    known = {rank: each for rank, each in versions.items() if isinstance(each, dict)}
    for package in sorted({name for each in known.values() for name in each}):
        given = {rank: each.get(package, "none") for rank, each in known.items()}
        if len({*given.values()}) > 1:
            yield _different(package, given, of_part[0])


def _different(name: str, values: Mapping[str, Any], rank: Rank) -> Finding:
    listed = ", ".join(f"{value} on {node}" for node, value in values.items())
    return _finding(
        "SG871", f"the ranks differ in {name}: {listed}", (*rank.part.written, "engine")
    )


def line(rank: Rank) -> str:
    """What is known about a rank, in one line."""
    if not rank.status:
        return f"{rank.name}: not asked yet about these settings"
    said = rank.answer
    if said is None:
        return f"{rank.name}: {rank.status}, by the lock"
    if said.status == UNASKED:
        stage = next((each for each in said.stages if each.status == UNASKED), None)
        return f"{rank.name}: {UNASKED}: {stage.name}: {stage.message}" if stage else rank.name
    parts = [f"{rank.name}: {said.status}"]
    size, blocks = said.figure("parameter_bytes"), said.figure("blocks")
    if isinstance(size, int):
        ours = f", {rank.memory.weights_gib:.1f} as computed" if rank.memory else ""
        parts.append(f"weights {size / GIB:.1f} GiB{ours}")
    if isinstance(blocks, int):
        parts.append(f"KV cache of up to {blocks} blocks")
    return "; ".join(parts)


def _finding(rule: str, message: str, path: KeyPath, help_text: str = "") -> Finding:
    return Finding(rule, documented()[rule].severity, message, path, help=help_text)


def superseded(findings: Sequence[Finding], known: Sequence[Rank]) -> list[Finding]:
    """The findings without warnings of what fails at a start, where all engines accept it."""
    from generator.rules import RULES

    if any(rank.status != ACCEPTED for rank in known):
        return list(findings)
    early = {rule.id for rule in RULES.values() if "verdicts" in rule.needs}
    return [f for f in findings if f.rule not in early or f.severity is Severity.ERROR]
