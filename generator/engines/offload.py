"""What an engine supports of a KV cache on disk."""

from collections.abc import Mapping

from generator.catalogs.versions import Release
from generator.origin import Origin
from generator.records import record

ORIGIN = Origin("model.kv_offload", "where the KV cache is kept, and how much of it")


@record
class OffloadTraits:
    """The first release with support, and the user's own flags that would contradict it.

    With `spans_nodes` each rank keeps its part on its own node; otherwise all ranks of a model have
    to be on one node. With `keeps_states` models may have layers with Mamba or linear attention.
    """

    since: Release
    contradicted_by: tuple[str, ...]
    spans_nodes: bool
    keeps_states: bool = True


# By the connector's name in the site file.
Connectors = Mapping[str, OffloadTraits]
