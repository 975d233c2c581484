"""The models of the catalog: which of them fit on a number of nodes, and how."""

from collections.abc import Iterator

from generator import catalogs
from generator.catalogs import Checkpoint
from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit.alternatives import Deployment, holding
from generator.fit.assessment import Fit
from generator.models.architecture import known_checkpoint, shape, tensor_sizes
from generator.records import record, replace
from generator.sitefile.declaration import serving

# What most users have: a node, a cable, a ring, a switch with four or eight ports.
COUNTS = (1, 2, 3, 4, 8)
CONTEXT_LENGTH = 32768


# A checkpoint, and how it fits.
Fitting = tuple[Checkpoint, Fit]


@record
class Candidate:
    """A checkpoint, and how it fits on the nodes that hold it; None if none of them do.

    `unknown` means that too little is known of it.
    """

    checkpoint: Checkpoint
    fit: Fit | None
    unknown: bool = False

    @property
    def nodes(self) -> int | None:
        """How many nodes hold it."""
        return len(self.fit.nodes) if self.fit else None

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that read its files, those with recommended settings first."""
        advised = self.checkpoint.architecture.advised
        readers = (name for name, traits in ENGINE_TRAITS.items() if not traits.reads_gguf)
        return tuple(sorted(readers, key=lambda name: name not in advised))

    @property
    def parsers(self) -> tuple[str, ...]:
        """The parsers that its publisher recommends: one for tool calls, and one for reasoning."""
        known = self.checkpoint.architecture
        named = {"tool": known.tool_call_parser, "reasoning": known.reasoning_parser}
        return tuple(f"{use}: {name}" for use, name in named.items() if name)


def choices(word: str = "") -> Iterator[Candidate]:
    """Each checkpoint that matches a word, and the fewest nodes that hold it.

    One sequence has room for the usual context, or for the model's whole context.
    """
    for known in _named(word):
        group = _usual(known)
        held = (holding(group, count) for count in COUNTS)
        if found := next(filter(None, held), None):
            yield Candidate(known, found)
        else:
            fit = group.assess()
            yield Candidate(known, None, unknown=fit is None or fit.state == "unknown")


def fitting(own: Deployment, word: str = "") -> Iterator[Fitting]:
    """The checkpoints of which a site's nodes hold all sequences that it asks for.

    With the site's split, or with another one if the model can't be split so or doesn't fit so.
    """
    for known in _named(word):
        longest = known.max_context or CONTEXT_LENGTH
        group = own.named(known.name)
        context = min(own.model.context_length or longest, longest)
        model = replace(group.model, speculative=None, context_length=context)
        group = replace(group, model=model)
        first = group.assess() if _can_split(group) else None
        fit = first if first and first.has_margin else holding(group, len(own.nodes))
        if fit and (fit.most_sequences or 0) >= fit.sequences:
            yield known, fit


def _can_split(group: Deployment) -> bool:
    known, sizes = shape(group.model), group.engine.parallel
    return known is not None and sizes.tensor in tensor_sizes(known, sizes.tensor)


def siblings(own: Deployment) -> Iterator[Fitting]:
    """Other checkpoints of a site's model, with its own split."""
    known = known_checkpoint(own.model)
    for other in catalogs.siblings(known) if known else ():
        group = own.named(other.name)
        if other != known and (fit := group.assess()):
            yield other, fit


def _named(word: str) -> Iterator[Checkpoint]:
    """The checkpoints whose name, publisher or format contains the word."""
    for name in catalogs.checkpoint_names():
        known = catalogs.checkpoint(name)
        if known and word.lower() in f"{known.hf_id} {known.format}".lower():
            yield known


def _usual(known: Checkpoint) -> Deployment:
    """A site with only a model and an engine."""
    name, start = next((name, t.start) for name, t in ENGINE_TRAITS.items() if t.start)
    context = min(known.max_context or CONTEXT_LENGTH, CONTEXT_LENGTH)
    data = {
        "nodes": [{"name": "spark1"}],
        "model": {"name": known.name, "context_length": context},
        "engine": {"name": name, "version": start.version, "image": start.image},
    }
    return Deployment(*serving(data))
