"""The part of `import` that is about sparkgen's own bundles: the site comes back as it was."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from generator.bundle.output import FolderContents, compare
from generator.bundle.render import render
from generator.capture import Capture
from generator.commands.adopting import given_captures
from generator.commands.bundles import disk
from generator.commands.live import lines
from generator.commands.sites import accessing, fail, publish, tell
from generator.diagnostics import visible
from generator.drift import drift, missing
from generator.drift.recorded import of_bundle, of_captures
from generator.pipeline import Reading
from generator.reports import drift as of_disk
from generator.site.places import BASE_TEXT, LOCK_TEXT, SITE_TEXT
from generator.sitefile.beside import Source, SourceFile, nothing_beside
from generator.sitefile.disk import beside
from generator.sitefile.lock import lock_name


def import_recorded(inputs: Sequence[str], file: Path | None, quiet: bool, form: str) -> bool:
    """Whether the inputs keep the text of their site, which is then written."""
    folder = Path(inputs[0])
    captures: list[Capture] = []
    if len(inputs) == 1 and folder.is_dir():
        with disk():
            found = of_bundle(FolderContents(folder))
        if found is None:
            fail(f"{folder} has no text of its site: name the files of its nodes")
    else:
        captures = given_captures(inputs, form)
        found = of_captures(captures)
        mark = f"key in it: etc/sparkgen/bundle/{SITE_TEXT}\n"
        for node in [one.node for one in captures if mark in one.texts["capture.txt"]]:
            click.echo(f"{node}: its site was not taken: a key is in it", err=True)
    if found is None:
        return False
    near = beside(file) if file else nothing_beside
    reading, own = found.read(str(file or "mine.yaml"), near)
    if file:
        _write(file, found.texts, reading, own)
    changed = [*found.others]
    changed += _changed(reading, captures) if captures else _edited(reading, folder)
    if form == "json":
        rest = {"file": str(file) if file else None, "text": found.texts[SITE_TEXT]}
        publish(form, [(reading, reading.findings)], rest={**rest, "changed": changed})
        return True
    if file is None:
        click.echo(found.texts[SITE_TEXT], nl=False)
    tell(reading, reading.findings, strict=False)
    for line in changed:
        click.echo(f"changed since: {visible(line)}", err=True)
    if file and not quiet:
        same = ": nothing has changed since it was installed" * (not changed)
        click.echo(f"{file} is written, as it was{same}")
        click.echo("nodes keep no policy and no 'catalogs/': copy yours beside it")
    return True


def _changed(reading: Reading, captures: Sequence[Capture]) -> list[str]:
    if reading.site is None:
        return ["its site has errors now, and was not compared"]
    absent = [f"{name} is not captured" for name in missing(reading.site, captures)]
    return [*lines(drift(reading.site, captures, reading.lock).differences), *absent]


def _edited(reading: Reading, folder: Path) -> list[str]:
    """How a bundle on disk differs from its site; a single node's folder is not compared."""
    if reading.site is None or not (folder / "MANIFEST.json").is_file():
        return []
    tree = render(reading.site, reading.sha256, texts=reading.texts)
    with disk():
        comparison = compare(tree, folder)
    return list(of_disk.lines(comparison, folder)) if comparison.drifted else []


def _write(
    file: Path, texts: Mapping[str, str], reading: Reading, own: Mapping[str, Source]
) -> None:
    """The site file, what was beside it unless that is there already, and its own files."""
    base = next((Path(name) for name in reading.raw if name), None)
    lock = file.with_name(name) if (name := lock_name(file.name)) else None
    paths = {SITE_TEXT: file, LOCK_TEXT: lock, BASE_TEXT: base}
    files = {
        path: SourceFile("", texts[name].encode(), False)
        for name, path in paths.items()
        if path is not None and name in texts and not path.exists()
    }
    files |= {file.parent / name / one.path: one for name in own for one in own[name].files}
    for path, one in files.items():
        with accessing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(one.data)
            path.chmod(path.stat().st_mode | 0o111 * one.is_executable)
