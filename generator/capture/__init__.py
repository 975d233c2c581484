"""What a node recorded of itself: the script that does it, and what came of it, read with care."""

from collections.abc import Mapping

from generator.records import record
from generator.resources import TEMPLATES

SCRIPT = TEMPLATES / "capture.sh"


def script() -> str:
    """The script that people read and run on each node."""
    return SCRIPT.read_text(encoding="utf-8")


@record
class Capture:
    """One node: its name, the archive's name, and the texts in it by their paths."""

    node: str
    archive: str
    texts: Mapping[str, str]

    def place(self, path: str) -> str:
        """What a finding calls one of its texts."""
        return f"{self.archive}:{path.removeprefix('files')}" if path else self.archive


class CaptureError(Exception):
    """What is no capture: why in one line, and what to do."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why = why
        self.advice = advice
