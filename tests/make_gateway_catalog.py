"""Prints schemas/litellm.tsv: the keys that LiteLLM reads from its configuration, by section.

    PYTHON_OF_LITELLM tests/make_gateway_catalog.py >schemas/litellm.tsv

LiteLLM's own check accepts any key. The keys that it reads are the fields of its section models,
the parameters of its router, the attributes that are set on its module, and the keys that its proxy
looks up in a section by name.
"""

import inspect
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import litellm  # type: ignore[import-not-found, unused-ignore]
from litellm.proxy._types import (  # type: ignore[import-not-found, unused-ignore]
    ConfigGeneralSettings,
)
from litellm.types.router import (  # type: ignore[import-not-found, unused-ignore]
    LiteLLM_Params,
    ModelInfo,
)

_FOLDER = Path(litellm.__file__).parent
_SOURCES = tuple(
    path.read_text(encoding="utf-8")
    for pattern in ("proxy/**/*.py", "router.py", "router_*/**/*.py")
    for path in sorted(_FOLDER.glob(pattern))
)


def looked_up(section: str) -> Iterator[str]:
    """The keys that a program looks up in a section, as in `general_settings.get("master_key"`."""
    pattern = rf'\b{section}(?:", \{{\}}\))?(?:\.get\(\s*|\[)"([a-z_0-9]+)"'
    for source in _SOURCES:
        yield from re.findall(pattern, source)
        # A key of either section, as in `_first_present(model_info, litellm_params, key="x")`.
        yield from re.findall(rf'\b{section}\b[^\n]*, key="([a-z_0-9]+)"', source)


def compared() -> Iterator[str]:
    """The keys of litellm_settings that get special treatment in the proxy's loop over them."""
    for source in _SOURCES:
        yield from re.findall(r'\bkey == "([a-z_0-9]+)"', source)


def _is_setting(name: str, value: object) -> bool:
    is_code = inspect.ismodule(value) or inspect.isclass(value) or callable(value)
    return name.islower() and not name.startswith("_") and not is_code


def sections() -> dict[str, set[str]]:
    """The keys of each section."""
    module = {name for name, value in vars(litellm).items() if _is_setting(name, value)}
    return {
        "-": {"general_settings", "litellm_settings", "model_list", "router_settings"},
        "general_settings": {*ConfigGeneralSettings.model_fields, *looked_up("general_settings")},
        "litellm_params": {*LiteLLM_Params.model_fields, *looked_up("litellm_params")},
        "litellm_settings": {*module, *looked_up("litellm_settings"), *compared()},
        "model_info": {*ModelInfo.model_fields, *looked_up("model_info"), *looked_up("mi")},
        "model_list": {"model_name", "litellm_params", "model_info"},
        "router_settings": {*inspect.signature(litellm.Router.__init__).parameters} - {"self"},
    }


if __name__ == "__main__":
    release = version("litellm")
    print(
        f"# The keys that LiteLLM {release} reads from its configuration, by section; "
        "- is the top level."
    )
    print("# Made by tests/make_gateway_catalog.py.")
    for section, keys in sections().items():
        for key in sorted(keys):
            print(f"{section}\t{key}")
