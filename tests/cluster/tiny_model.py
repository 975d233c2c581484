"""A model of a few megabytes with random weights, as llama.cpp reads it: a GGUF file.

Its tokens are bytes, so what it says is noise; but each layer is computed where a real model's is.
"""

import random
import struct
from array import array
from collections.abc import Iterator
from pathlib import Path

LAYERS, WIDTH, HEADS, INNER, CONTEXT = 6, 256, 4, 512, 4096
_ALIGNMENT = 32
# Types of GGUF: of values, and of tensors. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_F32, _F16 = 0, 1
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
_KINDS = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, _NORMAL]
_VALUES = (
    ("general.architecture", _STRING, "llama"),
    ("general.name", _STRING, "tiny"),
    ("llama.context_length", _UINT32, CONTEXT),
    ("llama.embedding_length", _UINT32, WIDTH),
    ("llama.block_count", _UINT32, LAYERS),
    ("llama.feed_forward_length", _UINT32, INNER),
    ("llama.rope.dimension_count", _UINT32, WIDTH // HEADS),
    ("llama.attention.head_count", _UINT32, HEADS),
    ("llama.attention.head_count_kv", _UINT32, HEADS),
    ("llama.attention.layer_norm_rms_epsilon", _FLOAT32, 1e-5),
    ("llama.vocab_size", _UINT32, len(_TOKENS)),
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


def write(path: Path) -> None:
    """Write the model; the same weights each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = list(_tensors())
    values = b"".join(_string(name) + _value(kind, value) for name, kind, value in _VALUES)
    offset, infos = 0, b""
    for name, shape, kind in tensors:
        infos += _string(name) + struct.pack("<I", len(shape))
        infos += struct.pack(f"<{len(shape)}QIQ", *shape, kind, offset)
        offset += _size(shape, kind)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(_VALUES)) + values + infos
    noise = random.Random(1)
    with path.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % _ALIGNMENT))
        for _, shape, kind in tensors:
            file.write(_weights(shape, kind, noise))


def _tensors() -> Iterator[tuple[str, tuple[int, ...], int]]:
    vocabulary, square = (WIDTH, len(_TOKENS)), (WIDTH, WIDTH)
    yield "token_embd.weight", vocabulary, _F16
    for layer in range(LAYERS):
        blocks = (
            ("attn_norm", (WIDTH,), _F32),
            *((f"attn_{part}", square, _F16) for part in ("q", "k", "v", "output")),
            ("ffn_norm", (WIDTH,), _F32),
            ("ffn_gate", (WIDTH, INNER), _F16),
            ("ffn_up", (WIDTH, INNER), _F16),
            ("ffn_down", (INNER, WIDTH), _F16),
        )
        for name, shape, kind in blocks:
            yield f"blk.{layer}.{name}.weight", shape, kind
    yield "output_norm.weight", (WIDTH,), _F32
    yield "output.weight", vocabulary, _F16


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _size(shape: tuple[int, ...], kind: int) -> int:
    size = _count(shape) * (4 if kind == _F32 else 2)
    return size + -size % _ALIGNMENT


def _weights(shape: tuple[int, ...], kind: int, noise: random.Random) -> bytes:
    """Norms are ones; of noise a stretch is drawn once, and repeated from another place on."""
    count = _count(shape)
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
