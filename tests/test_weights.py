"""weights.py tells whole models from damaged ones: any cut, any hole, any missing tensor."""

import json
import os
import random
from hashlib import sha1, sha256
from pathlib import Path

import pytest
from node_programs import loaded
from test_verify import MODEL_FILES, ONE, SHARDS, gguf, safetensors

WEIGHTS = loaded("node/opt/sparkgen/weights.py")


def one_tensor(data: bytes) -> bytes:
    """A file with one large tensor."""
    about = {"a": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    header = json.dumps(about).encode()
    return len(header).to_bytes(8, "little") + header + data


BIG = one_tensor(bytes(range(1, 9)) * (1 << 18))


def model(folder: Path, **changed: bytes) -> Path:
    """A model in the hub's cache."""
    snapshot = folder / "snapshots/main"
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    for name, data in {**MODEL_FILES, **changed}.items():
        is_large = name.endswith(".safetensors")
        digest = sha256(data) if is_large else sha1(b"blob %d\0" % len(data) + data)
        blob = folder / "blobs" / digest.hexdigest()
        blob.write_bytes(data)
        (snapshot / name).symlink_to(f"../../blobs/{blob.name}")
    return snapshot


def faults(snapshot: Path) -> list[str]:
    return list(WEIGHTS.faults(snapshot, needs_tokenizer=True))


def test_whole_model(tmp_path: Path) -> None:
    snapshot = model(tmp_path)
    assert faults(snapshot) == []
    assert WEIGHTS.deep_fault(snapshot, "model") == (
        "",
        f", every byte of {len(MODEL_FILES)} files",
    )


def test_every_cut_of_a_shard_is_found(tmp_path: Path) -> None:
    snapshot = model(tmp_path)
    shard = (snapshot / SHARDS[0]).resolve()
    for length in range(len(ONE)):
        shard.write_bytes(ONE[:length])
        assert faults(snapshot), length
    shard.write_bytes(ONE + b"\0")
    assert faults(snapshot) == [
        f"{snapshot / SHARDS[0]} has {len(ONE) + 1} bytes, and its header says {len(ONE)}"
    ]


def test_every_cut_of_a_gguf_file_is_found(tmp_path: Path) -> None:
    file, whole = tmp_path / "a.gguf", gguf()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert WEIGHTS.gguf_fault(file), length
    file.write_bytes(whole)
    assert WEIGHTS.gguf_fault(file) == ""


def test_drawn_damage_is_a_fault_or_is_seen_by_deep(tmp_path: Path) -> None:
    """Whatever one byte becomes, nothing is raised, and --deep notices."""
    snapshot, draw = model(tmp_path), random.Random(7)
    for _ in range(200):
        name = draw.choice(sorted(MODEL_FILES))
        blob, data = (snapshot / name).resolve(), bytearray(MODEL_FILES[name])
        data[draw.randrange(len(data))] ^= draw.randrange(1, 256)
        blob.write_bytes(data)
        faults(snapshot)
        assert WEIGHTS.deep_fault(snapshot, "model")[0].startswith(f"{snapshot / name} differs")
        blob.write_bytes(MODEL_FILES[name])


def zeros(snapshot: Path) -> None:
    (snapshot / SHARDS[0]).resolve().write_bytes(bytes(len(ONE)))


def hole(snapshot: Path) -> None:
    with (snapshot / SHARDS[0]).resolve().open("wb") as shard:
        shard.write(BIG[:200])
        shard.truncate(len(BIG))


def allocated(snapshot: Path) -> None:
    """Room for all of a shard, of which the second half was never written."""
    with (snapshot / SHARDS[0]).resolve().open("wb") as shard:
        os.posix_fallocate(shard.fileno(), 0, len(BIG))
        shard.write(BIG[: len(BIG) // 2])


def unindexed(snapshot: Path) -> None:
    (snapshot / "model.safetensors.index.json").unlink()
    (snapshot / SHARDS[1]).unlink()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (unindexed, f"{SHARDS[1]} is missing"),
        (lambda s: (s / "config.json").resolve().write_bytes(b'{"a": 1,, "b": 2}'), "empty or cut"),
        (lambda s: (s / "tokenizer.model").write_bytes(b""), "tokenizer.model is empty or cut off"),
        (zeros, "has no header of safetensors"),
        (hole, "was not written completely"),
        (allocated, "was not written completely"),
        (lambda s: (s / SHARDS[1]).resolve().write_bytes(safetensors("c")), "has no tensor b"),
        (lambda s: (s / SHARDS[1]).unlink(), "is missing"),
        (lambda s: (s / SHARDS[1]).resolve().unlink(), "is a dangling link"),
        (lambda s: (s / "../../blobs/ab.incomplete").write_bytes(b""), "download that was interr"),
        (lambda s: (s / "tokenizer.json").unlink(), "there is no tokenizer"),
        (lambda s: (s / "tokenizer.json").resolve().write_bytes(b'{"a": '), "is empty or cut off"),
        (lambda s: (s / "config.json").unlink(), "config.json is missing"),
        (
            lambda s: (s / "model.safetensors.index.json").resolve().write_bytes(b"{"),
            "index.json is damaged",
        ),
    ],
)
def test_faults(change, fault: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    weights = {SHARDS[0]: BIG} if change in (hole, allocated) else {}
    snapshot = model(tmp_path, **weights)
    change(snapshot)
    assert any(fault in line for line in faults(snapshot)), faults(snapshot)


def test_shard_whose_weights_are_zeros(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(one_tensor(b"\1" * (1 << 17)))
    assert WEIGHTS.safetensors_fault(file, ["a"]) == ""
    file.write_bytes(one_tensor(bytes(1 << 17)))
    assert WEIGHTS.safetensors_fault(file, ["a"]) == "has zeros in place of weights"


def test_as_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = model(tmp_path)
    assert WEIGHTS.main(["--deep", "--tokenizer", str(snapshot)]) == 0
    (snapshot / SHARDS[0]).resolve().write_bytes(ONE[:9])
    assert WEIGHTS.main([str(snapshot), str(tmp_path / "none.gguf")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{snapshot / SHARDS[0]} has no header")
    assert said[1] == f"{tmp_path}/none.gguf is missing"
    assert WEIGHTS.main([]) == 2
