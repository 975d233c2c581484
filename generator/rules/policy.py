"""A repository's policy: the findings that it makes errors or ignores, and its requirements.

A policy is checked like a site file, with places and help. It is applied to a site's findings after
the rules and before the waivers, so a site can't waive what its repository requires.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Finding, KeyPath, Severity, did_you_mean, has_errors
from generator.grouping import grouped
from generator.records import record, replace
from generator.rules.registry import RULES, documented
from generator.site import Part, Site
from generator.sitefile import source
from generator.sitefile.source import Document

if TYPE_CHECKING:
    from generator.failures.analysis import Failure

NAME = "policy.yaml"
MALFORMED, REQUIRED, LOST = "SG820", "SG821", "SG822"
_KEYS = ("version", "rules", "require", "survives")
_LEVELS: Mapping[str, Severity | None] = {**{str(each): each for each in Severity}, "off": None}


@record
class Level:
    """The level that a policy gives a rule: a severity, or None to ignore it, and the reason."""

    severity: Severity | None
    reason: str


@record
class Policy:
    """A repository's levels by rule and its requirements by name, each with a reason.

    `survives` are the kinds of faults of which each must leave every name answering.
    """

    name: str
    levels: Mapping[str, Level]
    required: Mapping[str, str]
    survives: tuple[str, ...] = ()

    def applied(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with this policy's levels."""
        return [taken for finding in findings if (taken := self._taken(finding)) is not None]

    def lacking(self, site: Site) -> Iterator[Finding]:
        """The requirements that a site does not meet."""
        for name, reason in self.required.items():
            for message, path, help_text in REQUIREMENTS[name](site):
                why = f"{message}, and {self.name} asks for one ({reason})"
                yield Finding(REQUIRED, Severity.ERROR, why, path, help=help_text)
        if self.survives and site.parts:
            from generator.bundle.render import render
            from generator.failures.analysis import analysis

            files = {path: file.text for path, file in render(site, "").items()}
            for name, message in self.lost(analysis(site, files).failures()).items():
                way = "serve it by a second group that does not need it, behind 'services.gateway'"
                yield Finding(LOST, Severity.ERROR, message, _written(site, name), help=way)

    def lost(self, failures: "Iterable[Failure]") -> Mapping[str, str]:
        """The names that a single fault takes of those that they must survive, and a sentence."""
        survived = (each for each in failures if each.fault.kind in self.survives)
        found = grouped((name, each.fault.what) for each in survived for name in each.lost)
        return {name: self._lost(name, faults) for name, faults in found.items()}

    def _lost(self, name: str, faults: Sequence[str]) -> str:
        others = f" or any of {len(faults) - 1} others" if len(faults) > 1 else ""
        without = f"without {faults[0]}{others}"
        return f"'{name}' answers nobody {without}, and {self.name} wants it to survive that"

    def _taken(self, finding: Finding) -> Finding | None:
        level = self.levels.get(finding.rule)
        if level is None or finding.severity is Severity.ERROR:
            return finding
        if level.severity is None:
            return None
        help_text = f"{finding.help}; {self.name} makes it {_a(level.severity)} ({level.reason})"
        return replace(finding, severity=level.severity, help=help_text.removeprefix("; "))


Lack = tuple[str, KeyPath, str]


def _written(site: Site, name: str) -> KeyPath:
    """Where the model is written that serves a name."""
    found = (p for p in site.parts if name in (p.model.served_name, *p.model.aliases))
    return (*next(found).written, "model")


def _parts(site: Site) -> Iterator[tuple[Part, KeyPath]]:
    """The parts of a site that serve a model each, with their places."""
    for place, part in {part.written: part for part in reversed(site.parts)}.items():
        yield part, place


def _api_key(site: Site) -> Iterator[Lack]:
    for part, place in _parts(site):
        key = ENGINE_TRAITS[part.engine.name].api_key
        if part.engine.key is None and part.engine.api.listen != "127.0.0.1":
            way = f"write 'secrets: [{key}]' under 'engine'" if key else "write 'bind: local'"
            yield "the API asks for no key", (*place, "engine"), way


def _image_digests(site: Site) -> Iterator[Lack]:
    images: dict[str, KeyPath] = {}
    for part, place in _parts(site):
        if part.image_build:
            # What is built on a node is as fixed as the image that it is built from.
            images[part.image_build.base] = (*place, "engine", "image", "from")
        elif part.engine.image:
            images[part.engine.image] = (*place, "engine", "image")
    for name, service in site.services.items():
        for node in site.nodes:
            images |= dict.fromkeys(service.images(node), ("services", name))
    for image, path in images.items():
        if "@sha256:" not in image:
            yield f"the image {image} has no digest", path, f"write {image}@sha256:..."


def _model_revision(site: Site) -> Iterator[Lack]:
    for part, place in _parts(site):
        if part.model.revision is None:
            way = "write 'revision: COMMIT', of its repository"
            yield "the model has no revision", (*place, "model"), way


# The requirements by the name that a policy uses.
REQUIREMENTS: Mapping[str, Callable[[Site], Iterator[Lack]]] = {
    "api_key": _api_key,
    "image_digests": _image_digests,
    "model_revision": _model_revision,
}


def read_policy(name: str, raw: bytes) -> tuple[Document, list[Finding], Policy | None]:
    """The policy, or else all of its faults."""
    document = source.read(name, raw)
    findings = list(document.findings)
    if document.data is None:
        return document, findings, None
    findings += _faults(document.data)
    if has_errors(findings):
        return document, findings, None
    data: dict[str, Any] = document.data
    levels = {
        rule: Level(_LEVELS[str(entry["level"])], str(entry["reason"]))
        for rule, entry in data.get("rules", {}).items()
    }
    required = {what: str(reason) for what, reason in data.get("require", {}).items()}
    return document, findings, Policy(name, levels, required, tuple(data.get("survives", ())))


def _faults(data: Any) -> Iterator[Finding]:
    if not isinstance(data, dict):
        yield _fault("a policy has the keys 'version', 'rules', 'require' and 'survives'", ())
        return
    for key in data.keys() - {*_KEYS}:
        near = did_you_mean(key, _KEYS)
        yield _fault(f"a policy has no key '{key}'", (key,), near, at_key=True)
    if str(data.get("version", "")) != "1":
        yield _fault("the version of a policy is 1", ("version",), "write 'version: 1'")
    for key, check in (("rules", _of_a_rule), ("require", _of_a_requirement)):
        entries = data.get(key, {})
        if not isinstance(entries, dict):
            yield _fault(f"'{key}' is a mapping", (key,))
            continue
        for name, value in entries.items():
            yield from check(name, value, (key, name))
    yield from _of_survival(data.get("survives", []))


def _of_survival(kinds: Any) -> Iterator[Finding]:
    from generator.failures.analysis import KINDS

    if not isinstance(kinds, list):
        yield _fault("'survives' is a list", ("survives",), "write 'survives: [cable, node]'")
        return
    for index, kind in enumerate(kinds):
        if kind not in KINDS:
            near = did_you_mean(str(kind), KINDS) or f"one of: {', '.join(KINDS)}"
            yield _fault(f"nothing of the kind '{kind}' can fail", ("survives", index), near)


def _of_a_rule(name: str, entry: Any, path: KeyPath) -> Iterator[Finding]:
    severity = _severity(name)
    if severity is None:
        near = did_you_mean(name, RULES) or "see 'sparkgen explain --list'"
        yield _fault(f"no rule about a site is called '{name}'", path, near, at_key=True)
    elif severity is Severity.ERROR:
        yield _fault(f"{name} is always an error", path, "remove it", at_key=True)
    if not isinstance(entry, dict) or {*entry} != {"level", "reason"}:
        example = "{level: error, reason: ...}"
        yield _fault("a rule has a level and a reason", path, f"write '{name}: {example}'")
        return
    if str(entry["level"]) not in _LEVELS:
        levels = ", ".join(_LEVELS)
        yield _fault(f"there is no level '{entry['level']}'", (*path, "level"), f"one of: {levels}")
    if not _is_text(entry["reason"]):
        yield _fault("a reason is a sentence", (*path, "reason"), "say why")


def _of_a_requirement(name: str, reason: Any, path: KeyPath) -> Iterator[Finding]:
    if name not in REQUIREMENTS:
        near = did_you_mean(name, REQUIREMENTS)
        known = f"one of: {', '.join(REQUIREMENTS)}"
        yield _fault(f"there is no requirement '{name}'", path, near or known, at_key=True)
    if not _is_text(reason):
        yield _fault("a requirement has a reason", path, f"write '{name}: ' and why")


def _severity(rule: str) -> Severity | None:
    """The severity of a rule about sites; a policy has no say in rules about bundles."""
    if rule in RULES:
        return RULES[rule].severity
    known = documented().get(rule)
    return known.severity if known and known.about == "site" else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _fault(message: str, path: KeyPath, help_text: str = "", at_key: bool = False) -> Finding:
    return Finding(MALFORMED, Severity.ERROR, message, path, at_key=at_key, help=help_text)


def _a(severity: Severity) -> str:
    return f"an {severity}" if severity is Severity.ERROR else f"a {severity}"
