"""Rules about keys of the model that become flags with engine-specific values."""

from collections.abc import Iterator

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flags import Flag
from generator.diagnostics import Severity
from generator.models.architecture import is_of_modelopt
from generator.records import replace
from generator.rules.flags.checking import CheckedFlags, agreed
from generator.rules.flags.parser import Parser
from generator.rules.flags.value_faults import Judged, choice_faults
from generator.rules.registry import Faults, rule
from generator.sitefile.declaration import DeclaredModel

_KEYS = ("kv_cache_dtype", "quantization")
_PLUGINS = "VLLM_PLUGINS"


@rule("SG647")
def model_value_that_is_not_taken(flags: CheckedFlags, model: DeclaredModel) -> Faults:
    """A quantization or a KV cache type is spelled the way the engine spells it."""
    if flags.is_covered:
        yield from (fault for number, fault in _verdicts(flags, model) if number == "SG637")


@rule("SG648", Severity.WARNING)
def model_value_that_is_not_known(flags: CheckedFlags, model: DeclaredModel) -> Faults:
    """A quantization or a KV cache type is one that the engine is known to have."""
    has_plugins = any(given.value for given in flags.engine.environment.of(_PLUGINS))
    for number, fault in () if has_plugins else _verdicts(flags, model):
        if flags.is_between or (flags.is_covered and number != "SG637"):
            yield fault


def _verdicts(flags: CheckedFlags, model: DeclaredModel) -> Iterator[Judged]:
    """The faults that the catalogs on both sides of the engine's version agree on."""
    yield from agreed([_verdicts_of(known, model) for known in flags.parsers])


def _verdicts_of(known: Parser, model: DeclaredModel) -> Iterator[Judged]:
    """The first fault of each key; a plain fp8 is left to the engine modules, which spell it."""
    reads_modelopt = ENGINE_TRAITS[known.engine].reads_modelopt
    for key in _KEYS:
        value = getattr(model, key)
        if key == "quantization" and reads_modelopt and is_of_modelopt(model):
            continue
        owned = (name for name, its in known.owned.items() if its == f"model.{key}" and value)
        found = (known.catalog.find(name) for name in owned)
        items = [(value, ("model", key))]
        taken = (its.flag for its in found if its and not _is_spelled(key, value, its.flag))
        if key == "kv_cache_dtype":
            taken = (replace(flag, choices=_with_default(flag.choices)) for flag in taken)
        verdicts = (verdict for flag in taken for verdict in choice_faults(flag, items, known))
        yield from [*verdicts][:1]


def _with_default(choices: tuple[str, ...]) -> tuple[str, ...]:
    """The choices of a flag, plus the key's own words for leaving it out and for 8 bits."""
    own = ("auto", "fp8") if any(word.startswith("fp8_") for word in choices) else ("auto",)
    return tuple(dict.fromkeys((*own, *choices))) if choices else ()


def _is_spelled(key: str, value: str, flag: Flag) -> bool:
    """Whether the engine has the type under its own name; `auto` is every engine's default."""
    if key != "kv_cache_dtype":
        return False
    own = any(word.startswith("fp8_") for word in (*flag.choices, *flag.known))
    return value == "auto" or (value == "fp8" and own)
