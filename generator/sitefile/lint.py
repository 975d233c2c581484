"""yamllint over a site file: matters of style, as warnings."""

from collections.abc import Iterator

from yamllint import linter
from yamllint.config import YamlLintConfig

from generator.diagnostics import Finding, Severity, Span
from generator.sitefile.source import Document

MAX_LINES = 5000

# Off: what a site file is free to do, and duplicate keys, which are an error of their own. Lists
# may stand under their keys without a step, as PyYAML writes them.
_CONFIG = """
extends: default
rules:
  comments: disable
  comments-indentation: disable
  document-start: disable
  indentation: {indent-sequences: whatever}
  key-duplicates: disable
  line-length: disable
  trailing-spaces: disable
  truthy: disable
"""


def lint(document: Document) -> Iterator[Finding]:
    """A warning for each of yamllint's problems; syntax errors are the reader's to report.

    yamllint takes a second for some five thousand lines: a longer file is left alone.
    """
    if document.text.count("\n") > MAX_LINES:
        return
    for problem in linter.run(document.text, YamlLintConfig(_CONFIG)):
        if problem.rule is None:
            continue
        line, column = problem.line - 1, problem.column - 1
        yield Finding(
            "SG011",
            Severity.WARNING,
            problem.desc,
            span=Span(line, column, line, column + 1),
            help=f"see yamllint's rule '{problem.rule}'",
        )
