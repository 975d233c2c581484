"""Rules about bundles on disk, and sparkgen's own faults. Documented here, checked elsewhere.

The findings come from `generator.bundle.output` and the command line.
"""

from generator.diagnostics import Severity
from generator.rules.registry import documented


@documented("SG801")
def missing_file() -> None:
    """No file of the bundle is missing."""


@documented("SG802")
def stale_file() -> None:
    """Every file of the bundle matches the site."""


@documented("SG803")
def edited_file() -> None:
    """No file of the bundle was edited by hand."""


@documented("SG804")
def left_over_file() -> None:
    """No file is left over from an earlier bundle."""


@documented("SG805", Severity.NOTE)
def foreign_file() -> None:
    """A file that is not part of the bundle is left alone."""


@documented("SG806")
def name_of_two_sites() -> None:
    """Sites that are built together have different names."""


@documented("SG807")
def incomplete_bundle() -> None:
    """A bundle is complete."""


@documented("SG808")
def left_over_bundle() -> None:
    """Every bundle has its site."""


@documented("SG809")
def bundle_of_a_later_version() -> None:
    """A bundle is not rebuilt by an earlier version of sparkgen."""


@documented("SG820")
def malformed_policy() -> None:
    """A policy names rules, the level of each, and the reason."""


@documented("SG821")
def requirement_of_the_policy() -> None:
    """A site meets its repository's policy."""


@documented("SG822")
def name_lost_to_a_single_fault() -> None:
    """Every name still answers when one thing of a kind in the policy's `survives` fails."""


@documented("SG830")
def invalid_capture() -> None:
    """A capture was written by capture.sh, and any other file is of a type that sparkgen reads."""


@documented("SG901")
def internal_error() -> None:
    """A fault in sparkgen itself."""
