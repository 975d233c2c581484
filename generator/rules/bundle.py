"""The rules of bundles on disk, and sparkgen's own faults. Documented here, found elsewhere.

The findings come from `generator.output` and the command line.
"""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG801")
def missing_file() -> None:
    """No file of the bundle is missing.

    `sparkgen check` lists the files that the site has and the folder has not; where there is none
    of them, it says so once. `sparkgen build` writes them.
    """


@documented("SG802")
def stale_file() -> None:
    """Every file of the bundle is what the site says now.

    `sparkgen check` lists the files that are as they were written, for a site that has changed
    since, or by another version of sparkgen. `sparkgen build` writes them anew.
    """


@documented("SG803")
def edited_file() -> None:
    """No file of the bundle was edited by hand.

    Such a file is neither what the site says nor what the manifest has a checksum of. `sparkgen
    build` writes nothing then: move the change to the site file, or let `--force` overwrite it.
    """


@documented("SG804")
def left_over_file() -> None:
    """No file is left over from an earlier bundle.

    The manifest lists it and the site no longer has it. `sparkgen build` removes it.
    """


@documented("SG805", Severity.NOTE)
def foreign_file() -> None:
    """A file that is not of the bundle is left alone.

    Neither the manifest nor the site knows it, so it is somebody else's: sparkgen says that it is
    there, and never removes it.
    """


@documented("SG806")
def name_of_two_sites() -> None:
    """Sites that are built together have names of their own.

    The name of a site is the name of its bundle's folder: one would overwrite the other.
    """


@documented("SG901")
def own_fault() -> None:
    """A fault of sparkgen's own.

    No site file should bring it about. Nothing was written. Please report it with the line that was
    printed, which has the place in sparkgen's code, and the site file if you can share it.
    """
