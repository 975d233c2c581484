"""A review for a terminal: what is done and what is down first, then the unified diff."""

from collections.abc import Iterator, Sequence

from generator.columns import columns
from generator.review.changes import FileChange
from generator.review.impact import NodeReview, Review

_COLORS = {"+": "32", "-": "31", "@": "36"}


def text(review: Review, stat: bool = False, color: bool = False) -> str:
    """One site's review; `stat` has a line a file in place of its diff."""
    if not review.changed:
        return f"{review.name}: nothing differs from {review.against}\n"
    parts = [
        f"{review.name} against {review.against}: {summary(review)}; {review.downtime}",
        columns(("NODE", "FILES", "WHAT MUST BE DONE"), [_row(node) for node in review.nodes]),
    ]
    if review.order:
        parts.append("\n".join(["In this order:", *order(review)]))
    parts.append("\n".join(_stat(review.all_files) if stat else _diff(review.all_files, color)))
    return "\n\n".join(parts) + "\n"


def summary(review: Review) -> str:
    """`2 of 3 nodes change, 9 files`."""
    touched = sum(node.state != "unchanged" for node in review.nodes)
    files = len(review.all_files)
    return (
        f"{touched} of {len(review.nodes)} node{'s' if len(review.nodes) > 1 else ''} change, "
        f"{files} file{'s' if files > 1 else ''}"
    )


def order(review: Review) -> Iterator[str]:
    """The steps, numbered."""
    for number, step in enumerate(review.order, 1):
        yield f"{number:>3}. {step.text}: {', '.join(step.nodes)}"


def shown(files: Sequence[FileChange]) -> list[FileChange]:
    """The files whose lines say something that others do not."""
    telling = [file for file in files if not file.repeats]
    return telling or list(files)


def _row(node: NodeReview) -> tuple[str, str, str]:
    return node.name, str(len(node.files)), node.title


def _diff(files: Sequence[FileChange], color: bool) -> Iterator[str]:
    for file in shown(files):
        yield from (_colored(line) if color else line for line in file.lines)


def _colored(line: str) -> str:
    code = "1" if line.startswith(("+++ ", "--- ")) else _COLORS.get(line[:1])
    return f"\x1b[{code}m{line}\x1b[0m" if code else line


def _stat(files: Sequence[FileChange]) -> Iterator[str]:
    rows = [
        (file.kind, file.path, f"+{file.added}", f"-{file.removed}", file.change.value)
        for file in shown(files)
    ]
    yield columns(("", "FILE", "LINES", "", "A CHANGE OF IT NEEDS"), rows)
