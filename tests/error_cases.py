"""Error cases: `errors/RULE-slug.yaml` is a site followed by comments with its findings.

    version: 1
    ...
    #=> validate
    # error[SG204]: port spark2:p1 is used by two cables
    # ...
    #=> fix
    # the difference that `fix` makes, where it makes one

The site is everything before the first of these marks, byte for byte: some sites are not YAML, and
some are not even text.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from generator.sitefile.beside import Source, SourceFile, nothing_beside

ERRORS = Path(__file__).parent / "errors"

_SECTION = re.compile(rb"^#=> (validate|fix)\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A site with one mistake, what `validate` prints about it, and the diff that `fix` makes."""

    name: str
    site: bytes
    printed: str
    difference: str

    @property
    def rule(self) -> str:
        """The rule that the site breaks."""
        return self.name.partition("-")[0]

    def __str__(self) -> str:
        return self.name


def read(name: str, content: bytes) -> Case:
    """Parse a case's file."""
    site, *sections = _SECTION.split(content)
    outputs = {
        mark.decode(): _uncommented(text)
        for mark, text in zip(sections[::2], sections[1::2], strict=True)
    }
    return Case(name, site, outputs.get("validate", ""), outputs.get("fix", ""))


def written(site: bytes, printed: str, difference: str) -> bytes:
    """The content of a case's file."""
    outputs = {"validate": printed, "fix": difference}
    sections = [f"#=> {mark}\n{_commented(text)}" for mark, text in outputs.items() if text]
    return site + "".join(sections).encode()


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" if line else "#\n" for line in text.removesuffix("\n").split("\n"))


def _uncommented(text: bytes) -> str:
    return re.sub(r"^# ?", "", text.decode(), flags=re.MULTILINE)


CASES = {path.stem: read(path.stem, path.read_bytes()) for path in sorted(ERRORS.glob("*.yaml"))}


_BASES = {"bases/rack.yaml": b"user: nvidia\n", "bases/chained.yaml": b"extends: other.yaml\n"}


def beside(path: str) -> Source:
    """Files beside a case's site file: every name exists, except missing ones and locks."""
    if "missing" in path or path.endswith(".lock.yaml"):
        return nothing_beside(path)
    if "calibration" in path:
        entry = b"- {model: gpt-oss-120b, engine: vllm, version: 0.33.0, reserve_gib: 1.25}\n"
        return Source((SourceFile("", entry, is_executable=False),))
    if path in _BASES:
        return Source((SourceFile("", _BASES[path], is_executable=False),))
    script = b'pip install x\nexec "$@"\n' if "downloads" in path else b"text\n"
    if "mods/" in path:
        return Source((SourceFile("run.sh", script, is_executable=True),), is_folder=True)
    return Source((SourceFile("", script, is_executable=False),))
