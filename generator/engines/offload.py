"""What an engine can do with a KV cache on disk."""

from collections.abc import Mapping

from generator.catalogs.versions import Release
from generator.origin import Origin
from generator.records import record

ORIGIN = Origin("model.kv_offload", "where the KV cache lasts, and how much of it")


@record
class OffloadTraits:
    """The first release that can, and the flags of a person's own that would contradict it.

    With `spans_nodes` each rank keeps its part on its own node; else all ranks of a model have to
    be on one. With `keeps_states` models may have layers of Mamba or linear attention.
    """

    since: Release
    contradicted_by: tuple[str, ...]
    spans_nodes: bool
    keeps_states: bool = True


# By the name of the connector, as the site file has it.
Connectors = Mapping[str, OffloadTraits]
