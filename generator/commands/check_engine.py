"""`sparkgen check-engine`."""

import sys
from pathlib import Path

import click

from generator.answers.answer import ACCEPTED, Answer, AnswerError, parse
from generator.answers.findings import judged, line, superseded, unasked
from generator.answers.ranks import AskedRank, ranks, to_lock
from generator.bundle.render import render
from generator.commands import completion
from generator.commands.options import DATA_FORM, DRIFT, INVALID, SITE
from generator.commands.sites import TEXTUAL, accessing, content, fail, publish, read, refuse, tell
from generator.diagnostics import Finding, Severity
from generator.pipeline import ValidReading
from generator.records import replace
from generator.sitefile.lock import SUFFIX, Lock


@click.command(epilog="Example: sparkgen check-engine sites/mine.yaml said.json")
@SITE
@click.argument("results", nargs=-1, type=Path, shell_complete=completion.outputs)
@DATA_FORM
def command(site: Path, results: tuple[Path, ...], form: str) -> None:
    """Show what the engines said of a site's settings, at the lines that they are about.

    A RESULT is what 'launch.sh --check-engine' or '--rehearse' printed on a node, or 'deploy.sh'
    with the same option for all. What was said is kept in the site's lock, for as long as settings
    and image stay the same; without a RESULT, this shows what the lock has.
    """
    said = [answer for path in results for answer in _parsed(path)]
    reading = read(site)
    valid = reading.valid or refuse(reading)
    lock = valid.reading.lock
    tree = render(valid.site, valid.reading.sha256)
    known = ranks(valid.site, tree, said, lock.answers if lock else ())
    findings = tuple(judged(valid.declaration, known))
    if any(rank.answer for rank in known):
        _keep(site, lock or Lock((), ()), known)
    _report(valid, findings, known, said, form)
    wrong = any(finding.severity is Severity.ERROR for finding in findings)
    if wrong or any(rank.status != ACCEPTED for rank in known):
        sys.exit(DRIFT)


def _parsed(path: Path) -> list[Answer]:
    try:
        return parse(content(path).decode(errors="replace"))
    except AnswerError as error:
        fail(f"{path}: {error}", INVALID)


def _keep(site: Path, lock: Lock, known: list[AskedRank]) -> None:
    """Write what was said to the lock."""
    target = site.with_name(site.name.removesuffix(".yaml") + SUFFIX)
    with accessing(target):
        text = replace(lock, answers=to_lock(known)).text()
        target.write_text(text, encoding="utf-8", newline="\n")


def _report(
    valid: ValidReading,
    findings: tuple[Finding, ...],
    known: list[AskedRank],
    said: list[Answer],
    form: str,
) -> None:
    lock = valid.reading.lock
    shown = (*superseded(valid.reading.findings, known), *findings, *unasked(known, lock))
    tell(valid.reading, shown, strict=False, form=form)
    if form in TEXTUAL:
        for rank in known:
            click.echo(line(rank), err=form != "text")
        asked = {(rank.part.group, rank.member.name) for rank in known if rank.answer}
        for answer in said:
            if (answer.group, answer.node) not in asked:
                what = "of a node or group that the site does not have"
                nodes = {(rank.part.group, rank.member.name) for rank in known}
                if (answer.group, answer.node) in nodes:
                    what = "about other settings: build, install and ask again"
                click.echo(f"{answer.node}: this answer is {what}", err=True)
    rest = {
        "ranks": [
            {
                "node": rank.member.name,
                "group": rank.part.group,
                "status": rank.status or "not asked yet",
                "settings": rank.settings,
                "rehearsal": rank.kept.rehearsal if rank.kept else "",
                "isLocked": rank.answer is None and rank.locked is not None,
            }
            for rank in known
        ]
    }
    publish(form, [(valid.reading, shown)], rest=rest)
