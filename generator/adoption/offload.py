"""A KV cache on the nodes' disks, from the engine's settings for it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.adoption.command import Command
from generator.adoption.draft import Draft
from generator.adoption.found import Word
from generator.adoption.mounts import outside
from generator.records import record
from generator.sitefile.source import Plain
from generator.sitefile.text_types import TEXT_TYPES

_GIB = 1 << 30
_GUESSED_GIB = 100
_VARIABLES = re.compile(r"LMCACHE_\w+|SGLANG_HICACHE_FILE_BACKEND_\w+")
# Belongs to the cache on disk, and is written with it.
_FLAGS = (
    *("kv-transfer-config", "enable-cumem-allocator"),
    *("enable-hierarchical-cache", "hicache-storage-backend", "hicache-host-memory-mode"),
    *("hicache-size", "file-storage-path"),
)


@record
class _Kept:
    path: str
    gib: int = 0
    buffer_gib: int = 0
    connector: str = "native"


def fill(draft: Draft, command: Command | None) -> None:
    """Write the site file's key for flags and variables that mean exactly that."""
    if command is None:
        return
    args = draft.get("engine", "args") or {}
    env = {v.name: v.value.text for v in command.container.env}
    kept = _connected(args, env) or _hierarchical(args, env)
    if kept is None or not TEXT_TYPES["path"].fits(path := outside(command.container, kept.path)):
        return
    place = _place(draft)
    draft.put(("model", "kv_offload", "path"), path, place)
    guess = "" if kept.gib else "how much of the disk the KV cache may take"
    draft.put(("model", "kv_offload", "gib"), kept.gib or _GUESSED_GIB, place, guess)
    if kept.buffer_gib:
        draft.put(("model", "kv_offload", "buffer_gib"), kept.buffer_gib, place)
    if kept.connector != "native":
        draft.put(("model", "kv_offload", "connector"), kept.connector, place)
    for flag in _FLAGS:
        draft.drop("engine", "args", flag)
    for name in [*(draft.get("engine", "env") or {})]:
        if _VARIABLES.fullmatch(name):
            draft.drop("engine", "env", name)


def _place(draft: Draft) -> Word | None:
    """The place of the first of the flags."""
    places: Iterator[Word | None] = (draft.origins.get(("engine", "args", f)) for f in _FLAGS)
    return next((place for place in places if place), None)


def _connected(args: Mapping[str, Any], env: Mapping[str, str]) -> _Kept | None:
    """The native connector with a folder behind its buffer, or LMCache with one."""
    config = args.get("kv-transfer-config")
    if not isinstance(config, Mapping):
        return None
    if config.get("kv_connector") == "LMCacheConnectorV1":
        remote = re.fullmatch(r"fs://[^/]*(/.+)", env.get("LMCACHE_REMOTE_URL", ""))
        local = re.fullmatch(r"file://(/.+?)/?", env.get("LMCACHE_LOCAL_DISK", ""))
        found = remote or local
        buffer = _whole(env.get("LMCACHE_MAX_LOCAL_CPU_SIZE"))
        disk = _whole(env.get("LMCACHE_MAX_LOCAL_DISK_SIZE"))
        return _Kept(found[1], disk, buffer, "lmcache") if found else None
    more = config.get("kv_connector_extra_config")
    tiers = more.get("secondary_tiers") if isinstance(more, Mapping) else None
    if config.get("kv_connector") != "OffloadingConnector" or not isinstance(tiers, list):
        return None
    # The site file's key stands for one folder; other tiers stay as written.
    tier = tiers[0] if len(tiers) == 1 and isinstance(tiers[0], Mapping) else {}
    if tier.get("type") != "fs" or not isinstance(more, Mapping):
        return None
    sizes = (_whole(tier.get("max_bytes")), _whole(more.get("cpu_bytes_to_use")))
    return _Kept(str(tier.get("root_dir", "")), sizes[0] // _GIB, sizes[1] // _GIB)


def _hierarchical(args: Mapping[str, Any], env: Mapping[str, str]) -> _Kept | None:
    """The hierarchical cache with files behind it."""
    if args.get("hicache-storage-backend") != "file":
        return None
    usual = str(args.get("file-storage-path", ""))
    path = env.get("SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR", usual)
    disk = re.match(r"(\d+)G", env.get("SGLANG_HICACHE_FILE_BACKEND_MAX_SIZE", ""))
    return _Kept(path, _whole(disk[1] if disk else 0), _whole(args.get("hicache-size")))


def _whole(value: Any) -> int:
    """An integer, or the integer part of a number; 0 if there is none."""
    text = str(value.meaning() if isinstance(value, Plain) else value).partition(".")[0]
    return int(text) if text.isdecimal() and len(text) < 16 else 0
