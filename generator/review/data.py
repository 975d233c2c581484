"""Reviews as JSON, for scripts. The format is stable: keys are added, never renamed or removed.

The reference of the commands says what each key holds.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from generator.records import values
from generator.review.changes import FileChange
from generator.review.impact import Review

VERSION = 1


def document(reviews: Sequence[Review]) -> str:
    """One object with all reviews."""
    content = {"version": VERSION, "sites": [_review(review) for review in reviews]}
    return json.dumps(content, indent=2) + "\n"


def _review(review: Review) -> dict[str, Any]:
    upgrade = review.upgrade
    causes = dict.fromkeys(upgrade.files if upgrade else (), "sparkgen")
    causes |= dict.fromkeys(upgrade.mixed if upgrade else (), "both")
    return {
        "site": review.name,
        "was": review.was,
        "against": review.against,
        "changed": review.changed,
        "edits": review.edits,
        "notes": review.notes,
        "clients": review.clients,
        "upgrade": upgrade
        and {
            "before": upgrade.before,
            "after": upgrade.after,
            "changes": [values(entry) for entry in upgrade.entries],
        },
        "downtime": review.downtime,
        "downtimeSeconds": review.outcome.seconds,
        "outages": [_renamed(each, by_hand="byHand") for each in review.outcome.outages],
        "headroomGib": review.headroom,
        "nodes": [
            {
                "node": node.name,
                "was": node.was,
                "state": node.state,
                "effect": node.effect.name.lower(),
                "restarts": node.stops and node.starts,
                "todo": node.title,
                "files": [_file(file, causes) for file in node.files],
            }
            for node in review.nodes
        ],
        "files": [_file(file, causes) for file in review.files],
        "order": [_renamed(step, text="step") for step in review.outcome.steps],
    }


def _renamed(record: object, **names: str) -> dict[str, Any]:
    """The fields of a record, some under other names."""
    return {names.get(name, name): value for name, value in values(record).items()}


def _file(file: FileChange, causes: Mapping[FileChange, str]) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "change": file.activation.text,
        "cause": causes.get(file, "site"),
        "added": file.added,
        "removed": file.removed,
        "diff": "\n".join(file.lines) + "\n",
    }
