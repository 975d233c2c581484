"""What a node recorded about itself: the script for it, and its result, read with caution."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.records import record
from generator.resources import TEMPLATES

SCRIPT = TEMPLATES / "capture.sh"


def script() -> str:
    """The script that users read, and run on each node."""
    return SCRIPT.read_text(encoding="utf-8")


@record
class Capture:
    """One node: its name, the archive's name, and the archive's texts by path."""

    node: str
    archive: str
    texts: Mapping[str, str]

    def place(self, path: str) -> str:
        """The name of one of its texts in findings."""
        return f"{self.archive}:{path.removeprefix('files')}" if path else self.archive


def records(text: str) -> Iterator[tuple[str, list[Any]]]:
    """Each line's name, and the JSON values behind it; none if it is another line."""
    for line in text.split("\n"):
        label, _, rest = line.partition(" ")
        try:
            parts = re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]+', rest)
            yield label, [json.loads(part) for part in parts]
        except ValueError:
            yield label, []


class CaptureError(Exception):
    """Not a capture: why, in one line, and what to do."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why = why
        self.advice = advice
