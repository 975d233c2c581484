"""Rules about which variables NCCL reads."""

from collections.abc import Iterator

from generator.catalogs import nccl
from generator.catalogs.versions import Release, release
from generator.diagnostics import Proposal, Severity, listed, misspelt, removal, renamings
from generator.rules.nccl.grammar import release_of
from generator.rules.registry import Fault, Faults, rule
from generator.settings.environment import Variable
from generator.sitefile.declaration import DeclaredEngine


@rule("SG410", of_version=True)
def unknown_variable(engine: DeclaredEngine) -> Faults:
    """The NCCL in the image reads each of its variables."""
    if _is_covered(engine):
        yield from _unknown(engine, f"NCCL {engine.nccl} has no", is_harmless=False)


@rule("SG411", Severity.WARNING, of_version=True)
def variable_of_no_known_version(engine: DeclaredEngine) -> Faults:
    """Some release of NCCL is known to read each of its variables."""
    which = f"no NCCL up to {_written(nccl.LATEST)} has the"
    if _is_covered(engine):
        yield from _unknown(engine, which, is_harmless=True)
        return
    yield from _unknown(engine, which)
    for variable, known in _known(engine):
        if known.last < nccl.LATEST:
            yield _given_up(variable, known.last)


def _known(engine: DeclaredEngine) -> Iterator[tuple[Variable, nccl.Parameter]]:
    """The variables that some release of NCCL reads."""
    for variable in engine.environment:
        if nccl.is_ours(variable.name) and (known := nccl.parameter(variable.name)):
            yield variable, known


@rule("SG412", unless="SG401", of_version=True)
def variable_of_another_version(engine: DeclaredEngine) -> Faults:
    """No variable is one that only an earlier or later release of NCCL reads."""
    if engine.nccl is None or not _is_covered(engine):
        return
    held = release(engine.nccl)
    for variable, known in _known(engine):
        if held > known.last:
            yield _given_up(variable, known.last)
        elif held < known.first:
            first = _written(known.first)
            yield Fault(
                f"NCCL {engine.nccl} has no {variable.name} yet: {first} is the first",
                variable.path,
                "remove it, or use an image with that NCCL",
                at_key=True,
            )


def _is_covered(engine: DeclaredEngine) -> bool:
    """Whether the catalog lists the variables that the image's NCCL reads."""
    return bool(engine.nccl) and not engine.nccl_patched and release_of(engine) <= nccl.LATEST


def _unknown(engine: DeclaredEngine, which: str, is_harmless: bool | None = None) -> Faults:
    for variable in engine.environment:
        name, path = variable.name, variable.path
        if is_harmless is not None and is_harmless != (name in nccl.HARMLESS):
            continue
        is_own = name in engine.own.env or (engine.nccl_patched and nccl.is_patched(name))
        if not nccl.is_ours(name) or nccl.parameter(name) or is_own:
            continue
        message, near = f"{which} variable {name}", nccl.nearest(name)
        proposals = removal(path)
        if known := nccl.instead().get(name):
            help_text = known.advice
            proposals = _instead(variable, proposals)
        elif nccl.is_patched(name):
            message = f"only patched builds of NCCL read {name}"
            help_text = "remove it, or write 'nccl: {version: VERSION, patched: true}'"
            proposals = ()
        elif near:
            help_text = f"did you mean {listed(map(repr, near))}?"
            proposals = renamings(path, misspelt(name, near))
        elif engine.nccl_patched:
            continue
        else:
            help_text = "remove it; NCCL's user guide lists its environment variables"
        yield Fault(message, path, help_text, at_key=True, proposals=proposals)


def _instead(variable: Variable, otherwise: tuple[Proposal, ...]) -> tuple[Proposal, ...]:
    """The proposal to rename the variable, if its replacement takes the same values."""
    known = nccl.instead().get(variable.name)
    return renamings(variable.path, [known.same]) if known and known.same else otherwise


def _given_up(variable: Variable, last: Release) -> Fault:
    name, new = variable.name, nccl.instead().get(variable.name)
    return Fault(
        f"NCCL no longer reads {name}" + (f": {_written(last)} was the last" if last else ""),
        variable.path,
        new.advice if new else "remove it",
        at_key=True,
        proposals=_instead(variable, () if new else removal(variable.path)),
    )


def _written(release: Release) -> str:
    return ".".join(map(str, release))
