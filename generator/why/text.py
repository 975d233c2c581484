"""The origins of lines as text: one line in detail, or a whole file in brief."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.diagnostics import path_text, visible
from generator.sitefile import redaction
from generator.sitefile.source import Document
from generator.why.lines import Because, SourceLine


def line(because: Because, document: Document) -> str:
    """One line: its templates, and each value with the lines of the site file."""
    texts = {part.name: redaction.shown(part).split("\n") for part in document.files}
    return "\n".join(_line(because, texts, document.name)) + "\n"


def file(lines: Sequence[Because]) -> str:
    """All lines of a file, each with its template and keys."""
    width = len(str(len(lines)))
    shown = []
    for because in lines:
        shown.append(f"{because.number:>{width}} | {because.text}".rstrip())
        keys = [_short(source) for value in because.values for source in value.sources]
        origin = ", ".join(dict.fromkeys([*because.printed_by, *keys]))
        shown.append(f"{'':{width}} = {origin}")
    return "\n".join(shown) + "\n"


def data(path: str, lines: Sequence[Because]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "file": path,
        "lines": [
            {
                "line": because.number,
                "text": because.text,
                "printedBy": list(because.printed_by),
                "values": [
                    {
                        "name": value.name,
                        "how": value.how,
                        "from": [
                            {
                                "path": path_text(source.path),
                                "line": source.line,
                                **({"file": source.file} if source.file else {}),
                            }
                            for source in value.sources
                        ],
                    }
                    for value in because.values
                ],
            }
            for because in lines
        ],
    }


def _line(because: Because, texts: Mapping[str, Sequence[str]], name: str) -> Iterator[str]:
    yield because.text
    for place in because.printed_by:
        yield f"  printed by {place}"
    if not because.values:
        yield "  the same in every bundle"
    for value in because.values:
        yield f"  {value.name}: {value.how}"
        for each in value.sources:
            key = visible(path_text(each.path))
            if each.line is None:
                yield f"    {key} is not written: its default"
            else:
                file = each.file or name
                written = visible(texts[file][each.line - 1].strip())
                yield f"    {file}:{each.line}: {written} ({key})"


def _short(source: SourceLine) -> str:
    key = visible(path_text(source.path))
    if not source.line:
        return f"{key} (default)"
    return f"{key} (line {source.line}{f' of {source.file}' if source.file else ''})"
