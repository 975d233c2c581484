"""Reviews as JSON, for scripts. The format is stable: keys are added, never renamed or removed.

    {"version": 1,
     "sites": [{"site", "was", "against", "changed", "edits", "notes", "downtimeSeconds",
                "headroomGib",
                "nodes": [{"node", "was", "state", "effect", "restarts", "todo", "files"}],
                "files": [{"path", "kind", "change", "added", "removed", "diff"}],
                "order": [{"step", "nodes"}]}]}

`state` is `new`, `changed`, `unchanged`, `renamed` or `removed`; `was` is the previous name, which
is empty for a new site; `edits` is what was changed in the site file; `effect` is `nothing`,
`files`, `reload`, `service`, `restart` or `links`, each including the lesser ones; `restarts` means
that the engine restarts, for whatever reason; `downtimeSeconds` is the sum of
the limits for stopping and for starting, null if the API stays up (with groups, each name that is
still served), and `headroomGib` is the memory left on the fullest node before and after, null if
not known.
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
        "was": review.was,
        "against": review.against,
        "changed": review.changed,
        "edits": list(review.edits),
        "notes": list(review.notes),
        "downtimeSeconds": review.limits and review.limits.stop + review.limits.load,
        "headroomGib": list(review.headroom) if review.headroom else None,
        "nodes": [
            {
                "node": node.name,
                "was": node.was,
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
        "change": file.activation.text,
        "added": file.added,
        "removed": file.removed,
        "diff": "\n".join(file.lines) + "\n",
    }
