"""What llama.cpp logs about its memory (llama-model.cpp, llama-kv-cache.cpp).

It prints a buffer for each device and kind of layer, those of other nodes prefixed with their
address; together they are what it holds there.
"""

import re
from collections.abc import Iterator

from generator.engines.memory_log import MIB, NUMBER, figures, number
from generator.fit.measured import Logged
from generator.records import record

# `load_tensors` before 2025 omits "model".
_BUFFERS = (
    r"(?:(load_tensors): +)?(\S+)(?: (model|KV|RS|DSV4 .+? state|compute))? buffer size ="
    rf"\s*{NUMBER} MiB"
)
_ADDRESS = re.compile(r"RPC\d*\[(.+)\]")
# A start begins with its build.
_STARTS = r"(?m)^.*\bbuild(?:(?:_info)?: | \d+ \()"
_VISIBLE = rf"- CUDA\d+ *: .*\({NUMBER} MiB, \d+ MiB free\)"


def logged(log: str) -> Logged:
    """What each start logs about each node."""
    buffers = list(_buffers(log))
    return Logged(
        weights=[held.model for held in buffers if held.model],
        activations=[held.compute for held in buffers if held.compute],
        visible=[size * MIB for size in figures(log, _VISIBLE)],
        allocated=[held.cache for held in buffers if held.cache],
    )


@record
class _Buffers:
    """What it holds on a node, in GiB."""

    model: float
    cache: float
    compute: float


def _buffers(log: str) -> Iterator[_Buffers]:
    """The buffers of each start and node, added up."""
    for start in re.split(_STARTS, log):
        nodes: dict[str, dict[str, float]] = {}
        for loading, device, layers, size in re.findall(_BUFFERS, start):
            kind = layers or ("model" if loading else "")
            if not kind or "CPU" in device or "Host" in device:
                continue
            kind = kind if kind in ("model", "compute") else "cache"
            address = _ADDRESS.match(device)
            held = nodes.setdefault(address[1] if address else "", {})
            held[kind] = held.get(kind, 0.0) + number(size) * MIB
        for held in nodes.values():
            yield _Buffers(*(held.get(kind, 0.0) for kind in _Buffers.__match_args__))
