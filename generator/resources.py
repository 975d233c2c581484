"""Where the schemas, catalogs and templates are, in an installed package as in a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).parent
ROOT = PACKAGE if (PACKAGE / "schemas").is_dir() else PACKAGE.parent
SCHEMAS = ROOT / "schemas"
TEMPLATES = ROOT / "templates"
