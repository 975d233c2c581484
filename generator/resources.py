"""The folders of the schemas, catalogs and templates, in an installed package or a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).parent
ROOT = PACKAGE if (PACKAGE / "schemas").is_dir() else PACKAGE.parent
SCHEMAS = ROOT / "schemas"
TEMPLATES = ROOT / "templates"
