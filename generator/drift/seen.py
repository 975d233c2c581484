"""A captured node beside what its bundle says of it."""

import json
import re
from collections.abc import Mapping
from typing import Any

from generator.adoption.found import FoundNode
from generator.bundle.tree import File
from generator.capture import Capture
from generator.diagnostics import Severity
from generator.records import record
from generator.reports.remarks import Place, Remark
from generator.rules.registry import documented
from generator.site import Node, Part, Site

OWN = "files/etc/sparkgen/bundle/"
# In place of a rule, if a comparison was not possible.
UNCAPTURED = ""


def remark(rule: str, message: str, advice: str, place: Place) -> Remark:
    """A remark with the severity of its rule."""
    return Remark(rule, documented()[rule].severity, message, advice, place)


@record
class Installed:
    """An installed file: `same`, `edited`, `missing` or `unreadable`, its mode and its time.

    The time is that of its last change, in seconds since 1970.
    """

    state: str
    mode: int = 0
    changed: int = 0


@record
class Seen:
    """A node of a site, its capture, and the files of its bundle by their paths on the node."""

    site: Site
    node: Node
    capture: Capture
    found: FoundNode
    files: Mapping[str, File]

    def remark(self, rule: str, message: str, advice: str, path: str = "") -> Remark:
        """A remark about this node."""
        place = Place(self.capture.place(path))
        return remark(rule, f"{self.node.name}: {message}", advice, place)

    def lacks(self, what: str) -> Remark:
        """What the bundle describes and the capture doesn't show, so that it is not compared."""
        return Remark(UNCAPTURED, Severity.NOTE, what, "", Place(self.capture.archive))

    def parsed(self, path: str) -> list[Mapping[str, Any]]:
        """The objects of a text in JSON; empty if it is not a list of them."""
        try:
            data = json.loads(self.text(path))
        except (ValueError, RecursionError):
            return []
        return [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []

    def hub(self, part: Part) -> str:
        """The cache that an engine on this node reads its model from."""
        own = (node.env for node in part.nodes if node.name == self.node.name)
        return next((env.get("HF_HUB_CACHE", "") for env in own), "")

    def text(self, path: str) -> str:
        """A text of the capture, empty if it has none."""
        return self.capture.texts.get(path, "")

    @property
    def is_recorded(self) -> bool:
        """Whether the node says which bundle was installed."""
        return f"{OWN}SHA256SUMS" in self.capture.texts

    @property
    def recorded(self) -> Mapping[str, str]:
        """The checksums of the files that were installed."""
        rows = re.findall(r"(?m)^([0-9a-f]{64})  ((?:etc|opt)/.+)$", self.text(f"{OWN}SHA256SUMS"))
        return {path: checksum for checksum, path in rows}

    @property
    def installed(self) -> Mapping[str, Installed]:
        """How the installed files are now."""
        line = r"(?m)^(same|edited|missing|unreadable) (\S+)(?: ([0-7]+) ([0-9]+))?$"
        rows = re.findall(line, self.text("commands/installed.txt"))
        # Without a time there is no mode either: zero.
        return {path: Installed(own, int(f"0{m}", 8), int(f"0{t}")) for own, path, m, t in rows}

    @property
    def stale(self) -> list[str]:
        """The files that another bundle has installed, or not installed."""
        wanted = {path: file.sha256 for path, file in self.files.items()}
        known = self.recorded
        return sorted(p for p in wanted.keys() | known.keys() if wanted.get(p) != known.get(p))
