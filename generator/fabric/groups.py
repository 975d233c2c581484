"""The groups of ranks that an engine forms, and whether cables alone connect each of them.

Ranks are numbered with tensor ranks innermost, then stages, then replicas, as in vLLM
(`initialize_model_parallel`), SGLang and TensorRT-LLM.
"""

from collections.abc import Collection, Iterator, Sequence

from generator.fabric.topologies.kind import Pair
from generator.records import record
from generator.sitefile.declaration import Parallel


@record
class Communicator:
    """The ranks of an NCCL communicator, in its order."""

    kind: str
    ranks: tuple[int, ...]


def groups(sizes: Parallel, context: int, shared_experts: bool) -> Iterator[Communicator]:
    """Every group of more than one rank.

    `context` ranks share the KV cache of a sequence, and all replicas share the experts if
    `shared_experts`.
    """
    tensor, stages, replicas = sizes.tensor, sizes.pipeline, sizes.data
    of_replica = tensor * stages
    starts = range(0, sizes.ranks, tensor)
    for start in starts:
        yield from _group("tensor", range(start, start + tensor))
    for first in range(0, sizes.ranks, of_replica):
        for rank in range(first, first + tensor):
            yield from _group("pipeline", range(rank, first + of_replica, tensor))
    for rank in range(of_replica):
        yield from _group("data", range(rank, sizes.ranks, of_replica))
    for first in range(0, of_replica, tensor) if replicas > 1 and shared_experts else ():
        members = (rank + first for rank in starts[::stages])
        yield from _group("expert", [r for start in members for r in range(start, start + tensor)])
    for start in range(0, sizes.ranks, context) if 1 < context < tensor else ():
        yield from _group("context", range(start, start + context))


def gap(members: Sequence[str], joined: Collection[Pair]) -> Pair | None:
    """The first two members that NCCL would connect but no cable does, if any.

    NCCL arranges a communicator's ranks as a ring in their order (src/graph/connect.cc): each is
    connected to the next one, and the last one to the first.
    """
    known = {frozenset(pair) for pair in joined}
    following = [*members[1:], members[0]]
    pairs = zip(members, following, strict=True)
    return next((pair for pair in pairs if frozenset(pair) not in known), None)


def _group(kind: str, ranks: Sequence[int]) -> Iterator[Communicator]:
    if len(ranks) > 1:
        yield Communicator(kind, tuple(ranks))
