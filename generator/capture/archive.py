"""Reads an archive from anywhere: in memory, bounded, and rejected if it is not a capture.

Nothing in it is ever written to disk, so that no path in it can lead anywhere.
"""

import io
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping

from generator.capture import Capture, CaptureError

MAX_ARCHIVE_BYTES = 16 << 20
_MAX_BYTES = 48 << 20
_MAX_FILE_BYTES = 1 << 20
_MAX_FILES = 2000
# The output of programs may be long; none of a node's own files that are taken is.
_PRINTED = "commands/"
_MAX_OWN_BYTES = 256 << 10
# Twice the number that capture.sh takes, and more than anybody has.
_MOST = {"containers/": 60, "processes/": 40, "images/": 200, "files/": 400}
_MAX_PATH = 255

_NODE = r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}"
_PATH = r"(?!.*(^|/)\.\.?(/|$))[A-Za-z0-9._@+:-]+(/[A-Za-z0-9._@+:-]+){0,12}"
_FORBIDDEN = re.compile(r"[^\n\t\x20-\x7e]")
_HEAD = "# sparkgen capture 1\n"

_ANEW = "capture the node again: sparkgen capture > capture.sh, and on the node sh capture.sh"
_NOBODY = "it was not written by capture.sh: ask whoever sent it, and do not unpack it"


def read(name: str, raw: bytes) -> Capture:
    """The texts of a capture; raises CaptureError for anything else."""
    if not raw.startswith(b"\x1f\x8b"):
        raise CaptureError("it is not a gzip archive", _ANEW)
    if len(raw) > MAX_ARCHIVE_BYTES:
        raise CaptureError(f"it has more than {MAX_ARCHIVE_BYTES >> 20} MiB", _NOBODY)
    texts: dict[str, str] = {}
    nodes = set()
    for member, data in _members(_unpacked(raw)):
        node, _, path = member.partition("/")
        nodes.add(node)
        if path in texts:
            raise CaptureError(f"{_shown(member)} is in it twice", _NOBODY)
        texts[path] = _text(member, data)
    _refuse_many(texts)
    if len(nodes) != 1 or not re.fullmatch(_NODE, node := nodes.pop()):
        raise CaptureError("its files are not those of one node", _NOBODY)
    if not texts.get("capture.txt", "").startswith(_HEAD):
        raise CaptureError("it has no capture.txt of this version", _ANEW)
    return Capture(node, name, texts)


def _refuse_many(texts: Mapping[str, str]) -> None:
    for folder, most in _MOST.items():
        if sum(path.startswith(folder) for path in texts) > most:
            raise CaptureError(f"it has more than {most} files in {folder}", _NOBODY)
    for path, text in texts.items():
        if len(text) > _MAX_OWN_BYTES and not path.startswith(_PRINTED):
            raise CaptureError(f"{path} has more than {_MAX_OWN_BYTES >> 10} KiB", _NOBODY)


def _unpacked(raw: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        data = unpacker.decompress(raw, _MAX_BYTES)
    except zlib.error:
        raise CaptureError("its gzip is damaged", _ANEW) from None
    if unpacker.unconsumed_tail:
        raise CaptureError(f"it unpacks to more than {_MAX_BYTES >> 20} MiB", _NOBODY)
    if not unpacker.eof:
        raise CaptureError("it is cut off", _ANEW)
    if unpacker.unused_data:
        raise CaptureError("there is data after its end", _NOBODY)
    return data


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The regular files, by path; anything else except folders is rejected."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for count, member in enumerate(tar):
                _refuse(member, count)
                if member.isreg():
                    stream = tar.extractfile(member)
                    yield member.name, stream.read() if stream else b""
    except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError):
        raise CaptureError("its tar is damaged", _ANEW) from None


def _refuse(member: tarfile.TarInfo, count: int) -> None:
    shown = _shown(member.name)
    if member.pax_headers:
        raise CaptureError(f"{shown} has another header than capture.sh writes", _NOBODY)
    if len(member.name) > _MAX_PATH or not re.fullmatch(_PATH, member.name):
        raise CaptureError(f"{shown} is not a path of a capture", _NOBODY)
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise CaptureError(f"{shown} is a {_kind(member)}", _NOBODY)
    if member.size > _MAX_FILE_BYTES:
        raise CaptureError(f"{shown} has more than {_MAX_FILE_BYTES >> 20} MiB", _NOBODY)
    if count >= _MAX_FILES:
        raise CaptureError(f"it has more than {_MAX_FILES} files", _NOBODY)


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "link"
    return "device" if member.isdev() else "file of an unknown kind"


def _text(member: str, data: bytes) -> str:
    text = data.decode("latin-1")
    if found := _FORBIDDEN.search(text):
        line = text.count("\n", 0, found.start()) + 1
        why = f"line {line} of {_shown(member)} has the character U+{ord(found[0]):04X}"
        raise CaptureError(why, _NOBODY)
    # The hash of a value says something only beside another capture of the same node.
    return re.sub(r"\[removed:[0-9a-f]{16}\]", "[removed]", text)


def _shown(name: str) -> str:
    """A path in an archive, made safe for a terminal."""
    escaped = name.encode("unicode_escape").decode()
    return escaped if len(escaped) <= 80 else escaped[:80] + "..."
