"""Merges a site file with the base that it extends; every place knows its file.

Mappings are merged by key. Any other value of the site file replaces the base's.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import yaml

from generator.diagnostics import Finding, Proposal, Rewrite, Span, reading_error
from generator.records import replace
from generator.sitefile import source
from generator.sitefile.beside import ReadBeside
from generator.sitefile.mistakes import corrections
from generator.sitefile.source import Document
from generator.sitefile.text_types import TEXT_TYPES, text_fault

_KEY = "extends"


def wanted(document: Document) -> str:
    """The base that a site file names; empty if that is not a path."""
    path = document.data[_KEY]
    return path if isinstance(path, str) and path and not text_fault("source_path", path) else ""


def base_name(name: str, path: str) -> str:
    """The name of a base in findings, given as the site file's is."""
    return str(PurePath(name).parent / path)


def extended(document: Document, beside: ReadBeside) -> tuple[Document, Mapping[str, bytes]]:
    """A site file merged with its base, and the base's bytes by its name.

    The data is None if the base doesn't exist or can't be read.
    """
    path = wanted(document)
    if not path:
        return _without_base(
            document, f"'{_KEY}' must be {TEXT_TYPES['source_path'].wanted}", _HELP
        ), {}
    found = beside(path)
    if found.fault or found.is_folder:
        fault = found.fault or f"{path} is a folder"
        return _without_base(document, fault, found.help or _HELP), {}
    raw = found.files[0].data
    base = source.read(base_name(document.name, path), raw)
    return _over(document, base), {base.name: raw}


_HELP = "write the base's path from the folder of the site file"


def _without_base(document: Document, fault: str, help_text: str) -> Document:
    finding = reading_error("SG013", fault, (_KEY,), help=help_text)
    return replace(document, data=None, findings=(*document.findings, finding))


def _over(document: Document, base: Document) -> Document:
    """The merged document; without data if the base has none, or extends a base itself."""
    base_findings = tuple(_placed(base, finding) for finding in corrections.corrected(base))
    made = replace(
        document, data=None, findings=(*document.findings, *base_findings), parts=(document, base)
    )
    if base.data is None or document.root is None or base.root is None:
        return made
    if not isinstance(base.data, dict):
        return replace(made, findings=(*made.findings, _no_base(base, _NO_MAPPING)))
    if _KEY in base.data:
        return replace(made, findings=(*made.findings, _no_base(base, _NO_CHAIN)))
    root, data = _nodes(document.root, base.root), _data(document.data, base.data)
    return replace(made, root=root, data=data)


_NO_MAPPING = ("a base is a mapping of keys to values", "write the keys of a site file in it")
_NO_CHAIN = (
    "a base can't extend another file",
    "write the keys of that file into the base, and remove 'extends'",
)


def _no_base(base: Document, words: tuple[str, str]) -> Finding:
    message, help_text = words
    span = base.locate((_KEY,), at_key=True) or Span(0, 0, 0, 0)
    place = replace(span, file=base.name)
    return reading_error("SG013", message, span=place, help=help_text)


def _placed(base: Document, finding: Finding) -> Finding:
    """A finding of the base's own text, with its place in that file."""
    span = finding.span or base.locate(finding.path, finding.at_key) or Span(0, 0, 0, 0)
    return replace(
        finding,
        span=replace(span, file=base.name),
        proposals=tuple(_edits_of(base, proposal) for proposal in finding.proposals),
    )


def _edits_of(base: Document, proposal: Proposal) -> Proposal:
    return tuple(
        replace(edit, span=replace(edit.span, file=base.name))
        if isinstance(edit, Rewrite)
        else edit
        for edit in proposal
    )


def _data(own: Any, base: Any) -> Any:
    if not isinstance(own, dict) or not isinstance(base, dict):
        return own
    both = {key: _data(own[key], value) for key, value in base.items() if key in own}
    return {**base, **own, **both}


def _nodes(own: yaml.Node, base: yaml.Node) -> yaml.Node:
    """The merged node; at a place that both have, the site file's."""
    if not isinstance(own, yaml.MappingNode) or not isinstance(base, yaml.MappingNode):
        return own
    below, above = _pairs(base), _pairs(own)
    # A mapping's place is that of its first pair, which has to be the site file's.
    pairs = {**above, **{name: pair for name, pair in below.items() if name not in above}}
    for name in below.keys() & above.keys():
        key, value = above[name]
        pairs[name] = key, _nodes(value, below[name][1])
    return yaml.MappingNode(
        own.tag, list(pairs.values()), own.start_mark, own.end_mark, own.flow_style
    )


def _pairs(node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """If a key is written twice, the first one counts, as in the data."""
    return {
        key.value: (key, value)
        for key, value in reversed(node.value)
        if isinstance(key, yaml.ScalarNode)
    }
