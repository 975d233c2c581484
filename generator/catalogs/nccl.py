"""NCCL's environment variables: which release reads a name, and who reads those that none does.

Nothing is read before the first question. Source: NVIDIA/nccl, tags 2.10 to 2.30.7.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from generator import diagnostics
from generator.resources import SCHEMAS

Release = tuple[int, ...]

# The newest release that the catalog covers.
LATEST: Release = (2, 30, 7)

_PREFIX = "NCCL_"

# Read by patched builds, or by a plugin that only a build of one's own has.
_PATCHED = re.compile(
    r"NCCL_(SKIP_TREE_CONNECT|SWITCHLESS_\w+|RING_EDGE_DEVS|RELAY_ENABLE|MESH_\w+)"
)
# Read by plugins that NVIDIA's images bring along: HPC-X's network plugin, the inspector.
_PLUGINS = re.compile(r"NCCL_(IBEXT_DISABLE|PLUGIN_P2P|(SHARP|UCX|INSPECTOR)_\w+)")

# Names that configurations carry on from one another, and that no release has read.
_PYTORCHS = ("NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG")
NEVER: Mapping[str, str] = {
    "NCCL_TIMEOUT": "take it out; PyTorch's own timeout is a flag of the engine, "
    "in vLLM 'distributed-timeout-seconds'",
    "NCCL_IB_TOS": "write NCCL_IB_TC, the traffic class",
    "NCCL_TUNER_THRESHOLD": "take it out",
    "NCCL_MIN_TRAFFIC_PER_CHANNEL": "take it out; NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS "
    "bound the channels",
} | {name: f"it is PyTorch's: write TORCH_{name}" for name in _PYTORCHS}

# Names under which the same values are read.
SAME: Mapping[str, str] = {
    "NCCL_IB_TOS": "NCCL_IB_TC",
    "NCCL_MNNVL": "NCCL_MNNVL_ENABLE",
    "NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS": "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
} | {name: f"TORCH_{name}" for name in _PYTORCHS}

# What took the place of a name that NCCL has given up.
REPLACED: Mapping[str, str] = {
    "NCCL_CHECKS_DISABLE": "NCCL_CHECK_POINTERS",
    "NCCL_LL_THRESHOLD": "NCCL_PROTO",
    "NCCL_MNNVL": "NCCL_MNNVL_ENABLE",
    "NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS": "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
    "NCCL_TREE_THRESHOLD": "NCCL_ALGO",
    "NCCL_WORK_FIFO_DEPTH": "NCCL_WORK_FIFO_BYTES",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A variable and the releases that read it; both are empty where it was gone before 2.10."""

    name: str
    first: Release
    last: Release
    is_integer: bool


def parameter(name: str) -> Parameter | None:
    """What is known of a variable; None where no release has read it."""
    return _parameters().get(name)


def is_ours(name: str) -> bool:
    """Whether a name is meant for NCCL, and not for a plugin of an image."""
    return name.upper().startswith(_PREFIX) and not _PLUGINS.fullmatch(name)


def is_patched(name: str) -> bool:
    """Whether patched builds alone are known to read a name."""
    return _PATCHED.fullmatch(name) is not None


def nearest(name: str) -> list[str]:
    """The variables that a misspelt one is likely to be."""
    stems = (known.name.removeprefix(_PREFIX) for known in _current())
    found = diagnostics.all_nearest(name.upper().removeprefix(_PREFIX), stems)
    return [f"{_PREFIX}{stem}" for stem in found]


def _current() -> list[Parameter]:
    return [known for known in _parameters().values() if known.last == LATEST]


@cache
def _parameters() -> Mapping[str, Parameter]:
    lines = (SCHEMAS / "nccl-parameters.tsv").read_text(encoding="utf-8").splitlines()
    _, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {
        name: Parameter(name, _release(first), _release(last), kind == "integer")
        for name, first, last, kind, _ in rows
    }


def _release(text: str) -> Release:
    return tuple(int(part) for part in text.split(".")) if text != "-" else ()
