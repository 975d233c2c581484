"""Reviews as JSON, for scripts. The format is stable: keys are added, never renamed or removed.

    {"version": 1,
     "sites": [{"site", "against", "changed", "downtimeSeconds",
                "nodes": [{"node", "state", "effect", "restarts", "todo", "files"}],
                "files": [{"path", "kind", "change", "added", "removed", "diff"}],
                "order": [{"step", "nodes"}]}]}

`state` is `new`, `changed`, `unchanged` or `removed`; `effect` is `nothing`, `files`, `reload`,
`service`, `restart` or `links`, each with the lesser ones in it; `restarts` says that the engine
restarts, for whatever reason; `downtimeSeconds` is how long the API may be down, null where it
stays up.
"""

import json
from collections.abc import Sequence
from typing import Any

from generator.review.changes import FileChange
from generator.review.impact import Review

VERSION = 1


def document(reviews: Sequence[Review]) -> str:
    """One object with all reviews."""
    content = {"version": VERSION, "sites": [_review(review) for review in reviews]}
    return json.dumps(content, indent=2) + "\n"


def _review(review: Review) -> dict[str, Any]:
    return {
        "site": review.name,
        "against": review.against,
        "changed": review.changed,
        "downtimeSeconds": review.seconds,
        "nodes": [
            {
                "node": node.name,
                "state": node.state,
                "effect": node.effect.name.lower(),
                "restarts": node.restarts,
                "todo": node.title,
                "files": [_file(file) for file in node.files],
            }
            for node in review.nodes
        ],
        "files": [_file(file) for file in review.files],
        "order": [{"step": step.text, "nodes": list(step.nodes)} for step in review.order],
    }


def _file(file: FileChange) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "change": file.change.value,
        "added": file.added,
        "removed": file.removed,
        "diff": "\n".join(file.lines) + "\n",
    }
