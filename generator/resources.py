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


@cache
def rows(name: str) -> list[list[str]]:
    """The rows of `schemas/NAME.tsv`, below its comments and the names of its columns."""
    lines = (SCHEMAS / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")][1:]
