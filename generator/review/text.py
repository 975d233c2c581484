"""A review for a terminal: what is done and what is down first, then the unified diff."""

from collections.abc import Iterator, Sequence

from generator.columns import columns
from generator.review.changes import FileChange, shown, unchanged
from generator.review.impact import Review

_HEAD = ("NODE", "FILES", "WHAT MUST BE DONE")
_COLORS = {"+": "32", "-": "31", "@": "36"}


def text(review: Review, stat: bool = False, color: bool = False, width: int | None = None) -> str:
    """One site's review; `stat` has one line per file instead of its diff."""
    if not review.changed:
        return unchanged(review.name, review.against)
    parts = [
        "\n".join([f"{headline(review)}; {review.downtime}", *meaning(review)]),
        columns(_HEAD, [(n.name, str(len(shown(n.files))), n.title) for n in review.nodes], width),
    ]
    if review.outcome.steps:
        parts.append("\n".join(["In this order:", *order(review)]))
    parts.append(
        "\n".join(_stat(review.all_files, width) if stat else _diff(review.all_files, color))
    )
    return "\n\n".join(parts) + "\n"


def headline(review: Review) -> str:
    """`lab against main (0123456789ab): 2 of 3 nodes change, 9 files`."""
    was = f", called {review.was} until now" if review.was not in ("", review.name) else ""
    return f"{review.name}{was} against {review.against}: {summary(review)}"


def meaning(review: Review) -> Iterator[str]:
    """What was changed in the site file, what it means for memory, and what to watch."""
    yield from (f"  {edit}" for edit in review.edits)
    if memory := headroom(review):
        yield f"  {memory}"
    yield from (f"note: {note}" for note in review.notes)
    yield from (f"clients: {told}" for told in review.clients)
    if review.upgrade:
        yield str(review.upgrade)
        for entry in review.upgrade.entries:
            more = f" and {len(entry.files) - 1} more" if len(entry.files) > 1 else ""
            yield f"  {entry.version}: {entry.text} ({entry.files[0]}{more})"


def headroom(review: Review) -> str:
    """The memory before and after, if both are known and differ."""
    if review.headroom is None or review.headroom[0] == review.headroom[1]:
        return ""
    before, after = review.headroom
    return f"memory left on the fullest node: {before:.1f} GiB -> {after:.1f} GiB"


def summary(review: Review) -> str:
    """`2 of 3 nodes change, 9 files`; checksums and pictures of other files are not counted."""
    if review.is_removed:
        return "the site is gone, and its bundle is left over"
    touched = sum(node.state != "unchanged" for node in review.nodes)
    found = shown(review.all_files)
    beside = sum(file in review.files for file in found)
    return (
        f"{touched} of {len(review.nodes)} node{'s' if len(review.nodes) > 1 else ''} change, "
        f"{len(found)} file{'s' if len(found) > 1 else ''}"
        f"{f', {beside} of them of no node' if beside and touched else ''}"
    )


def order(review: Review) -> Iterator[str]:
    """The steps, numbered, with who is not answered meanwhile."""
    for number, step in enumerate(review.outcome.steps, 1):
        down = f" (nobody answers to {', '.join(step.down)})" if step.down else ""
        yield f"{number:>3}. {step}{down}"


def _diff(files: Sequence[FileChange], color: bool) -> Iterator[str]:
    for file in shown(files):
        yield from (_colored(line) if color else line for line in file.lines)


def _colored(line: str) -> str:
    code = "1" if line.startswith(("+++ ", "--- ")) else _COLORS.get(line[:1])
    return f"\x1b[{code}m{line}\x1b[0m" if code else line


def _stat(files: Sequence[FileChange], width: int | None) -> Iterator[str]:
    rows = [
        (file.title, file.path, f"+{file.added}", f"-{file.removed}", file.activation.text)
        for file in shown(files)
    ]
    yield columns(("", "FILE", "LINES", "", "A CHANGE OF IT NEEDS"), rows, width)
