"""Rules about YAML, schema and waivers. Documented here, checked elsewhere.

SG00x comes from `generator.sitefile.source`, SG011 from `generator.sitefile.lint`, SG013 from
`generator.sitefile.extending`, SG10x from `generator.sitefile.schema`, SG190 from
`generator.rules.waivers`, SG880 from `generator.sitefile.unfinished`.
"""

from generator.diagnostics import Severity
from generator.rules.registry import documented_of_sites


@documented_of_sites("SG001")
def yaml() -> None:
    """A site file is YAML."""


@documented_of_sites("SG002")
def tabs() -> None:
    """Indentation is made of spaces."""


@documented_of_sites("SG003")
def duplicate_key() -> None:
    """A key is written once."""


@documented_of_sites("SG004")
def merge_keys() -> None:
    """Merge keys, `<<`, are not read."""


@documented_of_sites("SG005")
def one_document() -> None:
    """A site file is a single document."""


@documented_of_sites("SG006")
def encoding() -> None:
    """A site file is UTF-8 text without control characters."""


@documented_of_sites("SG007")
def too_much() -> None:
    """A site file is no larger than a site can be."""


@documented_of_sites("SG008")
def endless_alias() -> None:
    """An alias is not inside the node that it repeats."""


@documented_of_sites("SG009")
def text_keys() -> None:
    """A key is text."""


@documented_of_sites("SG010")
def tags() -> None:
    """A site file has no tags."""


@documented_of_sites("SG011", Severity.WARNING)
def style() -> None:
    """A site file follows yamllint's default style."""


@documented_of_sites("SG012")
def unusual_spaces() -> None:
    """Keys, colons and dashes have plain spaces around them."""


@documented_of_sites("SG013")
def base() -> None:
    """The base of a site is a file below the site's folder, and extends no other."""


@documented_of_sites("SG101")
def known_keys() -> None:
    """Every key is part of the site format."""


@documented_of_sites("SG102")
def required_keys() -> None:
    """No required key is missing."""


@documented_of_sites("SG103")
def kinds_of_values() -> None:
    """A value has the type that its key takes."""


@documented_of_sites("SG104")
def choices() -> None:
    """A value is one of its key's choices."""


@documented_of_sites("SG105")
def ranges() -> None:
    """A number is within its key's range."""


@documented_of_sites("SG106")
def forms() -> None:
    """A text has the form that its key requires."""


@documented_of_sites("SG107")
def lengths() -> None:
    """A text or a list is as long as its key allows."""


@documented_of_sites("SG108")
def empty_values() -> None:
    """A key that is written has a value."""


@documented_of_sites("SG109")
def exclusive_keys() -> None:
    """Of two keys that exclude each other, only one is written."""


@documented_of_sites("SG190", Severity.WARNING)
def useless_waiver() -> None:
    """A waiver names a warning that the site has."""


@documented_of_sites("SG880")
def unfinished() -> None:
    """Every `TODO` is replaced."""
