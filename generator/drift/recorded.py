"""The texts of a site that its nodes, or a bundle on disk, keep beside what is installed."""

from base64 import b64decode
from binascii import Error
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff

from generator.bundle.tree import decoded
from generator.capture import Capture
from generator.drift.seen import OWN
from generator.pipeline import Reading, read_site
from generator.records import record
from generator.site.places import BASE_TEXT, LOCK_TEXT, SITE_TEXT, is_recorded
from generator.sitefile.beside import Beside, Source, SourceFile
from generator.sitefile.lock import lock_name

Texts = Mapping[str, str]


@record
class Recorded:
    """A site as most nodes keep it; `others` are the lines in which the others' text differs."""

    texts: Texts
    others: tuple[str, ...]

    def read(self, name: str, near: Beside) -> Reading:
        """Read it as the site file `name`; files that it carries are read from beside that."""
        own = {lock_name(name): self.texts.get(LOCK_TEXT)}
        base = self.texts.get(BASE_TEXT)

        def beside(path: str) -> Source:
            text = own.get(path)
            found = near(path)
            if text is None and base is not None and found.fault:
                text = base
            return found if text is None else Source((SourceFile("", text.encode(), False),))

        return read_site(name, self.texts[SITE_TEXT].encode(), beside)


def of_captures(captures: Sequence[Capture]) -> Recorded | None:
    """The site that most of the nodes were given; None if one of them keeps no text of a site."""
    found = [(capture.node, dict(_texts(capture))) for capture in captures]
    if not found or not all(SITE_TEXT in texts for _, texts in found):
        return None
    return _most(found)


def of_bundle(files: Mapping[str, bytes]) -> Recorded | None:
    """The site of a bundle, by the paths of its files, or of a single node's folder."""
    found: dict[str, dict[str, str]] = {}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        if is_recorded(f"{folder or '.'}/{name}") and "/" not in folder:
            found.setdefault(folder, {})[name] = decoded(data)
    given = [(folder, texts) for folder, texts in found.items() if SITE_TEXT in texts]
    return _most(given) if given else None


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
        try:
            text = b64decode("".join(encoded.split()), validate=True).decode()
        except (Error, UnicodeDecodeError):
            continue
        if text:
            yield name, text
