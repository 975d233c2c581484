"""Reviews as one comment on a pull request: the impact in full, each node's diff folded.

GitHub takes 65,536 characters and refuses a longer comment; GitLab takes a million.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.render import markdown as escaped
from generator.review.changes import FileChange
from generator.review.impact import NodeReview, Review
from generator.review.text import shown, summary

LIMIT = 65_000
MARK = "<!-- sparkgen diff -->"

_CUT = "The rest does not fit into a comment: `sparkgen diff` prints all of it.\n"
_MORE = "... and {} more lines"
_FEWEST_LINES = 5
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines behind a title that opens them."""

    title: str
    lines: tuple[str, ...]


def comment(reviews: Sequence[Review]) -> str:
    """All reviews, impact before diffs; what is too long is cut, and said to be."""
    changed = [review for review in reviews if review.changed]
    blocks = [MARK, *(block for review in changed for block in _impact(review))]
    if same := [review.name for review in reviews if not review.changed]:
        blocks.append(
            f"{'Nothing else differs' if changed else 'Nothing differs'}: {_names(same)}\n"
        )
    return _joined(blocks, [fold for review in changed for fold in _folds(review)])


def _joined(blocks: Sequence[str], folds: Sequence[Fold]) -> str:
    """All blocks, then as many lines of the folds as there is room for."""
    room = LIMIT - len(_CUT) - 1
    kept: list[str] = []
    for block in blocks:
        if len(block) + 1 > room:
            return "\n".join([*kept, _CUT])
        kept.append(block)
        room -= len(block) + 1
    for fold in folds:
        text = _fitted(fold, room - 1)
        kept += [text] if text else []
        room -= len(text) + 1 if text else 0
        if text != _whole(fold, fold.lines):
            return "\n".join([*kept, _CUT])
    return "\n".join(kept)


def _fitted(fold: Fold, room: int) -> str:
    """A fold with as many of its lines as fit, and nothing if only a few do."""
    if len(whole := _whole(fold, fold.lines)) <= room:
        return whole
    room -= len(_whole(fold, [_MORE.format(len(fold.lines))]))
    kept = 0
    for line in fold.lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept += 1
    if kept < _FEWEST_LINES:
        return ""
    return _whole(fold, [*fold.lines[:kept], _MORE.format(len(fold.lines) - kept)])


def _impact(review: Review) -> Iterator[str]:
    said = f"{summary(review)}; **{review.downtime}**"
    yield f"### {review.name}\n\nAgainst `{review.against}`: {said}.\n"
    yield "| Nodes | What must be done |\n|---|---|\n" + "".join(
        f"| {names} | {title} |\n" for title, names in _by_title(review.nodes)
    )
    yield "".join(
        f"{number}. {escaped(step.text)}: {_names(step.nodes)}\n"
        for number, step in enumerate(review.order, 1)
    )


def _by_title(nodes: Sequence[NodeReview]) -> Iterator[tuple[str, str]]:
    titles: dict[str, list[str]] = {}
    for node in nodes:
        titles.setdefault(node.title, []).append(node.name)
    yield from ((title, _names(names)) for title, names in titles.items())


def _names(names: Sequence[str]) -> str:
    """All of a few, and how many more there are of many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _folds(review: Review) -> Iterator[Fold]:
    for node in review.nodes:
        if node.files:
            title = f"{review.name}/{node.name}: {node.title}"
            # All of a node that comes or goes is new or gone: its files are named, not shown.
            listed = node.state in ("new", "removed")
            lines = _list(node.files) if listed else _diff(node.files)
            yield Fold(f"{title} ({_count(node.files)})", tuple(lines))
    if review.files:
        yield Fold(f"{review.name}: files of no node ({_count(review.files)})", _diff(review.files))


def _diff(files: Sequence[FileChange]) -> tuple[str, ...]:
    return tuple(line for file in shown(files) for line in file.lines)


def _list(files: Sequence[FileChange]) -> tuple[str, ...]:
    sign = {"added": "+", "removed": "-", "changed": " "}
    return tuple(f"{sign[file.kind]} {file.path}" for file in files)


def _count(files: Sequence[FileChange]) -> str:
    return f"{len(files)} file{'s' if len(files) > 1 else ''}"


def _whole(fold: Fold, lines: Sequence[str]) -> str:
    """A folded diff, in a fence that no line of it can close."""
    longest = max((len(run) for line in fold.lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    body = "\n".join([f"{fence}diff", *lines, fence])
    return f"<details>\n<summary>{fold.title}</summary>\n\n{body}\n\n</details>\n"
