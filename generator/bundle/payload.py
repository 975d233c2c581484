"""The payload: what is the same on every node of every site, and copied as it is."""

from functools import cache

from generator.resources import TEMPLATES
from generator.site.places import is_context

FOLDER = "payload"


@cache
def copied(path: str) -> str:
    """The text of a file of the payload; `path` as in `node/verify.sh`."""
    return (TEMPLATES / FOLDER / path).read_text(encoding="utf-8")


def original(path: str) -> str:
    """Where the original of a file of a bundle would be, if that is a copy."""
    folder, _, rest = path.partition("/")
    if path.endswith("/image/build.sh") and not is_context(path):
        # There is a copy beside the image of each group.
        return "operator/image/build.sh"
    return path if folder == "operator" else f"node/{_AGAIN.get(rest, rest)}"


# What is installed besides, and where it is in a node's folder.
_AGAIN = {"opt/sparkgen/verify.sh": "verify.sh"}
