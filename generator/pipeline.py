"""The whole flow as one pure function: from a site file's bytes to its findings and its site."""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePath

from generator import schema, secrecy, source
from generator.declaration import Declaration, declare
from generator.derive import derive
from generator.diagnostics import Finding, has_errors
from generator.formats import in_order
from generator.rules import judge
from generator.site import Site
from generator.source import Document


@dataclass(frozen=True, slots=True)
class Reading:
    """What a site file says: its document, all findings, and its site unless there are errors.

    `declaration` is there as soon as the document is a mapping, whatever is wrong with it.
    """

    document: Document
    findings: tuple[Finding, ...]
    declaration: Declaration | None
    site: Site | None
    sha256: str


def read_site(name: str, raw: bytes) -> Reading:
    """Read, check and derive a site; `name` is the file's name as the user gave it."""
    document = source.read(name, raw)
    findings, declaration, site = _site(document)
    told = secrecy.concealed(document, findings) if findings else []
    # Cerberus asks for keys that are missing in an order that differs from run to run.
    ordered = tuple(in_order(document, told))
    return Reading(document, ordered, declaration, site, sha256(raw).hexdigest())


def _site(document: Document) -> tuple[list[Finding], Declaration | None, Site | None]:
    """All findings of a document, its sections, and its site unless there are errors."""
    findings = list(document.findings)
    if document.data is None:
        return findings, None, None
    data, faults = schema.check(document)
    findings += faults
    if data is None:
        return findings, None, None
    declaration = declare(data, findings)
    judged, fabric = judge(declaration, document)
    findings += judged
    if has_errors(findings) or fabric is None:
        return findings, declaration, None
    return findings, declaration, derive(declaration, fabric, file_name(document.name))


def file_name(name: str) -> str:
    """The site file's name alone, safe in every comment that it is printed in."""
    return re.sub(r"[^A-Za-z0-9._ -]", "_", PurePath(name).name)
