"""vLLM's KV cache on disk: the native connector with a folder behind its buffer, or LMCache."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from generator.engines.stated_offload import StatedOffload, whole
from generator.settings.flags import EngineSettings

_GIB = 1 << 30
_Stated = partial(
    StatedOffload, flags=("kv-transfer-config", "enable-cumem-allocator"), prefix="LMCACHE_"
)


def stated(settings: EngineSettings, env: Mapping[str, str]) -> StatedOffload | None:
    """What flags and variables say of it."""
    config = settings.value("kv-transfer-config")
    if not isinstance(config, Mapping):
        return None
    if config.get("kv_connector") == "LMCacheConnectorV1":
        return _lmcache(env)
    return _native(config) if config.get("kv_connector") == "OffloadingConnector" else None


def _lmcache(env: Mapping[str, str]) -> StatedOffload | None:
    remote = re.fullmatch(r"fs://[^/]*(/.+)", env.get("LMCACHE_REMOTE_URL", ""))
    local = re.fullmatch(r"file://(/.+?)/?", env.get("LMCACHE_LOCAL_DISK", ""))
    found = remote or local
    buffer = whole(env.get("LMCACHE_MAX_LOCAL_CPU_SIZE"))
    disk = whole(env.get("LMCACHE_MAX_LOCAL_DISK_SIZE"))
    return _Stated(found[1], disk, buffer, connector="lmcache") if found else None


def _native(config: Mapping[str, Any]) -> StatedOffload | None:
    more = config.get("kv_connector_extra_config")
    tiers = more.get("secondary_tiers") if isinstance(more, Mapping) else None
    # The site file's key stands for one folder; other tiers stay as written.
    alone = tiers[0] if isinstance(tiers, list) and len(tiers) == 1 else None
    tier = alone if isinstance(alone, Mapping) else {}
    if tier.get("type") != "fs" or not isinstance(more, Mapping):
        return None
    disk, buffer = whole(tier.get("max_bytes")), whole(more.get("cpu_bytes_to_use"))
    return _Stated(str(tier.get("root_dir", "")), disk // _GIB, buffer // _GIB)
