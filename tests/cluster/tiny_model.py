"""Makes a model of a few megabytes with random weights, as llama.cpp reads it: a GGUF file.

Its tokens are bytes, so its output is noise, but layers are computed where a real model's are.
"""

import math
import random
import struct
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LAYERS, WIDTH, HEADS, INNER, CONTEXT = 6, 256, 4, 512, 4096
_ALIGNMENT = 32
# Types of GGUF: of values, and of tensors. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_F32, _F16 = 0, 1
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
_KINDS = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, _NORMAL]
_TOKENIZER = (
    ("tokenizer.ggml.model", _STRING, "llama"),
    ("tokenizer.ggml.tokens", _STRING, _TOKENS),
    ("tokenizer.ggml.scores", _FLOAT32, [0.0] * len(_TOKENS)),
    ("tokenizer.ggml.token_type", _INT32, _KINDS),
    ("tokenizer.ggml.bos_token_id", _UINT32, 1),
    ("tokenizer.ggml.eos_token_id", _UINT32, 2),
    ("tokenizer.ggml.unknown_token_id", _UINT32, 0),
    ("tokenizer.ggml.add_bos_token", _BOOL, True),
    ("tokenizer.chat_template", _STRING, "{% for m in messages %}{{ m['content'] }}{% endfor %}"),
)
_EXPERTS, _CHOSEN, _EXPERT_INNER = 8, 2, 128
_HEAD, _RANK, _ROPE = WIDTH // HEADS, 512, 64
_LAST_TOKEN = 3


@dataclass(frozen=True)
class Kind:
    """An architecture of llama.cpp's, and the keys of its shape beyond the common ones."""

    architecture: str = "llama"
    numbers: Mapping[str, int] = field(default_factory=dict)
    layers: int = LAYERS
    dense_layers: int = LAYERS

    @property
    def is_latent(self) -> bool:
        return "attention.kv_lora_rank" in self.numbers


_WITH_EXPERTS = {"expert_count": _EXPERTS, "expert_used_count": _CHOSEN}
_LATENT = {
    **_WITH_EXPERTS,
    "leading_dense_block_count": 1,
    "expert_feed_forward_length": _EXPERT_INNER,
    "expert_shared_count": 1,
    "attention.q_lora_rank": 0,
    "attention.kv_lora_rank": _RANK,
    "attention.head_count_kv": 1,
    "attention.key_length": _RANK + _ROPE,
    "attention.value_length": _RANK,
    "attention.key_length_mla": _HEAD + _ROPE,
    "attention.value_length_mla": _HEAD,
}
KINDS: Mapping[str, Kind] = {
    "dense": Kind(),
    "draft": Kind(layers=2),
    "embedding": Kind(numbers={"pooling_type": _LAST_TOKEN}),
    "experts": Kind(
        numbers={**_WITH_EXPERTS, "feed_forward_length": _EXPERT_INNER}, dense_layers=0
    ),
    "latent": Kind("deepseek2", _LATENT, dense_layers=1),
}


def write(path: Path, kind: str = "dense") -> None:
    """Write a model of a kind, with the same weights each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    model = KINDS[kind]
    metadata, tensors = list(_values(model)), list(_tensors(model))
    values = b"".join(_string(name) + _value(form, value) for name, form, value in metadata)
    offset, infos = 0, b""
    for name, shape, form in tensors:
        infos += _string(name) + struct.pack("<I", len(shape))
        infos += struct.pack(f"<{len(shape)}QIQ", *shape, form, offset)
        offset += _size(shape, form)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)) + values + infos
    noise = random.Random(1)
    with path.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % _ALIGNMENT))
        for _, shape, form in tensors:
            file.write(_weights(shape, form, noise))


def _values(model: Kind) -> Iterator[tuple[str, int, object]]:
    yield "general.architecture", _STRING, model.architecture
    yield "general.name", _STRING, "tiny"
    numbers = {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": model.layers,
        "feed_forward_length": INNER,
        "rope.dimension_count": _ROPE,
        "attention.head_count": HEADS,
        "attention.head_count_kv": HEADS,
        **model.numbers,
    }
    for name, number in numbers.items():
        yield f"{model.architecture}.{name}", _UINT32, number
    yield f"{model.architecture}.attention.layer_norm_rms_epsilon", _FLOAT32, 1e-5
    yield f"{model.architecture}.vocab_size", _UINT32, len(_TOKENS)
    yield from _TOKENIZER


def _tensors(model: Kind) -> Iterator[tuple[str, tuple[int, ...], int]]:
    vocabulary = (WIDTH, len(_TOKENS))
    yield "token_embd.weight", vocabulary, _F16
    for layer in range(model.layers):
        attention = _latent_attention() if model.is_latent else _attention()
        network = _network() if layer < model.dense_layers else _experts(model.is_latent)
        for name, shape in (*attention, *network):
            yield f"blk.{layer}.{name}.weight", shape, _F32 if name.endswith("_norm") else _F16
    yield "output_norm.weight", (WIDTH,), _F32
    yield "output.weight", vocabulary, _F16


_Tensors = Iterator[tuple[str, tuple[int, ...]]]


def _attention() -> _Tensors:
    yield "attn_norm", (WIDTH,)
    for part in ("q", "k", "v", "output"):
        yield f"attn_{part}", (WIDTH, WIDTH)


def _latent_attention() -> _Tensors:
    yield "attn_norm", (WIDTH,)
    yield "attn_kv_a_norm", (_RANK,)
    yield "attn_q", (WIDTH, HEADS * (_HEAD + _ROPE))
    yield "attn_kv_a_mqa", (WIDTH, _RANK + _ROPE)
    yield "attn_k_b", (_HEAD, _RANK, HEADS)
    yield "attn_v_b", (_RANK, _HEAD, HEADS)
    yield "attn_output", (WIDTH, WIDTH)


def _network() -> _Tensors:
    yield "ffn_norm", (WIDTH,)
    yield "ffn_gate", (WIDTH, INNER)
    yield "ffn_up", (WIDTH, INNER)
    yield "ffn_down", (INNER, WIDTH)


def _experts(with_shared: bool) -> _Tensors:
    yield "ffn_norm", (WIDTH,)
    yield "ffn_gate_inp", (WIDTH, _EXPERTS)
    for suffix, count in (("exps", (_EXPERTS,)), *((("shexp", ()),) if with_shared else ())):
        yield f"ffn_gate_{suffix}", (WIDTH, _EXPERT_INNER, *count)
        yield f"ffn_up_{suffix}", (WIDTH, _EXPERT_INNER, *count)
        yield f"ffn_down_{suffix}", (_EXPERT_INNER, WIDTH, *count)


def _size(shape: tuple[int, ...], kind: int) -> int:
    size = math.prod(shape) * (4 if kind == _F32 else 2)
    return size + -size % _ALIGNMENT


def _weights(shape: tuple[int, ...], kind: int, noise: random.Random) -> bytes:
    """Norms are ones; noise is drawn once, and repeated from different offsets."""
    count = math.prod(shape)
    if kind == _F32:
        data = array("f", [1.0] * count).tobytes()
    else:
        drawn = [noise.gauss(0, 0.06) for _ in range(4099)]
        data = (struct.pack(f"<{len(drawn)}e", *drawn) * (count // len(drawn) + 1))[: 2 * count]
    return data + b"\0" * (-len(data) % _ALIGNMENT)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value: object) -> bytes:
    if isinstance(value, list):
        items = (_scalar(kind, item) for item in value)
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + b"".join(items)
    return struct.pack("<I", kind) + _scalar(kind, value)


def _scalar(kind: int, value: object) -> bytes:
    if kind == _STRING:
        return _string(str(value))
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f", _BOOL: "<?"}[kind], value)
