"""What the held-out starts say of the estimates, as it stands in schemas/accuracy.md."""

from collections.abc import Iterator, Sequence
from statistics import median

from evidence import Printed, Start, starts

from generator.fit.speed import LONGEST_PROMPT, Speed

_NAMES = {
    "weights": "weights",
    "sequence": "cache",
    "sequences": "cache",
    "cache": "cache",
    "cache_tokens": "cache",
    "block_tokens": "cache",
    "states": "cache",
    "room": "KV cache memory",
    "graphs": "graphs and activations",
    "activations": "graphs and activations",
}
_SPEEDS = ("decode", "prefill")
_PER_ROOM = ("sequences", "cache_tokens")


def compared(known: bool) -> Iterator[Printed]:
    """Held-out figures of memory, of releases or of builds of somebody's own."""
    for start in starts():
        if start.is_held_out and start.is_known == known:
            for figure in start.figures:
                is_told = figure.kind in _NAMES and (figure.kind != "room" or start.on_sparks)
                if is_told and two_layouts(figure) is None:
                    yield figure


def two_layouts(figure: Printed) -> tuple[float, float] | None:
    """A figure of the cache as both layouts have it that `fit` tells of an unknown build."""
    if _NAMES.get(figure.kind) != "cache" or figure.ours is None:
        return None
    start = figure.start
    context = figure.data.get("context") or figure.data.get("tokens")
    fit = figure.fit_at(context) if context else start.fit
    if fit is None or not fit.layouts:
        return None
    one = max(node.kv_one_gib for node in fit.nodes)
    before, since = (
        figure.ours * (one / size if figure.kind in _PER_ROOM else size / one)
        for size in fit.layouts
    )
    return before, since


def unknown_layouts() -> list[tuple[Printed, float, float]]:
    """Held-out figures of builds whose layout is unknown, each with both that are told."""
    held = (start for start in starts() if start.is_held_out)
    figures = [figure for start in held for figure in start.figures]
    return [(figure, *both) for figure in figures if (both := two_layouts(figure))]


def speed_of(figure: Printed) -> Speed | None:
    """The range that is told for a published speed."""
    at = figure.data.get("context") or figure.data["prompt"]
    if figure.kind == "prefill" and at > LONGEST_PROMPT:
        return None
    fit = figure.fit_at(at)
    return (fit.decode_full if figure.kind == "decode" else fit.prefill) if fit else None


def speeds() -> list[tuple[Printed, Speed | None]]:
    """Held-out speeds on Sparks, each with the range that is told."""
    held = [start for start in starts() if start.is_held_out and start.on_sparks]
    figures = (figure for start in held for figure in start.figures)
    return [(figure, speed_of(figure)) for figure in figures if figure.kind in _SPEEDS]


def is_inside(figure: Printed, speed: Speed) -> bool:
    """Whether a speed is within its range."""
    return speed.least <= figure.value <= speed.most


def wrong_verdicts() -> list[Start]:
    """Held-out starts that came up and are refused, or did not and are said to fit."""
    wrong = []
    for start in starts():
        served = next((each.value for each in start.figures if each.kind == "served"), None)
        if not start.is_held_out or not start.on_sparks or served is None or start.fit is None:
            continue
        if start.fit.state == ("does not fit" if served else "fits"):
            wrong.append(start)
    return wrong


def rooms() -> list[bool]:
    """Whether the KV cache memory of each held-out start of a release is within its interval."""
    found = []
    for figure in compared(known=True):
        fit = figure.start.fit
        if figure.kind == "room" and figure.ours is not None and fit:
            node = min(fit.nodes, key=lambda node: node.kv_room_gib)
            found.append(-node.less_gib <= figure.value - figure.ours <= node.doubt_gib)
    return found


def markdown() -> str:
    """The summary, and every row that is off by more than a tenth."""
    lines = ["| Figures | Compared | Median error | Within 3 % | Within 10 % | Unanswered |"]
    lines.append("|---|---|---|---|---|---|")
    for known in (True, False):
        build = "releases" if known else "builds of one's own"
        figures = list(compared(known))
        for name in dict.fromkeys(_NAMES.values()):
            lines += _row(f"{name}, {build}", [f for f in figures if _NAMES[f.kind] == name])
        lines += _row(f"all, {build}", figures)
    told = [(figure, speed) for figure, speed in speeds() if speed]
    inside, held = sum(is_inside(*each) for each in told), rooms()
    lines += ["", "| Ranges and verdicts | |", "|---|---|"]
    lines.append(f"| speeds within the range that is told | {inside} of {len(told)} |")
    lines.append(f"| speeds without evidence for a range | {len(speeds()) - len(told)} |")
    lines.append(f"| KV cache memory within its interval, releases | {sum(held)} of {len(held)} |")
    lines.append(f"| wrong verdicts | {len(wrong_verdicts())} |")
    unknown = unknown_layouts()
    between = sum(0.97 * min(told) <= figure.value <= 1.03 * max(told) for figure, *told in unknown)
    lines.append(f"| cache, layout unknown: between both layouts | {between} of {len(unknown)} |")
    lines += [
        "",
        "| Layout of the cache unknown | Published | As in earlier releases | As in later |",
    ]
    lines.append("|---|---|---|---|")
    lines += [
        f"| {_linked(figure)} | {figure.value:g} | {before:.4g} | {since:.4g} |"
        for figure, before, since in unknown
    ]
    lines += ["", "| Off by more than a tenth | Published | Computed | Difference |"]
    lines.append("|---|---|---|---|")
    for known in (True, False):
        lines += [_off(figure) for figure in compared(known) if abs(figure.error or 0) > 0.1]
    return "\n".join(lines) + "\n"


def _row(name: str, figures: Sequence[Printed]) -> list[str]:
    errors = [abs(figure.error) for figure in figures if figure.error is not None]
    if not errors:
        return []
    three, ten = (sum(error <= most for error in errors) / len(errors) for most in (0.03, 0.1))
    parts = f"{median(errors):.1%} | {three:.0%} | {ten:.0%} | {len(figures) - len(errors)}"
    return [f"| {name} | {len(errors)} | {parts} |"]


def _off(figure: Printed) -> str:
    return f"| {_linked(figure)} | {figure.value:g} | {figure.ours:.4g} | {figure.error:+.0%} |"


def _linked(figure: Printed) -> str:
    kind = _NAMES[figure.kind] if figure.kind == "room" else figure.kind
    return f"[{figure.start.path.stem}](evidence/{figure.start.path.name}): {kind}"


if __name__ == "__main__":
    print(markdown(), end="")
