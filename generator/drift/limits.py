"""What containers may use of their node, compared with the Compose files of the bundle."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.adoption.found import REMOVED
from generator.adoption.limits import size_in_bytes
from generator.capture import records
from generator.drift.seen import Seen
from generator.reports.remarks import Remark

# What a capture calls it: Compose's key, and what Docker has without it; None: the image's own.
_SINGLE: Mapping[str, tuple[str, Any]] = {
    "restart": ("restart", "no"),
    "privileged": ("privileged", False),
    "pid": ("pid", ""),
    **{
        name: (name.replace("network", "network_mode"), None) for name in ("network", "ipc", "user")
    },
    "shm-size": ("shm_size", None),
    "memory": ("mem_limit", 0),
    "cpus": ("cpuset", ""),
    "init": ("init", None),
}
_There = Mapping[str, Sequence[Sequence[Any]]]


def limits(seen: Seen, service: Mapping[str, Any], advice: str) -> Iterator[Remark]:
    """How a running container differs from its service in a Compose file."""
    name = service["container_name"]
    path = f"containers/{name}.txt"
    there: dict[str, list[Sequence[Any]]] = {}
    for label, values in ((label, own) for label, own in records(seen.text(path)) if own):
        there.setdefault(label, []).append(values)
    for difference in (*_settings(service, there), *_parts(service, there)):
        yield seen.remark("SG868", f"{name} runs {difference}", advice, path)


def _settings(service: Mapping[str, Any], there: _There) -> Iterator[str]:
    for label, (key, usual) in _SINGLE.items():
        wanted = service.get(key, usual)
        has = _plain(there[label][0][0]) if label in there else None
        if None not in (has, wanted) and has != _plain(wanted):
            yield f"with {key} {has or 'none'}, not {_plain(wanted) or 'none'}"


def _parts(service: Mapping[str, Any], there: _There) -> Iterator[str]:
    for label, own in _lists(service).items():
        # Captures of earlier releases have no limits, and Docker itself makes volumes.
        given = there.get(label, ()) if label in there or "init" in there else None
        has = {" ".join(map(_plain, values)) for values in given or ()}
        has = {text for text in has if not text.startswith("/var/lib/docker/")}
        if given is None or REMOVED in "".join(has):
            continue
        for text in sorted(own ^ has):
            yield f"{'without' if text in own else 'with'} the {label} {text}"


def _lists(service: Mapping[str, Any]) -> Mapping[str, set[str]]:
    """What a Compose file lists, as a capture has it."""
    ulimits = service.get("ulimits", {}).items()
    return {
        "cap-add": set(map(_plain, service.get("cap_add", ()))),
        "cap-drop": set(map(_plain, service.get("cap_drop", ()))),
        "device": {str(device).partition(":")[0] for device in service.get("devices", ())},
        "ulimit": {f"{name} {own['hard']}" for name, own in ulimits},
        "mount": {_mount(own) for own in service.get("volumes", ())},
    }


def _mount(given: Mapping[str, Any] | str) -> str:
    """Where it comes from and goes, and whether it is writable."""
    if isinstance(given, str):
        source, target, *mode = given.split(":")
        return f"{source} {target} {_plain(mode != ['ro'])}"
    return f"{given['source']} {given['target']} {_plain(not given.get('read_only'))}"


def _plain(value: Any) -> str:
    """A value without its unit, and a capability without its prefix."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    size = size_in_bytes(text)
    return text.removeprefix("CAP_") if size is None else str(size)
