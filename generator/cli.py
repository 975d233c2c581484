"""The command line; each command is a module of `generator.commands`, imported when called."""

import os
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from generator import __version__
from generator.commands.options import ENVIRONMENT

COMMANDS = (
    "build",
    "validate",
    "check",
    "diff",
    "show",
    "fit",
    "model",
    "models",
    "diagram",
    "fix",
    "schema",
    "explain",
    "init",
    "verify",
    "capture",
    "import",
    "audit",
    "lock",
    "catalog",
    "check-engine",
    "lsp",
)


class _Commands(click.Group):
    """Commands whose internal errors are reported in one line, as other errors are."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        # `import` is a keyword of Python, so no module can have that name.
        module = "import_" if name == "import" else name.replace("-", "_")
        found: click.Command = import_module(f"generator.commands.{module}").command
        found.name = name
        return found

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            from generator.diagnostics import did_you_mean

            near = did_you_mean(args[0], COMMANDS).capitalize()
            raise click.UsageError(f"{error.message} {near}".strip(), context) from None

    def invoke(self, context: click.Context) -> object:
        if os.environ.get("FORCE_COLOR"):
            # Otherwise Click strips colors from output to a file.
            context.color = True
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise
        except Exception as error:
            _own_fault(error)


def _own_fault(error: BaseException) -> NoReturn:
    """Exit with one line: the exception, and where in the package it was raised."""
    import sys
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    what = f"{type(error).__name__}: {' '.join(str(error).split())} ({where})"
    click.echo(f"sparkgen: SG901: a bug in sparkgen, please report it: {what}", err=True)
    sys.exit(ENVIRONMENT)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: sparkgen build sites/lab-mesh.yaml",
)
@click.version_option(__version__, prog_name="sparkgen", message="%(prog)s %(version)s")
def main() -> None:
    """Write the configuration of a DGX Spark cluster from one site file."""
