"""The values that the schemas declare for keys that a site file omits."""

from functools import cache
from typing import Any

from generator.sitefile.sections import site_schema


@cache
def default(path: str) -> Any:
    """The default of a key by its path in the schemas, such as `engine.memory_utilization`."""
    rules: Any = {"schema": site_schema()}
    for key in path.split("."):
        while rules.get("type") == "list":
            rules = rules["schema"]
        rules = rules["schema"][key]
    return rules["meta"]["default"]
