"""The folders of the schemas, catalogs and templates, in an installed package or a checkout."""

from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent
ROOT = PACKAGE if (PACKAGE / "schemas").is_dir() else PACKAGE.parent
SCHEMAS = ROOT / "schemas"
TEMPLATES = ROOT / "templates"


def words(file: str) -> list[str]:
    """The words of a list in `schemas/`, without its comments."""
    lines = (SCHEMAS / file).read_text(encoding="utf-8").splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


class DamagedFileError(Exception):
    """A file of the package is not what it has to be; the message says where, in one line."""


@cache
def rows(name: str) -> list[list[str]]:
    """The rows of `schemas/NAME.tsv`, below its comments and the names of its columns."""
    path = SCHEMAS / f"{name}.tsv"
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    (_, head), *held = [(n, line.split("\t")) for n, line in lines if not line.startswith("#")]
    for number, row in held:
        if len(row) != len(head):
            why = f"{len(row)} cells in a table of {len(head)} columns"
            raise DamagedFileError(f"{path}:{number}: {why}")
    return [row for _, row in held]
