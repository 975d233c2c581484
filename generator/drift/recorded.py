"""The texts of a site that its nodes, or a bundle on disk, keep beside what is installed."""

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from itertools import chain

from generator.bundle.tree import decoded
from generator.capture import Capture
from generator.drift.seen import OWN
from generator.pipeline import Reading, read_site
from generator.records import record, replace
from generator.site.places import BASE_TEXT, LOCK_TEXT, SITE_TEXT, is_recorded
from generator.sitefile.beside import ReadBeside, Source, SourceFile
from generator.sitefile.lock import lock_name

Texts = Mapping[str, str]


@record
class Recorded:
    """A site as most nodes keep it; `others` are the lines in which the others' text differs.

    `own` are the files that it carries, by their paths below the folder of the bundle for them.
    """

    texts: Texts
    others: tuple[str, ...]
    own: Mapping[str, SourceFile] = {}

    def read(self, name: str, near: ReadBeside) -> tuple[Reading, Mapping[str, Source]]:
        """Read it as the site file `name`; also gives its own files that are not beside that."""
        named = _EXTENDS.search(self.texts[SITE_TEXT])
        kept = {lock_name(name): LOCK_TEXT, named[1] if named else "": BASE_TEXT}
        lost: dict[str, Source] = {}

        def beside(path: str) -> Source:
            found, text = near(path), self.texts.get(kept.get(path, ""))
            if text is not None and (found.fault or path == lock_name(name)):
                return Source((SourceFile("", text.encode(), False),))
            if found.fault and (carried := self._carried(path)).files:
                lost[path] = found = carried
            return found

        return read_site(name, self.texts[SITE_TEXT].encode(), beside), lost

    def _carried(self, path: str) -> Source:
        """A file or folder of one's own; a bundle has one of an image under its last name."""
        # Nothing that an archive says is written outside of the site's folder.
        is_inside = not path.startswith("/") and ".." not in path.split("/")
        for name in (path.removeprefix("files/"), path.rpartition("/")[2]) if is_inside else ():
            files = [
                replace(file, path=below[len(name) + 1 :])
                for below, file in self.own.items()
                if f"{below}/".startswith(f"{name}/")
            ]
            if files:
                return Source(tuple(files), is_folder=any(file.path for file in files))
        return Source()


_EXTENDS = re.compile(r"""(?m)^\ufeff?["']?extends["']?[ \t]*:[ \t]*["']?([\w.@+/-]+)""")


def of_captures(captures: Sequence[Capture]) -> Recorded | None:
    """The site that most of the nodes were given; None if one of them keeps no text of a site."""
    found = [(capture.node, dict(_texts(capture))) for capture in captures]
    if not found or not all(SITE_TEXT in texts for _, texts in found):
        return None
    return replace(_most(found), own=dict(chain.from_iterable(map(_own, captures))))


def _own(capture: Capture) -> Iterator[tuple[str, SourceFile]]:
    """The files of a site's own that a capture has, each with its mode before its name."""
    for path, text in capture.texts.items():
        if path.startswith(_OWN):
            with suppress(ValueError):
                data = b64decode("".join(text.split()), validate=True)
                name = path.removeprefix(_OWN).removesuffix(".base64")
                yield name.removesuffix(".run"), SourceFile("", data, name.endswith(".run"))


# Where captures and bundles have them; those of an image are beside its Dockerfile.
_OWN = "files/opt/sparkgen/files/"
_CARRIED = re.compile(r"(?:.*/)?(?:opt/sparkgen/files|image/context/(?:files|mods))/(.+)")


def of_bundle(files: Mapping[str, tuple[bytes, bool]]) -> Recorded | None:
    """The site of a bundle, by the paths of its files, or of a single node's folder."""
    found: dict[str, dict[str, str]] = {}
    own: dict[str, SourceFile] = {}
    for path, (data, is_executable) in files.items():
        if carried := _CARRIED.fullmatch(path):
            own[carried[1]] = SourceFile("", data, is_executable)
        folder, _, name = path.rpartition("/")
        if is_recorded(f"{folder or '.'}/{name}") and "/" not in folder:
            found.setdefault(folder, {})[name] = decoded(data)
    given = [(folder, texts) for folder, texts in found.items() if SITE_TEXT in texts]
    return replace(_most(given), own=own) if given else None


def _most(found: Sequence[tuple[str, Texts]]) -> Recorded:
    counts = Counter(texts[SITE_TEXT] for _, texts in found)
    common = counts.most_common(1)[0][0]
    first = next(texts for _, texts in found if texts[SITE_TEXT] == common)
    lines = (line for name, texts in found for line in _difference(name, texts, common))
    return Recorded(first, tuple(lines))


def _difference(name: str, texts: Texts, common: str) -> Iterator[str]:
    old, new = common.splitlines(), texts[SITE_TEXT].splitlines()
    yield from unified_diff(old, new, "most nodes", name, n=0, lineterm="")


def _texts(capture: Capture) -> Iterator[tuple[str, str]]:
    for name in (SITE_TEXT, BASE_TEXT, LOCK_TEXT):
        encoded = capture.texts.get(f"{OWN}{name}.base64", "")
        with suppress(ValueError):
            if text := b64decode("".join(encoded.split()), validate=True).decode():
                yield name, text
