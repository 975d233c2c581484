"""Findings for programs: the forms of `validate` and `check` beside text.

Each form is a pure function from remarks, which are findings that know their places, to the whole
of what is printed on standard output, for however many sites.
"""

from collections.abc import Sequence
from pathlib import PurePath

from generator.reports import github, json_, sarif
from generator.reports.remarks import Place, Remark, remarks

__all__ = ["Place", "Remark", "remarks", "report"]


def report(form: str, found: Sequence[Remark], here: PurePath) -> str:
    """All remarks in one form: `json`, `sarif` or `github`; `here` is the current directory."""
    if form == "json":
        return json_.report(found)
    if form == "sarif":
        return sarif.report(found, here)
    return github.report(found)
