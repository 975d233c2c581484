"""What is wrong with what people run, at its place in their own files.

What runs is adopted as a site, which the rules check; each finding goes back to the place that its
path came from. What a site file can't express is checked here, by separate rules.
"""

import re
from collections.abc import Iterator

from generator.adoption import Adoption, adopt
from generator.adoption.captures import serves
from generator.adoption.command import find
from generator.adoption.found import Word
from generator.adoption.mounts import mounts
from generator.adoption.running import size
from generator.audit import own
from generator.diagnostics import Finding
from generator.records import replace
from generator.reports.remarks import Place, Remark
from generator.rules.registry import RULES

# Not a fault of what runs: what sparkgen would set itself, and what a site file has to add.
_OF_SITES = frozenset(
    (
        *("SG402", "SG403", "SG501", "SG502", "SG505", "SG606", "SG611", "SG612", "SG630"),
        *("SG212", "SG665", "SG677", "SG691"),
    )
)


def audit(adopted: Adoption) -> list[Remark]:
    """The findings, by file and line, each once."""
    found = [remark for finding in adopted.assumed.findings for remark in _remark(adopted, finding)]
    for other in _others(adopted):
        about = (one for one in other.assumed.findings if one.path[:1] in (("engine",), ("model",)))
        found += [remark for finding in about for remark in _remark(other, finding)]
    found += own.remarks(adopted)
    if not _is_running(adopted):
        found += [
            Remark(one.rule, one.severity, one.message, one.help, Place(word.file, "", word.span))
            for one, word in adopted.draft.malformed
            if not {"engine", "model"}.isdisjoint(one.path)
        ]
    unique = {(r.rule, r.place.file, r.place.span, r.message): r for r in found}
    return sorted(unique.values(), key=_order)


def _others(adopted: Adoption) -> Iterator[Adoption]:
    """Each engine on one node that the site does not hold, in a site of its own."""
    held = {(word.file, word.span) for word in adopted.draft.origins.values()}
    for node in adopted.found.nodes:
        for container in node.containers:
            command = find(container, dict(node.programs)) if serves(container) else None
            is_held = any((word.file, word.span) in held for word in container.words)
            if command and command.served and not is_held and size(command) == 1:
                alone = (replace(node, containers=(container,)),)
                yield adopt(replace(adopted.found, nodes=alone, items=()), "mine", "mine.yaml")


def _order(remark: Remark) -> tuple[str, int, int, str]:
    span = remark.place.span
    return (remark.place.file, span.line if span else 0, span.column if span else 0, remark.rule)


def _remark(adopted: Adoption, finding: Finding) -> Iterator[Remark]:
    """A finding of the adopted site at the place that it came from; none for guesses."""
    place = adopted.origin(finding.path) if finding.path else None
    if (
        place is None
        or _is_disproved(adopted, finding)
        or finding.rule in _OF_SITES
        or _is_guessed(adopted, finding)
    ):
        return
    known = ((other.text, adopted.origin(other.path)) for other in finding.related)
    related = tuple((text, Place(word.file, "", word.span)) for text, word in known if word)
    message, where = _message(finding, place), Place(place.file, "", place.span)
    yield Remark(finding.rule, finding.severity, message, _help(finding), where, related)


def _is_disproved(adopted: Adoption, finding: Finding) -> bool:
    """Whether what runs contradicts a rule that only computes, or can't see all files."""
    if finding.rule in ("SG520", "SG537", "SG538", "SG556", "SG631"):
        return _is_running(adopted)
    origin = adopted.origin(finding.path)
    if finding.rule == "SG323":
        # NVIDIA's own way to connect two Sparks gives the fabric link-local addresses.
        return origin is not None and origin.text.startswith("169.254.")
    if finding.rule == "SG695":
        return origin is not None and not _is_missing(adopted, origin.text)
    # An empty variable masks a line of nccl.conf, unless there is none, or a script removes it.
    if finding.rule == "SG413" and finding.path[-2:-1] == ("env",):
        nodes, name = adopted.found.nodes, finding.path[-1]
        words = adopted.command.container.words if adopted.command else ()
        is_removed = f"unset {name} " in " ".join((*(word.text for word in words), ""))
        is_set = any(name == own.name for node in nodes for own in node.settings)
        is_alone = all(node.place for node in nodes) and not is_set
        return bool(origin and not origin.text and (is_removed or is_alone))
    return False


def _is_running(adopted: Adoption) -> bool:
    """Whether the files say that a container runs."""
    return any(own.is_running for node in adopted.found.nodes for own in node.containers)


def _is_missing(adopted: Adoption, text: str) -> bool:
    """Whether no file in a value can be in the best-known container."""
    container = adopted.command.container if adopted.command else None
    if container is None or container.image is None or container.is_launched:
        return False
    parts = re.split(r"[:,;= ]", text)
    return not any(mount.holds(part) for mount in mounts(container) for part in parts)


def _message(finding: Finding, place: Word) -> str:
    """The message; a line of nccl.conf hides nothing but the default."""
    if not place.text and place.file.endswith("nccl.conf"):
        return f"{finding.path[-1]} is empty: NCCL takes that for its value"
    return finding.message


def _help(finding: Finding) -> str:
    """What to do, without advice that uses addresses of the adopted site."""
    advice = finding.help.replace(finding.derived_help, "")
    return f"in a site file: {advice}" if advice.startswith("write ") else advice


def _is_guessed(adopted: Adoption, finding: Finding) -> bool:
    """Whether a finding depends on a node, an address or a version that was guessed."""
    places = (finding.path, *(other.path for other in finding.related))
    if not adopted.draft.guessed_nodes.isdisjoint(finding.nodes) or any(
        map(adopted.draft.is_doubtful, places)
    ):
        return True
    group = finding.path[:2] if finding.path[:1] == ("groups",) else ()
    origins = adopted.draft.origins
    of_version = finding.rule in RULES and RULES[finding.rule].of_version
    return of_version and (*group, "engine", "version") not in origins
