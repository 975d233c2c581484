"""The blocks of vLLM's KV cache: how layers of several kinds share one pool, and at what cost.

Page sizes are in bytes, those of blocks and windows in tokens. Line numbers are of vLLM 0.33.0,
`vllm/v1/core/kv_cache_planning.py` (planning; earlier releases have it in kv_cache_utils.py) and
`vllm/v1/kv_cache_interface.py` (interface), unless another release is named.
"""

from collections.abc import Sequence
from math import ceil
from typing import Literal

from generator.records import record, replace

PagingKind = Literal["full", "window", "state", "rolling"]

# If one kind has up to this many times more layers, the other kinds are padded to it. Source:
# planning, line 524, `_get_kv_cache_groups_uniform_page_size`.
_PADDED_UP_TO = 1.5


@record
class Pages:
    """What layers of one kind cache: a page of `page` bytes for each `block` tokens and layer.

    `layers` are those of one rank, `all_layers` those of the model, which determine the groups. A
    window holds `window` tokens and those under way; a state is `blocks` pages whatever the length.
    `pads` is false for pages that may not be enlarged (latent caches). A window holds `spare`
    blocks in addition, since it need not begin with a block. `whole` states are not split over
    ranks, and only share a group with each other. `ranks` share the tokens of a sequence.
    """

    kind: PagingKind
    layers: int
    all_layers: int
    block: int
    page: int
    window: int = 0
    blocks: int = 1
    pads: bool = True
    spare: int = 1
    whole: bool = False
    ranks: int = 1

    def held(self, tokens: int, under_way: int) -> int:
        """The blocks of one sequence in one layer.

        Source: interface, `max_memory_usage_bytes` of `FullAttentionSpec` (line 643),
        `SlidingWindowSpec` (946), `CircularBufferSpec` (982) and `MambaSpec` (1135).
        """
        if self.kind == "full":
            return ceil(ceil(tokens / self.ranks) / self.block)
        if self.kind == "window":
            held = min(self.window - 1 + under_way, tokens)
            return ceil(held / self.block) + self.spare
        return self.blocks


@record
class LayerGroup:
    """Layers that share a block table; `count` groups are alike."""

    count: int
    pages: tuple[Pages, ...]

    def held(self, tokens: int, under_way: int) -> int:
        """The blocks of one sequence in all groups like this one."""
        return self.count * max(pages.held(tokens, under_way) for pages in self.pages)


@record
class Pool:
    """One pool of blocks of `block_bytes` each, which all groups share."""

    block_bytes: int
    groups: tuple[LayerGroup, ...]

    def blocks(self, tokens: int, under_way: int) -> int:
        """The blocks of one sequence of this many tokens."""
        return sum(group.held(tokens, under_way) for group in self.groups)

    def sequence(self, tokens: int, under_way: int) -> int:
        """The bytes of one sequence of this many tokens."""
        return self.block_bytes * self.blocks(tokens, under_way)


def pool(kinds: Sequence[Pages], packed: bool, tuples: bool = False) -> Pool:
    """The pool of these kinds of layers.

    `packed` puts pages of different sizes side by side in a block, as backends with an indexer do;
    `tuples` is how releases before 0.29 did that.
    Source: planning, line 1113, `get_kv_cache_groups`.
    """
    kept = tuple(pages for pages in kinds if pages.all_layers)
    if len(kept) <= 1 or _is_one_type(kept):
        return Pool(sum(p.layers * p.page for p in kept), (LayerGroup(1, kept),) if kept else ())
    if packed:
        return _tuples(kept) if tuples else _packed(kept)
    return _uniform(_unified(kept))


def _is_one_type(kinds: Sequence[Pages]) -> bool:
    """Whether all need the same number of blocks: then a block holds all layers.

    Source: interface, line 1348, `UniformTypeKVCacheSpecs.is_uniform_type`.
    """
    return len({(p.kind, p.block, p.window, p.whole, p.ranks) for p in kinds}) == 1


def _unified(kinds: Sequence[Pages]) -> tuple[Pages, ...]:
    """Pages of one size: by longer blocks where the sizes divide, otherwise by padding.

    Source: planning, line 346, `unify_kv_cache_spec_page_size`.
    """
    largest = max(pages.page for pages in kinds)

    def unified(pages: Pages) -> Pages:
        if pages.kind in ("full", "window") and not largest % pages.page:
            times = largest // pages.page
            return replace(pages, page=largest, block=pages.block * times)
        return replace(pages, page=largest)

    return tuple(unified(pages) for pages in kinds)


def _uniform(kinds: Sequence[Pages]) -> Pool:
    """Groups of as many layers as the rarest kind has; a block is a page of each layer of a group.

    Source: planning, line 416, `_get_kv_cache_groups_uniform_page_size`, which deals out layers in
    turn, so that each pipeline stage has the same number of every group.
    """
    counts = [pages.all_layers for pages in kinds]
    size = max(counts) if max(counts) < min(counts) * _PADDED_UP_TO else min(counts)
    groups = tuple(LayerGroup(ceil(pages.all_layers / size), (pages,)) for pages in kinds)
    most = max(ceil(pages.layers / ceil(pages.all_layers / size)) for pages in kinds)
    return Pool(most * kinds[0].page, groups)


def _packed(kinds: Sequence[Pages]) -> Pool:
    """Pages of several sizes side by side; states and windows split until they fit the block.

    Source: planning, lines 914 and 574, `_get_packed_kv_cache_groups` and
    `_get_kv_cache_bytes_per_block`.
    """
    buckets = _buckets(kinds)
    mixed = [bucket for bucket in buckets if _is_balanced(bucket) and len(bucket) > 1]
    least = max((_most_layers(bucket) for bucket in mixed), default=0)
    repeats = 0
    if least:
        repeats = _least_padding([_most_layers(b) for b in buckets if _is_balanced(b)], least)

    def parts(bucket: Sequence[Pages]) -> int:
        return ceil(_most_layers(bucket) / repeats) if repeats and _is_balanced(bucket) else 1

    def splits(bucket: Sequence[Pages]) -> bool:
        return bucket[0].kind in ("state", "rolling") or (
            not repeats and bucket[0].kind == "window"
        )

    anchor = max(
        _widest(bucket, _layers(bucket) if splits(bucket) else parts(bucket)) for bucket in buckets
    )
    groups, sizes = [], []
    for bucket in buckets:
        count = parts(bucket)
        if splits(bucket):
            count = max(count, ceil(_layers(bucket) / max(1, anchor // bucket[0].page)))
        groups.append(LayerGroup(count, tuple(bucket)))
        sizes.append(sum(ceil(pages.layers / count) * pages.page for pages in bucket))
    return Pool(max(sizes), tuple(groups))


def _tuples(kinds: Sequence[Pages]) -> Pool:
    """Like `_packed`, for releases up to 0.28: all pages are padded to those of full attention.

    Source: vLLM 0.25.1, kv_cache_utils.py, `_get_kv_cache_groups_uniform_groups` and
    `_max_memory_usage_bytes_from_groups`.
    """
    buckets = sorted(_buckets(kinds), key=lambda bucket: bucket[0].kind != "full")
    most = [_most_layers(bucket) for bucket in buckets]
    repeats = _least_padding(most, most[0])
    groups = tuple(
        LayerGroup(ceil(count / repeats), tuple(bucket))
        for count, bucket in zip(most, buckets, strict=True)
    )
    size = sum({pages.page for pages in buckets[0]})
    widest = max(ceil(max(pages.layers for pages in group.pages) / group.count) for group in groups)
    return Pool(widest * size, groups)


def _buckets(kinds: Sequence[Pages]) -> list[list[Pages]]:
    """Kinds that need the same blocks."""
    found: list[list[Pages]] = []
    for pages in kinds:
        same = next((bucket for bucket in found if _is_one_type((*bucket, pages))), None)
        if same is None:
            found.append([pages])
        else:
            same.append(pages)
    return found


def _layers(bucket: Sequence[Pages]) -> int:
    return sum(pages.all_layers for pages in bucket)


def _most_layers(bucket: Sequence[Pages]) -> int:
    sizes = {pages.page for pages in bucket}
    return max(sum(p.all_layers for p in bucket if p.page == size) for size in sizes)


def _is_balanced(bucket: Sequence[Pages]) -> bool:
    return len({pages.all_layers for pages in bucket}) == 1


def _widest(bucket: Sequence[Pages], parts: int) -> int:
    return sum(ceil(pages.all_layers / parts) * pages.page for pages in bucket)


def _least_padding(counts: Sequence[int], least: int) -> int:
    """The group size that pads the fewest layers, and the largest of several.

    Source: planning, line 879, `_approximate_gcd`.
    """
    sizes = range(max(1, least), max(max(counts), least) + 1)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))
