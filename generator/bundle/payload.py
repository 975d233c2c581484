"""The payload: what is the same on every node of every site, and copied as it is."""

from functools import cache

from generator.resources import TEMPLATES

FOLDER = "payload"


@cache
def copied(path: str) -> str:
    """The text of a file of the payload; `path` as in `node/verify.sh`."""
    return (TEMPLATES / FOLDER / path).read_text(encoding="utf-8")


def original(path: str) -> str:
    """Where the original of a file of a bundle would be, if that is a copy."""
    folder, _, rest = path.partition("/")
    return path if folder == "operator" else f"node/{_AGAIN.get(rest, rest)}"


# What is installed besides, and where it is in a node's folder.
_AGAIN = {"opt/sparkgen/verify.sh": "verify.sh"}
