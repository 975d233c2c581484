"""The command line; each command is a module of `generator.commands`, imported when called."""

import os
from importlib import import_module
from pathlib import Path

import click

from generator import __version__
from generator.resources import ROOT, SCHEMAS, rows

# The commands as help lists them.
_GROUPS: dict[str, dict[str, str]] = {}
for _title, _name, _summary in rows("commands"):
    _GROUPS.setdefault(_title, {})[_name] = _summary
COMMANDS = tuple(name for group in _GROUPS.values() for name in group)
# Names of earlier releases.
_ALIASES = {"model": "describe-model", "verify": "test"}


class _Commands(click.Group):
    """Commands whose internal errors are reported in one line, as other errors are."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        name = _ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        # `import` is a keyword of Python, so no module can have that name.
        module = "import_" if name == "import" else name.replace("-", "_")
        found: click.Command = import_module(f"generator.commands.{module}").command
        found.name = name
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what they are for, each with a description that fits a line."""
        width = max(map(len, COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            from generator.diagnostics import did_you_mean

            meant = next((known for name, known in rows("other-commands") if name == args[0]), "")
            near = (
                f"Use 'sparkgen {meant}'."
                if meant
                else did_you_mean(args[0], COMMANDS).capitalize()
            )
            raise click.UsageError(f"{error.message} {near}".strip(), context) from None

    def invoke(self, context: click.Context) -> object:
        if os.environ.get("FORCE_COLOR"):
            # Otherwise Click strips colors from output to a file.
            context.color = True
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if isinstance(error, OSError) and SCHEMAS not in Path(str(error.filename)).parents:
                raise
            from generator.installation import fail

            fail(error)


def _show_version(context: click.Context) -> None:
    from generator.checkout import commit

    at = commit(ROOT)
    click.echo(f"sparkgen {__version__}" + (f" ({at})" if at else ""))
    context.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: sparkgen build sites/lab-mesh.yaml",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=lambda context, _, wanted: _show_version(context) if wanted else None,
    help="Show the version, with the commit of a checkout, and exit.",
)
def main() -> None:
    """Write the configuration of a DGX Spark cluster from one site file."""
