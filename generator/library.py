"""What programs that build on sparkgen may use: `import generator`.

    site_file = generator.read("sites/lab.yaml")
    for finding in site_file.findings:
        print(finding.rule, finding.place.line, finding.message)
    for path, file in site_file.tree().items():
        print(path, len(file.data))

Nothing here writes, prints or ends the process. The names in this module are stable; everything
else in the package may change with any version.
"""

import os
from pathlib import Path

from generator.bundle.render import render
from generator.bundle.tree import File as File
from generator.bundle.tree import Tree as Tree
from generator.diagnostics import Severity as Severity
from generator.diagnostics import has_errors
from generator.pipeline import Reading, read_site
from generator.records import record
from generator.reports.remarks import Place as Place
from generator.reports.remarks import Remark, remarks
from generator.reports.text import text
from generator.site import Site as Site
from generator.sitefile.beside import ReadBeside, nothing_beside
from generator.sitefile.disk import beside, contents

Finding = Remark


@record
class SiteFile:
    """A site file that has been read; `reading` is sparkgen's internal view, which may change."""

    reading: Reading

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the file's lines."""
        return tuple(remarks(self.reading.document, self.reading.findings))

    @property
    def is_valid(self) -> bool:
        """Whether no finding is an error."""
        return not has_errors(self.reading.findings)

    @property
    def site(self) -> Site | None:
        """The derived site: ranks, addresses, environments, commands; None if there are errors."""
        return self.reading.site

    def report(self) -> str:
        """The findings as `sparkgen validate` prints them, empty if there are none."""
        return text(self.reading.document, self.reading.findings)

    def tree(self) -> Tree:
        """The files of the bundle by path; raises ValueError with the findings on an error."""
        if self.reading.site is None:
            raise ValueError(self.report())
        return render(self.reading.site, self.reading.sha256, texts=self.reading.texts)


def read(path: str | os.PathLike[str]) -> SiteFile:
    """Read a site file and the files it names beside it; raises OSError if it can't be read."""
    file = Path(path)
    return SiteFile(read_site(str(file), contents(file), beside(file)))


def parse(
    content: str | bytes, name: str = "site.yaml", files: ReadBeside = nothing_beside
) -> SiteFile:
    """Read the content of a site file; findings refer to it as `name`."""
    raw = content.encode() if isinstance(content, str) else content
    return SiteFile(read_site(name, raw, files))
