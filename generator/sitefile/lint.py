"""Runs yamllint on a site file: matters of style, as warnings."""

from collections.abc import Iterator

from yamllint import linter
from yamllint.config import YamlLintConfig

from generator.diagnostics import Finding, Severity, Span
from generator.resources import SCHEMAS
from generator.sitefile.source import Document

MAX_LINES = 5000
CONFIG = YamlLintConfig(file=SCHEMAS / "yamllint.yaml")


def lint(document: Document) -> Iterator[Finding]:
    """A warning for each of yamllint's problems; syntax errors are reported by the reader.

    yamllint takes a second for about five thousand lines, so longer files are skipped.
    """
    if document.text.count("\n") > MAX_LINES:
        return
    for problem in linter.run(document.text, CONFIG):
        if problem.rule is not None:
            line, column = problem.line - 1, problem.column - 1
            yield Finding(
                "SG011",
                Severity.WARNING,
                problem.desc,
                span=Span(line, column, line, column + 1),
                help=f"see yamllint's rule '{problem.rule}'",
            )
