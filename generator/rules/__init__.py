"""The rules that a site must meet, each with its reason and its source."""

from importlib import import_module

from generator.catalogs.engines import module_name, names
from generator.rules.checking import check
from generator.rules.registry import RULES

__all__ = ["RULES", "check"]

# Each of these modules registers its rules when it is imported.
_SUBJECTS = (
    "access advice advisories cabling compatibility container engine environment files flags "
    "gateway groups host_memory images jobs management memory model nccl network nodes offload "
    "ports requirements secrets security services serving sharing speculation startup switches "
    "variables venv"
)
for _name in (*_SUBJECTS.split(), *map(module_name, names())):
    import_module(f"{__name__}.{_name}")
