"""Measure how mistakes are reported and fixed: `python -m typos.study [COUNT] [SEED] [-v] [KIND]`.

Run it in tests. Mistakes are drawn by a seed: each is one of a kind, in one of many sites.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from generator.diagnostics import Finding, has_errors
from generator.fixing.repair import Repair, repair
from generator.pipeline import Reading, read_site
from generator.records import replace
from generator.reports.text import place
from generator.site import Site as Derived
from typos import (
    blocks,
    elsewhere,
    foreign,
    forms,
    habits,
    layout,
    leftovers,
    mistakes,
    nesting,
    night,
    pastes,
    references,
    renames,
    values,
    words,
)
from typos.sites import File, files
from typos.text import Mistake, Site

KINDS: Sequence[Callable[[random.Random, Site], Mistake | None]] = (
    *mistakes.MISTAKES,
    *values.MISTAKES,
    *layout.MISTAKES,
    *blocks.MISTAKES,
    *words.MISTAKES,
    *nesting.MISTAKES,
    *foreign.MISTAKES,
    *references.MISTAKES,
    *pastes.MISTAKES,
    *habits.MISTAKES,
    *night.MISTAKES,
    *leftovers.MISTAKES,
    *forms.MISTAKES,
    *renames.MISTAKES,
    *elsewhere.MISTAKES,
)


@dataclass(frozen=True)
class Outcome:
    """What became of a mistake.

    `harmed` means that fix made a site without findings, but with another meaning, or that it
    dropped a word; one of a comment is never dropped.
    """

    file: str
    mistake: Mistake
    changes: bool
    detected: bool
    right_line: bool
    one_finding: bool
    restored: bool
    harmed: bool
    refused: bool
    findings: str

    @property
    def deserves(self) -> bool:
        """Whether it must be reported."""
        return self.changes and not self.mistake.silent

    @property
    def has_one_reading(self) -> bool:
        """Whether it can be fixed without a person."""
        return self.deserves and not self.mistake.several


def outcomes(count: int, seed: int, only: str = "") -> Iterator[Outcome]:
    """The outcomes of this many mistakes, spread over kinds and sites."""
    rng = random.Random(seed)
    known = files()
    originals: dict[str, Reading] = {}
    kinds = [kind for kind in KINDS if only in (*kind.__name__.split(), "")]
    introduced = 0
    for turn in range(50 * count):
        if introduced == count:
            return
        file = rng.choice(known)
        mistake = kinds[turn % len(kinds)](rng, file.site)
        if mistake is None or mistake.text == file.site.text:
            continue
        introduced += 1
        if file.name not in originals:
            originals[file.name] = _read(file, file.site.text)
        yield _outcome(file, originals[file.name], mistake)


def _read(file: File, text: str) -> Reading:
    return read_site(file.name, file.encode(text))


def _outcome(file: File, original: Reading, mistake: Mistake) -> Outcome:
    done = repair(file.name, file.encode(mistake.text))
    reading = done.before
    known = Counter((f.rule, f.message) for f in original.findings)
    new = [f for f in reading.findings if not known[f.rule, f.message]]
    is_other = mistake.meant not in ("", file.site.text)
    meant = _read(file, mistake.meant) if is_other else original
    changes = has_errors(reading.findings) or _meaning(reading) != _meaning(meant)
    lines = [place(reading.document, f).line for f in new]
    repaired = done.after if done.fixed and done.fewer else reading
    restored = not has_errors(repaired.findings) and _meaning(repaired) == _meaning(meant)
    clean = not [f for f in repaired.findings if not known[f.rule, f.message]]
    return Outcome(
        file=file.name,
        mistake=mistake,
        changes=changes,
        detected=bool(new),
        right_line=mistake.line < 0 or lines[:1] in [[n] for n in mistake.lines or [mistake.line]],
        one_finding=len(new) == 1,
        restored=restored,
        harmed=bool(done.fixed)
        and done.fewer
        and (_lost_comment(mistake, done) or (not restored and (clean or _lost(mistake, done)))),
        refused=bool(done.fixed) and not done.fewer and not mistake.several,
        findings="; ".join(_described(f, line) for f, line in zip(new, lines, strict=True)),
    )


def _lost(mistake: Mistake, done: Repair) -> bool:
    """Whether fewer words are in the text than were written: one of them was dropped."""
    before, after = (re.findall(r"\w+", text) for text in (mistake.text, done.raw.decode()))
    return bool(Counter(before) - Counter(after)) and len(after) < len(before)


def _lost_comment(mistake: Mistake, done: Repair) -> bool:
    """Whether a word of a comment is gone, even if the site means what it should."""
    comments = re.findall(r"(?:^|\s)#(.*)", mistake.text, re.MULTILINE)
    words, after = (re.findall(r"\w+", text) for text in (" ".join(comments), done.raw.decode()))
    return bool(Counter(words) - Counter(after))


def _described(finding: Finding, line: int) -> str:
    return f"{finding.rule}@{line + 1} {finding.message} / {finding.help}"


def _meaning(reading: Reading) -> Derived | None:
    return reading.site and replace(reading.site, file="")


def table(found: Sequence[Outcome]) -> str:
    """The shares by kind, and overall."""
    head = ("kind", "n", "detected", "line", "one", "restored", "harmed", "refused")
    kinds = sorted({outcome.mistake.kind for outcome in found})
    rows = [head, *(_row(kind, [o for o in found if o.mistake.kind == kind]) for kind in kinds)]
    form = "{:16}{:>6}{:>10}{:>8}{:>8}{:>10}{:>8}{:>9}"
    return "\n".join(form.format(*row) for row in [*rows, _row("all", found)])


def _row(kind: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    seen = [o for o in found if o.detected]
    return (
        kind,
        str(len(found)),
        _percent(o.detected for o in found if o.deserves),
        _percent(o.right_line for o in seen),
        _percent(o.one_finding for o in seen),
        _percent(o.restored for o in found if o.has_one_reading),
        str(sum(o.harmed for o in found)),
        str(sum(o.refused for o in found)),
    )


def _percent(values: Iterable[bool]) -> str:
    known = list(values)
    return f"{100 * share(known):.1f} %" if known else "-"


def share(values: Iterable[bool]) -> float:
    """The share of values that are true; 1 if there are none."""
    known = list(values)
    return sum(known) / len(known) if known else 1.0


def examples(found: Iterable[Outcome]) -> Iterator[str]:
    """What went wrong, one line each."""
    for o in found:
        faults = [
            *(["silent"] if o.deserves and not o.detected else []),
            *(["line"] if o.detected and not o.right_line else []),
            *(["many"] if o.detected and not o.one_finding else []),
            *(["harmed"] if o.harmed else []),
            *(["refused"] if o.refused else []),
            *(["not restored"] if o.has_one_reading and not o.restored else []),
        ]
        if faults:
            line = o.mistake.text.split("\n")[o.mistake.line].strip()
            where = f"{o.file}:{o.mistake.line + 1} {line!r}"
            yield f"{o.mistake.kind} [{', '.join(faults)}] {where}: {o.findings}"


def main() -> None:
    """Print a line for each kind, and with `-v` examples of what went wrong."""
    words = sys.argv[1:]
    numbers = [int(word) for word in words if word.isdigit()]
    count, seed = [*numbers, *(400, random.randrange(10**6))[len(numbers) :]]
    print(f"seed {seed}")
    only = next((word for word in words if word.isidentifier()), "")
    found = list(outcomes(count, seed, only))
    print(table(found))
    if "-v" in words:
        print(*sorted(examples(found)), sep="\n")


if __name__ == "__main__":
    main()
