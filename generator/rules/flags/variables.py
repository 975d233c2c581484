"""Rules about the engine's own variables in `engine.env`."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule


@rule("SG644")
def unknown_variable(flags: CheckedFlags) -> Iterator[Fault]:
    """The engine reads every variable with one of its own prefixes.

    vLLM only warns of one that it does not know, and starts without what was meant.

    Source: vLLM, vllm/envs.py; llama.cpp, common/arg.cpp (schemas/engines).

    Bad:
        engine:
          env:
            VLLM_LOGING_LEVEL: DEBUG

    Good:
        engine:
          env:
            VLLM_LOGGING_LEVEL: DEBUG
    """
    yield from flags.errors("SG644")


@rule("SG645", Severity.WARNING)
def variable_of_another_version(flags: CheckedFlags) -> Iterator[Fault]:
    """No variable is read by an earlier or later version of the engine alone.

    The engine starts all the same and does not do what the variable says. What took the place of
    one is said where it is known.

    Source: the engines' own code (schemas/engines, schemas/replaced.tsv).

    Bad:
        engine:
          env:
            VLLM_ATTENTION_BACKEND: FLASHINFER

    Good:
        engine:
          args:
            attention-backend: FLASHINFER
    """
    yield from flags.warnings("SG645")


@rule("SG646", Severity.WARNING)
def variable_that_is_not_known(flags: CheckedFlags) -> Iterator[Fault]:
    """SGLang is known to read each of its variables.

    SGLang reads its variables all over its code and in packages of their own, so that not all of
    them are known.

    Source: the names in SGLang's own code (schemas/engines).

    Bad:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          env:
            SGLANG_LOG_GCC: 1

    Good:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          env:
            SGLANG_LOG_GC: 1
    """
    yield from flags.warnings("SG646")
