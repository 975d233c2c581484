"""Runs vLLM's own config classes as on a Spark, without a GPU; executed by vLLM's Python.

Reads arguments of `vllm serve` and variables as JSON, one line per start, and writes the error that
ends the start, from the parser or from the classes that the engine builds from the arguments. Each
start runs in its own process, because some classes keep state.
"""

import contextlib
import io
import os

import pretended_spark  # noqa: F401
from verdicts import answer

os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser


PARSER = make_arg_parser(FlexibleArgumentParser())


def verdict(words: list[str]) -> str:
    """The error that ends the start; empty if there is none."""
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            args = PARSER.parse_args(words)
            # As the command line's own entry point does.
            args.model, args.subparser = args.model_tag, "serve"
            validate_parsed_serve_args(args)
            AsyncEngineArgs.from_cli_args(args).create_engine_config(UsageContext.OPENAI_API_SERVER)
    except SystemExit:
        return output.getvalue().strip().splitlines()[-1]
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' '.join(lines[:3])}"
    return ""


answer(verdict)
