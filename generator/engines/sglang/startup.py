"""What SGLang rejects or fails on at startup: the rows of `schemas/startup/sglang.yaml`."""

from collections.abc import Mapping

from generator.engines import rows
from generator.engines.startup import Condition, Start

# Page sizes in tokens that a backend supports; SGLang changes others to the last one.
_PAGES: Mapping[str, tuple[int, ...]] = {
    "flashmla": (64,),
    "trtllm_mla": (32, 64),
    "cutedsl_mla": (32, 64),
    "trtllm_mha": (16, 32, 64, 128),
    "fa4": (128,),
}


def _page(start: Start) -> int:
    page, pages = start.count("page-size"), _PAGES.get(start.word("attention-backend"))
    return pages[-1] if pages and page not in pages else page


FACTS: rows.RowFacts = {
    "page": _page,
    "pages": lambda start: " or ".join(map(str, _PAGES.get(start.word("attention-backend"), ()))),
    "keyed": lambda start: "SGLANG_API_KEY" in (start.engine.secrets or ()),
}

CONDITIONS: tuple[Condition, ...] = rows.conditions("sglang", FACTS)
