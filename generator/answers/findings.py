"""What is wrong by the engines' own answers, and what is known, as people read it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from generator.answers.answer import ACCEPTED, REFUSED, REHEARSAL, UNASKED, StageAnswer
from generator.answers.ranks import AskedRank
from generator.diagnostics import Finding, KeyPath, Severity, listed
from generator.engines import handed_on
from generator.fit.formulas import GIB
from generator.rules.registry import documented
from generator.site.complete import CompleteDeclaration, CompletePart
from generator.sitefile.lock import Lock

# What ranks of one engine must have in common, besides the versions of packages.
_SHARED = ("architecture", "dtype", "quantization", "max_model_len", "kv_cache_dtype", "block_size")
_REHEARSED = "it has answered with random weights: only the checkpoint's files were not tried"
# How far the engine's figure for weights may be from the computed one.
_OFF = 0.05


def unasked(known: Iterable[AskedRank], lock: Lock | None) -> Iterator[Finding]:
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


def judged(declared: CompleteDeclaration, known: Sequence[AskedRank]) -> Iterator[Finding]:
    """What is wrong: a refusal at its place, ranks that differ, and figures that are far off."""
    places = {part.group: part for part in declared.parts}
    for rank in known:
        for stage in rank.answer.stages if rank.answer else ():
            if stage.status == REFUSED:
                path = (*rank.part.written, *_place(stage, places[rank.part.group]))
                where = f", {stage.where}" if stage.where else ""
                asked = f"asked on {rank.name} about its {stage.name}{where}"
                if stage.name == REHEARSAL:
                    asked = f"it did not start on {rank.name} with random weights"
                yield _finding("SG870", stage.message, path, asked)
        yield from _weights(rank)
    for _, of_part in groupby(known, lambda rank: rank.part.group):
        yield from _differing(list(of_part))


def _place(stage: StageAnswer, part: CompletePart) -> KeyPath:
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


def _weights(rank: AskedRank) -> Iterator[Finding]:
    size = rank.answer.figure("parameter_bytes") if rank.answer else None
    if rank.memory is None or not isinstance(size, int) or rank.memory.draft_gib:
        return
    theirs, ours = size / GIB, rank.memory.weights_gib
    if abs(theirs - ours) > _OFF * theirs:
        message = f"{rank.name} holds {theirs:.1f} GiB of weights by the engine, not {ours:.1f}"
        yield _finding("SG872", message, (*rank.part.written, "model"))


def _differing(of_part: Sequence[AskedRank]) -> Iterator[Finding]:
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


def _different(name: str, values: Mapping[str, Any], rank: AskedRank) -> Finding:
    listed = ", ".join(f"{value} on {node}" for node, value in values.items())
    return _finding(
        "SG871", f"the ranks differ in {name}: {listed}", (*rank.part.written, "engine")
    )


def line(rank: AskedRank) -> str:
    """What is known about a rank, in one line."""
    if not rank.status:
        return f"{rank.name}: not asked yet about these settings"
    said, kept = rank.answer, rank.kept
    parts = [f"{rank.name}: {rank.status}" + ("" if said else ", by the lock")]
    stages = said.stages if said else ()
    lacking = next((each for each in stages if each.status == UNASKED), None)
    if lacking and rank.status == UNASKED:
        return f"{parts[0]}: {lacking.name}: {lacking.message}"
    size, blocks = (said.figure(name) if said else None for name in ("parameter_bytes", "blocks"))
    if isinstance(size, int):
        ours = f", {rank.memory.weights_gib:.1f} as computed" if rank.memory else ""
        parts.append(f"weights {size / GIB:.1f} GiB{ours}")
    if isinstance(blocks, int):
        parts.append(f"KV cache of up to {blocks} blocks")
    if kept and kept.rehearsal == ACCEPTED:
        parts.append(_REHEARSED)
    if lacking and lacking.name == REHEARSAL:
        parts.append(f"{lacking.name}: {lacking.message}")
    return "; ".join(parts)


def _finding(rule: str, message: str, path: KeyPath, help_text: str = "") -> Finding:
    return Finding(rule, documented()[rule].severity, message, path, help=help_text)


def superseded(findings: Sequence[Finding], known: Sequence[AskedRank]) -> list[Finding]:
    """The findings without warnings of what fails at a start, where all engines accept it."""
    from generator.rules import RULES

    if any(rank.status != ACCEPTED for rank in known):
        return list(findings)
    early = {rule.id for rule in RULES.values() if "verdicts" in rule.needs}
    doubts = [f for f in findings if f.rule in early and f.severity is not Severity.ERROR]
    # No rehearsal loads weights as the site says.
    return [f for f in findings if f not in doubts or "load-format" in f.path]
