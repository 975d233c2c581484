"""Keys of a config.json that affect memory but that nothing here reads.

`schemas/config-keys.tsv` lists those that are known; all others are reported. A new architecture
reveals by its keys what is new about it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from generator.resources import rows

Config = Mapping[str, Any]

# Names of keys without an effect on memory.
_NO_PART = re.compile(
    r"(^|_)(rope|rotary|yarn|norm|eps|epsilon|dropout|act|activation|token|tokens|ids?|bias|theta|"
    r"scal(e|es|ing)|scaled|factor|initializer|std|init|dtype|version|name|path|map|loss|coef|"
    r"multipliers?|softcap(ping)?|label2id|id2label|architectures|method|func|temperature|jitter|"
    r"alpha|beta|gamma|limit|floor|attn_implementation|processor|pad|bos|eos|output|return|"
    r"problem|task|transformers|torch|prefix|tie|tied|freq|mode|strategy|use|is|mscale|clamp)(_|$)"
)


@cache
def _effects() -> Mapping[str, str]:
    """What known keys say of memory: "read", "none", or what is not modelled."""
    return dict(rows("config-keys"))


def not_modelled(config: Config, sizes: Config) -> str:
    """The first key that affects memory but is not modelled or covered by `sizes`, or nothing."""
    modelled = {"compress_ratios"} if {"layers_by_4", "sources_by_1"} & sizes.keys() else set()
    if config.get("use_cla") is False:
        modelled.add("cla_share_factor")
    modelled |= {name for name, effect in _effects().items() if effect in ("read", "none")}
    names = (name for name in _effects() if name not in modelled)
    return next((name for name in names if _is_enabled(config.get(name))), "")


def unread(config: Config) -> Iterator[str]:
    """A remark for each key that may affect memory and isn't read."""
    for name, value in config.items():
        if (
            name in _effects()
            or not _is_enabled(value)
            or _NO_PART.search(str(name))
            or isinstance(value, str | float)
        ):
            continue
        yield f"{name}: it is not read; if it adds weights or cache, the fit is too good"


def _is_enabled(value: object) -> bool:
    """Whether a value enables anything."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Mapping) and False in (value.get("enable"), value.get("is_enabled")):
        return False
    return bool(value) and value != 1
