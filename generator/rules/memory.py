"""Rules about memory: whether the model fits, and what is left for the system."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import KeyPath, Proposal, Replace, Severity, listed, replacements
from generator.fit.assessment import Fit, NodeMemory, assess
from generator.fit.calibration import Calibration
from generator.fit.formulas import FREEZE_GIB, GIB, LEAST_BYTES, STARTS_DIFFER_BYTES, SYSTEM_BYTES
from generator.records import replace
from generator.rules.registry import Fault, rule
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, DeclaredNode

if TYPE_CHECKING:
    from generator.fit.alternatives import Adjustment

WARNED, REFUSED = 0.85, 0.96
_UTILIZATION = ("engine", "memory_utilization")
_SYSTEM_GIB, _LEAST_GIB = SYSTEM_BYTES / GIB, LEAST_BYTES / GIB
_POOL = "kv-cache-memory-bytes"
_START = "start it and pass its log to 'sparkgen fit SITE --measured LOG'"


_SEQUENCES = ("model", "max_sequences")
_UNFIT = "SG222 SG520 SG537 SG538 SG556"
_INVALID_MODEL = "SG222 SG501 SG503 SG504 SG506 SG507 SG510 SG511 SG512 SG513 SG529 SG532 SG603"


@rule("SG520", unless=_INVALID_MODEL)
def does_not_fit(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fit: Fit
) -> Iterator[Fault]:
    """Each node has room for its part of the model and one sequence of full length."""
    if fit.state == "does not fit" and fit.is_pinned:
        yield _fixed_cache(model, engine, fit)
    elif fit.state == "does not fit" and not fit.crowded:
        # SG688 names what crowds a node.
        fault = Fault(f"the model does not fit: {_sum(fit)}", model.path)
        if fit.worst.headroom_gib >= 0 and model.max_sequences:
            # What engines reserve outside their share grows with the sequences that run at once.
            fault = replace(fault, path=_SEQUENCES, help="write fewer, or remove the key")
        yield _changed(nodes, model, engine, fit, fault)


@rule("SG538", Severity.NOTE, unless=_INVALID_MODEL)
def may_not_fit(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fit: Fit
) -> Iterator[Fault]:
    """The model fits by more than two starts differ."""
    if fit.state != "can't tell":
        return
    worst = fit.worst
    less = "sparkgen does not know how much memory this build needs beside weights and cache"
    if not fit.is_own_build:
        less = (
            f"published starts had from {worst.less_gib:.1f} GiB less to {worst.doubt_gib:.1f} "
            "GiB more for the KV cache than computed"
        )
        if fit.excess_gib:
            less = (
                f"the reserve has {fit.excess_gib:.1f} GiB more than computed, as others' starts "
                f"of this model did, and {less}"
            )
    what = "the model may not fit"
    traits = ENGINE_TRAITS[engine.name]
    if traits.starts_short and worst.headroom_gib + worst.doubt_gib < 0:
        what = f"{traits.title} may not start, and rejects the longest requests"
    if fit.is_pinned:
        fixed = _fixed_cache(model, engine, fit)
        message = f"{what}: {fixed.message}; {less}"
        words = f"{_START}, or {fixed.help}"
        yield replace(fixed, message=message, help=words, unsafe=True, nodes=())
    else:
        message = f"{what}: {_sum(fit)}; {less}"
        yield _changed(nodes, model, engine, fit, Fault(message, model.path, _START))


@rule("SG556", Severity.WARNING, unless=_INVALID_MODEL)
def fits_shorter(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fit: Fit
) -> Iterator[Fault]:
    """The KV cache has room for a sequence of full length, with engines that start with less."""
    if fit.state != "fits shorter":
        return
    traits = ENGINE_TRAITS[engine.name]
    path = ("model", "context_length") if model.context_length else model.path
    fault = Fault(
        f"{traits.title} starts, but rejects requests of more than about "
        f"{fit.one_context} tokens: the KV cache on {fit.worst.node} has no room for the "
        f"{fit.context} that a sequence may have",
        engine.settings.path(traits.tokens_flag) if fit.is_limited else path,
    )
    yield _changed(nodes, model, engine, fit, fault)


@rule("SG537", Severity.NOTE, unless=_INVALID_MODEL)
def fits_newer_releases(
    nodes: Sequence[DeclaredNode], engine: DeclaredEngine, fit: Fit
) -> Iterator[Fault]:
    """The model fits whichever release of DGX OS the nodes have."""
    if fit.state == "fits newer":
        worst = fit.worst
        lack = _too_much(worst) if fit.is_pinned else _sum(fit)
        if worst.headroom_gib >= 0 and not fit.crowded:
            lack += f"; two starts differ by {STARTS_DIFFER_BYTES / GIB:.0f} GiB"
        unmeasured = next(node for node in nodes if not node.measured)
        yield Fault(
            f"the model may not fit in {worst.visible_gib} GiB, and does in the memory that newer "
            f"releases of DGX OS show: {lack}",
            (*unmeasured.path, "visible_gib"),
            "write 'visible_gib: GIB' at each node, the MemTotal of its /proc/meminfo",
            nodes=() if fit.is_pinned else (worst.node,),
        )


def _changed(
    nodes: Sequence[DeclaredNode],
    model: DeclaredModel,
    engine: DeclaredEngine,
    fit: Fit,
    fault: Fault,
) -> Fault:
    """The fault with what makes the model fit, after what its help already says."""
    from generator.fit.alternatives import nearest_changes

    changes = nearest_changes(nodes, model, engine, fit)
    words = f"use {listed(change.words for change in changes)}"
    if fault.help:
        words = f"{fault.help}; to be sure, {words}" if changes else fault.help
    elif not changes:
        words = "no setting, known checkpoint or split over up to 8 nodes makes it fit well"
    edits = _proposals(changes)
    return replace(fault, help=words, proposals=edits, unsafe=True, nodes=(fit.worst.node,))


def _sum(fit: Fit) -> str:
    """What the node with the least headroom needs, in detail, and the share that it has."""
    worst = fit.worst
    count = "one sequence" if fit.needed == 1 else f"{fit.needed} sequences"
    need = worst.share_gib - worst.headroom_gib
    needed, given = _apart(need, worst.share_gib)
    weights, cached = worst.weights_gib + worst.draft_gib, worst.kv_one_gib * fit.needed
    if fit.crowded:
        return f"{worst.system_gib:.1f} GiB of {worst.node} are left, and nodes freeze below 8"
    if worst.headroom_gib >= 0 > worst.system_gib:
        return f"a reserve of {worst.reserve_gib:.1f} GiB leaves the system of {worst.node} nothing"
    if worst.unused_gib:
        return f"{count} needs {cached:.1f} GiB, the limit in tokens leaves {worst.kv_room_gib:.1f}"
    # Some engines take it, or a part of it, from what their share leaves.
    reserve = need - weights - cached
    return (
        f"{worst.node} needs {needed} GiB and the engine has {given} (weights {weights:.1f}, "
        f"reserve {max(0.0, reserve):.1f}, KV cache of {count} of {fit.context} tokens "
        f"{cached:.1f})"
    )


def _held(node: NodeMemory) -> float:
    """What a node holds besides the KV cache, in GiB."""
    return node.weights_gib + node.draft_gib + node.reserve_gib + node.beside_gib + node.other_gib


def _too_much(node: NodeMemory) -> str:
    """What a KV cache of a fixed size, everything besides it and the system need on a node."""
    room, held = node.kv_room_gib, _held(node)
    return (
        f"a KV cache of {room:.1f} GiB, {held:.1f} for all else and {_LEAST_GIB:.0f} for the "
        f"system add up to {room + held + _LEAST_GIB:.1f} GiB, and the node has "
        f"{node.visible_gib:.1f}"
    )


def _apart(need: float, share: float) -> tuple[str, str]:
    """Two figures with just enough decimals to tell them apart."""
    for decimals in range(1, 4):
        texts = f"{need:.{decimals}f}", f"{share:.{decimals}f}"
        if texts[0] != texts[1]:
            break
    return texts


def _proposals(changes: Sequence["Adjustment"]) -> tuple[Proposal, ...]:
    """The changes as edits, if all can be edited: adding nodes is up to a person."""
    if not all(change.path for change in changes):
        return ()
    return tuple((Replace(change.path, change.value),) for change in changes)


def pinned_path(model: DeclaredModel, engine: DeclaredEngine) -> KeyPath:
    """The place of the size that a site gives the KV cache."""
    return ("model", "kv_cache_gib") if model.kv_cache_gib else engine.settings.path(_POOL)


def _less(model: DeclaredModel, fit: Fit) -> str:
    """The KV caches that hold what is needed and leave the systems of all nodes enough."""
    most = int(min(node.visible_gib - _SYSTEM_GIB - _held(node) for node in fit.nodes))
    least = max(1, ceil(max(node.kv_one_gib for node in fit.nodes) * fit.needed))
    unit = "" if model.kv_cache_gib else "G"
    return f"remove it, or write {least}{unit} to {most}{unit}" if most >= least else "remove it"


def _fixed_cache(model: DeclaredModel, engine: DeclaredEngine, fit: Fit) -> Fault:
    """The KV cache's fixed size is too small for one sequence, or too large for the node."""
    path, worst = pinned_path(model, engine), fit.worst
    if worst.headroom_gib < 0:
        return Fault(
            f"a KV cache of {worst.kv_room_gib:.1f} GiB is too small for one sequence of "
            f"{fit.context} tokens, which takes {worst.kv_one_gib:.1f} on {worst.node}",
            path,
            _less(model, fit),
            nodes=(worst.node,),
        )
    return Fault(_too_much(worst), path, _less(model, fit))


@rule("SG534", unless="SG222 SG501 SG503 SG504 SG510 SG511 SG603")
def auto_not_computable(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine
) -> Iterator[Fault]:
    """Enough is known about the model to compute each `auto`."""
    lacking = [key for key in model.automatic if getattr(model, key) is None]
    if not lacking:
        return
    fit = assess(nodes, model, engine)
    missing = fit.missing if fit else ("model.architecture",)
    names = {"model.context_length": "model.architecture.max_context"}
    wanted = listed((names.get(name, name) for name in missing), "and")
    for key in lacking:
        yield Fault(f"'auto' can't be computed without {wanted}", ("model", key), "write a number")


@rule("SG535")
def invalid_calibration(calibration: Calibration) -> Iterator[Fault]:
    """The file that `fit.calibration` names has the output of 'sparkgen fit --measured'."""
    if calibration.fault:
        yield Fault(
            calibration.fault,
            ("fit", "calibration"),
            "put what 'sparkgen fit SITE --measured LOG' prints into the file",
        )


@rule("SG536", Severity.NOTE, unless="SG535")
def calibration_of_another_model(
    calibration: Calibration, model: DeclaredModel, engine: DeclaredEngine
) -> Iterator[Fault]:
    """The measurements are for this model, on this release of the engine."""
    if calibration.of(model, engine) is None:
        yield Fault(
            f"{calibration.path} has nothing of {model.name or model.source} in {engine.name} "
            f"{engine.version}: memory is as computed",
            ("fit", "calibration"),
            "add what 'sparkgen fit SITE --measured LOG' prints",
        )


# Whether a model fits at all hardly depends on the release; how tightly does.
@rule("SG521", Severity.NOTE, unless=f"SG504 SG507 SG509 {_UNFIT}", of_version=True)
def fewer_sequences(model: DeclaredModel, fit: Fit) -> Iterator[Fault]:
    """The KV cache holds as many full-length sequences as may run at once."""
    most, at_best = fit.most_sequences, fit.most_at_best
    if most is not None and at_best is not None and at_best < (model.max_sequences or 0):
        count = "one sequence" if most == 1 else f"{most} sequences"
        yield Fault(
            f"there is room for {count} of {fit.context} tokens at once, not for "
            f"{model.max_sequences}",
            _SEQUENCES,
            f"more run while they are shorter: {model.max_sequences} of {fit.longest_context} "
            "tokens each"
            if fit.longest_context
            else "write fewer: there is no room for that many, however short they are",
        )


@rule("SG522", Severity.NOTE, unless=f"SG504 SG507 {_UNFIT}", of_version=True)
def tight(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fit: Fit
) -> Iterator[Fault]:
    """A model that fits has headroom."""
    if fit.tight:
        yield Fault(
            f"it fits, but tightly: {fit.worst.headroom_gib:.1f} GiB are left on {fit.worst.node} "
            "beside weights, reserve and the KV cache that is needed",
            model.path,
            "'sparkgen fit --compare' shows what leaves more",
            nodes=(fit.worst.node,),
        )


@rule("SG523")
def all_memory(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine
) -> Iterator[Fault]:
    """The engine does not take so much memory that the system can't run."""
    if engine.memory_utilization >= REFUSED:
        yield _to_lower(
            f"{engine.memory_utilization} of the memory is more than is free at an engine's start",
            *(nodes, model, engine),
        )


@rule("SG524", Severity.WARNING)
def much_memory(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine
) -> Iterator[Fault]:
    """The engine takes at most 0.85 of the memory, and leaves the rest for the system."""
    if WARNED < engine.memory_utilization < REFUSED:
        yield _to_lower(
            f"{engine.memory_utilization} of the memory is too much: nodes freeze at "
            f"about {FREEZE_GIB} GiB used",
            *(nodes, model, engine),
        )


@rule("SG525", Severity.WARNING, unless=f"SG523 SG524 {_UNFIT}")
def little_for_the_system(
    nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine, fit: Fit
) -> Iterator[Fault]:
    """16 GiB of each node are left for the system."""
    if fit.leaves_enough:
        return
    least = min(fit.nodes, key=lambda node: node.for_system_gib)
    left = f"{least.for_system_gib:.1f} GiB of {least.node} are left"
    message = f"{left} to the system, which needs {_SYSTEM_GIB:.0f}"
    if fit.is_pinned:
        path = pinned_path(model, engine)
        yield Fault(message, path, _less(model, fit), nodes=(least.node,))
    else:
        yield replace(_to_lower(message, nodes, model, engine), nodes=(least.node,))


def _to_lower(
    message: str, nodes: Sequence[DeclaredNode], model: DeclaredModel, engine: DeclaredEngine
) -> Fault:
    """The fault of a share that leaves the system too little, with one that leaves it enough."""
    for hundredths in range(int(min(engine.memory_utilization, WARNED) * 100), 0, -1):
        share = hundredths / 100
        fit = assess(nodes, model, replace(engine, memory_utilization=share))
        if not (fit and fit.nodes) or fit.is_pinned or (fit.leaves_enough and fit.state == "fits"):
            edits = replacements(_UTILIZATION, [share])
            words = f"write 'memory_utilization: {share}'"
            return Fault(message, _UTILIZATION, words, proposals=edits, unsafe=True)
        if fit.leaves_enough:
            break
    return Fault(
        message,
        _UTILIZATION,
        "no share leaves enough for both: use a smaller model, or stop what else runs there",
    )
