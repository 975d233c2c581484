"""Runs SGLang's own argument handling as on a Spark, without a GPU.

Executed by a Python with torch; `pretended_spark_of_sglang.py` says with which arguments. Reads
arguments of `sglang serve` and variables as JSON, one line per start, and writes the error that
ends the start, from the parser or from the steps that resolve the arguments. Each start runs in its
own process.
"""

import contextlib
import io
import logging
import traceback

import pretended_spark_of_sglang  # noqa: F401
from verdicts import answer

from sglang.srt.server_args import prepare_server_args

logging.disable(logging.CRITICAL)


def verdict(words: list[str]) -> str:
    """The error that ends the start; empty if there is none."""
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            args = prepare_server_args(words)
            args.resolve_once()
            args.check_server_args()
    except SystemExit:
        return (output.getvalue().strip().splitlines() or ["it ended"])[-1]
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('sglang/')[2]}:{last.lineno}"
        return f"{type(error).__name__} at {where}: {str(error)[:300]}"
    return ""


answer(verdict)
