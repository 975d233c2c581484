"""The difference between two bundles: files with their unified diffs."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from functools import cached_property, lru_cache
from typing import Literal

from generator.activation import NOTHING, Activation
from generator.bundle.output import same_but_origin
from generator.bundle.plan import CABLING, CHECKSUMS, MANIFEST, MEMORY
from generator.bundle.tree import File, Tree
from generator.records import record
from generator.reports.text import visible

Kind = Literal["added", "removed", "changed"]

# Files in which a line that starts with # is a comment.
_WITHOUT_COMMENTS = (".md", ".svg", ".json", CHECKSUMS)
_DIRECTIVES = ("#!", "#SBATCH")
_NO_NEWLINE = "\n\\ No newline at end of file"


@record
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
    def activation(self) -> Activation:
        """What the change needs on the node: nothing where only comments differ."""
        if self.before and self.after and _meaning(self.before) == _meaning(self.after):
            return NOTHING
        file = self.after or self.before
        assert file
        return file.activation

    @property
    def repeats(self) -> bool:
        """Whether the file only says in another form what others say: checksums, a picture."""
        return self.path in (MANIFEST, CABLING, MEMORY) or self.path.endswith(f"/{CHECKSUMS}")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The unified diff, a line each."""
        return tuple(self._lines())

    @property
    def is_mode_alone(self) -> bool:
        """Whether the file differs in nothing but its mode."""
        return bool(self.before and self.after and self.before.text == self.after.text)

    @property
    def added(self) -> int:
        """How many lines are new."""
        return len(_lines(self.after)) - self._kept

    @property
    def removed(self) -> int:
        """How many lines are gone."""
        return len(_lines(self.before)) - self._kept

    @cached_property
    def _kept(self) -> int:
        if not self.before or not self.after:
            return 0
        matcher = SequenceMatcher(None, _lines(self.before), _lines(self.after))
        return sum(block.size for block in matcher.get_matching_blocks())

    def _lines(self) -> Iterator[str]:
        before, after, path = self.before, self.after, visible(self.path)
        if not before or not after:
            yield from _whole(path, _text(before), _text(after))
            return
        if before.mode != after.mode:
            yield f"{path}: mode {before.mode:04o} -> {after.mode:04o}"
        yield from unified_diff(_text(before), _text(after), f"a/{path}", f"b/{path}", lineterm="")


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
    return (before.text, before.mode) != (after.text, after.mode)


def _meaning(file: File) -> tuple[list[str], bool]:
    """The lines that a program reads, and whether it is one itself."""
    lines = file.text.split("\n")
    if not file.path.endswith(_WITHOUT_COMMENTS):
        lines = [line for line in lines if not _is_comment(line)]
    return lines, file.executable


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and not line.startswith(_DIRECTIVES)


def _whole(path: str, removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    """The unified diff of a file that is there on one side alone, with nothing to compare."""
    if not removed and not added:
        return
    yield f"--- a/{path}" if removed else "--- /dev/null"
    yield f"+++ b/{path}" if added else "+++ /dev/null"
    yield f"@@ -{_range(removed)} +{_range(added)} @@"
    yield from (f"-{line}" for line in removed)
    yield from (f"+{line}" for line in added)


def _range(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return "1"
    return f"1,{len(lines)}" if lines else "0,0"


def _text(file: File | None) -> Sequence[str]:
    """The lines of a file as a terminal can be given them."""
    return _shown(file.text) if file else ()


# Most texts are alike on all nodes, and a node has fewer files than that.
@lru_cache(maxsize=128)
def _shown(text: str) -> tuple[str, ...]:
    *lines, last = text.split("\n")
    return _ended([visible(line) for line in lines], visible(last))


def _lines(file: File | None) -> Sequence[str]:
    """The lines of a file as they are."""
    if file is None:
        return ()
    *lines, last = file.text.split("\n")
    return _ended(lines, last)


def _ended(lines: Sequence[str], last: str) -> tuple[str, ...]:
    return (*lines, last + _NO_NEWLINE) if last else tuple(lines)
