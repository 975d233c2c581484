"""The difference between two bundles: files with their unified diffs."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from functools import cached_property, lru_cache
from typing import Literal

from generator.activation import NOTHING, Activation
from generator.bundle.output import same_but_origin
from generator.bundle.plan import CABLING, CHECKSUMS, MANIFEST, MEMORY, PAGE, is_recorded
from generator.bundle.tree import File, Tree
from generator.diagnostics import visible
from generator.operation.meaning import same
from generator.records import record

Kind = Literal["added", "removed", "changed"]

_NO_NEWLINE = "\n\\ No newline at end of file"


@record
class Added:
    """A file that did not exist before."""

    file: File


@record
class Removed:
    """A file that no longer exists."""

    file: File


@record
class Changed:
    """A file with different text, or a different mode."""

    before: File
    after: File


@record
class FileChange:
    """A file that differs, and how."""

    path: str
    difference: Added | Removed | Changed

    @property
    def kind(self) -> Kind:
        """Whether the file was added, removed or changed."""
        match self.difference:
            case Added():
                return "added"
            case Removed():
                return "removed"
            case Changed():
                return "changed"

    @cached_property
    def activation(self) -> Activation:
        """How the change is applied on the node; nothing if no program reads what differs."""
        match self.difference:
            case Added(file) | Removed(file):
                return file.activation
            case Changed(before, after):
                path = self.path.partition("/")[2] or self.path
                is_like = before.executable == after.executable
                is_like = is_like and same(path, before.text, after.text)
                return NOTHING if is_like else after.activation

    def differs_in(self, other: Tree) -> bool:
        """Whether the previous file is another one in a bundle, or is not there."""
        match self.difference:
            case Added():
                return self.path in other
            case Removed(before) | Changed(before, _):
                return self.path not in other or other[self.path].text != before.text

    @property
    def repeats(self) -> bool:
        """Whether the file only repeats others in another form, such as checksums or a picture."""
        return self.path in (MANIFEST, CABLING, MEMORY, PAGE) or self.path.endswith(f"/{CHECKSUMS}")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The unified diff, line by line."""
        return tuple(self._lines())

    @property
    def is_mode_alone(self) -> bool:
        """Whether only the file's mode differs."""
        match self.difference:
            case Changed(before, after):
                return before.text == after.text
        return False

    @property
    def added(self) -> int:
        """The number of new lines."""
        return self._counts[0]

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return self._counts[1]

    @cached_property
    def _counts(self) -> tuple[int, int]:
        match self.difference:
            case Added(file):
                return len(_lines(file)), 0
            case Removed(file):
                return 0, len(_lines(file))
            case Changed(before, after):
                old, new = _lines(before), _lines(after)
                blocks = SequenceMatcher(None, old, new).get_matching_blocks()
                kept = sum(block.size for block in blocks)
                return len(new) - kept, len(old) - kept

    def _lines(self) -> Iterator[str]:
        path = visible(self.path)
        match self.difference:
            case Added(file):
                yield from _whole(path, (), _shown(file.text))
            case Removed(file):
                yield from _whole(path, _shown(file.text), ())
            case Changed(before, after):
                if before.mode != after.mode:
                    yield f"{path}: mode {before.mode:04o} -> {after.mode:04o}"
                old, new = _shown(before.text), _shown(after.text)
                yield from unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")


def changes(before: Tree, after: Tree) -> tuple[FileChange, ...]:
    """The files that differ, by path; a manifest that only names another version doesn't count."""
    paths = sorted(before.keys() | after.keys())
    found = ((path, _difference(path, before.get(path), after.get(path))) for path in paths)
    return tuple(FileChange(path, difference) for path, difference in found if difference)


def _difference(
    path: str, before: File | None, after: File | None
) -> Added | Removed | Changed | None:
    """How two files differ; what only says where a bundle is from doesn't count."""
    if is_recorded(path):
        return None
    if before is None:
        return Added(after) if after else None
    if after is None:
        return Removed(before)
    if path == MANIFEST and same_but_origin(before.data, after.data):
        return None
    is_same = (before.text, before.mode) == (after.text, after.mode)
    return None if is_same else Changed(before, after)


def _whole(path: str, removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    """The unified diff of a file that exists on one side only, with nothing to compare."""
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


# Most texts are the same on all nodes, and a node has fewer files than this.
@lru_cache(maxsize=128)
def _shown(text: str) -> tuple[str, ...]:
    """The lines of a text, made safe for a terminal."""
    *lines, last = text.split("\n")
    return _ended([visible(line) for line in lines], visible(last))


def _lines(file: File) -> Sequence[str]:
    """The lines of a file as they are."""
    *lines, last = file.text.split("\n")
    return _ended(lines, last)


def _ended(lines: Sequence[str], last: str) -> tuple[str, ...]:
    return (*lines, last + _NO_NEWLINE) if last else tuple(lines)
