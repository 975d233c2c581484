"""What a node recorded about itself: the script for it, and its result, read with caution."""

from collections.abc import Mapping

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


class CaptureError(Exception):
    """Not a capture: why, in one line, and what to do."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why = why
        self.advice = advice
