"""Validates a document against the Cerberus schemas; returns typed data and findings SG1xx.

The schemas are data in `schemas/`, one file per section; `mistakes/` finds what was meant by data
that does not match them.
"""

from typing import Any

from generator.diagnostics import Finding
from generator.sitefile.conformity import conforms
from generator.sitefile.sections import site_schema
from generator.sitefile.source import Document
from generator.sitefile.typed_values import as_typed


def check(document: Document) -> tuple[Any, list[Finding], frozenset[str]]:
    """The document's data with each scalar as its schema's type, all findings, and faulty sections.

    The findings include those of reading, unless the schema knows the mistake behind one.
    """
    data = document.data
    if not isinstance(data, dict):
        from generator.sitefile.mistakes.causes import no_mapping

        return None, [*document.findings, no_mapping()], frozenset()
    typed = {
        key: as_typed(value, site_schema()[key]) if key in site_schema() else value
        for key, value in data.items()
    }
    if not document.findings and conforms(typed, site_schema()):
        return typed, [], frozenset()
    from generator.sitefile.mistakes.causes import findings

    return typed, *findings(document)
