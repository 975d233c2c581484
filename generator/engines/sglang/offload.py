"""SGLang's KV cache on disk: the hierarchical cache with files behind it."""

import re
from collections.abc import Mapping

from generator.engines.stated_offload import StatedOffload, whole
from generator.settings.flags import EngineSettings

_FLAGS = (
    *("enable-hierarchical-cache", "hicache-storage-backend", "hicache-host-memory-mode"),
    *("hicache-size", "file-storage-path"),
)
_PREFIX = "SGLANG_HICACHE_FILE_BACKEND_"


def stated(settings: EngineSettings, env: Mapping[str, str]) -> StatedOffload | None:
    """What flags and variables say of it."""
    if settings.word("hicache-storage-backend") != "file":
        return None
    path = env.get(f"{_PREFIX}STORAGE_DIR", settings.word("file-storage-path"))
    disk = re.match(r"(\d+)G", env.get(f"{_PREFIX}MAX_SIZE", ""))
    buffer = whole(settings.value("hicache-size"))
    return StatedOffload(path, whole(disk[1] if disk else 0), buffer, _FLAGS, _PREFIX)
