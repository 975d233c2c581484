"""Make `schemas/reserves.tsv` and `schemas/speeds.tsv` from the published starts to fit to.

PYTHONPATH=.:tests .venv/bin/python tests/fit_evidence.py
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from statistics import mean, stdev

from evidence import Printed, Start, starts

from generator.fit.complete import complete
from generator.fit.parts import parameters
from generator.fit.speed import LONGEST_PROMPT, WIDTH
from generator.models.architecture import shape
from generator.resources import SCHEMAS

# A range must hold this part of the figures.
_HELD = 0.8
_FEWEST = 2
_RESERVES = """\
# By how much the room for the KV cache of releases at published starts on Sparks was smaller than
# computed, at most, as a multiple of the activations; and by how many GiB it may be larger: two
# standard deviations above the mean difference. Made by tests/fit_evidence.py from the starts that
# are not held out.
"""
_SPEEDS = """\
# The speed of one sequence at published starts on Sparks: of decoding, as a part of what memory
# bandwidth allows without drafts; of reading a prompt, in 1e12 operations per second. Made by
# tests/fit_evidence.py from the starts that are not held out.
"""

Key = tuple[str, ...]


def fitted() -> Iterator[Printed]:
    """The figures of starts on Sparks that estimates may be fitted to."""
    for start in starts():
        if start.on_sparks and not start.is_held_out:
            yield from start.figures


def reserves() -> str:
    """The table of rooms, by engine."""
    found = defaultdict(list)
    for start in starts():
        room = room_of(start)
        if start.fit and room and start.is_known and start.on_sparks and not start.is_held_out:
            node = min(start.fit.nodes, key=lambda node: node.kv_room_gib)
            differs = room - node.kv_room_gib
            found[start.group.engine.name].append((differs, node.activations_gib))
    rows = [("engine", "starts", "less_activations", "more_gib")]
    for engine, seen in sorted(found.items()):
        less = max(0.0, *(-differs / activations for differs, activations in seen))
        more = mean(differs for differs, _ in seen) + 2 * stdev(differs for differs, _ in seen)
        rows.append((engine, str(len(seen)), f"{ceil(less * 10) / 10:.1f}", f"{more:.1f}"))
    return _RESERVES + _table(rows)


def room_of(start: Start) -> float | None:
    """The room that a start printed, or else that of the tokens or sequences in it."""
    if start.fit is None or start.fit.is_pinned:
        return None
    rooms = [f.value for f in start.figures if f.kind == "room" and f.ours is not None]
    held = [f for f in start.figures if f.kind in ("sequences", "cache_tokens") and f.ours]
    room = min((node.kv_room_gib for node in start.fit.nodes), default=0.0)
    return next(iter([*rooms, *(f.value / f.ours * room for f in held if f.ours)]), None)


def scale(figure: Printed) -> tuple[Key, float] | None:
    """The row of a speed, and the speed by which its bounds are multiplied."""
    group = figure.start.group
    tokens = figure.data.get("context") or figure.data["prompt"]
    fit = figure.fit_at(tokens)
    sizes, drafts = group.engine.parallel, group.model.speculative
    nodes = "one" if sizes.tensor * sizes.pipeline == 1 else "several"
    if fit is None or not fit.ceiling_full_tokens_s:
        return None
    if figure.kind == "decode":
        key = ("decode", group.engine.name, nodes, drafts.method if drafts else "none")
        return key, fit.ceiling_full_tokens_s
    known = shape(group.model)
    whole = complete(known) if known else None
    active = parameters(whole) if whole else None
    return (
        (("prefill", group.engine.name, nodes, "any"), 1e12 / (2 * active[1])) if active else None
    )


def speeds() -> str:
    """The table of speeds; classes whose figures differ too much are left out."""
    found: dict[Key, list[float]] = defaultdict(list)
    for figure in fitted():
        is_long = figure.data.get("prompt", 0) > LONGEST_PROMPT
        if figure.kind in ("decode", "prefill") and not is_long and (place := scale(figure)):
            found[place[0]].append(figure.value / place[1])
    rows = [("kind", "engine", "nodes", "drafts", "least", "figures")]
    for key, ratios in sorted(found.items()):
        least, held = window(ratios)
        if len(ratios) >= _FEWEST and held >= _HELD * len(ratios):
            rows.append((*key, f"{least:.3g}", str(len(ratios))))
    return _SPEEDS + _table(rows)


def window(ratios: Sequence[float]) -> tuple[float, int]:
    """Where the widest range that is allowed begins if it holds the most, and how many."""
    best = max(ratios, key=lambda low: (_inside(ratios, low), low))
    most = max(ratio for ratio in ratios if ratio <= best * WIDTH)
    # As much room below the least as above the most.
    return (best * most / WIDTH) ** 0.5, _inside(ratios, best)


def _inside(ratios: Sequence[float], low: float) -> int:
    return sum(low <= ratio <= low * WIDTH for ratio in ratios)


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def main() -> None:
    """Write both tables."""
    folder = Path(str(SCHEMAS))
    (folder / "reserves.tsv").write_text(reserves(), encoding="utf-8")
    (folder / "speeds.tsv").write_text(speeds(), encoding="utf-8")


if __name__ == "__main__":
    main()
