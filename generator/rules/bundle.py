"""Rules about bundles on disk, and sparkgen's own faults. Documented here, checked elsewhere.

The findings come from `generator.bundle.output` and the command line.
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
    """A file that is not part of the bundle is left alone.

    Neither the manifest nor the site knows it, so it is somebody else's: sparkgen says that it is
    there, and never removes it.
    """


@documented("SG806")
def name_of_two_sites() -> None:
    """Sites that are built together have different names.

    The name of a site is the name of its bundle's folder: one would overwrite the other.
    """


@documented("SG807")
def half_written() -> None:
    """A bundle is complete.

    A `sparkgen build` was killed between two files: some are of the bundle before, some of the one
    that it was writing. The next `sparkgen build` finishes it, and takes no file for one that was
    edited by hand; until then the other commands that read the bundle go no further.
    """


@documented("SG808")
def left_over_bundle() -> None:
    """Every bundle has its site.

    A site that is removed or renamed leaves its bundle behind, in the folder and on the nodes.
    `sparkgen check` looks for the site file that the bundle's manifest names, beside the sites that
    it is asked about; `sparkgen diff` says what the removal means on the nodes.
    """


@documented("SG809")
def bundle_of_a_later_version() -> None:
    """A bundle is not rebuilt by an earlier version of sparkgen.

    The manifest says that a later sparkgen made it, and this one would undo what has been mended
    since. `sparkgen build` writes nothing then: upgrade sparkgen, or let `--force` build it as it
    is.
    """


@documented("SG820")
def malformed_policy() -> None:
    """A policy names rules, what each becomes, and why.

    `policy.yaml` stands beside the folder of the sites, or is named by `--policy`:

        version: 1
        rules:
          SG609: {level: error, reason: what runs is what was reviewed}
          SG521: {level: off, reason: users share the cache}
        require:
          api_key: the office network is no friend

    Levels are `error`, `warning`, `note` and `off`. What is an error stays one. `require` knows
    `api_key`, `image_digests` and `model_revision`.
    """


@documented("SG821")
def requirement_of_the_policy() -> None:
    """A site meets its repository's policy.

    `policy.yaml` says why. No waiver of a site takes it back.
    """


@documented("SG830")
def no_capture() -> None:
    """A capture was written by capture.sh, and any other file is of a kind that sparkgen reads.

    An archive is read in memory and within limits. One with a link, a device, a path that leads
    out of it, control characters, or more in it than a node has to say, is refused as a whole, and
    nothing is written. `sparkgen capture` prints the script that makes one.
    """


@documented("SG901")
def own_fault() -> None:
    """A fault in sparkgen itself.

    No site file should bring it about. Nothing was written. Please report it with the line that was
    printed, which has the place in sparkgen's code, and the site file if you can share it.
    """
