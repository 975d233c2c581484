"""What containers may use of their node, compared with the Compose files of the bundle."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.adoption.found import REMOVED
from generator.adoption.limits import size_in_bytes
from generator.capture import records
from generator.diagnostics import listed
from generator.drift.seen import Seen
from generator.reports.remarks import Remark
from generator.resources import rows

_SINGLE = {
    label: (key, [] if usual == "?" else usual.split("|"))
    for label, key, usual in rows("container-settings")
}
_There = Mapping[str, Sequence[Sequence[Any]]]


def limits(seen: Seen, service: Mapping[str, Any], advice: str) -> Iterator[Remark]:
    """How a running container differs from its service in a Compose file."""
    name = service["container_name"]
    path = f"containers/{name}.txt"
    there = _there(seen, name)
    unknown = [key for label, (key, _) in _SINGLE.items() if label not in there]
    if unknown:
        yield seen.lacks(f"{listed(unknown, 'and')} of {name}")
    for difference in (*_settings(service, there), *_parts(service, there)):
        yield seen.remark("SG868", f"{name} runs {difference}", advice, path)


def words(seen: Seen, service: Mapping[str, Any]) -> list[str]:
    """The words that a service's container should run: those of its image if it has none."""
    there = _there(seen, service["container_name"])
    entrypoint = service.get("entrypoint") or _texts(there, "image-entrypoint")
    # Docker drops the image's command if there is another entrypoint.
    of_image = [] if "entrypoint" in service else _texts(there, "image-cmd")
    return [str(word) for word in (*entrypoint, *(service.get("command") or of_image))]


def _texts(there: _There, label: str) -> list[str]:
    return [str(values[0]) for values in there.get(label, ())]


def _there(seen: Seen, name: str) -> dict[str, list[Sequence[Any]]]:
    """What a capture has of a container and its image, by its names for it."""
    there: dict[str, list[Sequence[Any]]] = {}
    for label, values in records(seen.text(f"containers/{name}.txt")):
        if values:
            there.setdefault(label, []).append(values)
    return there


def _settings(service: Mapping[str, Any], there: _There) -> Iterator[str]:
    users = _texts(there, "image-user")[:1]
    for label, (key, usual) in _SINGLE.items():
        unsaid = users if key == "user" else usual
        wanted = [_plain(service[key])] if key in service else unsaid
        has = _plain(there[label][0][0]) if label in there else None
        if has is not None and wanted and has not in wanted:
            yield f"with {key} {has or 'none'}, not {wanted[0] or 'none'}"


def _parts(service: Mapping[str, Any], there: _There) -> Iterator[str]:
    for label, own in _lists(service).items():
        # Captures of earlier releases lack some, and Docker itself makes volumes.
        since = "read-only" if label == "security-opt" else "init"
        given = there.get(label, ()) if label in there or since in there else None
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
        "security-opt": set(service.get("security_opt", ())),
        "mount": {_mount(own) for own in service.get("volumes", ())},
    }


def _mount(given: Mapping[str, Any] | str) -> str:
    """Where it comes from and goes, and whether it is writable."""
    if isinstance(given, str):
        source, target, *mode = given.split(":")
        return f"{source} {target} {_plain(mode != ['ro'])}"
    return f"{given['source']} {given['target']} {_plain(not given.get('read_only'))}"


def _plain(value: Any) -> str:
    """A value without its unit, and a capability without its prefix; empty if there is none."""
    text = str(value).lower() if isinstance(value, bool) else str("" if value is None else value)
    size = size_in_bytes(text)
    return text.removeprefix("CAP_") if size is None else str(size)
