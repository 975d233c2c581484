"""Sections whose own key is missing, so that their keys end up in the section above."""

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from generator.diagnostics import Finding, KeyPath, Rewrite, Span, reading_error
from generator.records import record
from generator.sitefile.sections import entry_keys, section_keys, site_schema
from generator.sitefile.source import Document


@record
class LostSection:
    """A section without its own key; `path` is that of its first key, and `line` its place."""

    name: str
    path: KeyPath
    line: int

    @property
    def finding(self) -> Finding:
        """The one mistake behind all errors about these keys."""
        return reading_error(
            "SG102",
            f"the key '{self.name}' is missing above its content",
            self.path,
            at_key=True,
            help=f"write '{self.name}:' on a line of its own before this one",
            span=Span(self.line, 0, self.line, 1),
            proposals=((Rewrite(Span(self.line, 0, self.line, 0), f"{self.name}:\n"),),),
        )

    def explains(self, path: KeyPath) -> bool:
        """Whether the missing section key is the only thing wrong there."""
        if path == (self.name,):
            return True
        if path[:1] != self.path[:1]:
            return False
        # In a list, all entries from the first one on belong to the section.
        first, entry = self.path[1], path[1] if len(path) > 1 else None
        if isinstance(first, int) and isinstance(entry, int):
            return entry >= first
        return path[-1] in section_keys()[self.name]


class Explanation(Protocol):
    """A mistake that is the cause of others."""

    def explains(self, path: KeyPath) -> bool:
        """Whether it is the only thing wrong there."""


def is_explained(found: Iterable[Explanation], path: KeyPath) -> bool:
    """Whether one of these is the only thing wrong there."""
    return any(one.explains(path) for one in found)


_WANTED = {"required", "dependencies"}


def lost_sections(
    missing: Collection[str], unknown: Iterable[KeyPath], document: Document
) -> Iterator[LostSection]:
    """Missing sections whose keys are unknown, or written twice, in another section."""
    unknown = list(unknown)
    twice = {finding.path: finding.span for finding in document.findings if finding.rule == "SG003"}
    strays = [path for path in (*unknown, *twice) if len(path) in (2, 3)]
    # Optional sections are not missed.
    lost = [name for name in missing if _WANTED & site_schema()[name].keys()] or [*missing]
    for section in missing:
        keys = section_keys().get(section, frozenset())
        own = [path for path in strays if path[-1] in keys]
        # A single key may be a slip; a section brings all of its required keys, or several keys.
        needed = _needed(section)
        alone = not needed and lost == [section] and any(path in unknown for path in own)
        if own and (needed <= {path[-1] for path in own} if needed else alone or len(own) > 1):
            spans = ((twice.get(path) or document.locate(path, at_key=True), path) for path in own)
            line, path = min((span.line, path) for span, path in spans if span)
            yield LostSection(section, path, line)


def _needed(section: str) -> set[str | int]:
    return {key for key, rules in entry_keys(section).items() if rules.get("required")}
