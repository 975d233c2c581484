"""`sparkgen capture`."""

import click

from generator.capture import script


@click.command(epilog="Example: sparkgen capture > capture.sh, and on each node: sh capture.sh")
def command() -> None:
    """Print the script that records what a node runs.

    Read it, and run it on each node, with or without sudo: it writes NODE.tar.gz, plain text
    without keys and serial numbers, and changes nothing. Read that too before you pass it on. With
    --files, as in sh capture.sh --files, it also takes the files that a site carries to its nodes,
    hashes in place of what is not known in them; with --whole-files as they are, so that import
    gives them back.
    """
    click.echo(script(), nl=False)
