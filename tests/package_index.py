"""Passes the package indexes that pip is configured with on to uv, which does not read them."""

import re
import subprocess
import sys
from functools import cache

_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
}


@cache
def index_of_pip() -> dict[str, str]:
    """The environment variables that configure uv likewise."""
    argv = (sys.executable, "-m", "pip", "config", "list")
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    settings = dict(re.findall(r"^(?:global|:env:|user)\.([\w-]+)='(.*)'$", output, re.MULTILINE))
    # pip takes the best match of all indexes; by default uv takes the first that has the package.
    found = {_VARIABLES[name]: value for name, value in settings.items() if name in _VARIABLES}
    return found | {"UV_INDEX_STRATEGY": "unsafe-best-match"}
