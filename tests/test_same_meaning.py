"""same_meaning.py reports how the meaning of bundles changes, and ignores their layout."""

import shutil
from pathlib import Path

from bundles import PROJECT
from programs import require, require_root
from same_meaning import differences, meaning

PAIR = PROJECT / "out/single"


def test_only_values_count_and_not_comments_or_layout(tmp_path: Path) -> None:
    require_root()
    require("mount", "unshare")
    folder = tmp_path / PAIR.name
    shutil.copytree(PAIR, folder)
    before = meaning(PAIR)
    env = folder / "spark/etc/sparkgen/engine.env"
    env.write_text(f"# another comment\n{env.read_text()}")
    assert [*differences(before, meaning(folder))] == []
    env.write_text(f"{env.read_text()}NCCL_DEBUG=INFO\n")
    assert [*differences(before, meaning(folder))] == [
        "spark/etc/sparkgen/engine.env: + NCCL_DEBUG=INFO"
    ]
