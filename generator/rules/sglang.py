"""Rules about SGLang's settings."""

from collections.abc import Iterator, Sequence

from generator.catalogs.engines.sglang import NAME
from generator.catalogs.versions import release
from generator.diagnostics import Related
from generator.engines import ENGINES
from generator.engines.startup import Verdict
from generator.rules.registry import Fault, rule
from generator.rules.startup import MORE_SPECIFIC, PREREQUISITES, certain
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel
from generator.sitefile.defaults import default

# With data parallel attention, SGLang takes this many ports after the rendezvous port.
_DERIVED_PORTS = 6
# Methods that run over pipeline stages if SGLang is told to try them.
_OVER_STAGES = ("eagle", "mtp")


@rule("SG650", unless="SG603", engine=NAME)
def replicas_over_nodes(engine: DeclaredEngine) -> Iterator[Fault]:
    """SGLang has no data parallel replicas on several nodes.

    It refuses to start. Split the model over the nodes by tensor or pipeline ranks, or make each
    replica a site of its own. What large models with latent attention gain from data parallelism is
    available as `attn-dp-size`, which splits the tensor ranks' attention.

    Source: SGLang, sglang/srt/arg_groups/validation_hook.py, `check_server_args`.

    Bad:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          parallel: {data: 2}

    Good:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          parallel: {tensor: 2}
    """
    sizes = engine.parallel
    if sizes.data > 1:
        ranks = sizes.tensor * sizes.data
        yield Fault(
            "SGLang has no data parallel replicas on several nodes",
            ("engine", "parallel", "data"),
            f"write 'tensor: {ranks}' in its place, and 'attn-dp-size: {sizes.data}' in 'args' if "
            "attention is to be data parallel; or give each replica a site of its own",
            at_key=True,
        )


@rule("SG651", unless="SG603", engine=NAME)
def drafts_over_stages(model: DeclaredModel, engine: DeclaredEngine) -> Iterator[Fault]:
    """SGLang drafts only on tensor ranks.

    With pipeline stages it refuses speculative decoding, except for prefill nodes of a
    disaggregated service, and, since 0.5.21, for EAGLE with `SGLANG_ENABLE_PP_SPEC`.

    Source: SGLang, sglang/srt/arg_groups/validation_hook.py, `check_pipeline_parallel_compat`.

    Bad:
        model:
          name: glm-4.5-air-fp8
          speculative: {method: mtp, tokens: 3}
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          parallel: {pipeline: 2}

    Good:
        model:
          name: glm-4.5-air-fp8
          speculative: {method: mtp, tokens: 3}
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          parallel: {tensor: 2}
    """
    asked = engine.environment.first("SGLANG_ENABLE_PP_SPEC").lower() in ("1", "true")
    is_tried = asked and release(engine.version) >= (0, 5, 21)
    drafts = model.speculative
    if drafts and engine.parallel.pipeline > 1 and not (is_tried and drafts.method in _OVER_STAGES):
        yield Fault(
            "SGLang has no speculative decoding over pipeline stages",
            ("model", "speculative"),
            "split the model by 'tensor' alone, or remove 'speculative'",
            at_key=True,
            related=(Related("the stages", ("engine", "parallel", "pipeline")),),
        )


@rule("SG652", unless="SG602 SG603", engine=NAME)
def port_of_attention(engine: DeclaredEngine) -> Iterator[Fault]:
    """With data parallel attention, the six ports above the rendezvous port belong to SGLang.

    Its processes on the head use them to communicate.

    Source: SGLang, sglang/srt/server_args.py, `PortArgs.init_new`.

    Bad:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          port: 20001
          parallel: {tensor: 2}
          args: {attn-dp-size: 2}

    Good:
        engine:
          name: sglang
          version: 0.5.23
          image: lmsysorg/sglang:v0.5.23
          port: 30000
          parallel: {tensor: 2}
          args: {attn-dp-size: 2}
    """
    if "attn-dp-size" not in engine.settings:
        return
    module = ENGINES[engine.name]
    defaults = module.default_ports("native", engine.parallel)
    first = engine.ports.get("dist_init", defaults.get("dist_init", 0)) + 1
    last = first + _DERIVED_PORTS - 1
    if first <= (engine.port or module.API_PORT) <= last:
        yield Fault(
            f"SGLang's own processes take the ports {first} to {last}",
            ("engine", "port") if engine.port else ("engine", "ports", "dist_init"),
            f"choose one outside of them, such as {module.API_PORT}"
            if engine.port
            else f"choose another one, such as {default('engine.ports.dist_init')}",
        )


@rule("SG671", unless=PREREQUISITES, suppressed_by=MORE_SPECIFIC, engine=NAME)
def refused_by_sglang(verdicts: Sequence[Verdict]) -> Iterator[Fault]:
    """No setting makes SGLang fail at startup.

    SGLang checks its settings against each other, against the model and against the GPU.

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
    yield from certain(verdicts)
