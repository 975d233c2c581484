"""Reviews as one comment on a pull request: the impact in full, each node's diff folded.

GitHub accepts 65,536 characters and rejects longer comments; GitLab accepts a million.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from generator.bundle.escaping import markdown as escaped
from generator.grouping import grouped
from generator.records import record
from generator.review.changes import FileChange, shown
from generator.review.impact import Review
from generator.review.nodes import NodeReview
from generator.review.text import headroom, summary

LIMIT = 65_000
MARK = "<!-- sparkgen diff -->"

_CUT = "The rest does not fit into a comment: `sparkgen diff` prints all of it.\n"
_MORE = "... and {} more lines"
_FEWEST_LINES = 5
_MOST_NAMES = 12
_MOST_BARS = 8


@record
class Fold:
    """Lines folded under a title."""

    title: str
    lines: tuple[str, ...]


def comment(reviews: Sequence[Review]) -> str:
    """All reviews, impact before diffs; whatever is too long is cut, with a note."""
    changed = [review for review in reviews if review.changed]
    blocks = [MARK, *(block for review in changed for block in _impact(review))]
    if same := [review.name for review in reviews if not review.changed]:
        blocks.append(
            f"{'Nothing else differs' if changed else 'Nothing differs'}: {_names(same)}\n"
        )
    return _joined(blocks, [fold for review in changed for fold in _folds(review)])


def _joined(blocks: Sequence[str], folds: Sequence[Fold]) -> str:
    """All blocks, then as many lines of the folds as fit."""
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
    """A fold with as many of its lines as fit, or nothing if only a few do."""
    if len(whole := _whole(fold, fold.lines)) <= room:
        return whole
    room -= len(_whole(fold, [_MORE.format(len(fold.lines))]))
    kept = sum(used <= room for used in accumulate(len(line) + 1 for line in fold.lines))
    if kept < _FEWEST_LINES:
        return ""
    return _whole(fold, [*fold.lines[:kept], _MORE.format(len(fold.lines) - kept)])


def _impact(review: Review) -> Iterator[str]:
    was = f", called {review.was} until now" if review.was not in ("", review.name) else ""
    yield f"### {review.name}{was}\n"
    if review.edits:
        yield "".join(f"- {escaped(edit)}\n" for edit in review.edits)
    facts = [summary(review), f"**{review.downtime}**", *filter(None, [headroom(review)])]
    yield f"Against `{review.against}`: {'; '.join(facts)}.\n"
    if review.bars:
        yield "".join(f"    {line}\n" for line in review.bars[: _MOST_BARS + 1])
    if review.notes:
        yield "".join(f"> {escaped(note)}\n" for note in review.notes)
    if review.clients:
        yield "Clients:\n" + "".join(f"\n- {escaped(told)}" for told in review.clients) + "\n"
    if review.upgrade:
        yield f"**{escaped(str(review.upgrade))}**\n"
    yield "| Nodes | What must be done |\n|---|---|\n" + "".join(
        f"| {names} | {title} |\n" for title, names in _by_title(review.nodes)
    )
    yield "".join(
        f"{number}. {escaped(step.text)}{f': {_names(step.nodes)}' if step.nodes else ''}\n"
        for number, step in enumerate(review.outcome.steps, 1)
    )


def _by_title(nodes: Sequence[NodeReview]) -> Iterator[tuple[str, str]]:
    titles = grouped((node.title, node.name) for node in nodes)
    yield from ((title, _names(names)) for title, names in titles.items())


def _names(names: Sequence[str]) -> str:
    """All names if there are few; otherwise some, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _folds(review: Review) -> Iterator[Fold]:
    if review.upgrade and review.upgrade.entries:
        upgrade = review.upgrade
        title = f"{review.name}: changes of sparkgen since {upgrade.before}"
        yield Fold(title, tuple(f"{e.version}: {e.text}" for e in upgrade.entries))
    touched = (node for node in review.nodes if node.files)
    alike = grouped(((node.title, *_lines(node, "NODE")), node) for node in touched)
    for nodes in alike.values():
        first = nodes[0]
        lines = _lines(first, first.name if len(nodes) == 1 else "NODE")
        each = ", each" if len(nodes) > 1 else ""
        title = f"{review.name}/{_names([node.name for node in nodes])}: {first.title}"
        yield Fold(f"{title} ({_count(first.files)}{each})", lines)
    if review.files:
        yield Fold(f"{review.name}: files of no node ({_count(review.files)})", _diff(review.files))


def _lines(node: NodeReview, folder: str) -> tuple[str, ...]:
    """A node's diff with this folder name; files that are added or removed are only named."""
    listed = node.state in ("new", "removed")
    lines = _list(node.files) if listed else _diff(node.files)
    marks = ("+ ", "- ", "  ") if listed else ("--- a/", "+++ b/", "")
    path = re.compile(f"({'|'.join(map(re.escape, marks))}){re.escape(node.name)}/")
    return tuple(path.sub(rf"\g<1>{folder}/", x, 1) if path.match(x) else x for x in lines)


def _diff(files: Sequence[FileChange]) -> tuple[str, ...]:
    return tuple(line for file in shown(files) for line in file.lines)


def _list(files: Sequence[FileChange]) -> tuple[str, ...]:
    sign = {"added": "+", "removed": "-", "changed": " "}
    return tuple(f"{sign[file.kind]} {file.path}" for file in files)


def _count(files: Sequence[FileChange]) -> str:
    count = len(shown(files))
    return f"{count} file{'s' if count > 1 else ''}"


def _whole(fold: Fold, lines: Sequence[str]) -> str:
    """A folded diff, in a fence that no line in it can close."""
    longest = max((len(run) for line in fold.lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    body = "\n".join([f"{fence}diff", *lines, fence])
    return f"<details>\n<summary>{fold.title}</summary>\n\n{body}\n\n</details>\n"
