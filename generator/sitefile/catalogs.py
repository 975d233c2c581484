"""The catalogs of images beside a site file, and the engines that they are of."""

from collections.abc import Sequence

from generator.catalogs.added import AddedCatalog, CatalogError, read
from generator.diagnostics import Finding, Severity
from generator.records import replace
from generator.sitefile.beside import CATALOGS, Source
from generator.sitefile.declaration import Declaration, DeclaredEngine, DeclaredGroup
from generator.sitefile.lock import Lock

_SUFFIX = ".tsv"


def applied(
    declared: Declaration, folder: Source, lock: Lock | None
) -> tuple[Declaration, list[Finding]]:
    """The declaration with the catalogs of its engines' images, and what can't be read."""
    known, findings = _read(folder)
    if not known:
        return declared, findings
    groups = declared.groups and tuple(_of_group(group, known, lock) for group in declared.groups)
    engine = declared.engine and _with_catalog(declared.engine, known, lock)
    return replace(declared, engine=engine, groups=groups), findings


def _read(folder: Source) -> tuple[list[AddedCatalog], list[Finding]]:
    known, findings = [], []
    for file in folder.files:
        if file.path.endswith(_SUFFIX):
            try:
                known.append(read(file.data.decode()))
            except (CatalogError, UnicodeDecodeError) as error:
                why = str(error) if isinstance(error, CatalogError) else "it is not UTF-8"
                findings.append(_unread(f"{CATALOGS}/{file.path}", why))
    return known, findings


def _unread(name: str, why: str) -> Finding:
    message = f"the catalog {name} can't be used: {why}"
    help_text = "run sparkgen catalog add again, or remove the file"
    return Finding("SG853", Severity.ERROR, message, help=help_text)


def _of_group(
    group: DeclaredGroup, known: Sequence[AddedCatalog], lock: Lock | None
) -> DeclaredGroup:
    return replace(group, engine=group.engine and _with_catalog(group.engine, known, lock))


def _with_catalog(
    engine: DeclaredEngine, known: Sequence[AddedCatalog], lock: Lock | None
) -> DeclaredEngine:
    """The engine, read by the catalog of its image, or else by that of its version."""
    locked = lock.image(engine.image) if lock else None
    image = locked.pinned if locked else engine.image
    found = [each for each in known if each.is_of(engine.name, engine.version, image)]
    if not found:
        return engine
    best = max(found, key=lambda each: (bool(each.image), bool(each.digest)))
    return replace(engine, settings=replace(engine.settings, version=best.key))
