"""Findings in several files as text, each with the line that it is about."""

import re
from collections.abc import Iterator, Mapping, Sequence

from generator.diagnostics import Finding, Span
from generator.reports.remarks import Place, Remark
from generator.reports.text import advice, count, heading, plain, snippet
from generator.sitefile.redaction import blanked, is_secret_key

# A name and its value, in a command or in a file.
_ASSIGNMENT = re.compile(
    r"""(?<![\w.-])(--?)?([A-Za-z0-9_.-]++)(["']?[ \t]*[:=][ \t]*|[ \t]+)"""
    r"""("[^"]*"|'[^']*'|[^\s"']+)"""
)


def text(found: Sequence[Remark], texts: Mapping[str, str], color: bool = False) -> str:
    """Every remark with its place, and a line that counts them; empty if there are none."""
    if not found:
        return ""
    blocks = ["\n".join(_block(remark, texts, color)) for remark in found]
    findings = [Finding(remark.rule, remark.severity, remark.message) for remark in found]
    files = {remark.place.file for remark in found}
    where = f"{len(files)} files" if len(files) > 1 else plain(files.pop())
    return "\n\n".join([*blocks, f"{count(findings)} in {where}"]) + "\n"


def _block(remark: Remark, texts: Mapping[str, str], color: bool) -> Iterator[str]:
    yield heading(remark.severity, remark.rule, remark.message, color)
    span = remark.place.span
    yield f" --> {_where(remark.place)}"
    gutter = " " * len(str(span.line + 1 if span else 1))
    line = _line(texts, remark.place.file, span)
    if span and line.strip():
        yield from snippet(line, span)
    for note, place in remark.related:
        yield f"{gutter} = note: {plain(note)} at {_where(place)}"
    yield f"{gutter} = help: {advice(remark.rule, remark.help)}"


def _where(place: Place) -> str:
    span = place.span
    return plain(place.file) + (f":{span.line + 1}:{span.column + 1}" if span else "")


def _line(texts: Mapping[str, str], file: str, span: Span | None) -> str:
    lines = texts.get(file, "").split("\n")
    return shown(lines[span.line]) if span and span.line < len(lines) else ""


def shown(line: str) -> str:
    """A line of a user's file for a terminal, with asterisks in place of every secret."""

    def hidden(match: re.Match[str]) -> str:
        dashes, name, between, value = match.groups()
        if not is_secret_key(name) or (not dashes and not between.strip()):
            return match[0]
        return f"{dashes or ''}{name}{between}{re.sub(r'[^ ]', '*', value)}"

    return _ASSIGNMENT.sub(hidden, blanked(line))
