"""What each rank runs: it joins, runs operations of several sizes, and checks the results."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist

# Counts of 4-byte numbers: NCCL picks algorithm and protocol by size.
SIZES = (256, 1 << 18, 1 << 24)
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "send to the next",
)


def work(rank: int, ranks: int, meeting: str, operations: Sequence[str]) -> None:
    """Run all operations; raise if NCCL refuses one or a sum is wrong."""
    torch.cuda.set_device(0)
    store = dist.FileStore(meeting, ranks)
    dist.init_process_group(
        "nccl",
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=60),
        device_id=torch.device("cuda:0"),
    )
    for operation in operations:
        for size in SIZES:
            tensor = torch.full((size // ranks * ranks,), float(rank + 1), device="cuda")
            _OPERATIONS[operation](tensor, rank, ranks)
            torch.cuda.synchronize()
    # A finished rank may still have to send: it must not end before the others have finished.
    store.add("done", 1)
    while store.add("done", 0) < ranks:
        time.sleep(0.01)


def _all_reduce(tensor: torch.Tensor, rank: int, ranks: int) -> None:
    dist.all_reduce(tensor)
    _hold(tensor, _total(ranks))


def _all_gather(tensor: torch.Tensor, rank: int, ranks: int) -> None:
    gathered = torch.empty(len(tensor) * ranks, device="cuda")
    dist.all_gather_into_tensor(gathered, tensor)
    _hold_parts(gathered, ranks)


def _reduce_scatter(tensor: torch.Tensor, rank: int, ranks: int) -> None:
    part = torch.empty(len(tensor) // ranks, device="cuda")
    dist.reduce_scatter_tensor(part, tensor)
    _hold(part, _total(ranks))


def _broadcast(tensor: torch.Tensor, rank: int, ranks: int) -> None:
    for source in range(ranks):
        sent = tensor.clone()
        dist.broadcast(sent, source)
        _hold(sent, source + 1)


def _reduce(tensor: torch.Tensor, rank: int, ranks: int) -> None:
    for target in range(ranks):
        sent = tensor.clone()
        dist.reduce(sent, target)
        if rank == target:
            _hold(sent, _total(ranks))


def _all_to_all(tensor: torch.Tensor, rank: int, ranks: int) -> None:
    received = torch.empty_like(tensor)
    dist.all_to_all_single(received, tensor)
    _hold_parts(received, ranks)


def _total(ranks: int) -> float:
    return ranks * (ranks + 1) / 2


def _hold_parts(parts: torch.Tensor, ranks: int) -> None:
    for other, part in enumerate(parts.chunk(ranks)):
        _hold(part, other + 1)


def _pass_on(tensor: torch.Tensor, rank: int, ranks: int, steps: int = 1) -> None:
    received = torch.empty_like(tensor)
    source = (rank - steps) % ranks
    both = [
        dist.P2POp(dist.isend, tensor, (rank + steps) % ranks),
        dist.P2POp(dist.irecv, received, source),
    ]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    _hold(received, source + 1)


def _hold(got: torch.Tensor, expected: float) -> None:
    if not bool((got == expected).all()):
        raise ArithmeticError(f"{got.flatten()[0].item()}, not {expected}")


_OPERATIONS: dict[str, Callable[[torch.Tensor, int, int], None]] = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "reduce-scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "send to the next": _pass_on,
    "send to the next but one": partial(_pass_on, steps=2),
    "all-to-all": _all_to_all,
}
