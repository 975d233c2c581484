"""What nothing can be said about: a capture lacks it, or no capture has it."""

from collections.abc import Iterator

from generator.capture import Capture
from generator.drift.installed import FIREWALL, SYSCTL
from generator.drift.seen import OWN, Seen
from generator.site import Site

# What a bundle describes, and no capture has.
NEVER = "the values of secrets, and what is in weights beside their size"


def uncaptured(site: Site, seen: Seen) -> Iterator[str]:
    """The parts of a node that its bundle describes and its capture doesn't show."""
    node, files, texts = seen.node, seen.files, seen.capture.texts
    parts = [part for part, _ in site.parts_of(node.name) if part.is_active]
    composed = any("container_name:" in file.text for file in files.values())
    needed = {
        f"{OWN}SHA256SUMS": ("which files are installed", True),
        "commands/ip-addr.json": ("addresses and links", bool(node.interfaces)),
        "commands/ip-route.json": ("routes", bool(node.routes)),
        "commands/sysctl-own.txt": ("the kernel's settings", SYSCTL in files),
        "commands/ufw.txt": ("the firewall", f"etc/sparkgen/{FIREWALL}" in files),
        "commands/units.txt": ("the state of its units", _has_units(seen)),
        "commands/docker-info.txt": ("containers", composed),
        "commands/gpu.txt": ("what computes on the GPU", bool(parts)),
        "commands/models.txt": ("models", any(part.model.downloads for part in parts)),
    }
    yield from (what for path, (what, is_due) in needed.items() if is_due and path not in texts)
    for path, there in seen.installed.items():
        if there.state == "unreadable":
            yield f"/{path}, which only root can read"
    for path in ("etc/nccl.conf", "etc/sparkgen/engine.env"):
        if is_unreadable(seen.capture, path) and path not in seen.installed:
            yield f"/{path}, which only root can read"


def _has_units(seen: Seen) -> bool:
    return any(path.endswith((".service", ".timer")) for path in seen.files)


def is_unreadable(capture: Capture, path: str) -> bool:
    """Whether capture.sh could not read a file."""
    log = capture.texts.get("capture.txt", "").splitlines()
    return f"can't be read without root: {path}" in log
