"""The guesses in a new site file, for the user to review."""

from collections.abc import Iterator

from generator.diagnostics import listed
from generator.scaffold.plan import Plan, Request

_FEW = 3


def guesses(request: Request, plan: Plan) -> Iterator[str]:
    """Each guess as a sentence without a full stop."""
    words = (word for word in ("kind", "engine", "model", "user") if word not in request.given)
    chosen = [f"{word} {getattr(plan, word)}" for word in words]
    if chosen:
        yield f"{listed(chosen, 'and')}, since nothing said otherwise"
    examples = [node.name for node in plan.nodes if not node.is_known]
    if examples:
        yield f"the management addresses of {_named(examples, plan)}, which are examples"
    if plan.cables:
        yield from _cabling(request, plan)
    for name, found in request.plugged.items():
        yield from (f"that {name} is as its site says, though {text}" for text in found.remarks)
    if plan.groups and "groups" not in request.given:
        yield "which nodes serve together"
    if plan.file:
        yield f"the path of the model's file on {plan.nodes[0].name}, {plan.file}"


def _cabling(request: Request, plan: Plan) -> Iterator[str]:
    unknown = [name for name, found in request.plugged.items() if found.linked is None]
    if unknown and "ports" not in request.given:
        yield f"the ports that are cabled on {_named(unknown, plan)}"
    both = [name for name, found in request.plugged.items() if len(found.linked or ()) > 1]
    if both and plan.topology.same_port:
        yield f"that the cable is in p0, for both ports of {_named(both, plan)} have a link"
    if plan.topology.switched:
        yield "the switch's name and the numbers of its ports"
    elif len(plan.nodes) > 2:
        yield "which node is next to which, and at which end of a cable p0 is"


def _named(names: list[str], plan: Plan) -> str:
    """The names of nodes, unless there are many and all are meant."""
    count = len(plan.nodes)
    return f"all {count} nodes" if len(names) == count > _FEW else listed(names, "and")
