"""A site file whose sections are all there, with the fabric that its cables make."""

from collections.abc import Mapping

from generator.fabric.addressing import Fabric
from generator.fit.assessment import Fit
from generator.models.architecture import known_checkpoint
from generator.records import record
from generator.sitefile.beside import Source
from generator.sitefile.declaration import (
    Declaration,
    DeclaredEngine,
    DeclaredModel,
    DeclaredNode,
    Identity,
    Settings,
    Topology,
)


@record
class CompleteDeclaration:
    """The sections of a site file; rules may have found fault with what they say.

    `source` is the model's Hugging Face id, or its folder on the nodes. `sources` are the files
    beside the site file that it names, `memory` is how the model fits the nodes.
    """

    identity: Identity
    nodes: tuple[DeclaredNode, ...]
    topology: Topology
    fabric: Fabric
    model: DeclaredModel
    source: str
    engine: DeclaredEngine
    services: Mapping[str, Settings]
    sources: Mapping[str, Source]
    memory: Fit | None


def complete(
    declared: Declaration,
    fabric: Fabric | None,
    sources: Mapping[str, Source],
    memory: Fit | None,
) -> CompleteDeclaration | None:
    """The declaration if nothing is missing; `fabric` is None where the cabling has no shape."""
    if declared.identity is None or declared.topology is None or fabric is None:
        return None
    if declared.nodes is None or declared.model is None or declared.engine is None:
        return None
    source = _source(declared.model)
    if source is None or declared.services is None:
        return None
    return CompleteDeclaration(
        identity=declared.identity,
        nodes=declared.nodes,
        topology=declared.topology,
        fabric=fabric,
        model=declared.model,
        source=source,
        engine=declared.engine,
        services=declared.services,
        sources=sources,
        memory=memory,
    )


def _source(model: DeclaredModel) -> str | None:
    checkpoint = known_checkpoint(model)
    return checkpoint.hf_id if checkpoint else model.source
