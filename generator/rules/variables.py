"""Rules about variables whose prefix is neither NCCL's nor the engine's."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain

from generator.catalogs import nccl
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.variables import RAY, common, of_file
from generator.diagnostics import Severity, all_nearest, listed, misspelt, renamings
from generator.resources import rows
from generator.rules.flags.parser import parsers
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine


@rule("SG428", Severity.WARNING)
def misspelt_variable(engine: DeclaredEngine) -> Faults:
    """A variable's name is not a near miss of one that a program reads."""
    catalogs = [parser.catalog for parser in parsers(engine.name, engine.settings.version)]
    prefixes = {catalog.prefix for catalog in catalogs if catalog.prefix}
    read = chain.from_iterable(catalog.variables for catalog in catalogs)
    known: frozenset[str] | None = None
    for variable in engine.environment:
        name = variable.name
        if name in common() or nccl.is_ours(name) or name.startswith(tuple(prefixes)):
            continue
        known = known or common().union(nccl.names(), read)
        readable = known | _of_programs(name, engine)
        if name in readable:
            continue
        if near := _meant(name, readable):
            yield Fault(
                f"no known program reads {name}",
                variable.path,
                f"did you mean {listed(map(repr, near))}?",
                at_key=True,
                proposals=renamings(variable.path, near),
            )


@cache
def _meant(name: str, readable: frozenset[str]) -> Sequence[str]:
    """The variables that a name is a near miss of; many groups may set the same one."""
    return [word for word in all_nearest(name, sorted(readable)) if misspelt(name, [word])]


def _of_programs(name: str, engine: DeclaredEngine) -> frozenset[str]:
    """The variables that the engine and its launcher read in addition to the catalog's."""
    file = ENGINE_TRAITS[engine.name].variables_file
    of_engine = of_file(file) if file else frozenset[str]()
    has_ray = name.startswith(RAY) or engine.launcher == "ray"
    return of_engine | of_file("ray-variables.txt") if has_ray else of_engine


@rule("SG442", Severity.WARNING, suppressed_by="SG429 SG670")
def value_that_a_library_rejects(engine: DeclaredEngine) -> Faults:
    """The value of a variable has the form that its reader accepts."""
    for name, pattern, form, example in rows("variable-forms"):
        for variable in engine.environment.of(name):
            value = variable.value
            if value and "$" not in value and not re.fullmatch(pattern, value):
                yield Fault(
                    f"{name} takes {form}, not '{value}'", variable.path, f"write it like {example}"
                )
