"""A fit as text: the result, a table of nodes, and a bar for each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from generator import resources
from generator.columns import columns
from generator.diagnostics import listed
from generator.fit.assessment import LEAST_GIB, Fit, NodeMemory
from generator.fit.beside import Beside
from generator.fit.formulas import GIB
from generator.fit.speed import LONGEST_PROMPT, Speed
from generator.hardware import NEWER_VISIBLE_GIB
from generator.records import record

if TYPE_CHECKING:
    from generator.fit.alternatives import Alternative

Row = tuple[str, ...]

_HEAD: Row = ("NODE", "STAGE", "WEIGHTS", "RESERVE", "KV CACHE", "KV MEMORY", "HEADROOM")
_PAGE_HEAD: Row = (
    *("Node", "Stage", "Weights", "Reserve", "Requested KV cache", "KV memory", "Headroom"),
)
# Of nodes on which an engine takes memory beside its share.
_BESIDE = "Beside"
_LAST = "System"
FIGURES: Row = ("STATE", "HEADROOM", "LONGEST CONTEXT", "MOST SEQUENCES", "DECODE")
_COMPARED: Row = ("", "NODES", "TENSOR", "PIPELINE", "DATA", "KV CACHE", *FIGURES)

_SAID = {name: text for name, text, *_ in resources.rows("verdicts")}
UNKNOWN = (
    "unknown, for want of model.architecture, which 'sparkgen describe-model config.json' prints, "
    "or of model.like"
)

# Weights including the draft, reserve, requested KV cache, the rest of its room, what of it
# some published starts did not have, the system, and what the engine takes beside its share or
# other programs take.
UNSURE = 4
LEGEND = ("weights", "reserve", "requested KV cache", "spare KV cache", "uncertain", "system")
BESIDE = "beside the engine's share"
BAR_WIDTH = 60
_BLOCKS = "█▓▒░▨·▚"
_ASCII = "#+=-/.%"
_COLORS = (34, 35, 32, 36, 96, 90, 33)


@record
class MemoryPage:
    """A fit for the runbook of a site."""

    head: Row
    rows: Sequence[Row]
    sentences: Sequence[str]


def page(fit: Fit | None) -> MemoryPage:
    """The runbook's page about memory; None stands for a model of which nothing is known."""
    if fit is None:
        return MemoryPage((*_PAGE_HEAD, _LAST), (), (UNKNOWN,))
    return MemoryPage(head(fit, _PAGE_HEAD), rows(fit), verdict(fit))


def rows(fit: Fit) -> list[Row]:
    """One row per node, in GiB."""
    takes_more = _takes_more(fit)
    return [_row(node, takes_more) for node in fit.nodes]


def head(fit: Fit, words: Row = _HEAD) -> Row:
    """The names of the columns."""
    last = (_BESIDE, _LAST) if _takes_more(fit) else (_LAST,)
    return (*words, *(word.upper() if words is _HEAD else word for word in last))


def _takes_more(fit: Fit) -> bool:
    return any(node.beside_gib or node.other_gib for node in fit.nodes)


def legend(nodes: Sequence[NodeMemory]) -> tuple[str, ...]:
    """What the parts of their bars are."""
    return (*LEGEND, BESIDE) if any(node.beside_gib or node.other_gib for node in nodes) else LEGEND


def verdict(fit: Fit) -> list[str]:
    """The result in sentences."""
    if fit.state == "unknown":
        missing = fit.missing or ("how the layers are split",)
        return [f"unknown, for want of {listed(missing, 'and')}"]
    worst = fit.worst
    phrase = "tight" if fit.tight else _SAID.get(fit.state, fit.state)
    phrase = phrase.format(tokens=fit.one_context)
    lines = [f"{phrase}: {_beside(fit)} of {fit.context} tokens"]
    if fit.crowded:
        least = worst.system_gib - LEAST_GIB
        lines = [
            f"{phrase}: {abs(least):.1f} GiB too little for the system of {worst.node}, which "
            f"needs {LEAST_GIB:.0f}"
        ]
    if fit.state == "fits newer":
        lines.append(_SAID["newer"].format(visible=NEWER_VISIBLE_GIB[128]))
    if fit.state == "can't tell":
        phrase = _SAID["own" if fit.is_own_build else "may"]
        figures = {"less": worst.less_gib, "doubt": worst.doubt_gib, "reserve": worst.reserve_gib}
        lines.append(phrase.format(**figures))
    replica = " a replica" if fit.parallel.data > 1 else ""
    if fit.excess_gib:
        lines.append(_SAID["excess"].format(excess=fit.excess_gib))
    if fit.state == "fits":
        most = fit.most_sequences or 0
        requested = f" of {fit.sequences} requested" if most < fit.sequences else ""
        count = fit.sequences
        at_once = "one sequence" if count == 1 else f"{count} sequences at once"
        lines += [
            f"longest context for {at_once}{replica}: {fit.longest_context} tokens",
            f"most sequences of {fit.context} tokens{replica}: {most}{requested}",
        ]
    if fit.layouts:
        before, since = fit.layouts
        lines.append(
            "how this build lays out its cache is not known: one sequence takes "
            f"{before:.1f} GiB as in earlier releases, {since:.1f} as in later ones"
        )
    lines += fit.found
    if fit.by_the_engine:
        lines.append(f"weights of {listed(fit.by_the_engine, 'and')} are by the engine's own count")
    if fit.shares:
        lines.append(f"the KV cache memory is divided at the start: {listed(fit.shares, 'and')}")
    lines += map(_besides, fit.beside)
    return [*lines, *_speeds(fit)]


def _beside(fit: Fit) -> str:
    """What is left beside all sequences that are asked for, or beside those that must have room."""
    worst = fit.worst
    if fit.state == "fits" and (fit.most_sequences or 0) >= fit.sequences:
        return f"{worst.left_gib:.1f} GiB left on {worst.node} beside {_plain(fit.sequences)}"
    lacks = f"{abs(worst.headroom_gib):.1f} GiB {_left(worst)} on {worst.node}"
    return f"{lacks} beside {_plain(fit.needed)}"


def _speeds(fit: Fit) -> list[str]:
    """How fast one sequence is, and how many published figures say so."""
    lines = ["decode of one sequence: no evidence for such a start"]
    if fit.decode and fit.decode_full:
        lines = [
            f"decode of one sequence: {_bounds(fit.decode)} tokens/s, {_bounds(fit.decode_full)} "
            f"with a full context, as in {fit.decode.figures} published figures"
        ]
    if fit.prefill:
        seen = f"as in {fit.prefill.figures} published figures"
        lengths = f"prompts of up to {LONGEST_PROMPT} tokens"
        lines.append(f"{lengths}: {_bounds(fit.prefill)} tokens/s, {seen}")
    return lines


def _bounds(speed: Speed) -> str:
    return f"{speed.least:g} to {speed.most:g}"


def table(title: str, fit: Fit, ascii_only: bool, color: bool, limit: int | None = None) -> str:
    """The whole report with one bar per node, limited to this many columns if possible."""
    parts = [f"{title}: {verdict(fit)[0]}"]
    if fit.nodes:
        marks = _ASCII if ascii_only else _BLOCKS
        words = legend(fit.nodes)
        wide = 2 * len(words) + len("  ".join(words))
        keys = ("\n" if limit is not None and limit < wide else "  ").join(
            f"{_painted(mark, code, color)} {word}"
            for mark, word, code in zip(marks, words, _COLORS, strict=False)
        )
        width = max(len(node.node) for node in fit.nodes)
        size = BAR_WIDTH if limit is None else max(10, min(BAR_WIDTH, limit - width - 13))
        bars = [
            f"{node.node.ljust(width)} {bar(node, ascii_only, color, size)} "
            f"{node.visible_gib:.1f} GiB"
            for node in fit.nodes
        ]
        parts += [f"In GiB:\n\n{columns(head(fit), rows(fit), limit)}", "\n".join([*bars, keys])]
    parts += ["\n".join(verdict(fit)[1:])] if len(verdict(fit)) > 1 else []
    return "\n\n".join(parts) + "\n"


def parts_of(node: NodeMemory) -> tuple[float, ...]:
    """What a node holds, in GiB, in the order of the legend."""
    requested = min(node.kv_requested_gib, node.kv_room_gib)
    more = node.kv_room_gib - requested
    unsure = min(more, node.less_gib)
    return (
        node.weights_gib + node.draft_gib,
        node.reserve_gib,
        requested,
        more - unsure,
        unsure,
        max(0.0, node.system_gib),
        node.beside_gib + node.other_gib,
    )


def alike(nodes: Sequence[NodeMemory]) -> list[tuple[NodeMemory, list[str]]]:
    """The nodes with different bars, each with the names of all nodes that share it."""
    found: dict[tuple[float, ...], tuple[NodeMemory, list[str]]] = {}
    for node in nodes:
        key = (node.visible_gib, *parts_of(node))
        found.setdefault(key, (node, []))[1].append(node.node)
    return list(found.values())


def bars(fit: Fit) -> tuple[str, ...]:
    """A bar for each of the nodes that differ, below the legend of its marks."""
    rows = [(_named(names), node) for node, names in alike(fit.nodes)]
    width = max((len(names) for names, _ in rows), default=0)
    words = legend(fit.nodes)
    keys = "  ".join(f"{mark} {word}" for mark, word in zip(_BLOCKS, words, strict=False))
    drawn = (
        f"{names:{width}} {bar(node, ascii_only=False, color=False)} {node.visible_gib:.1f} GiB"
        for names, node in rows
    )
    return (keys, *drawn)


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def bar(node: NodeMemory, ascii_only: bool, color: bool, size: int = BAR_WIDTH) -> str:
    """One node's memory as a bar; the part past its end does not fit."""
    marks = _ASCII if ascii_only else _BLOCKS
    drawn, end = "", 0.0
    filled = 0
    for mark, part, code in zip(marks, parts_of(node), _COLORS, strict=True):
        end += part
        upto = min(size, round(end / node.visible_gib * size))
        drawn += _painted(mark * (upto - filled), code, color)
        filled = upto
    over = ">" if end > node.visible_gib * 1.005 else "|"
    return f"|{drawn}{' ' * (size - filled)}{over}"


def compared(found: Sequence["Alternative"], limit: int | None = None) -> str:
    """A table of alternatives, in which the site's own is marked."""
    return columns(_COMPARED, [_compared(item) for item in found], limit) + "\n"


def _compared(item: "Alternative") -> Row:
    sizes = item.fit.parallel
    return (
        "*" if item.own else "",
        f"{item.nodes} on a switch" if item.on_switch else str(item.nodes),
        str(sizes.tensor),
        str(sizes.pipeline),
        str(sizes.data),
        item.fit.kv_cache_dtype,
        *figures(item.fit),
    )


def figures(fit: Fit) -> Row:
    """The figures of one fit, in the columns of `FIGURES`."""
    known = fit.state != "unknown"
    return (
        "tight" if fit.tight else fit.state,
        f"{fit.worst.headroom_gib:.1f} GiB" if known else "?",
        str(fit.longest_context) if known else "?",
        str(fit.most_sequences) if known else "?",
        f"{_bounds(fit.decode)} tokens/s" if fit.decode else "no evidence",
    )


def _besides(each: Beside) -> str:
    """What a setting takes beside the engine's share, in a sentence."""
    how = {
        "pinned": "beside the engine's share from the start",
        "filled": "beside the engine's share that fills while it serves, up to that",
        "moved": "of weights outside the engine's share",
    }[each.taken]
    size = f"{each.amount:g} times KV memory" if each.of_room else f"{each.amount / GIB:.1f} GiB"
    name = f"{each.name}, by default" if each.is_default else each.name
    return f"{size} {how}: {name}"


def _row(node: NodeMemory, takes_more: bool) -> Row:
    return (
        node.node,
        f"{node.stage} ({node.layers} layers)",
        f"{node.weights_gib + node.draft_gib:.1f}",
        f"{node.reserve_gib:.1f}",
        f"{node.kv_requested_gib:.1f}",
        f"{node.kv_room_gib:.1f}",
        f"{node.left_gib:.1f}",
        *([f"{node.beside_gib + node.other_gib:.1f}"] if takes_more else []),
        f"{node.system_gib:.1f}",
    )


def _left(node: NodeMemory) -> str:
    return "left" if node.headroom_gib >= 0 else "too little"


def _plain(count: int) -> str:
    return "one sequence" if count == 1 else f"{count} sequences"


def _painted(text: str, code: int, color: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if color and text else text
