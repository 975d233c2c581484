"""The values that the schemas declare for keys that a site file omits."""

from functools import cache
from typing import Any

from generator.sitefile.sections import site_schema


def default(path: str) -> Any:
    """The default of a key by its path in the schemas, such as `engine.memory_utilization`."""
    section, _, key = path.rpartition(".")
    return defaults(section)[key]


@cache
def defaults(path: str) -> dict[str, Any]:
    """The defaults of the keys of a section that have any."""
    rules: Any = {"schema": site_schema()}
    for key in filter(None, path.split(".")):
        rules = rules["schema"][key]
        while rules.get("type") == "list":
            rules = rules["schema"]
    metas = {name: own.get("meta", {}) for name, own in rules["schema"].items()}
    return {name: meta["default"] for name, meta in metas.items() if "default" in meta}
