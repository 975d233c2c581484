"""Rules about settings that are recommended for a model but that a site may have reason to omit."""

from collections.abc import Mapping

from generator.catalogs.advice import advised_parsers, needed_flags, needed_parsers
from generator.diagnostics import Add, Proposal, Replace, Severity, listed, scalar
from generator.models.architecture import known_checkpoint
from generator.rules.registry import Fault, Faults, rule
from generator.settings.values import Argument
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel


@rule(
    "SG677",
    Severity.NOTE,
    unless="SG501 SG503 SG505 SG602 SG603 SG604 SG620 SG621 SG630 SG631 SG632 SG633 SG634",
    of_version=True,
)
def missing_advised_flags(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """The site has the flags that are advised for its model."""
    known = known_checkpoint(model)
    # A repository that is merely like the model may well need other flags.
    if not known or model.like:
        return
    given = engine.settings
    advised = dict(needed_flags(known.architecture, engine.name, engine.version))
    parsers = advised_parsers(known.architecture, engine.name)
    if any(given.value(name) == parsers[name] for name in _PARSERS & {*parsers}):
        advised |= needed_parsers(known.architecture, engine.name)
    missing = {name: value for name, value in advised.items() if name not in given}
    if missing:
        written = [f"'{name}: {scalar(value)}'" for name, value in missing.items()]
        one = len(written) == 1
        yield Fault(
            f"{listed(map(repr, missing), 'and')} {'is' if one else 'are'} recommended for this "
            "model, and not set",
            model.path,
            f"write {listed(written, 'and')} under 'args' of 'engine', or leave "
            f"{'it' if one else 'them'} out if requests work without",
            proposals=(_written(engine, missing),),
            # Whether to run the publisher's code is for a person to decide.
            unsafe=True,
        )


_PARSERS = frozenset(("tool-call-parser", "reasoning-parser"))


def _written(engine: DeclaredEngine, missing: Mapping[str, Argument]) -> Proposal:
    if not engine.settings:
        return (Replace(("engine", "args"), dict(missing)),)
    return tuple(Add(("engine", "args", name), value) for name, value in missing.items())
