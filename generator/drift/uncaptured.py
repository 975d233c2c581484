"""What nothing can be said about: a capture lacks it, or no capture has it."""

from collections.abc import Iterator

from generator.capture import Capture
from generator.site import Node, Site

# What a bundle installs, and no capture has.
NEVER = (
    "files other than nccl.conf and units, services beside the engine, the firewall and the "
    "kernel's settings"
)


def uncaptured(site: Site, node: Node, capture: Capture) -> Iterator[str]:
    """The parts of a node that its bundle describes and its capture doesn't show."""
    parts = [part for part, _ in site.parts_of(node.name) if part.is_active]
    needed = {
        "commands/ip-addr.json": ("addresses and links", bool(node.interfaces)),
        "commands/units.txt": ("the state of its units", bool(parts)),
        "commands/docker-info.txt": ("containers", any(not part.engine.venv for part in parts)),
        "commands/models.txt": ("models", any(part.model.downloads for part in parts)),
    }
    yield from (
        what for path, (what, is_due) in needed.items() if is_due and path not in capture.texts
    )
    for path in ("etc/nccl.conf", "etc/sparkgen/engine.env"):
        if is_unreadable(capture, path):
            yield f"/{path}, which only root can read"


def is_unreadable(capture: Capture, path: str) -> bool:
    """Whether capture.sh could not read a file."""
    log = capture.texts.get("capture.txt", "").splitlines()
    return f"can't be read without root: {path}" in log
