"""Rules about the version of sparkgen that a site requires."""

from generator import __version__
from generator.catalogs.versions import version
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import Identity


@rule("SG191")
def version_of_sparkgen(identity: Identity) -> Faults:
    """The sparkgen that reads a site is at least as new as the site requires."""
    least = identity.requires.removeprefix(">=").strip()
    # A version in development reads what its release will.
    if least and version(__version__.partition(".dev")[0]) < version(least):
        yield Fault(
            f"the site requires sparkgen {least} or later, and this is {__version__}",
            ("requires",),
            "upgrade sparkgen",
        )
