"""Mistakes that people published: one finding at the right line, with what to write."""

from typing import NamedTuple

import pytest
import yaml
from valid_sites import EXAMPLES

from generator.pipeline import read_site
from generator.reports.text import place
from generator.resources import ROOT


class Published(NamedTuple):
    """A mistake in an example site; `at` is part of its line, `says` of the help."""

    source: str
    site: str
    old: str
    new: str
    at: str
    says: str


MISTAKES = [
    Published(**entry)
    for entry in yaml.load((ROOT / "tests/typos/published.yaml").read_bytes(), yaml.CSafeLoader)
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.new.strip()[:30])
def test_published_mistake_is_one_finding_that_says_what_to_write(mistake: Published) -> None:
    right = EXAMPLES[mistake.site].read_text("utf-8")
    assert mistake.old in right
    reading = read_site("site.yaml", right.replace(mistake.old, mistake.new, 1).encode())
    (finding,) = reading.findings
    line = reading.document.text.split("\n")[place(reading.document, finding).line]
    assert mistake.at in line
    assert mistake.says in f"{finding.message}; {finding.help}"
