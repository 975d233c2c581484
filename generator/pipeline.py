"""The whole flow as one pure function: from a site file's bytes to its findings and its site."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePath

from generator import rules
from generator.derive.site import derive
from generator.diagnostics import Finding, has_errors
from generator.records import record
from generator.reports.text import in_order
from generator.rules.policy import Policy
from generator.site import Site
from generator.site.complete import CompleteDeclaration
from generator.site.places import BASE_TEXT, LOCK_TEXT, SITE_TEXT
from generator.sitefile import lock as locks
from generator.sitefile import redaction, schema, source
from generator.sitefile.beside import CATALOGS, ReadBeside, nothing_beside
from generator.sitefile.declaration import declare
from generator.sitefile.lock import Lock
from generator.sitefile.source import Document
from generator.sitefile.unfinished import others, unfinished


@record
class Reading:
    """The result of reading a site file: document, findings, and its site if there are no errors.

    `declaration` is present as soon as no section is missing, whatever the rules found. `raw` has
    the bytes of the site file under an empty name, and those of the base that it extends.
    """

    document: Document
    findings: tuple[Finding, ...]
    declaration: CompleteDeclaration | None
    site: Site | None
    raw: Mapping[str, bytes]
    lock: Lock | None = None

    @property
    def sha256(self) -> str:
        """The checksum of the site file; with a base or a lock, a checksum over all of them."""
        parts = [*self.raw.values(), *([pins] if self.lock and (pins := self.lock.pins) else ())]
        sums = [sha256(raw).hexdigest() for raw in parts]
        return sums[0] if len(sums) == 1 else sha256("".join(sums).encode()).hexdigest()

    @property
    def texts(self) -> Mapping[str, str]:
        """What the site was read from, by the names in bundles; secrets are blanked in comments."""
        raws = dict(zip((SITE_TEXT, BASE_TEXT), self.raw.values(), strict=False))
        if self.lock and self.lock.pins:
            raws[LOCK_TEXT] = self.lock.pins
        return {name: redaction.blanked(raw.decode()) for name, raw in raws.items()}

    @property
    def valid(self) -> "ValidReading | None":
        """The same with the site that it describes; None if errors leave it without."""
        if self.site is None or self.declaration is None:
            return None
        return ValidReading(self, self.declaration, self.site)


@record
class ValidReading:
    """What a site file without errors says."""

    reading: Reading
    declaration: CompleteDeclaration
    site: Site

    @property
    def file(self) -> Path:
        """The site file, as the user named it."""
        return Path(self.reading.document.name)


def read_site(
    name: str, raw: bytes, beside: ReadBeside = nothing_beside, policy: Policy | None = None
) -> Reading:
    """Read, check and derive a site; `name` is the file's name as the user gave it.

    `beside` reads the files that the site names; `policy` is the repository's own severity for
    findings.
    """
    document, base = _document(name, raw, beside)
    lock, unread = _lock(name, beside)
    findings, declaration, site = _site(document, beside, policy, lock)
    if unread:
        findings, site = [*findings, unread], None
    redacted = redaction.concealed(document, findings) if findings else []
    # Cerberus reports missing keys in an order that differs from run to run.
    ordered = tuple(in_order(document, redacted))
    return Reading(document, ordered, declaration, site, {"": raw, **base}, lock)


def _lock(name: str, beside: ReadBeside) -> tuple[Lock | None, Finding | None]:
    """The lock beside a site file, or the finding that says why it can't be read."""
    try:
        return locks.read(name, beside), None
    except locks.LockError as error:
        from generator.rules.locks import unreadable

        return None, unreadable(str(error), locks.lock_name(name))


def _document(name: str, raw: bytes, beside: ReadBeside) -> tuple[Document, Mapping[str, bytes]]:
    """A site file merged with the base that it extends, and the base's bytes by its name."""
    document = source.read(name, raw)
    if not isinstance(document.data, dict) or "extends" not in document.data:
        return document, {}
    from generator.sitefile import extending

    return extending.extended(document, beside)


def _site(
    document: Document, beside: ReadBeside, policy: Policy | None, lock: Lock | None
) -> tuple[list[Finding], CompleteDeclaration | None, Site | None]:
    """All findings of a document, its declaration, and its site unless there are errors."""
    if document.data is None:
        # Needed only for text that is not valid YAML.
        from generator.sitefile.mistakes import corrections

        return list(corrections.corrected(document)), None, None
    data, findings, faulty = schema.check(document)
    if data is None:
        return findings, None, None
    if todo := unfinished(document):
        return [*todo, *others(findings, todo)], None, None
    declared = declare(data, findings, faulty)
    catalogs = beside(CATALOGS)
    if not catalogs.fault:
        from generator.sitefile import catalogs as of_images

        declared, unread = of_images.applied(declared, catalogs, lock)
        findings = [*findings, *unread]
    found, declaration = rules.check(declared, document, beside, policy)
    if any(finding.rule == "SG632" for finding in found):
        from generator.sitefile.mistakes.causes import together

        found = list(together(found))
    findings += found
    if lock and declaration:
        findings = _held(findings, declaration, lock)
        declaration = declaration.locked(lock)
    if has_errors(findings) or declaration is None:
        return findings, declaration, None
    site = derive(declaration, file_name(document.name))
    lacking = list(policy.lacking(site)) if policy else []
    return findings + lacking, declaration, None if lacking else site


def _held(findings: list[Finding], declaration: CompleteDeclaration, lock: Lock) -> list[Finding]:
    """The findings, plus what the lock lacks, minus those about tags that the lock pins."""
    from generator.rules.locks import named_images, older

    known = ((lock.image(name), path) for name, path in named_images(declaration))
    moving = {("SG609", path) for image, path in known if image and image.digest}
    findings = [finding for finding in findings if (finding.rule, finding.path) not in moving]
    return [*findings, *older(declaration, lock)]


def file_name(name: str) -> str:
    """The site file's name without its folder, safe in every comment that it is printed in."""
    return re.sub(r"[^A-Za-z0-9._ -]", "_", PurePath(name).name)
