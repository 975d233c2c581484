"""Rules about the values of flags."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule


@rule("SG636")
def value_of_another_type(flags: CheckedFlags) -> Iterator[Fault]:
    """The value of a flag is a number or JSON where the engine reads one.

    Source: the engine's own parser (schemas/engines).

    Bad:
        engine:
          args:
            max-num-batched-tokens: 16 384

    Good:
        engine:
          args:
            max-num-batched-tokens: 16384
    """
    yield from flags.errors("SG636")


@rule("SG637")
def value_that_is_not_taken(flags: CheckedFlags) -> Iterator[Fault]:
    """The value of a flag is one of the engine's choices.

    Source: the engine's own parser (schemas/engines).

    Bad:
        engine:
          args:
            dtype: fp16

    Good:
        engine:
          args:
            dtype: bfloat16
    """
    yield from flags.errors("SG637")


@rule("SG638", Severity.WARNING)
def value_that_is_not_known(flags: CheckedFlags) -> Iterator[Fault]:
    """The value of a flag is one that the engine is known to have.

    The parser accepts any text here, because a plugin may add values; without such a plugin, the
    engine fails while it loads.

    Source: the engine's own registries (schemas/engines).

    Bad:
        engine:
          args:
            load-format: safetensor

    Good:
        engine:
          args:
            load-format: safetensors
    """
    yield from flags.warnings("SG638")


@rule("SG639")
def switch_with_a_value(flags: CheckedFlags) -> Iterator[Fault]:
    """A switch is true or false, and a flag that takes a value has one.

    A switch with a value, as in `--enable-chunked-prefill true`, makes the engine exit, because the
    word is an extra argument. False is for flags that have a negation; all others are off unless
    given.

    Source: the engine's own parser (schemas/engines).

    Bad:
        engine:
          args:
            enable-chunked-prefill: on

    Good:
        engine:
          args:
            enable-chunked-prefill: true
    """
    yield from flags.errors("SG639")


@rule("SG640")
def value_of_another_shape(flags: CheckedFlags) -> Iterator[Fault]:
    """A flag has a list if it takes several values, and a mapping if it takes JSON.

    A list is written the way the flag takes it: as several words, as one word with commas, or by
    repeating the flag.

    Source: the engine's own parser (schemas/engines).

    Bad:
        engine:
          args:
            max-num-batched-tokens: [8192, 16384]

    Good:
        engine:
          args:
            cudagraph-capture-sizes: [1, 2, 4]
    """
    yield from flags.errors("SG640")


@rule("SG641")
def unknown_json_key(flags: CheckedFlags) -> Iterator[Fault]:
    """The keys of a JSON flag are those that the engine reads.

    Source: vLLM, the classes of vllm/config.

    Bad:
        engine:
          args:
            attention-config: {backnd: FLASHINFER}

    Good:
        engine:
          args:
            attention-config: {backend: FLASHINFER}
    """
    yield from flags.errors("SG641")


@rule("SG643")
def parser_of_another_engine(flags: CheckedFlags) -> Iterator[Fault]:
    """A parser for tool calls or reasoning has the name that this engine gives it.

    Engines have parsers for the same models under different names.

    Source: the engines' own registries (schemas/engines, schemas/replaced.tsv).

    Bad:
        engine:
          args:
            reasoning-parser: deepseek-r1

    Good:
        engine:
          args:
            reasoning-parser: deepseek_r1
    """
    yield from flags.errors("SG643")
