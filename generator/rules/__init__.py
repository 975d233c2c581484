"""The rules of the field: what a site may not say, each with its reason and its source."""

from collections.abc import Iterable
from functools import cached_property

from generator.addressing import Fabric, plan
from generator.declaration import Declaration
from generator.diagnostics import Finding, Severity
from generator.fit.assessment import Fit, assess
from generator.rules import (
    cabling,
    engine,
    environment,
    flags,
    llama_cpp,
    memory,
    model,
    nccl,
    network,
    nodes,
    secrets,
    security,
    services,
    sglang,
    support,
    tensorrt_llm,
)
from generator.rules.flags.judgment import Judgment, judgment
from generator.rules.registry import RULES, Rule
from generator.rules.waivers import waived
from generator.source import Document

__all__ = ["MODULES", "RULES", "judge"]

# Each module registers its rules when it is imported.
MODULES = (
    *(nodes, cabling, network, environment, nccl, model, memory, support, engine),
    *(flags, security, secrets, sglang, tensorrt_llm, llama_cpp, services),
)

# What rules ask for that is no section of the site file.
_OWN = ("fabric", "fit", "flags", "document")

# Rules that sort before this say whether the cabling has a shape that addresses can be given to.
_SHAPE = "SG22"


def judge(declaration: Declaration, document: Document) -> tuple[list[Finding], Fabric | None]:
    """All findings of the rules, and the fabric if the cabling is sound enough to have one."""
    facts = _Facts(declaration, document)
    for rule in _in_order():
        facts.judge(rule)
    return waived(facts.findings, declaration.waivers, facts.judged), facts.fabric


def _in_order() -> Iterable[Rule]:
    """The rules by id, each after those that make it pointless."""
    ordered: dict[str, Rule] = {}

    def add(number: str) -> None:
        if number not in ordered:
            for other in sorted(RULES[number].unless | RULES[number].not_beside):
                add(other)
            ordered[number] = RULES[number]

    for number in sorted(RULES):
        add(number)
    return ordered.values()


class _Facts:
    """The sections that rules ask for by name, None where they can't be had."""

    def __init__(self, declaration: Declaration, document: Document) -> None:
        self.declaration = declaration
        self.document = document
        self.findings: list[Finding] = []
        self.judged: set[str] = set()

    def judge(self, rule: Rule) -> None:
        """Add what a rule has to say, unless it is pointless or a section can't be had."""
        if rule.unless & {finding.rule for finding in self.findings}:
            return
        sections = [self.get(name) for name in rule.needs]
        if all(section is not None for section in sections):
            self.judged.add(rule.id)
            said = {finding.path for finding in self.findings if finding.rule in rule.not_beside}
            faults = [fault for fault in rule.check(*sections) if fault.path not in said]
            self.findings += map(rule.finding, faults)

    def get(self, name: str) -> object:
        return getattr(self if name in _OWN else self.declaration, name)

    @cached_property
    def fit(self) -> Fit | None:
        """How the model fits the nodes, if the sections that say so are sound."""
        declared = self.declaration
        if declared.nodes is None or declared.model is None or declared.engine is None:
            return None
        return assess(declared.nodes, declared.model, declared.engine)

    @cached_property
    def fabric(self) -> Fabric | None:
        """The addresses that would come out; first asked for when the shape has been judged."""
        declared = self.declaration
        if declared.nodes is None or declared.cabling is None or declared.topology is None:
            return None
        if any(f.rule < _SHAPE and f.severity is Severity.ERROR for f in self.findings):
            return None
        return plan(declared.nodes, declared.cabling, declared.topology)

    @cached_property
    def flags(self) -> Judgment | None:
        """What the engine's catalog says of its flags and variables."""
        return judgment(self.declaration.engine) if self.declaration.engine else None
