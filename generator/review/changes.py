"""The difference between two bundles: files with their unified diffs."""

from collections.abc import Sequence
from difflib import unified_diff
from functools import cached_property, lru_cache
from typing import Literal

from generator.activation import NOTHING, Activation
from generator.bundle.output import same_but_origin
from generator.bundle.plan import CABLING, CHECKSUMS, MANIFEST, MEMORY, PAGE, is_recorded
from generator.bundle.tree import File, Tree
from generator.diagnostics import visible
from generator.operation.meaning import same
from generator.records import record

ChangeKind = Literal["added", "removed", "changed"]

_NO_NEWLINE = "\n\\ No newline at end of file"


@record
class FileChange:
    """A file that differs: as it was, None if it is new, and as it is, None if it is gone."""

    path: str
    before: File | None
    after: File | None

    @property
    def kind(self) -> ChangeKind:
        """Whether the file was added, removed or changed."""
        if self.before and self.after:
            return "changed"
        return "added" if self.after else "removed"

    @cached_property
    def activation(self) -> Activation:
        """How the change is applied on the node; nothing if no program reads what differs."""
        before, after = self.before, self.after
        if before and after and before.executable == after.executable:
            path = self.path.partition("/")[2] or self.path
            if same(path, before.text, after.text):
                return NOTHING
        file = after or before
        return file.activation if file else NOTHING

    def causes(self, rebuilt: Tree) -> tuple[bool, bool]:
        """Whether it differs because of this version, which `rebuilt` the old site, or the site."""
        files = (self.before, rebuilt.get(self.path), self.after)
        before, between, after = (file and file.text for file in files)
        return before != between, between != after

    @property
    def repeats(self) -> bool:
        """Whether the file only repeats others in another form, such as checksums or a picture."""
        return self.path in (MANIFEST, CABLING, MEMORY, PAGE) or self.path.endswith(f"/{CHECKSUMS}")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The unified diff, line by line, made safe for a terminal."""
        return tuple("\n".join(map(visible, line.split("\n"))) for line in self._raw)

    @property
    def title(self) -> str:
        """What happened to it, `mode` if that alone differs."""
        is_same = self.before and self.after and self.before.text == self.after.text
        return "mode" if is_same else self.kind

    @property
    def added(self) -> int:
        """The number of new lines."""
        return self._marked("+")

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return self._marked("-")

    def _marked(self, mark: str) -> int:
        """The lines of the diff with a mark, without that of its head."""
        if not (self.before and self.after):
            only = self.after if mark == "+" else self.before
            return len(_split(only.text)) if only else 0
        return max(0, sum(line.startswith(mark) for line in self._raw) - 1)

    @cached_property
    def _raw(self) -> tuple[str, ...]:
        path, before, after = self.path, self.before, self.after
        old, new = (_split(file.text) if file else () for file in (before, after))
        was, now = f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null"
        lines = unified_diff(old, new, was, now, lineterm="")
        if before and after and before.mode != after.mode:
            return (f"{path}: mode {before.mode:04o} -> {after.mode:04o}", *lines)
        return tuple(lines)


def changes(before: Tree, after: Tree) -> tuple[FileChange, ...]:
    """The files that differ, by path; a manifest that only names another version doesn't count."""
    paths = sorted(before.keys() | after.keys())
    found = (FileChange(path, before.get(path), after.get(path)) for path in paths)
    return tuple(change for change in found if _differs(change))


def shown(files: Sequence[FileChange]) -> list[FileChange]:
    """The files that don't just repeat others."""
    distinct = [file for file in files if not file.repeats]
    return distinct or list(files)


def unchanged(name: str, against: str) -> str:
    """What is said of a site without a change."""
    return f"{name}: nothing differs from {against}\n"


def _differs(change: FileChange) -> bool:
    """Whether a file differs; what only says where a bundle is from doesn't count."""
    before, after = change.before, change.after
    if is_recorded(change.path) or before is None or after is None:
        return not is_recorded(change.path)
    if change.path == MANIFEST and same_but_origin(before.data, after.data):
        return False
    return (before.text, before.mode) != (after.text, after.mode)


# Most texts are the same on all nodes, and a node has fewer files than this.
@lru_cache(maxsize=128)
def _split(text: str) -> tuple[str, ...]:
    """The lines of a text; the last one says if it does not end."""
    *lines, last = text.split("\n")
    return (*lines, last + _NO_NEWLINE) if last else tuple(lines)
