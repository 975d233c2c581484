"""`sparkgen lsp`."""

from pathlib import Path

import click

from generator.commands.policies import readable_policy_of
from generator.commands.sites import fail
from generator.pipeline import Reading, read_site
from generator.sitefile.disk import beside


@click.command(epilog="Example: sparkgen lsp (as the server that an editor starts)")
def command() -> None:
    """Answer an editor over standard input: findings, their rules, and edits that fix them.

    It speaks the Language Server Protocol and needs the extra 'lsp'.
    """
    try:
        from generator.editors.server import server
    except ImportError:
        fail("the language server needs pygls: pip install '.[lsp]' in a checkout")
    server(_read).start_io()


def _read(path: str, text: str) -> Reading:
    file = Path(path)
    return read_site(path, text.encode(), beside(file), readable_policy_of(file))
