"""Measured corrections of the reserve, by model and engine, from a file beside the site file.

    - {model: gpt-oss-120b, engine: vllm, version: 0.33.0, reserve_gib: 1.25}

`reserve_gib` is by how much the reserve of a rank exceeds the computed one; negative if it is less.
"""

from collections.abc import Iterator

from generator.records import record, replace
from generator.sitefile.beside import Source
from generator.sitefile.declaration import Declaration, DeclaredEngine, DeclaredModel

_KEYS = {"model", "engine", "version", "reserve_gib"}
# No reserve can be off by more than the memory of a node.
_MOST_GIB = 64.0


@record
class Correction:
    """By how much the reserve of a rank exceeds the computed one, in GiB."""

    model: str
    engine: str
    version: str
    reserve_gib: float

    def is_of(self, model: DeclaredModel, engine: DeclaredEngine) -> bool:
        """Whether it was measured with this model in this release of the engine."""
        own = (model.name or model.source, engine.name, engine.version)
        return own == (self.model, self.engine, self.version)

    def __str__(self) -> str:
        return (
            f"- {{model: {self.model}, engine: {self.engine}, version: {self.version}, "
            f"reserve_gib: {self.reserve_gib:.2f}}}"
        )


@record
class Calibration:
    """The corrections in a file, or what is wrong with it."""

    path: str
    corrections: tuple[Correction, ...] = ()
    fault: str = ""

    def of(self, model: DeclaredModel, engine: DeclaredEngine) -> Correction | None:
        """The last correction for a model in a release of an engine."""
        found = [each for each in self.corrections if each.is_of(model, engine)]
        return found[-1] if found else None


def calibrated(declaration: Declaration, calibration: Calibration | None) -> Declaration:
    """The declaration with the measured correction of its model's reserve."""
    model, engine = declaration.model, declaration.engine
    if calibration is None or model is None or engine is None:
        return declaration
    correction = calibration.of(model, engine)
    if correction is None:
        return declaration
    return replace(declaration, model=replace(model, correction_gib=correction.reserve_gib))


def read(path: str, source: Source) -> Calibration:
    """The corrections of a file."""
    if source.fault or source.is_folder:
        return Calibration(path, fault=source.fault or f"{path} is a folder")
    try:
        return Calibration(path, tuple(_corrections(source.files[0].data)))
    except ValueError as error:
        return Calibration(path, fault=f"{path}: {error}")


def _corrections(data: bytes) -> Iterator[Correction]:
    import yaml

    try:
        # All scalars stay as written: 0.20 is a version, not a number.
        entries = yaml.load(data.decode("utf-8"), Loader=yaml.CBaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("it is no YAML") from error
    if not isinstance(entries, list):
        raise ValueError("it is not a list")
    for number, entry in enumerate(entries, start=1):
        yield _correction(number, entry)


def _correction(number: int, entry: object) -> Correction:
    if not isinstance(entry, dict) or set(entry) != _KEYS:
        raise ValueError(f"entry {number} has not the keys {', '.join(sorted(_KEYS))}")
    if not all(isinstance(value, str) for value in entry.values()):
        raise ValueError(f"entry {number} has a value that is neither text nor a number")
    try:
        more = float(entry["reserve_gib"])
    except ValueError:
        raise ValueError(f"entry {number}: reserve_gib is not a number") from None
    if not -_MOST_GIB <= more <= _MOST_GIB:
        raise ValueError(f"entry {number}: reserve_gib is not between -64 and 64")
    return Correction(entry["model"], entry["engine"], entry["version"], more)
