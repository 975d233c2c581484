"""What people get wrong in a site file, each kind with what it proposes.

Where two edits explain the same faults, the first in the table is the cause.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from generator.diagnostics import Finding, Proposal
from generator.records import record
from generator.sitefile.mistakes import indentation, places, punctuation, values
from generator.sitefile.mistakes.faults import SchemaFaults
from generator.sitefile.mistakes.slips import Slip, close, near


@record
class Mistake:
    """A kind of mistake in a text that is YAML, and what undoes it.

    `find` looks for it among the faults; each finding comes with the edit that would show that it
    is the cause.
    """

    name: str
    proposes: str
    find: Callable[[SchemaFaults], Iterator[tuple[Finding, Proposal]]]


@record
class SlipOfText:
    """A kind of slip that makes a text invalid YAML, by the lines where it may be.

    `reach` tells them from the line where reading ended.
    """

    name: str
    proposes: str
    find: Callable[[list[str], int], Iterator[Slip]]
    reach: Callable[[list[str], int], Iterable[int]] = near


TABLE: Sequence[Mistake] = (
    Mistake("a list's entry without its '-'", "the dash", places.entry_without_dash),
    Mistake("a '-' without a space after it", "the space", places.dash_without_space),
    Mistake("keys without the key above them", "the key above", places.lost_head),
    Mistake("keys beside their empty section", "their indentation", places.outdented),
    Mistake("a block under itself", "one of the two heads", places.twice_nested),
    Mistake("a key under one that it belongs beside", "its place", places.nested),
    Mistake("a model beside groups without one", "its places", places.beside_groups),
    Mistake("a key of another mapping, which lacks it", "its place", places.moved),
    Mistake("flags and variables elsewhere", "'args' or 'env'", places.of_the_engine),
    Mistake("a key and its value exchanged", "the key first", values.reversed_pair),
    Mistake("a missing key under another name", "the name", places.named_otherwise),
    Mistake("a site below a key of its own", "the margin", places.below_one_key),
    Mistake("a name as the first key of its entry", "'name:' before it", places.name_as_key),
    Mistake("keys in one word, with dots", "the key in its section", places.dotted),
    Mistake("an entry of another list", "its list", places.of_another_list),
    Mistake("a line with a mark before it", "the line without it", places.behind_a_mark),
    Mistake("both ends of a list under names", "the list", places.one_by_one),
    Mistake("two values in each other's place", "the exchange", values.swapped),
    Mistake("a value that a comma cuts in braces", "what joins it", values.cut_by_comma),
    Mistake("a list in a list", "the inner one", values.list_in_a_list),
    Mistake("two entries that run together", "a comma or a dash", values.run_together),
    Mistake("a mapping that is a list's only entry", "its dash", values.entry_without_dash),
    Mistake("a value that is commented out", "the value", values.behind_a_sign),
    Mistake("a value with one wrong sign", "the value without it", values.with_slip),
    Mistake("another program's keys", "to remove them", places.of_another_program),
)


def _above(lines: list[str], at: int) -> Iterable[int]:
    return range(at + 1)


def _at(lines: list[str], at: int) -> Iterable[int]:
    return (at,)


SLIPS: Sequence[SlipOfText] = (
    SlipOfText("a variable or flag as in a shell", "a colon", punctuation.assignments),
    SlipOfText("a line in quotes", "the line without them", punctuation.quoted_lines),
    SlipOfText("a section of TOML", "the section in YAML", punctuation.toml, _above),
    SlipOfText("a quote that is not closed", "the quote", punctuation.quotes, _above),
    SlipOfText("a key without its colon", "the colon", punctuation.colons),
    SlipOfText("a text with ': ' in it", "quotes", punctuation.texts),
    SlipOfText("a bracket that is not closed", "the bracket", punctuation.brackets, close),
    SlipOfText("a comma that is missing", "the comma", punctuation.commas),
    SlipOfText("tabs as indentation", "spaces", indentation.tabs, _at),
    SlipOfText("an entry without its dash, or the space after", "it", indentation.dashes, close),
    SlipOfText("another sign for a dash", "the dash", indentation.bullets, close),
    SlipOfText("a dash before a key", "the key without it", indentation.needless_dash, close),
    SlipOfText("a section without its key", "the key", indentation.missing_section, _at),
    SlipOfText("a line with a mark before it", "the line without it", indentation.marks, close),
    SlipOfText("a line in the wrong column", "another column", indentation.columns, _at),
    SlipOfText("another language's line", "a comment of it", punctuation.strangers),
)
