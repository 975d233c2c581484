"""Units: there, running, started at boot, and as their files say."""

import re
from collections.abc import Iterator, Mapping

from generator.diagnostics import listed
from generator.drift.installed import INSTALL
from generator.drift.seen import Seen
from generator.reports.remarks import Remark
from generator.site import Site

_UNIT = re.compile(r"sparkgen-[a-z0-9-]+\.(service|timer)")
_FOLDER = "etc/systemd/system/"
_PROPERTIES = ("ActiveState", "UnitFileState", "DropInPaths", "NeedDaemonReload")
_STARTED = ("active", "activating")
_PATH = "commands/units.txt"


def units(site: Site, seen: Seen) -> Iterator[Remark]:
    """How units differ from what the bundle says of them."""
    known = _known(seen)
    names = (path.removeprefix(_FOLDER) for path in seen.files if path.startswith(_FOLDER))
    own = set(filter(_UNIT.fullmatch, names))
    if own and _PATH not in seen.capture.texts:
        yield seen.lacks("the state of its units")
    for name in sorted(own):
        is_known = name in known or _PATH not in seen.capture.texts
        if not is_known or f"files/{_FOLDER}{name}" not in seen.capture.texts:
            yield seen.remark("SG866", f"there is no unit {name}", INSTALL, _PATH)
    waiting = _waiting(site, seen, known)
    for unit, instead in waiting.items():
        yield from _in_place_of(site, seen, unit, instead, known)
    for name, properties in known.items():
        if name in own:
            yield from _as_written(seen, name, properties)
            is_asked_for = properties.get("UnitFileState") == "static" and name.endswith(".service")
            if not is_asked_for and name not in waiting:
                yield from _state(seen, name, properties)
        elif _UNIT.fullmatch(name) and (
            properties.get("ActiveState") in _STARTED
            or properties.get("UnitFileState") == "enabled"
        ):
            message = f"{name} is not of this bundle, and runs or starts at boot"
            yield seen.remark("SG866", message, f"systemctl disable --now {name}", _PATH)


def _known(seen: Seen) -> dict[str, dict[str, str]]:
    """The properties of each unit."""
    blocks = (
        dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        for block in seen.text(_PATH).split("\n\n")
    )
    return {properties.get("Id", ""): properties for properties in blocks}


def _in_place_of(
    site: Site, seen: Seen, unit: str, instead: str, known: Mapping[str, Mapping[str, str]]
) -> Iterator[Remark]:
    part = next(p for p in site.groups if f"{p.unit}.service" == unit)
    if part.is_active:
        message = f"{instead} runs in place of {unit}, which the site names"
        advice = f"operator/switch.sh {part.group}, or write another group as 'active'"
        yield seen.remark("SG866", message, advice, _PATH)
    if known.get(unit, {}).get("UnitFileState") == "enabled":
        message = f"{unit} starts at boot, and {instead} runs in its place"
        yield seen.remark("SG866", message, f"systemctl disable {unit}", _PATH)


def _as_written(seen: Seen, name: str, properties: Mapping[str, str]) -> Iterator[Remark]:
    """Whether systemd has read a unit's file, and nothing else."""
    unknown = [key for key in _PROPERTIES if key not in properties]
    if unknown:
        yield seen.lacks(f"{listed(unknown, 'and')} of {name}")
    if more := properties.get("DropInPaths"):
        advice = "add its settings to the site, or delete it"
        yield seen.remark("SG891", f"{name} is changed by {more}", advice, _PATH)
    if properties.get("NeedDaemonReload") == "yes":
        message = f"applied, not restarted: systemd has not read {name} again"
        yield seen.remark("SG892", message, "systemctl daemon-reload", _PATH)


def _state(seen: Seen, name: str, properties: Mapping[str, str]) -> Iterator[Remark]:
    state = properties.get("ActiveState", "")
    if state not in ("", *_STARTED) or properties.get("SubState", "").startswith("auto-restart"):
        message = f"{name} is {state} ({properties.get('SubState', '')})"
        yield seen.remark("SG866", message, f"journalctl -u {name} says why", _PATH)
    if properties.get("UnitFileState") in ("disabled", "masked"):
        message = f"{name} is not started at boot"
        yield seen.remark("SG866", message, f"systemctl enable {name}", _PATH)


def _waiting(site: Site, seen: Seen, units: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The units on a node that wait for their turn, with the one that has it."""
    found: dict[str, str] = {}
    for slot in site.slots_of(seen.node.name):
        names = [f"{part.unit}.service" for part in slot]
        # If none of them runs, the one that should be running is reported.
        running = [n for n in names if units.get(n, {}).get("ActiveState") in _STARTED]
        turn = running[0] if running else names[0]
        found |= {name: turn for name in names if name != turn}
    return found
