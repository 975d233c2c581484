"""Validates a document against the Cerberus schemas; returns typed data and findings SG1xx.

The schemas are data in `schemas/`, one file per section; `schema_findings.py` words the findings.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from generator.diagnostics import Finding
from generator.sitefile.conformity import conforms
from generator.sitefile.sections import site_schema
from generator.sitefile.source import Document
from generator.sitefile.typed_values import as_typed


def check(document: Document) -> tuple[Any, list[Finding]]:
    """The document's data with each scalar as its schema's type, and all findings.

    The findings include those of reading, unless the schema knows the mistake behind one.
    """
    data = document.data
    if not isinstance(data, dict):
        from generator.sitefile.mistakes.schema_findings import no_mapping

        return None, [*document.findings, no_mapping()]
    typed = {
        key: as_typed(value, site_schema()[key]) if key in site_schema() else value
        for key, value in data.items()
    }
    if not document.findings and conforms(typed, site_schema()):
        return typed, []
    from generator.sitefile.mistakes.schema_findings import findings
    from generator.sitefile.validation import site_validator

    validator = site_validator()
    validator.validate(typed, normalize=False)
    errors = list(_flat(validator._errors))
    return typed, findings(document, typed, errors) if errors or document.findings else []


def _flat(errors: Iterable[Any]) -> Iterator[Any]:
    for error in errors:
        if error.child_errors:
            yield from _flat(error.child_errors)
        else:
            yield error
