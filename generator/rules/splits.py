"""The ways to split a model over nodes that rules about parallel sizes propose."""

from collections.abc import Iterator, Mapping, Sequence

from generator.diagnostics import Edit, Proposal, Remove, Rename, Replace
from generator.models.architecture import Shape, tensor_sizes
from generator.sitefile.declaration import Parallel

_PATH = ("engine", "parallel")

ParallelSizes = Mapping[str, int]


def readings(count: int, sizes: Parallel, known: Shape | None) -> list[ParallelSizes]:
    """Plausible sizes for this many nodes; if only one size is written, that one is meant."""
    same = dict.fromkeys(_written(sizes), count)
    if len(same) == 1 and _is_legal(same, known):
        return [same]
    return list(_over_one_replica(count, known))


def legal_splits(sizes: Parallel, known: Shape) -> list[ParallelSizes]:
    """Tensor and pipeline sizes for as many ranks as those that are written."""
    replicas = {"data": sizes.data} if sizes.data > 1 else {}
    splits = _over_one_replica(sizes.tensor * sizes.pipeline, known)
    return [{**split, **replicas} for split in splits]


def _over_one_replica(count: int, known: Shape | None) -> Iterator[ParallelSizes]:
    for tensor in (n for n in range(1, count + 1) if count % n == 0):
        split = {"tensor": tensor, "pipeline": count // tensor}
        if _is_legal(split, known):
            yield {name: size for name, size in split.items() if size > 1}


def _is_legal(split: ParallelSizes, known: Shape | None) -> bool:
    tensor, pipeline = split.get("tensor", 1), split.get("pipeline", 1)
    return known is None or (tensor in tensor_sizes(known, tensor) and pipeline <= known.layers)


def _written(sizes: Parallel) -> ParallelSizes:
    own = {"tensor": sizes.tensor, "pipeline": sizes.pipeline, "data": sizes.data}
    return {name: size for name, size in own.items() if size > 1}


def shown(split: ParallelSizes) -> str:
    """The sizes as YAML: `parallel: {pipeline: 3}`."""
    return f"parallel: {{{', '.join(f'{name}: {size}' for name, size in split.items())}}}"


def proposals(sizes: Parallel, splits: Sequence[ParallelSizes]) -> tuple[Proposal, ...]:
    """A proposal for each split, to write it in place of the current sizes."""
    return tuple(tuple(_edits(_written(sizes), split)) for split in splits)


def _edits(old: ParallelSizes, new: ParallelSizes) -> Iterator[Edit]:
    gone, come = [n for n in old if n not in new], [n for n in new if n not in old]
    if len(gone) == len(come) == 1:
        yield Rename((*_PATH, gone[0]), come[0])
        old = {(come[0] if name == gone[0] else name): size for name, size in old.items()}
        gone, renamed = [], {come[0]: gone[0]}
    else:
        renamed = {}
    for name in gone:
        yield Remove((*_PATH, name))
    for name, size in new.items():
        if old.get(name) != size:
            yield Replace((*_PATH, renamed.get(name, name)), size)
