"""vLLM's KV cache on disk: the native connector with a folder behind its buffer, or LMCache."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from generator.engines.stated_offload import StatedOffload, whole
from generator.records import replace
from generator.settings.flags import EngineSettings

_GIB = 1 << 30
_Stated = partial(
    StatedOffload, flags=("kv-transfer-config", "enable-cumem-allocator"), prefix="LMCACHE_"
)


def stated(settings: EngineSettings, env: Mapping[str, str]) -> StatedOffload | None:
    """What flags and variables say of it."""
    whole_config = settings.value("kv-transfer-config")
    found = ((config, _of_connector(config, env)) for config in _connectors(whole_config))
    for config, each in found:
        if each:
            return each if config is whole_config else replace(each, more=True)
    return None


def _connectors(config: Any) -> Iterator[Mapping[str, Any]]:
    """The configuration of a connector, and those of the connectors that it is made of."""
    if isinstance(config, Mapping):
        yield config
        more = config.get("kv_connector_extra_config")
        inner = more.get("connectors") if isinstance(more, Mapping) else None
        for each in inner if isinstance(inner, list) else ():
            yield from _connectors(each)


def _of_connector(config: Mapping[str, Any], env: Mapping[str, str]) -> StatedOffload | None:
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
    found = [each for each in tiers if isinstance(each, Mapping)] if isinstance(tiers, list) else []
    tier = next((each for each in found if each.get("type") == "fs"), None)
    if tier is None or not isinstance(more, Mapping):
        return None
    disk, buffer = whole(tier.get("max_bytes")), whole(more.get("cpu_bytes_to_use"))
    # The site file's key stands for one folder; other tiers stay as written.
    path = str(tier.get("root_dir", ""))
    return _Stated(path, disk // _GIB, buffer // _GIB, more=len(found) > 1)
