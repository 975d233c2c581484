"""Of engines that keep no KV cache on disk."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from generator.engines.offload import Connectors
from generator.settings.flags import EngineSettings
from generator.sitefile.declaration import KvOffload

if TYPE_CHECKING:
    from generator.engines.stated_offload import StatedOffload

OFFLOAD: Connectors = {}


def offload_variables(offload: KvOffload) -> Mapping[str, str]:
    """None."""
    return {}


def stated_offload(settings: EngineSettings, env: Mapping[str, str]) -> "StatedOffload | None":
    """None."""
    return None
