"""Rules about the engine's own variables in `engine.env`."""

from collections.abc import Iterator

from generator.diagnostics import Severity
from generator.rules.flags.checking import CheckedFlags
from generator.rules.registry import Fault, rule


@rule("SG644")
def unknown_variable(flags: CheckedFlags) -> Iterator[Fault]:
    """The engine reads every variable with one of its own prefixes.

    vLLM merely warns about an unknown variable, and starts without the intended setting.

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
    """No variable is one that only an earlier or later version of the engine reads.

    The engine starts anyway, without the setting. If the replacement is known, the finding names
    it.

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
    """Variables of SGLang are ones that it is known to read.

    SGLang reads its variables all over its code and in separate packages, so not all of them are
    known.

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


@rule("SG649")
def variable_that_is_no_number(flags: CheckedFlags) -> Iterator[Fault]:
    """A variable that vLLM reads as a number is one.

    Also its switches are numbers, 0 and 1: at any other word, vLLM ends with a ValueError where it
    first reads them, sometimes long after it has loaded the model.

    Source: vLLM, vllm/envs.py, asked with values of each kind (schemas/engines).

    Bad:
        engine:
          env:
            VLLM_USE_DEEP_GEMM: "true"

    Good:
        engine:
          env:
            VLLM_USE_DEEP_GEMM: 1
    """
    yield from flags.errors("SG649")
