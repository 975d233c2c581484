"""Findings and drift, in each format that `validate` and `check` print.

Each format is a pure function from remarks, which are findings with their places, to the whole
output on standard output, for any number of sites.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from generator.reports.remarks import Place, Remark, remarks

__all__ = ["Place", "Remark", "remarks", "report"]


def report(
    form: str,
    found: Sequence[Remark],
    here: PurePath,
    rest: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """All remarks in one format: `json`, `sarif` or `github`; `here` is the current directory.

    `rest` is what a command outputs in JSON besides its findings.
    """
    from generator.reports import github, json_, sarif

    if form == "json":
        return json_.report(found, rest)
    if form == "sarif":
        return sarif.report(found, here)
    return github.report(found)
