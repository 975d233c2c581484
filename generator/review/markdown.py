"""Reviews as one comment on a pull request: the impact in full, each node's diff folded.

GitHub takes 65,536 characters and refuses a longer comment; GitLab takes a million.
"""

import re
from collections.abc import Iterator, Sequence

from generator.render import markdown as escaped
from generator.review.changes import FileChange
from generator.review.impact import NodeReview, Review
from generator.review.text import shown, summary

LIMIT = 65_000
MARK = "<!-- sparkgen diff -->"

_CUT = "The rest does not fit into a comment: `sparkgen diff` prints all of it.\n"
_MOST_NAMES = 12


def comment(reviews: Sequence[Review]) -> str:
    """All reviews, impact before diffs; what is too long is cut, and said to be."""
    changed = [review for review in reviews if review.changed]
    blocks = [MARK, *(block for review in changed for block in _impact(review))]
    if same := [review.name for review in reviews if not review.changed]:
        blocks.append(
            f"{'Nothing else differs' if changed else 'Nothing differs'}: {_names(same)}\n"
        )
    blocks += [block for review in changed for block in _folds(review)]
    return _joined(blocks)


def _joined(blocks: Sequence[str]) -> str:
    """As many whole blocks as fit; a block that is too long for the rest ends the comment."""
    room = LIMIT - len(_CUT) - 1
    kept: list[str] = []
    for block in blocks:
        if len(block) + 1 > room:
            return "\n".join([*kept, _CUT])
        kept.append(block)
        room -= len(block) + 1
    return "\n".join(kept)


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


def _folds(review: Review) -> Iterator[str]:
    for node in review.nodes:
        if node.files:
            yield _fold(f"{review.name}/{node.name}: {node.title}", node.files)
    if review.files:
        yield _fold(f"{review.name}: files of no node", review.files)


def _fold(title: str, files: Sequence[FileChange]) -> str:
    """A folded diff, in a fence that no line of it can close."""
    lines = [line for file in shown(files) for line in file.lines]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    count = f"{len(files)} file{'s' if len(files) > 1 else ''}"
    body = "\n".join([f"{fence}diff", *lines, fence])
    return f"<details>\n<summary>{title} ({count})</summary>\n\n{body}\n\n</details>\n"
