"""What an engine said of its settings, as `launch.sh --check-engine` and `--rehearse` print it.

Each rank's answer is a line of JSON about what was asked, and one for each stage of its start. One
that accepts all has an end, without which it may have been cut off. A rehearsal is a stage of its
own: the engine has started, though with random weights.
"""

import json
from collections.abc import Mapping
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

from generator.records import record

ACCEPTED, REFUSED, UNASKED = "accepted", "refused", "could not ask"
REHEARSAL = "rehearsal"


class AnswerError(Exception):
    """A text is no answer; the message says why, in one line."""


@record
class StageAnswer:
    """One stage of a start: its status, and what the engine said or made of the settings."""

    name: str
    status: str
    message: str
    where: str
    variable: str
    found: Mapping[str, Any]


@record
class Answer:
    """What one rank's engine said; `settings` is the checksum of what it was asked about."""

    site: str
    group: str
    node: str
    image: str
    settings: str
    stages: tuple[StageAnswer, ...]

    @property
    def status(self) -> str:
        """A refusal, if there is one; else whether a rehearsal or all other stages are accepted."""
        said = {stage.status for stage in self.stages if stage.name != REHEARSAL}
        if self.rehearsal == ACCEPTED:
            said = said - {UNASKED} | {ACCEPTED}
        elif self.rehearsal == REFUSED or not said:
            said = {self.rehearsal}
        return next((each for each in (REFUSED, UNASKED, ACCEPTED) if each in said), UNASKED)

    @property
    def rehearsal(self) -> str:
        """How its rehearsal ended; empty if there was none."""
        return next((stage.status for stage in self.stages if stage.name == REHEARSAL), "")

    @property
    def is_rehearsal(self) -> bool:
        """Whether it says nothing else."""
        return bool(self.rehearsal) and {each.name for each in self.stages} <= {REHEARSAL, "end"}

    def figure(self, name: str) -> Any:
        """What the engine made of its settings, by name; None if it did not say."""
        return next((each.found[name] for each in self.stages if name in each.found), None)


def parse(text: str) -> list[Answer]:
    """The answers in what one or more nodes printed; raises AnswerError."""
    records = []
    for line in text.splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    records = [each for each in records if isinstance(each, dict) and "stage" in each]
    if not records or records[0]["stage"] != "start":
        raise AnswerError("it is not what 'launch.sh --check-engine' prints")
    starts = accumulate(each["stage"] == "start" for each in records)
    numbered = groupby(zip(starts, records, strict=True), itemgetter(0))
    return [_answer(*(record for _, record in lines)) for _, lines in numbered]


def _answer(start: Mapping[str, Any], *stages: Mapping[str, Any]) -> Answer:
    names = ("site", "group", "node", "image", "settings")
    site, group, node, image, settings = (str(start.get(name, "")) for name in names)
    digest = str(start.get("digest", ""))
    image = f"{image.partition('@')[0]}@{digest}" if digest else image
    said = tuple(map(_stage, stages))
    if all(stage.status == ACCEPTED for stage in said) and "end" not in {s.name for s in said}:
        said = (*said, StageAnswer("end", UNASKED, "the answer is not whole", "", "", {}))
    return Answer(site, group, node, image, settings, said)


def _stage(each: Mapping[str, Any]) -> StageAnswer:
    said = str(each.get("message") or each.get("why", ""))
    status = str(each.get("status"))
    made = each.get("found")
    return StageAnswer(
        str(each["stage"]),
        status if status in (ACCEPTED, REFUSED) else UNASKED,
        " ".join(said.split()),
        str(each.get("where", "")),
        str(each.get("variable", "")),
        made if isinstance(made, dict) else {},
    )
