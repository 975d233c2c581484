"""Creates a site file from what was found, and reads it again."""

from collections.abc import Iterator, Sequence

from generator.adoption import interfaces, running
from generator.adoption.cables import Edge
from generator.adoption.command import Command
from generator.adoption.draft import Draft
from generator.adoption.engines import alone, grouped, ordered_engine
from generator.adoption.found import Ended, Found, Word
from generator.adoption.items import closed
from generator.adoption.nodes import nodes_of
from generator.catalogs.flag_files import versions
from generator.catalogs.versions import version
from generator.diagnostics import Finding, KeyPath, Severity, Stage
from generator.pipeline import Reading, read_site
from generator.records import record, replace
from generator.sitefile.beside import ReadBeside, nothing_beside

_MOST_REFUSED = 20
# As different as can be from the model that is assumed.
_OTHER_MODEL = "qwen3.5-9b"
_ORDER = (
    *("version", "name", "description", "user", "defaults"),
    *("nodes", "cabling", "topology", "groups", "model", "engine"),
)


@record
class Adoption:
    """A site file created from what was found.

    `ended` is all that the user's files say, item by item, with what became of it. `assumed` is the
    reading with what is most usual in place of every TODO, with no finding about such a model.
    """

    draft: Draft
    text: str
    reading: Reading
    found: Found
    command: Command | None
    ended: tuple[Ended, ...]
    assumed: Reading

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the site file, also with what its TODO say nothing about."""
        if all(path[0] in self.draft.unsaid for path in self.draft.todo):
            return self.reading.findings
        known = (one for one in self.assumed.findings if one.path and self.origin(one.path))
        return (*self.reading.findings, *known)

    def origin(self, path: KeyPath) -> Word | None:
        """The place at which the value at a path was found."""
        return self.draft.origin(path)


def adopt(
    found: Found,
    name: str,
    file: str,
    stated_cables: Sequence[Edge] = (),
    beside: ReadBeside = nothing_beside,
) -> Adoption:
    """A site file named `file` from everything that was found, with the cables the user states.

    `beside` reads the files beside it.
    """
    draft = Draft()
    draft.losses += found.losses
    draft.put(("version",), 1)
    draft.put(("name",), name)
    nodes = nodes_of(found)
    several = running.engines(nodes)
    head, cabling = (
        grouped(draft, nodes, several, stated_cables)
        if several
        else alone(draft, nodes, stated_cables)
    )
    interfaces.settle(draft, cabling)
    draft.data = {key: draft.data[key] for key in _ORDER if key in draft.data}
    if "engine" in draft.data:
        ordered_engine(draft)
    full = _of_likely_version(draft, _assumed(draft, file, beside), file, beside)
    ended = closed(found, draft)
    text = draft.text(ended)
    reading = read_site(file, text.encode(), beside)
    full = replace(full, findings=tuple(_of_any_model(draft, full, file, beside)))
    return Adoption(draft, text, reading, found, head, ended, full)


def _assumed(draft: Draft, file: str, beside: ReadBeside) -> Reading:
    """The site with what is assumed; values that no site file can have are left out of it."""
    for _ in range(_MOST_REFUSED):
        reading = read_site(file, draft.text(assumed=True).encode(), beside)
        malformed = [finding for finding in reading.findings if _is_of_form(draft, finding)]
        draft.malformed += [(f, place) for f in malformed if (place := draft.origin(f.path))]
        wrong = {finding.path: finding.message for finding in malformed}
        if not wrong:
            break
        # From the end, so that the numbers of those before stay.
        for path in sorted(wrong, key=str, reverse=True):
            draft.refuse(path, wrong[path])
    return reading


def _of_likely_version(draft: Draft, full: Reading, file: str, beside: ReadBeside) -> Reading:
    """A guessed version becomes the newest with the fewest errors: what is published has run."""
    engine = draft.data.get("engine", {})
    newest, plus, own = str(engine.get("version", "")).partition("+")
    is_guess = ("engine", "version") in draft.comments and newest not in str(engine.get("image"))
    older = [each for each in versions(engine.get("name", "")) if version(each) < version(newest)]
    found = [(_errors(full), newest, full)]
    while is_guess and older and found[-1][0]:
        engine["version"] = f"{older[-1]}{plus}{own}"
        again = read_site(file, draft.text(assumed=True).encode(), beside)
        found.append((_errors(again), older.pop(), again))
    _, best, reading = min(found, key=lambda each: each[0])
    if is_guess:
        engine["version"] = f"{best}{plus}{own}"
    return reading


def _errors(reading: Reading) -> int:
    """Errors that may depend on the version: not those about images and files."""
    errors = (one.path for one in reading.findings if one.severity is Severity.ERROR)
    return sum(path[:1] == ("model",) or path[1:2] in (("args",), ("env",)) for path in errors)


def _of_any_model(draft: Draft, full: Reading, file: str, beside: ReadBeside) -> Iterator[Finding]:
    """The findings that are the same with another model where nobody said which."""
    unknown = [p for p in draft.todo if p[-2:] == ("model", "name") and draft.get(*p[:-1])]
    if not unknown:
        return iter(full.findings)
    for path in unknown:
        draft.get(*path[:-1])["name"] = _OTHER_MODEL
    again = read_site(file, draft.text(assumed=True).encode(), beside).findings
    others = {(one.rule, one.path, one.message, one.help) for one in again}
    return (one for one in full.findings if (one.rule, one.path, one.message, one.help) in others)


def _is_of_form(draft: Draft, finding: Finding) -> bool:
    """Whether a finding is that a value has the wrong form, which is then not written."""
    is_form = finding.stage == Stage.READING and finding.severity == Severity.ERROR
    is_there = bool(finding.path) and draft.get(*finding.path) is not None
    return is_form and is_there and finding.path not in draft.todo
