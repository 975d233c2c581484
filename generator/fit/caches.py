"""What a rank caches of a sequence: pages of each kind of layer, and the pools that hold them.

Line numbers are of vLLM 0.33.0 unless another release is named.
"""

from collections.abc import Iterator
from math import ceil

from generator.catalogs import DraftCache
from generator.catalogs.engines.traits import Paging
from generator.fit import formulas
from generator.fit.complete import CompleteShape
from generator.fit.formulas import CACHED, WIDE
from generator.fit.kinds import Kinds
from generator.fit.paging import Pages, PagingKind, Pool, pool
from generator.fit.requested import Division, Requested
from generator.models.architecture import GATED_DELTA, WIDE_STATE, Compressed, Recurrent
from generator.records import record, replace

# Tokens per block: the default, that of latent caches, and of DeepSeek-V4. Source:
# vllm/config/cache.py, line 185; FlashMLA's 64; models/deepseek_v4/attention.py.
_BLOCK, _LATENT_BLOCK, _COMPRESSED_BLOCK = 16, 64, 256

# Blocks of hybrid models are multiples of these: for attention kernels, and for those of latent
# caches.
# Source: vllm/platforms/interface.py, lines 940 to 1110, `_align_hybrid_block_size`.
_KERNEL_BLOCK, _LATENT_KERNEL_BLOCK = 16, 128


@record
class Cache:
    """The KV cache of a rank; `under_way` are tokens that are scheduled but not yet settled.

    `shares` are those of the pools, if the room is divided among them, and `fixed` the bytes of
    states that are there whatever runs. `token` is the size in bytes of each token that the room is
    said to hold, with what is kept beside it unless it `holds_tokens` alone; None if not known.
    """

    pages: tuple[Pages, ...]
    pools: tuple[Pool, ...]
    under_way: int
    shares: tuple[float, ...] = ()
    fixed: int = 0
    token: float | None = None
    holds_tokens: bool = True

    def sequence(self, tokens: int) -> int:
        """Bytes of the room that one sequence of this many tokens takes.

        If the room is divided, the pool that fills up first decides.
        """
        sizes = [pool.sequence(tokens, self.under_way) for pool in self.pools]
        if not self.shares:
            return sum(sizes)
        return ceil(max(size / share for size, share in zip(sizes, self.shares, strict=True)))

    def read(self, tokens: int) -> float:
        """Bytes read for the next token of a sequence."""
        return sum(_read(pages, tokens) for pages in self.pages)


def _read(pages: Pages, tokens: int) -> float:
    if pages.kind in ("state", "rolling"):
        return pages.layers * pages.page
    kept = min(tokens, pages.window) if pages.kind == "window" else tokens
    return pages.layers * pages.page * kept / (pages.block * pages.ranks)


@record
class Split:
    """The layers of a model on a rank: how many of each kind here and in all, and the tensor ranks.

    `drafts` is the number of layers here that make drafts and are like the model's own, `draft`
    what a draft model caches.
    """

    here: Kinds
    all: Kinds
    tensor: int
    pipeline: int
    drafts: int
    draft: DraftCache | None = None


def cache(model: CompleteShape, split: Split, requested: Requested, paging: Paging | None) -> Cache:
    """The cache of a rank; without `paging` each kind of layer has a pool of its own.

    An encoder has none: vllm/v1/worker/gpu_model_runner.py, line 7063, omits attention of the kind
    ENCODER_ONLY.
    """
    shape = model.shape
    if shape.encoder:
        return Cache((), (), 0)
    kinds = tuple(_kinds(model, split, requested, paging))
    if paging is None:
        if requested.division and not shape.compressed:
            divided = _divided(kinds, requested.division, requested.step)
            return divided if requested.context_ranks == 1 else replace(divided, token=None)
        pools = tuple(pool([pages], packed=False) for pages in kinds)
        return Cache(kinds, pools, requested.step, token=_token(kinds))
    under_way = requested.step
    if requested.version >= paging.two_steps:
        # Source: `max_concurrent_batches`, which admission has reserved for since pull request
        # 47728: one step more than there are stages if scheduling is asynchronous.
        under_way *= split.pipeline + (1 if requested.schedules_ahead else 0)
    packed = shape.compressed is not None or bool(shape.indexer and shape.indexer.pooled > 1)
    one = pool(kinds, packed, tuples=requested.version < paging.packs)
    return Cache(kinds, (one,), under_way)


def _kinds(
    model: CompleteShape, split: Split, requested: Requested, paging: Paging | None
) -> Iterator[Pages]:
    if model.shape.compressed:
        return _compressed(model.shape.compressed, split, requested.drafted)
    if paging is None:
        return _apart(model, split, requested)
    return _paged(model, split, requested, paging)


def _token(kinds: tuple[Pages, ...]) -> float | None:
    """Bytes per token, if all layers keep all tokens."""
    if any(pages.kind != "full" for pages in kinds):
        return None
    return sum(pages.layers * pages.page / (pages.block * pages.ranks) for pages in kinds)


def _divided(kinds: tuple[Pages, ...], division: Division, step: int) -> Cache:
    """A cache whose room is divided among the kinds: in tokens, and for states in bytes.

    Source: SGLang 0.5.23, model_executor/pool_configurator.py, line 784, `_recompute_cell_size`,
    and mem_cache/kv_cache_configurator.py, line 3350.
    """
    states = [pages for pages in kinds if pages.kind == "state"]
    fixed = 0
    if division.held is not None:
        fixed = division.held * sum(pages.layers * pages.page for pages in states)
    else:
        states = [replace(pages, blocks=division.slots) for pages in states]
    grown = [[pages for pages in kinds if pages.kind == kind] for kind in ("full", "window")]
    weights = [
        sum(pages.layers * pages.page / (pages.block * pages.ranks) for pages in alike) * tokens
        for alike, tokens in zip(grown, (1, division.windows), strict=True)
    ]
    if not fixed:
        grown.append(states)
        weights.append(sum(weights) * division.states if states else 0)
    kept = [(alike, weight) for alike, weight in zip(grown, weights, strict=True) if weight]
    whole = sum(weight for _, weight in kept)
    return Cache(
        kinds,
        tuple(pool(alike, packed=False) for alike, _ in kept),
        step,
        tuple(weight / whole for _, weight in kept),
        fixed,
        whole if weights[0] else None,
        not any(weights[2:]),
    )


def _apart(model: CompleteShape, split: Split, requested: Requested) -> Iterator[Pages]:
    """The kinds of layers if each is allocated separately, by the token.

    Source: SGLang 0.5.23, mem_cache/swa_memory_pool.py, line 21, `SWAKVPool`, and memory_pool.py,
    line 4228, `HybridLinearKVPool`. llama.cpp, build 11434, src/llama-kv-cache-iswa.cpp, line 73:
    the window and a step, in cells of 256.
    """
    shape = model.shape
    token = _tokens_of_layers(model, split, requested)
    for kind, (here, everywhere, size, window) in token.items():
        if not here:
            continue
        if window:
            block = requested.window_cells
            page = ceil(block * size)
            yield Pages("window", here, everywhere, block, page, window, spare=0)
        else:
            # All caches but the layers' own are replicated on every rank.
            # Source: SGLang 0.5.23, model_executor/pool_configurator.py, lines 227 to 308.
            ranks = requested.context_ranks
            copies = 1 if kind == "full" else ranks
            yield Pages("full", here, everywhere, 1, ceil(size) * copies, ranks=ranks)
    if shape.recurrent and split.here.recurrent:
        state = _state_bytes(shape.recurrent, split.tensor, requested)
        copies = 1 + requested.drafted if requested.wide_states else 1
        yield Pages("state", split.here.recurrent, split.all.recurrent, 1, state, blocks=copies)
    if shape.convolution_window:
        yield Pages("state", *_attending(split), 1, _inputs_bytes(model, split.tensor))


def _paged(
    model: CompleteShape, split: Split, requested: Requested, paging: Paging
) -> Iterator[Pages]:
    """The kinds of layers as vLLM describes them to its pool.

    Source: vllm/platforms/interface.py, line 940, `_align_hybrid_block_size`: with states, a block
    is made as long as a state is large, and the state padded to it.
    """
    shape = model.shape
    token = _tokens_of_layers(model, split, requested)
    ranks = requested.context_ranks
    latent = shape.mla is not None
    block = requested.block or (_LATENT_BLOCK if latent else _BLOCK)
    state = 0
    if shape.recurrent:
        state = _state_bytes(shape.recurrent, split.tensor, requested)
        kernel = max(_LATENT_KERNEL_BLOCK if latent else _KERNEL_BLOCK, requested.block or 0)
        block = max(block, kernel * ceil(state / (kernel * token["full"][2])))
    for kind, (here, everywhere, size, window) in token.items():
        if not everywhere:
            continue
        page = ceil(block * size)
        if window:
            yield Pages("window", here, everywhere, block, page, window)
        elif kind == "index" and shape.indexer and shape.indexer.pooled > 1:
            yield Pages("full", here, everywhere, block, page, pads=False, ranks=ranks)
            yield _tail(shape.indexer.head, shape.indexer.pooled, here, everywhere, requested)
        else:
            yield Pages("full", here, everywhere, block, page, pads=not latent, ranks=ranks)
    if shape.recurrent:
        count = _states(shape.recurrent, requested, paging)
        page = max(state, ceil(block * token["full"][2]))
        yield Pages("state", split.here.recurrent, split.all.recurrent, block, page, blocks=count)
        if alone := shape.recurrent.short_convolutions:
            # Only in name of the same form as the others: vllm/models/qwen4_exp/nvidia/model.py,
            # line 880, `get_mamba_specs_from_config`.
            yield Pages("state", alone, alone, block, page, blocks=count, whole=True)
    if shape.convolution_window:
        yield _inputs(model, split)


def _states(recurrent: Recurrent, requested: Requested, paging: Paging) -> int:
    """States that a sequence has in a layer: its own, drafted ones, and those of prefixes.

    Source: kv_cache_interface.py, line 1135, `MambaSpec.max_memory_usage_bytes`; which layers keep
    one for a prefill's end: `num_prefill_checkpoint_blocks`, in mamba_mixer2.py, kda.py and
    qwen_gdn_linear_attn.py (FlashInfer and FlashKDA on SM 12).
    """
    if not requested.caches_prefixes:
        return 1 + requested.drafted
    is_delta = recurrent.kind == GATED_DELTA
    since = paging.checkpoints_delta if is_delta else paging.checkpoints_states
    return 2 + requested.drafted + (1 if requested.version >= since else 0)


def _tokens_of_layers(
    model: CompleteShape, split: Split, requested: Requested
) -> dict[str, tuple[int, int, float, int]]:
    """By kind: layers here, layers in all, bytes per token and layer on a rank, and the window."""
    shape, here, everywhere = model.shape, split.here, split.all
    full = _token_bytes(model, split.tensor, requested)
    own, window = _window_bytes(model, split.tensor, requested), shape.sliding_window or 0
    found = {
        "full": (here.attention + split.drafts, everywhere.attention + split.drafts, full, 0),
        "window": (here.sliding, everywhere.sliding, own, window),
    }
    if shape.indexer:
        entry = formulas.indexer_cache_bytes(shape.indexer.head, shape.indexer.wide)
        found["index"] = (here.indexed, everywhere.indexed, entry / shape.indexer.pooled, 0)
    if draft := split.draft:
        size = draft.elements / draft.layers * requested.cached / split.tensor
        windowed = draft.windowed if requested.windows_drafts else 0
        kept = draft.layers - windowed
        found["draft"] = (kept, kept, size, 0)
        found["windowed draft"] = (windowed, windowed, size, draft.window)
    return found


def _token_bytes(model: CompleteShape, tensor: int, requested: Requested) -> float:
    """Bytes of KV cache per token and full layer on one rank.

    Source: `AttentionSpec.unpadded_page_size_bytes` (kv_cache_interface.py, line 593); for latent
    caches `MLAAttentionSpec` (line 729), and 656 bytes for `fp8_ds_mla`
    (attention/backends/mla/flashmla_sparse.py, line 79).
    """
    shape, each = model.shape, requested.cached
    layers = shape.attention_layers or shape.layers
    if shape.cache_bytes:
        return shape.cache_bytes / layers
    if shape.cache_elements:
        copies = 1.0 if shape.latent else max(1 / tensor, 1 / shape.kv_heads)
        return shape.cache_elements / layers * copies * each
    if latent := shape.mla:
        elements = formulas.latent_cache_elements(latent.kv_rank, latent.cached_rope)
        sparse = shape.indexer is not None and each == CACHED["fp8"]
        return elements * (CACHED["fp8_ds_mla"] if sparse else each)
    heads = shape.global_kv_heads or shape.kv_heads
    head = shape.global_head_dim or shape.head_dim or 0
    return formulas.grouped_cache_elements(heads, head, tensor, shape.value_dim) * each


def _window_bytes(model: CompleteShape, tensor: int, requested: Requested) -> float:
    shape = model.shape
    if not shape.sliding_layers or not shape.head_dim:
        return _token_bytes(model, tensor, requested)
    heads, head = shape.kv_heads, shape.head_dim
    elements = formulas.grouped_cache_elements(heads, head, tensor, shape.value_dim)
    return elements * requested.cached


def _state_bytes(recurrent: Recurrent, tensor: int, requested: Requested) -> int:
    """Bytes of a state on one rank; in llama.cpp its inputs are in 32 bits too, and not drafted.

    SGLang has a separate state for each drafted token instead of longer inputs.
    Source: llama.cpp, build 11434, src/llama-hparams.cpp, lines 208 and 236, `n_embd_r` and
    `n_embd_s`; SGLang 0.5.23, configs/mamba_utils.py, line 225, `conv_state_shape`.
    """
    inputs = 2 * recurrent.keys + recurrent.values
    if requested.wide_states:
        state = recurrent.state * WIDE_STATE
        return ceil(formulas.state_bytes(state, inputs * WIDE_STATE, tensor, 0))
    each = requested.state_bytes or recurrent.state_bytes
    drafted = 0 if requested.division else requested.drafted
    return ceil(formulas.state_bytes(recurrent.state * each, inputs * WIDE, tensor, drafted))


def _inputs(model: CompleteShape, split: Split) -> Pages:
    """What the short convolutions of each layer keep in vLLM: a window that is one block long.

    Its inputs are keys, values, and the outputs of attention and of the feed-forward part, for each
    key head in 16 bits and padded to the next power of two. Source:
    vllm/models/inkling/nvidia/sconv_swa_attn.py, line 121, `InklingConvState`.
    """
    shape = model.shape
    window, heads = shape.convolution_window, shape.kv_heads
    wide = 2 * (shape.head_dim or 0) + 2 * model.hidden_size // heads
    page = window * max(1, heads // split.tensor) * (1 << (wide - 1).bit_length()) * int(WIDE)
    return Pages("window", *_attending(split), window, page, window)


def _attending(split: Split) -> tuple[int, int]:
    """The number of layers with attention of either kind, here and in all."""
    here, everywhere = split.here, split.all
    return here.attention + here.sliding, everywhere.attention + everywhere.sliding


def _inputs_bytes(model: CompleteShape, tensor: int) -> int:
    """The same per layer and sequence in SGLang: for heads of both kinds in every layer.

    Source: SGLang 0.5.23, configs/inkling.py, line 218, `mamba2_cache_params`.
    """
    shape = model.shape
    heads = shape.kv_heads, shape.global_kv_heads or shape.kv_heads
    keys = sum(max(1, count // tensor) for count in heads) * (shape.head_dim or 0)
    return (shape.convolution_window - 1) * 2 * (keys + model.hidden_size) * int(WIDE)


def _tail(head: int, pooled: int, here: int, everywhere: int, requested: Requested) -> Pages:
    """The keys of a pool that isn't full yet, in 16 bits beside their weights: one block.

    Source: vllm/models/glm5next/common/attention.py, line 156, `Glm5NextTailCache`; that of
    Qwen3.8-Flash-Next is not larger (qwen4_exp/common/qsa_cache.py, line 842).
    """
    pools = ceil((pooled + requested.drafted) / pooled)
    ring = pooled * (1 << (pools - 1).bit_length())
    return Pages("rolling", here, everywhere, ring, int(ring * 2 * head * WIDE), pads=False)


def _compressed(shape: Compressed, split: Split, drafted: int) -> Iterator[Pages]:
    """DeepSeek-V4's compressed attention: windows everywhere, and entries of 1 to 128 tokens.

    An entry has 448 bytes without positions, 128 with them and 8 for scales; pages are multiples of
    576 bytes. The compression state is in 32 bits: keys and scores, twice if windows overlap; in
    DeepSeek-V4.1 it is a ring. Source: vllm/models/deepseek_v4/attention.py, lines 860 and 911,
    compressor.py, line 179, `CompressorStateCache`, v1/attention/backends/mla/sparse_swa.py, line
    120, `DeepseekV4SWACache`; deepseek_v41/attention.py, line 1206, and compressor.py, line 229.
    """
    share = split.here.attention / split.all.attention if split.all.attention else 1
    entry, index = shape.head + shape.rope + 8, shape.index_head + 4
    every = _COMPRESSED_BLOCK

    def pages(kind: PagingKind, layers: int, block: int, size: int, window: int = 0) -> Pages:
        padded = size if kind == "rolling" else ceil(size / 576) * 576
        return Pages(kind, ceil(layers * share), layers, block, padded, window, pads=False)

    windows, short = split.all.attention + split.drafts, 32 if shape.sources else 64
    for layers, tokens in ((shape.ones, 1), (shape.twos, 2), (shape.fours, 4)):
        yield pages("full", layers, every, every // tokens * entry)
        yield pages("full", layers, every, every // tokens * index)
    yield pages("full", shape.rest, every, every // 128 * entry)
    yield pages("window", windows, short, short * entry, shape.window)
    yield pages("window", shape.fours, 4, 4 * 2 * 2 * shape.head * 4, 2 * 4)
    yield pages("window", shape.fours, 4, 4 * 2 * 2 * shape.index_head * 4, 2 * 4)
    yield pages("window", shape.rest, 8, 8 * 2 * shape.head * 4, 128)
    ring = max(8, 1 << (drafted + 1).bit_length())
    yield pages("rolling", shape.twos, ring, ring * 2 * shape.head * 4)
