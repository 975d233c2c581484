"""Rules about bundles on disk, and sparkgen's own faults. Documented here, checked elsewhere.

The findings come from `generator.bundle.output` and the command line.
"""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG801")
def missing_file() -> None:
    """No file of the bundle is missing.

    `sparkgen check` lists the files that the site calls for and the folder lacks; if the whole
    bundle is missing, it says so once. `sparkgen build` writes them.
    """


@documented("SG802")
def stale_file() -> None:
    """Every file of the bundle matches the site.

    `sparkgen check` lists the files that are unchanged since they were written, but for a site that
    has changed since, or by another version of sparkgen. `sparkgen build` rewrites them.
    """


@documented("SG803")
def edited_file() -> None:
    """No file of the bundle was edited by hand.

    Such a file matches neither the site nor its checksum in the manifest. `sparkgen build` then
    writes nothing: move the change to the site file, or use `--force` to overwrite it.
    """


@documented("SG804")
def left_over_file() -> None:
    """No file is left over from an earlier bundle.

    The manifest lists it, but the site no longer calls for it. `sparkgen build` removes it.
    """


@documented("SG805", Severity.NOTE)
def foreign_file() -> None:
    """A file that is not part of the bundle is left alone.

    It is neither in the manifest nor generated from the site, so it belongs to someone else:
    sparkgen reports it and never removes it.
    """


@documented("SG806")
def name_of_two_sites() -> None:
    """Sites that are built together have different names.

    A bundle's folder is named after its site, so one bundle would overwrite the other.
    """


@documented("SG807")
def incomplete_bundle() -> None:
    """A bundle is complete.

    A `sparkgen build` was interrupted: some files are from the previous bundle and some from the
    one being written. The next `sparkgen build` finishes the job and does not mistake any of these
    files for edited ones; until then, the other commands that read the bundle stop here.
    """


@documented("SG808")
def left_over_bundle() -> None:
    """Every bundle has its site.

    A site that is removed or renamed leaves its bundle behind, both in the folder and on the nodes.
    `sparkgen check` looks for the site file that the bundle's manifest names, next to the sites
    that it is given; `sparkgen diff` shows what removing the bundle means for the nodes.
    """


@documented("SG809")
def bundle_of_a_later_version() -> None:
    """A bundle is not rebuilt by an earlier version of sparkgen.

    According to the manifest, a later sparkgen built the bundle, and this one would undo fixes made
    since. `sparkgen build` then writes nothing: upgrade sparkgen, or use `--force` to build it
    anyway.
    """


@documented("SG820")
def malformed_policy() -> None:
    """A policy names rules, the level of each, and the reason.

    `policy.yaml` lies next to the folder of the sites, or is passed with `--policy`:

        version: 1
        rules:
          SG609: {level: error, reason: what runs is what was reviewed}
          SG521: {level: off, reason: users share the cache}
        require:
          api_key: the office network is not trusted

    Levels are `error`, `warning`, `note` and `off`. An error cannot be downgraded. `require`
    accepts `api_key`, `image_digests` and `model_revision`.
    """


@documented("SG821")
def requirement_of_the_policy() -> None:
    """A site meets its repository's policy.

    `policy.yaml` states the reason. A site can't waive a requirement.
    """


@documented("SG822")
def name_lost_to_a_single_fault() -> None:
    """Every name still answers when one thing fails of a kind that the policy's `survives` lists.

    The kinds are `cable`, `half` (of a cable), `port`, `switch`, `node`, `management` (its link),
    `engine`, `service` and `models` (the disk with them). `sparkgen failures` shows what each of
    them takes, by the files of the bundle: a model on several nodes needs all of them, and the
    cables between them.
    """


@documented("SG830")
def invalid_capture() -> None:
    """A capture was written by capture.sh, and any other file is of a type that sparkgen reads.

    Archives are read in memory, within limits. An archive with a link, a device, a path that leads
    outside it, control characters, or more data than a node would produce is rejected as a whole,
    and nothing is written. `sparkgen capture` prints the script that creates one.
    """


@documented("SG901")
def internal_error() -> None:
    """A fault in sparkgen itself.

    No site file should be able to trigger this. Nothing was written. Please report it with the line
    that was printed, which has the location in sparkgen's code, and with the site file if you can
    share it.
    """
