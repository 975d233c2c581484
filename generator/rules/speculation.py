"""Rules about speculative decoding: its method, and the settings of each method."""

from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import Method
from generator.catalogs.speculation import meanings, method_of, methods
from generator.diagnostics import KeyPath, all_nearest, did_you_mean, listed, misspelt, replacements
from generator.engines import ENGINES
from generator.engines.arguments import draft_flag
from generator.engines.draft_settings import DraftSettings
from generator.rules.flags.checking import CheckedFlags
from generator.rules.flags.parser import Parser
from generator.rules.flags.value_faults import value_fault
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Speculative

_PATH: KeyPath = ("model", "speculative")


@rule("SG553", of_version=True)
def method_of_the_engine(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A method of speculative decoding is one that this version of the engine has."""
    drafts = model.speculative
    if not drafts:
        return
    known = method_of(engine.name, drafts.method)
    if known and known.is_in(engine.version):
        return
    title, words = ENGINE_TRAITS[engine.name].title, methods(engine.name, engine.version)
    near = [] if known else all_nearest(drafts.method, words)
    yield Fault(
        f"{title} {engine.version} has no method '{drafts.method}'",
        (*_PATH, "method"),
        did_you_mean(drafts.method, near) or f"it has {listed(words, 'and')}",
        proposals=replacements((*_PATH, "method"), misspelt(drafts.method, near)),
    )


def _method(model: DeclaredModel, engine: DeclaredEngine) -> tuple[Speculative, Method] | None:
    """What a site drafts with, and the method of the engine that this is."""
    drafts = model.speculative
    known = method_of(engine.name, drafts.method) if drafts else None
    return (drafts, known) if drafts and known else None


@rule("SG551", unless="SG553", of_version=True)
def drafts_without_model(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """A method that needs a draft model names one, and no other method does."""
    if not (found := _method(model, engine)):
        return
    drafts, known = found
    if known.source == "none" and drafts.source:
        yield Fault(
            "'mtp' drafts with the model's own prediction head"
            if drafts.method == "mtp"
            else f"'{drafts.method}' drafts without a model",
            (*_PATH, "source"),
            "remove 'source'",
            at_key=True,
        )
    elif known.source == "needed" and not drafts.source:
        yield Fault(
            f"'{drafts.method}' needs a draft model",
            _PATH,
            "write 'source: OWNER/NAME' in it",
            at_key=True,
        )
    elif known.source == "class" and drafts.checkpoint:
        yield Fault(
            f"'{drafts.method}' drafts with a class, and '{drafts.source}' is a model",
            (*_PATH, "source"),
            "write the dotted path of the class, such as 'drafts.Drafter'",
        )
    elif known.source != "class" and drafts.source and not drafts.checkpoint:
        yield Fault(
            f"'{drafts.source}' is the path of a class, and '{drafts.method}' drafts with a model",
            (*_PATH, "source"),
            "write the Hugging Face id OWNER/NAME, or an absolute path",
        )


@rule("SG554", unless="SG553", of_version=True)
def inconsistent_draft_sizes(model: DeclaredModel, engine: DeclaredEngine) -> Faults:
    """The numbers for drafting are ones that the method has, and are consistent."""
    if not (found := _method(model, engine)):
        return
    drafts, known = found
    if known.tokens == "needed" and drafts.tokens is None:
        yield Fault(
            f"'{drafts.method}' does not say how many tokens are drafted",
            _PATH,
            "write 'tokens: 3' in it",
            at_key=True,
        )
    yield from _tree(drafts, known, engine)


def _tree(drafts: Speculative, known: Method, engine: DeclaredEngine) -> Faults:
    given = {"topk": drafts.topk, "steps": drafts.steps}
    if not known.tree:
        for key, value in given.items():
            if value is not None:
                title = ENGINE_TRAITS[engine.name].title
                yield to_remove(
                    f"'{drafts.method}' of {title} has no '{key}'", (*_PATH, key), at_key=True
                )
        return
    topk, steps, tokens = drafts.topk or 1, drafts.steps, drafts.tokens
    if topk > 1 and steps is None:
        yield Fault("'topk' drafts a tree and needs 'steps'", (*_PATH, "topk"), "add 'steps: 5'")
    elif topk > 1 and steps and tokens and tokens - 1 > (most := topk + (steps - 1) * topk**2):
        yield Fault(
            f"'tokens: {tokens}' is more than 'steps: {steps}' and 'topk: {topk}' can draft",
            (*_PATH, "tokens"),
            f"write {most + 1} or less",
        )
    elif topk == 1 and steps and tokens and tokens not in (steps, steps + 1):
        yield Fault(
            f"'tokens: {tokens}' contradicts 'steps: {steps}': each step drafts one token",
            (*_PATH, "tokens"),
            f"write {steps}, or add 'topk' to draft several tokens at each step",
            proposals=replacements((*_PATH, "tokens"), [steps]),
        )


@rule("SG555", unless="SG553")
def settings_of_drafts(model: DeclaredModel, engine: DeclaredEngine, flags: CheckedFlags) -> Faults:
    """The keys of `config` are ones that the engine has for speculative decoding."""
    found = _method(model, engine)
    if not found or not (flags.is_covered or flags.is_between):
        return
    drafts, _ = found
    for key, value in drafts.config.items():
        faults = [_setting(key, value, drafts, engine, parser) for parser in flags.parsers]
        if all(faults) and faults[0]:
            yield faults[0]


def _setting(
    key: str, value: Any, drafts: Speculative, engine: DeclaredEngine, parser: Parser
) -> Fault | None:
    """The fault of a key, if any, according to one catalog of the engine."""
    path = (*_PATH, "config", key)
    if owner := meanings("keys").get(key):
        help_text = f"use the key model.speculative.{owner}"
        return Fault(f"'{key}' is set by sparkgen", path, help_text, at_key=True)
    traits = ENGINE_TRAITS[engine.name]
    if traits.drafts_flag:
        return _json_key(key, path, parser, traits.drafts_flag)
    if accepted := ENGINES[engine.name].draft_settings(engine.version, drafts.method):
        return _option(key, value, path, accepted)
    name = draft_flag(engine.name, key)
    found = parser.catalog.find(name)
    if found is None:
        prefix = traits.drafts_prefix
        names = [flag.name for flag in parser.catalog.flags() if flag.name.startswith(prefix)]
        near = did_you_mean(name, names).replace(prefix, "")
        return Fault(f"{parser.name} has no flag '{name}'", path, near or "remove it", at_key=True)
    if parser.owned.get(found.flag.name) == "model.speculative":
        help_text = "use the keys of model.speculative for it"
        return Fault(f"'{key}' is set by sparkgen", path, help_text, at_key=True)
    word = value if isinstance(value, bool | str | list | dict) else str(value)
    verdict = value_fault(name, word, found, parser, False)
    return Fault(verdict[1].message, path, verdict[1].help) if verdict else None


def _json_key(key: str, path: KeyPath, parser: Parser, flag: str) -> Fault | None:
    found = parser.catalog.find(flag)
    fields = [name for name in (found.flag.fields if found else ()) if name not in _REFUSED]
    if fields and key not in fields:
        near = all_nearest(key, fields)
        return Fault(
            f"'{flag}' of {parser.name} has no key '{key}'",
            path,
            did_you_mean(key, near) or f"it has {listed(fields, 'and')}",
            at_key=True,
        )
    return None


# Keys that the engine fills in itself or always refuses.
_REFUSED = (
    *("tensor_parallel_size", "target_model_config", "target_parallel_config"),
    *("draft_model_config", "draft_parallel_config"),
)


def _option(key: str, value: Any, path: KeyPath, accepted: DraftSettings) -> Fault | None:
    """The fault of a key in the engine's file of settings."""
    if key not in accepted.settings:
        near = did_you_mean(key, list(accepted.settings)) or "remove it"
        return Fault(f"{accepted.section} has no key '{key}'", path, near, at_key=True)
    if wanted := accepted.settings[key](value):
        return Fault(f"'{key}' takes {wanted}", path, f"write {wanted}")
    return None
