"""The parameters of a layer of each kind, and how tensor ranks hold them."""

from generator.fit import formulas
from generator.fit.complete import CompleteShape
from generator.fit.kinds import count_kinds
from generator.models.architecture import Compressed, Recurrent
from generator.records import record


@record
class Heads:
    """Parameters of a layer's attention, by how a rank holds them."""

    split: int
    keys_values: int
    whole: int
    kv_heads: int

    @property
    def all(self) -> int:
        """Parameters of all ranks together."""
        return self.split + self.keys_values + self.whole

    def on_rank(self, tensor: int) -> float:
        """Parameters on one rank: KV heads are copied if there are fewer than ranks."""
        copied = max(1 / tensor, 1 / self.kv_heads)
        return self.split / tensor + self.keys_values * copied + self.whole


@record
class Parts:
    """Parameters of a layer's parts; `window` is attention of a layer with a window."""

    attention: Heads
    window: Heads
    recurrent: int
    dense: int
    shared: int
    router: int
    experts: int


def parts(model: CompleteShape) -> Parts | None:
    """Parameters of each part of a layer, if all its sizes are known."""
    shape, hidden, moe = model.shape, model.hidden_size, model.shape.moe
    window = _grouped(model, shape.kv_heads, shape.head_dim, shared_values=False)
    attention = _attention(model)
    # Nemotron's feed-forward parts have no gate, with experts or without.
    matrices = moe.matrices if moe else 2 if shape.layers_alone else 3
    dense = formulas.feed_forward_parameters(hidden, shape.intermediate_size or 0, matrices)
    if attention is None or (not dense and count_kinds(shape, 0, shape.layers).dense > 0):
        return None
    if shape.experts and (moe is None or moe.size is None or moe.width is None):
        return None
    experts = shared = router = 0
    if moe and moe.size and moe.width:
        experts = moe.count * formulas.feed_forward_parameters(moe.width, moe.size, moe.matrices)
        shared = formulas.feed_forward_parameters(hidden, moe.shared, moe.matrices)
        shared += 2 * hidden * moe.width if moe.width != hidden else 0
        router = hidden * moe.count
    recurrent = _recurrent(hidden, shape.recurrent)
    return Parts(attention, window or attention, recurrent, dense, shared, router, experts)


def parameters(model: CompleteShape) -> tuple[float, float] | None:
    """All parameters, and those that one token uses; None if a size or the experts aren't known."""
    part, shape, moe = parts(model), model.shape, model.shape.moe
    if part is None or (shape.experts and (moe is None or not moe.chosen)):
        return None
    kinds = count_kinds(shape, 0, shape.layers)
    tables = model.hidden_size * model.vocab_size
    others = (
        tables * (1 if shape.tied_embeddings else 2)
        + kinds.attention * part.attention.all
        + kinds.sliding * part.window.all
        + kinds.recurrent * part.recurrent
        + kinds.dense * part.dense
        + kinds.experts * (part.shared + part.router)
    )
    experts = kinds.experts * part.experts
    chosen = moe.chosen / moe.count if moe and moe.chosen else 1
    # A token reads one row of the embedding.
    unread = 0 if shape.tied_embeddings else tables
    return others + experts, others - unread + experts * chosen


def _attention(model: CompleteShape) -> Heads | None:
    """Attention of a layer that attends to all tokens."""
    shape, hidden = model.shape, model.hidden_size
    heads, mla = shape.heads, shape.mla
    if shape.compressed:
        return _compressed(hidden, heads, shape.compressed)
    if mla is None:
        kv_heads = shape.global_kv_heads or shape.kv_heads
        head = shape.global_head_dim or shape.head_dim
        return _grouped(model, kv_heads, head, shape.shared_values)
    if not (mla.q_rank and mla.nope is not None and mla.value):
        return None
    sizes = (mla.nope, mla.rope, mla.value)
    split, whole = formulas.latent_parameters(hidden, heads, (mla.q_rank, mla.kv_rank), sizes)
    if shape.indexer:
        index = shape.indexer
        whole += formulas.indexer_parameters(hidden, mla.q_rank, index.heads, index.head)
    return Heads(split, 0, whole, 1)


def _grouped(
    model: CompleteShape, kv_heads: int, head: int | None, shared_values: bool
) -> Heads | None:
    if not head:
        return None
    shape = model.shape
    split, kv = formulas.attention_parameters(
        model.hidden_size,
        (shape.heads, kv_heads),
        (head, shape.value_dim or head),
        shape.gated_attention,
    )
    return Heads(split, kv // 2 if shared_values else kv, 0, kv_heads)


def _compressed(hidden: int, heads: int, sizes: Compressed) -> Heads:
    """Compressed attention: low-rank queries and output, one key head.

    Source: vLLM, vllm/models/deepseek_v4/attention.py, `DeepseekV4Attention`.
    """
    wide = heads * sizes.head
    split = wide * (sizes.q_rank + sizes.o_rank) + sizes.o_groups * sizes.o_rank * hidden
    return Heads(split, 0, hidden * (sizes.q_rank + sizes.head), 1)


def _recurrent(hidden: int, recurrent: Recurrent | None) -> int:
    if recurrent is None:
        return 0
    return formulas.recurrent_parameters(hidden, recurrent.keys, recurrent.values)
