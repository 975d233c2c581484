"""vLLM's scheduler and CUDA graphs: tokens per step against contexts and sequences, graph sizes."""

from generator.engines.startup import Condition, Effect, Refusal, Start

_STEP, _GRAPHS = "max-num-batched-tokens", "compilation-config"


def _step_below_context(start: Start) -> Refusal | None:
    step, context = start.number(_STEP), start.model.context_length
    if step and context and step < context and start.is_off("enable-chunked-prefill"):
        return start.refuse(
            _STEP,
            f"without chunked prefill a step must hold a whole prompt: it has {step:.0f} tokens, "
            f"and the context {context}",
            f"write {context}, or take 'enable-chunked-prefill' out",
        )
    return None


def _step_below_sequences(start: Start) -> Refusal | None:
    step, sequences = start.count(_STEP, start.batch.tokens), start.model.max_sequences
    if sequences is None or step >= sequences:
        return None
    if _STEP in start.settings:
        how = f"write {sequences} or more, or fewer 'max_sequences' under 'model'"
        return start.refuse(
            _STEP, f"a step of {step} tokens has no room for {sequences} sequences", how
        )
    return Refusal(
        f"a step has {step} tokens by default, and no room for {sequences} sequences",
        ("model", "max_sequences"),
        f"write {step} or less, or '{_STEP}: {sequences}' under engine.args",
    )


def _active_above_all(start: Start) -> Refusal | None:
    active = start.number("max-num-active-seqs")
    if active is not None and active > start.sequences:
        return start.refuse(
            "max-num-active-seqs",
            f"{active:.0f} active sequences exceed the limit of {start.sequences}",
            f"write {start.sequences} or less",
        )
    return None


def _threshold_above_context(start: Start) -> Refusal | None:
    threshold, context = start.number("long-prefill-token-threshold"), start.model.context_length
    if threshold and context and threshold > context:
        return start.refuse(
            "long-prefill-token-threshold",
            f"a prompt counts as long from {threshold:.0f} tokens on, and has at most {context}",
            f"write {context} or less",
        )
    return None


def _aligned_blocks(start: Start) -> Refusal | None:
    block, step = start.number("block-size"), start.count(_STEP, start.batch.tokens)
    if start.word("mamba-cache-mode") != "align" or not (start.known and start.known.recurrent):
        return None
    if block and block > step:
        return start.refuse(
            "block-size",
            f"'mamba-cache-mode: align' needs a block to fit into a step of {step} tokens",
            f"write {step} or less",
        )
    threshold = start.number("long-prefill-token-threshold")
    if block and threshold and threshold < block:
        return start.refuse(
            "long-prefill-token-threshold",
            "'mamba-cache-mode: align' needs a threshold of at least one block",
            f"write {block:.0f} or more",
        )
    return None


def _mamba_blocks(start: Start) -> Refusal | None:
    if "mamba-block-size" in start.settings and start.is_off("enable-prefix-caching"):
        return start.refuse(
            "mamba-block-size",
            "'mamba-block-size' needs prefix caching",
            "take it out, or 'enable-prefix-caching: false'",
        )
    return None


def _given_twice(start: Start) -> Refusal | None:
    pairs = (
        ("cudagraph-capture-sizes", _GRAPHS, "cudagraph_capture_sizes"),
        ("max-cudagraph-capture-size", _GRAPHS, "max_cudagraph_capture_size"),
        ("attention-backend", "attention-config", "backend"),
        ("enable-flashinfer-autotune", "kernel-config", "enable_flashinfer_autotune"),
    )
    for flag, config, key in pairs:
        if flag in start.settings and start.value(config, key) is not None:
            return start.refuse(
                flag, f"'{flag}' and '{key}' of '{config}' set the same thing", "keep one"
            )
    return None


def _largest_graph(start: Start) -> Refusal | None:
    sizes, largest = (
        start.value("cudagraph-capture-sizes"),
        start.number("max-cudagraph-capture-size"),
    )
    if sizes == []:
        return start.refuse("cudagraph-capture-sizes", "the list of sizes is empty", "take it out")
    numbers = start.numbers("cudagraph-capture-sizes")
    most = int(max(numbers, default=0))
    if most and largest is not None and largest != most:
        return start.refuse(
            "max-cudagraph-capture-size",
            f"the largest graph has {largest:.0f} tokens here, and {most} in the list of sizes",
            "take it out: the list sets it",
        )
    return None


def _pieces_without_compiling(start: Start) -> Refusal | None:
    mode = start.word(_GRAPHS, "cudagraph_mode").upper()
    uncompiled = start.word("optimization-level") == "0" or start.word(_GRAPHS, "mode") in (
        "0",
        "NONE",
    )
    if "PIECEWISE" in mode and uncompiled:
        return start.refuse(
            _GRAPHS,
            f"'cudagraph_mode: {mode}' needs compilation, which is off",
            "write FULL_DECODE_ONLY or NONE",
            "cudagraph_mode",
        )
    return None


_SCHEDULER, _VLLM, _COMPILATION = (
    "vllm/config/scheduler.py",
    "vllm/config/vllm.py",
    "vllm/config/compilation.py",
)

CONDITIONS = (
    Condition(_step_below_context, f"{_SCHEDULER}:322"),
    Condition(_step_below_sequences, f"{_SCHEDULER}:332"),
    Condition(_active_above_all, f"{_SCHEDULER}:342", (0, 31)),
    Condition(_threshold_above_context, f"{_SCHEDULER}:356"),
    Condition(_aligned_blocks, f"{_VLLM}:3415"),
    Condition(_mamba_blocks, f"{_VLLM}:3449"),
    Condition(_given_twice, "vllm/engine/arg_utils.py:2730"),
    Condition(_largest_graph, f"{_VLLM}:2561"),
    Condition(_pieces_without_compiling, f"{_VLLM}:2171", until=(0, 30)),
    Condition(_pieces_without_compiling, f"{_VLLM}:1129", (0, 30), None, Effect.DIFFERS),
)
