"""Reads sites that have no errors."""

from pathlib import Path

from generator.pipeline import ValidReading, read_site
from generator.reports.text import text
from generator.resources import ROOT
from generator.sitefile.beside import ReadBeside, nothing_beside
from generator.sitefile.disk import beside

# Those beside `more/` have their bundles in `out/`.
EXAMPLES = {path.stem: path for path in sorted((ROOT / "sites").rglob("*.yaml"))}


def valid(
    content: str | bytes, name: str = "site.yaml", files: ReadBeside = nothing_beside
) -> ValidReading:
    """A site file with this content; any error in it fails the test."""
    raw = content.encode() if isinstance(content, str) else content
    reading = read_site(name, raw, files)
    found = reading.valid
    assert found, text(reading.document, reading.findings)
    return found


def valid_file(path: Path) -> ValidReading:
    """A site file, read together with the files that it names."""
    return valid(path.read_bytes(), path.name, beside(path))
