"""Rules about vLLM's settings."""

from generator.catalogs.advice import TOOL_CHOICE, TOOL_PARSER
from generator.catalogs.versions import place
from generator.diagnostics import Add, KeyPath, Replace, Severity
from generator.fit.assessment import Fit
from generator.fit.requested import defaults, has_full_graphs
from generator.models.architecture import known_checkpoint, shape
from generator.rules.registry import Fault, Faults, rule
from generator.rules.startup import PREREQUISITES
from generator.settings.flags import EngineSettings
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel

NAME = "vllm"

_SEQUENCES: KeyPath = ("model", "max_sequences")
# The first release that ends for want of blocks, and does not capture smaller graphs instead.
_COUNTS_STATES = (0, 20)


@rule(
    "SG509",
    unless=f"{PREREQUISITES} SG222 SG504 SG507 SG513 SG520 SG523 SG529 SG537 SG538",
    engine=NAME,
)
def fewer_states(model: DeclaredModel, engine: DeclaredEngine, fit: Fit) -> Faults:
    """The KV cache of a model with recurrent layers has a block for each sequence."""
    given = engine.settings.number("num-gpu-blocks-override")
    known = shape(model)
    most = int(given) if given and fit.most_states else fit.most_states
    sure = int(given) if given else fit.states
    running = model.max_sequences or defaults(engine).sequences
    if most is None or running <= most or not has_full_graphs(engine):
        return
    whose = "" if model.max_sequences else ", vLLM's default,"
    if known and known.recurrent and place(engine.version) >= _COUNTS_STATES:
        yield Fault(
            f"each of {running} sequences{whose} needs a block for its states, and the KV cache "
            f"has {most}{'' if given else ' at most'}",
            _SEQUENCES,
            f"write 'max_sequences: {sure}' or less"
            + ("" if given else ", or a larger memory_utilization"),
        )


@rule("SG620", unless="SG631 SG632 SG633 SG634", engine=NAME)
def tool_choice_without_parser(engine: DeclaredEngine, model: DeclaredModel) -> Faults:
    """Automatic tool choice comes with the parser for the model's tool calls."""
    settings = engine.settings
    if settings.value(TOOL_CHOICE) is True and TOOL_PARSER not in settings:
        known = known_checkpoint(model)
        parser = known.architecture.tool_call_parser if known else None
        yield Fault(
            f"'{TOOL_CHOICE}' without '{TOOL_PARSER}': vLLM does not start",
            settings.path(TOOL_CHOICE),
            f"write '{TOOL_PARSER}: {parser or 'PARSER'}' beside it"
            + ("" if parser else ", the one that the model's card names"),
            at_key=True,
            proposals=((Add(_args(TOOL_PARSER), parser, after=_written(settings, TOOL_CHOICE)),),)
            if parser
            else (),
        )


@rule("SG621", Severity.WARNING, unless="SG631 SG632 SG633 SG634", engine=NAME)
def parser_without_tool_choice(engine: DeclaredEngine) -> Faults:
    """A tool call parser comes with automatic tool choice."""
    settings = engine.settings
    # Any other value is wrong in itself; SG639 reports it.
    if TOOL_PARSER in settings and settings.value(TOOL_CHOICE) in (None, False):
        yield Fault(
            f"'{TOOL_PARSER}' without '{TOOL_CHOICE}': vLLM refuses requests with tools",
            settings.path(TOOL_PARSER),
            f"write '{TOOL_CHOICE}: true' beside it",
            at_key=True,
            proposals=((_chosen(settings),),),
        )


def _chosen(settings: EngineSettings) -> Add | Replace:
    if TOOL_CHOICE in settings:
        return Replace(settings.path(TOOL_CHOICE), True)
    return Add(_args(TOOL_CHOICE), True, after=_written(settings, TOOL_PARSER))


def _written(settings: EngineSettings, name: str) -> str:
    return str(settings.path(name)[-1])


def _args(name: str) -> KeyPath:
    return ("engine", "args", name)
