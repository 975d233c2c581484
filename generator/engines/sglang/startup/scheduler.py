"""SGLang's scheduler: chunks and pages, queues, graphs and the cache in host memory."""

from generator.engines.sglang.startup.pages import PAGES as _PAGES
from generator.engines.startup import Condition, Refusal, Start

_CHUNK, _PAGE = "chunked-prefill-size", "page-size"


def _chunk_of_pages(start: Start) -> Refusal | None:
    chunk, page = start.number(_CHUNK), start.count(_PAGE)
    pages = _PAGES.get(start.word("attention-backend"))
    page = pages[-1] if pages and page not in pages else page
    if chunk and chunk > 0 and page > 0 and chunk % page:
        return start.refuse(
            _CHUNK,
            f"a chunk of {chunk:.0f} tokens is not a multiple of the page size {page}",
            f"write a multiple of {page}",
        )
    return None


_VALIDATION = "sglang/srt/arg_groups/validation_hook.py"


CONDITIONS = (Condition(_chunk_of_pages, f"{_VALIDATION}:244"),)
