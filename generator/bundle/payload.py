"""The payload: files that are the same on every node of every site, copied as they are."""

from functools import cache

from generator.resources import TEMPLATES
from generator.site.places import is_context

FOLDER = "payload"


@cache
def copied(path: str) -> str:
    """The text of a file of the payload; `path` as in `node/verify.py`."""
    return (TEMPLATES / FOLDER / path).read_text(encoding="utf-8")


def is_copied(path: str) -> bool:
    """Whether the payload has that file."""
    return (TEMPLATES / FOLDER / path).is_file()


def original(path: str) -> str:
    """The original of a bundle's file, if it is a copy of the payload."""
    folder, _, rest = path.partition("/")
    if path.endswith("/image/build.sh") and not is_context(path):
        # Each group's image has a copy of its own.
        return "operator/image/build.sh"
    if folder == "jobs":
        return f"jobs/{rest.rpartition('/')[2]}"
    return path if folder == "operator" else _AGAIN.get(rest, f"node/{rest}")


# Files that a node's folder has, or has again, in another place.
_AGAIN = {
    "opt/sparkgen/reasons.sh": "operator/reasons.sh",
    "opt/sparkgen/verify.py": "node/verify.py",
}
