"""What an engine rejects or fails on at startup, as conditions on what a site requests.

The conditions of an engine are in its own module. Each has the line of the engine's code that it
comes from and the versions for which it holds; rules turn them into findings.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from generator import catalogs
from generator.catalogs import Checkpoint
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog
from generator.catalogs.variables import common
from generator.catalogs.versions import Release, place, release
from generator.diagnostics import KeyPath
from generator.fit.requested import defaults
from generator.models.architecture import Shape, known_checkpoint, known_shape, shape
from generator.models.formats import named_form
from generator.records import record, replace
from generator.settings.environment import Values
from generator.settings.flags import Asked, EngineSettings
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Parallel

SPECULATIVE: KeyPath = ("model", "speculative")


@record
class Refusal:
    """What is wrong, where, and what to write; `renamed` is the right name of a misspelled key."""

    message: str
    path: KeyPath
    help: str
    renamed: str = ""


class Effect(Enum):
    """The consequence: the engine doesn't serve, doesn't serve as requested, or failed for some."""

    FAILS = "fails"
    DIFFERS = "differs"
    REPORTED = "reported"


# The result of a check: nothing, one refusal or several.
Refusals = Refusal | Iterable[Refusal] | None


@record
class Condition:
    """A check, the line of code it comes from (empty if inferred), and the versions it holds for.

    It holds from the release `since` on, up to but excluding `until`.
    """

    check: "Callable[[Start], Refusals]"
    source: str
    since: Release = ()
    until: Release | None = None
    effect: Effect = Effect.FAILS

    def holds(self, own: Release) -> bool:
        """Whether it holds for a version, by its place."""
        return self.since <= own and (self.until is None or own < self.until)


@record
class Start(Asked):
    """What an engine is started with, which answers questions about its settings.

    `model_type` is the model's kind in its config.json and `form` how the weights are packed, empty
    if not known. `environment` are the variables of nodes that have the same ones.
    """

    engine: DeclaredEngine
    model: DeclaredModel
    known: Shape | None
    model_type: str
    form: str
    environment: Values

    @property
    def settings(self) -> EngineSettings:
        """The engine's flags."""
        return self.engine.settings

    @property
    def sizes(self) -> Parallel:
        """How the model is split."""
        return self.engine.parallel

    @property
    def method(self) -> str:
        """How drafts are made; empty without speculative decoding."""
        return self.model.speculative.method if self.model.speculative else ""

    @property
    def drafted(self) -> int:
        """Tokens that are drafted at a time."""
        return (self.model.speculative.tokens or 0) if self.model.speculative else 0

    @property
    def sequences(self) -> int:
        """The most sequences at once, as requested or by default."""
        return self.model.max_sequences or defaults(self.engine).sequences

    def draft_setting(self, key: str) -> Any:
        """A setting of speculative decoding, None if it is not given."""
        return self.model.speculative.config.get(key) if self.model.speculative else None

    @property
    def is_stock(self) -> bool:
        """Whether the image is known to be a publisher's own, with nothing added."""
        return catalogs.image(self.engine.image) is not None

    @property
    def is_unstated(self) -> bool:
        """Whether the build is patched, and the site does not say which features that adds."""
        engine = self.engine
        return not engine.own.supports and catalogs.is_patched(engine.image, engine.version)

    @property
    def is_ahead(self) -> bool:
        """Whether its build may have what its release lacks and later ones have."""
        engine = self.engine
        return not engine.own.supports and catalogs.is_of_ones_own(engine.image, engine.version)

    def value(self, name: str, *keys: str) -> Any:
        """The value of a flag, or of a key of its JSON; None if it is not given."""
        return self.settings.value(name, *keys)

    def refuse(self, name: str, message: str, remedy: str, *keys: str) -> Refusal:
        """A refusal that points at a flag, or at a key of its JSON."""
        return Refusal(message, self.settings.path(name, *keys), remedy)


def starts_of(engine: DeclaredEngine, model: DeclaredModel) -> Iterator[Start]:
    """What a site starts an engine with, for each set of nodes with the same variables."""
    checkpoint = known_checkpoint(model) or _alike(engine, model)
    given = model.architecture or {}
    facts = checkpoint.architecture.facts if checkpoint else given
    known = shape(model) or (known_shape(checkpoint) if checkpoint else None)
    for values in engine.environment.together(_read_variables(engine)):
        yield Start(
            engine=engine,
            model=model,
            known=known,
            model_type=str(facts.get("model_type", "")),
            form=checkpoint.format if checkpoint else str(given.get("format", "")),
            environment=values,
        )


def _alike(engine: DeclaredEngine, model: DeclaredModel) -> Checkpoint | None:
    """The catalog's checkpoint that a source outside it is named after, in the format it names.

    A build of one's own may have been made for such a source.
    """
    if not model.source or model.architecture or known_checkpoint(model):
        return None
    if catalogs.is_of_ones_own(engine.image, engine.version):
        return None
    name = catalogs.named_after(model.source)
    found = catalogs.checkpoint(name) if name else None
    form = named_form(model.source)
    return replace(found, hf_id=model.source, format=form) if found else None


def _read_variables(engine: DeclaredEngine) -> Iterator[str]:
    """The variables that are set and that the engine, or a library of it, may read."""
    names = {variable.name for variable in engine.environment}
    known = catalog(engine.name, engine.settings.version) if names else None
    prefix = known.prefix if known else ""
    return (name for name in names if name in common() or (prefix and name.startswith(prefix)))


@record
class Verdict:
    """A refusal, and whether it is certain, because this version's own code says so."""

    refusal: Refusal
    effect: Effect
    is_certain: bool


def verdicts(
    conditions: Sequence[Condition], engine: DeclaredEngine, model: DeclaredModel
) -> list[Verdict]:
    """The refusals by those conditions that hold for the engine's version, each once.

    Nothing is certain for versions older than those that were read, for candidates of a release
    that no longer refuses it, for custom builds, which may be patched, nor of a model that is only
    known by its name.
    """
    text = engine.version
    is_read = ENGINE_TRAITS[engine.name].startup_since <= release(text)
    is_read = is_read and not catalogs.is_patched(engine.image, text) and not _alike(engine, model)
    found = (
        Verdict(refusal, condition.effect, bool(condition.source and is_read and is_kept))
        for start in starts_of(engine, model)
        for condition in conditions
        if condition.holds(place(text)) and not (condition.until and start.is_ahead)
        for is_kept in [condition.holds(release(text))]
        for refusal in _several(condition.check(start))
    )
    return list({(each.refusal.path, each.refusal.message): each for each in found}.values())


def _several(found: Refusals) -> Iterable[Refusal]:
    return (found,) if isinstance(found, Refusal) else found or ()
