"""Conflict markers that git leaves in a file where two branches changed the same lines."""

import re

_CONFLICT = (
    rb"^<<<<<<< [^\n]*\n(?P<ours>.*?)(?:^\|{7} [^\n]*\n.*?)?"
    rb"^=======\n(?P<theirs>.*?)^>>>>>>> [^\n]*\n"
)


def is_conflicted(data: bytes) -> bool:
    """Whether a file has an unresolved conflict."""
    return re.search(_CONFLICT, data, re.MULTILINE | re.DOTALL) is not None


def sides(data: bytes) -> tuple[bytes, bytes]:
    """The file as each of the two branches has it; twice the same if there is no conflict."""
    flags = re.MULTILINE | re.DOTALL
    return (
        re.sub(_CONFLICT, rb"\g<ours>", data, flags=flags),
        re.sub(_CONFLICT, rb"\g<theirs>", data, flags=flags),
    )
