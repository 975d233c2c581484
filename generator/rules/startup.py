"""Rules about what an engine would refuse or die of at its start.

The conditions stand with each engine, `generator/engines/ENGINE/startup`.
"""

from collections.abc import Iterator, Sequence

from generator.catalogs.engines import LLAMA_CPP, SGLANG, TENSORRT_LLM, VLLM
from generator.diagnostics import Severity, renamings
from generator.engines.startup import Effect, Verdict
from generator.rules.registry import Fault, rule

# Without these a condition would be applied to sizes, a model or a flag that are wrong already.
_FIRST = "SG501 SG503 SG510 SG511 SG512 SG551 SG602 SG603 SG647 SG648"
_SAID = (
    "SG604 SG632 SG633 SG634 SG635 SG636 SG637 SG638 SG639 SG640 SG641 SG643 SG644 SG645 SG647 "
    "SG648 SG655 SG661 SG664 SG667"
)


@rule("SG670", unless=_FIRST, suppressed_by=_SAID, engine=VLLM)
def refused_by_vllm(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """A site asks nothing of vLLM that ends its start.

    It checks its settings against each other, against the model and against the GPU, some of them
    only once the weights are loaded. What it would refuse or die of is refused here.

    Source: vLLM 0.19.0 and 0.33.0, vllm/config and vllm/engine/arg_utils.py; each condition names
    its line in generator/engines/vllm/startup.

    Bad:
        engine:
          args:
            enable-eplb: true

    Good:
        engine:
          args:
            enable-chunked-prefill: true
    """
    yield from _certain(verdicts)


@rule("SG671", unless=_FIRST, suppressed_by=_SAID, engine=SGLANG)
def refused_by_sglang(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """A site asks nothing of SGLang that ends its start.

    It checks its settings against each other, against the model and against the GPU.

    Source: SGLang 0.5.23, sglang/srt/arg_groups; each condition names its line in
    generator/engines/sglang/startup.

    Bad:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          args: {enable-eplb: true}

    Good:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          args: {page-size: 16}
    """
    yield from _certain(verdicts)


@rule("SG672", unless=_FIRST, suppressed_by=_SAID, engine=TENSORRT_LLM)
def refused_by_tensorrt_llm(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """A site asks nothing of TensorRT-LLM that ends its start.

    It reads the file of settings strictly: a key or a value that its classes do not have ends the
    start.

    Source: TensorRT-LLM 1.2.1 and 1.3, tensorrt_llm/llmapi/llm_args.py; each condition names its
    class in generator/engines/tensorrt_llm/startup.

    Bad:
        engine:
          name: tensorrt-llm
          version: 1.2.1
          image: example.org/tensorrt-llm-ssh:1.2.1
          args:
            config: {cuda_graph_config: {max_batch_size: 8, batch_sizes: [1, 2, 4]}}

    Good:
        engine:
          name: tensorrt-llm
          version: 1.2.1
          image: example.org/tensorrt-llm-ssh:1.2.1
          args:
            config: {cuda_graph_config: {max_batch_size: 4, batch_sizes: [1, 2, 4]}}
    """
    yield from _certain(verdicts)


@rule("SG673", unless=_FIRST, suppressed_by=_SAID, engine=LLAMA_CPP)
def refused_by_llama_cpp(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """A site asks nothing of llama.cpp that ends its start.

    Source: llama.cpp, common/arg.cpp and src/llama-context.cpp; each condition names its line in
    generator/engines/llama_cpp/startup.py.

    Bad:
        model:
          name: gpt-oss-120b
          file: /srv/models/gpt-oss-120b.gguf
          kv_cache_dtype: q8_0
        engine:
          name: llama.cpp
          version: 0.5.0-dev
          image: registry.lan/llama.cpp:0c1e570
          args: {flash-attn: "off"}

    Good:
        model:
          name: gpt-oss-120b
          file: /srv/models/gpt-oss-120b.gguf
          kv_cache_dtype: q8_0
        engine:
          name: llama.cpp
          version: 0.5.0-dev
          image: registry.lan/llama.cpp:0c1e570
          args: {flash-attn: "on"}
    """
    yield from _certain(verdicts)


@rule("SG674", Severity.WARNING, unless=_FIRST, suppressed_by=_SAID)
def refused_perhaps(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """A site asks nothing of its engine that may end its start.

    This is SG670 to SG673 where it is not certain: the condition is not to be found at one place of
    the engine's code, or the engine is a build of one's own, which may have a patch.

    Bad:
        engine:
          args:
            ssl-keyfile: /etc/ssl/private/server.key

    Good:
        engine:
          args:
            ssl-keyfile: /etc/ssl/private/server.key
            ssl-certfile: /etc/ssl/certs/server.pem
    """
    for verdict in verdicts:
        if verdict.effect is Effect.FAILS and not verdict.is_certain:
            yield _fault(verdict)


@rule("SG675", Severity.WARNING, unless=_FIRST, suppressed_by=_SAID)
def without_effect(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """A setting does what it says.

    The engine starts with it, and does something else than it was asked to, often without a word.

    Source: the lines in generator/engines.

    Bad:
        engine:
          args:
            kv-offloading-backend: native

    Good:
        engine:
          args:
            kv-offloading-backend: native
            kv-offloading-size: 8
    """
    for verdict in verdicts:
        if verdict.effect is Effect.DIFFERS:
            yield _fault(verdict)


def _certain(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    for verdict in verdicts:
        if verdict.effect is Effect.FAILS and verdict.is_certain:
            yield _fault(verdict)


def _fault(verdict: Verdict) -> Fault:
    refusal = verdict.refusal
    return Fault(
        refusal.message,
        refusal.path,
        refusal.help,
        at_key=bool(refusal.renamed),
        proposals=renamings(refusal.path, filter(None, [refusal.renamed])),
    )
