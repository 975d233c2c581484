"""What differs between two bundles: in go two trees, out come files with their unified diffs."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from typing import Literal

from generator.formats import visible
from generator.output import same_but_origin
from generator.render import CABLING, CHECKSUMS, MANIFEST
from generator.tree import Change, File, Tree

Kind = Literal["added", "removed", "changed"]

# Files in which a line that starts with # is for people alone.
_WITHOUT_COMMENTS = (".md", ".svg", ".json", CHECKSUMS)
_DIRECTIVES = ("#!", "#SBATCH")
_NO_NEWLINE = "\n\\ No newline at end of file"


@dataclass(frozen=True)
class FileChange:
    """A file that differs: at least one of `before` and `after` is there."""

    path: str
    before: File | None
    after: File | None

    @property
    def kind(self) -> Kind:
        """Whether the file is there on one side alone."""
        if self.before and self.after:
            return "changed"
        return "added" if self.after else "removed"

    @property
    def change(self) -> Change:
        """What the change needs on the node: nothing where only comments differ."""
        if self.before and self.after and _meaning(self.before) == _meaning(self.after):
            return Change.NOTHING
        file = self.after or self.before
        assert file
        return file.change

    @property
    def repeats(self) -> bool:
        """Whether the file only says in another form what others say: checksums, a picture."""
        return self.path in (MANIFEST, CABLING) or self.path.endswith(f"/{CHECKSUMS}")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The unified diff, a line each."""
        return tuple(self._lines())

    @property
    def added(self) -> int:
        """How many lines are new."""
        return sum(line.startswith("+") and not line.startswith("+++ ") for line in self.lines)

    @property
    def removed(self) -> int:
        """How many lines are gone."""
        return sum(line.startswith("-") and not line.startswith("--- ") for line in self.lines)

    def _lines(self) -> Iterator[str]:
        before, after, path = self.before, self.after, visible(self.path)
        if before and after and before.executable != after.executable:
            yield f"{path} is {'now' if after.executable else 'no longer'} executable"
        yield from unified_diff(
            _text(before),
            _text(after),
            f"a/{path}" if before else "/dev/null",
            f"b/{path}" if after else "/dev/null",
            lineterm="",
        )


def changes(before: Tree, after: Tree) -> tuple[FileChange, ...]:
    """The files that differ, by path; a manifest that names another version does not count."""
    paths = sorted(before.keys() | after.keys())
    found = (FileChange(path, before.get(path), after.get(path)) for path in paths)
    return tuple(change for change in found if _differs(change))


def _differs(change: FileChange) -> bool:
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    if change.path == MANIFEST and same_but_origin(before.data, after.data):
        return False
    return (before.text, before.executable) != (after.text, after.executable)


def _meaning(file: File) -> tuple[list[str], bool]:
    """The lines that a program reads."""
    lines = file.text.split("\n")
    if not file.path.endswith(_WITHOUT_COMMENTS):
        lines = [line for line in lines if not _is_comment(line)]
    return lines, file.executable


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and not line.startswith(_DIRECTIVES)


def _text(file: File | None) -> list[str]:
    """The lines of a file as a terminal can be given them."""
    if file is None:
        return []
    *lines, last = file.text.split("\n")
    shown = [visible(line) for line in lines]
    return [*shown, visible(last) + _NO_NEWLINE] if last else shown
