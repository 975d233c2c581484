"""`sparkgen models`."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from generator import catalogs
from generator.catalogs import Checkpoint
from generator.columns import columns
from generator.commands import completion
from generator.commands.groups import GROUP, chosen
from generator.commands.options import DATA_FORM
from generator.commands.sites import read_valid, width_of
from generator.diagnostics import listed
from generator.fit.alternatives import Deployment
from generator.fit.assessment import Fit
from generator.fit.choices import COUNTS, Candidate, Fitting, choices, fitting
from generator.fit.table import figures

Row = tuple[str, ...]
_HEAD: Row = ("MODEL", "FORMAT", "GB", "CONTEXT", "NODES", "ENGINES", "PARSERS")
_FITTING: Row = (
    *("MODEL", "FORMAT", "GB", "PARALLEL", "LEFT", "LONGEST CONTEXT", "SEQUENCES", "DECODE"),
)
_SORTED: Mapping[str, Callable[[Fit], float]] = {
    "context": lambda fit: fit.one_context or 0,
    "sequences": lambda fit: fit.most_sequences or 0,
    "speed": lambda fit: fit.ceiling_tokens_s or 0,
    "headroom": lambda fit: fit.worst.headroom_gib,
}


@click.command(epilog="Example: sparkgen models qwen3 --fits sites/lab-mesh.yaml")
@click.argument("word", default="", shell_complete=completion.models)
@click.option(
    "--fits",
    "site",
    type=Path,
    metavar="SITE",
    help="Only what this site's nodes and engine hold: its split, context, sequences and KV type.",
    shell_complete=completion.sites,
)
@click.option(
    "--sort",
    "key",
    type=click.Choice(list(_SORTED)),
    help="With --fits: the most of this first; a speed is that of memory bandwidth.",
)
@DATA_FORM
@GROUP
def command(word: str, site: Path | None, key: str | None, form: str, group: str | None) -> None:
    """List the models of the catalog that match WORD, and on how many nodes each fits."""
    if key and site is None:
        raise click.UsageError(
            "--sort needs --fits SITE: what is left depends on its nodes and engine"
        )
    if site is None:
        found = list(choices(word))
        head, rows = _HEAD, [_row(choice) for choice in found]
    else:
        held = [
            (name, one)
            for name, own in _groups(site, group).items()
            for one in _sorted(fitting(own, word), key)
        ]
        found = [Candidate(*one) for _, one in held]
        several = len({name for name, _ in held}) > 1
        head = ("GROUP", *_FITTING) if several else _FITTING
        rows = [(*([name] if several else []), *_fitting_row(*one)) for name, one in held]
    if form == "json":
        document = {"version": 1, "models": [_data(choice) for choice in found]}
        click.echo(json.dumps(document, indent=2))
    elif found:
        click.echo(columns(head, rows, width_of(sys.stdout)))
        click.echo(f"\n{_legend(site)}", err=True)
    else:
        near = () if site and any(choices(word)) else catalogs.near_checkpoints(word)
        guess = f"did you mean {listed(map(repr, near))}?" if near else ""
        what = "of the catalog" if site is None else f"that fits {site}"
        click.echo(
            f"no model {what} has '{word}' in its name or format; {guess}".rstrip("; "), err=True
        )


def _groups(site: Path, name: str | None) -> Mapping[str, Deployment]:
    (valid,) = read_valid([site])
    return chosen(valid.declaration, name)


def _sorted(found: Iterable[Fitting], key: str | None) -> Sequence[Fitting]:
    if key is None:
        return list(found)
    return sorted(found, key=lambda one: -_SORTED[key](one[1]))


def _row(choice: Candidate) -> Row:
    known = choice.checkpoint
    return (
        known.name,
        known.format,
        _number(known.weight_gb),
        _number(known.max_context),
        _nodes(choice),
        ", ".join(choice.engines),
        ", ".join(choice.parsers) or "-",
    )


def _nodes(choice: Candidate) -> str:
    if choice.nodes:
        return str(choice.nodes)
    return "?" if choice.unknown else f"over {COUNTS[-1]}"


def _fitting_row(known: Checkpoint, fit: Fit) -> Row:
    sizes = {"tensor": fit.parallel.tensor, "pipeline": fit.parallel.pipeline}
    return (
        known.name,
        known.format,
        _number(known.weight_gb),
        ", ".join(f"{name}: {size}" for name, size in sizes.items() if size > 1) or "-",
        f"{fit.worst.headroom_gib:.1f} GiB",
        _number(fit.one_context),
        _number(fit.most_sequences),
        figures(fit)[-1],
    )


def _legend(site: Path | None) -> str:
    if site is None:
        return (
            "NODES hold one sequence of 32768 tokens, with a switch from four on; '?' is not known."
            "\nGGUF files for llama.cpp are in no catalog: 'sparkgen init --engine llama.cpp'."
        )
    return "SEQUENCES of the site's context fit at once, and one of the longest."


def _data(choice: Candidate) -> dict[str, Any]:
    """The format is stable: keys are added, never renamed or removed."""
    known, fit = choice.checkpoint, choice.fit
    return {
        "name": known.name,
        "source": known.hf_id,
        "model": known.architecture.name,
        "format": known.format,
        "weightGb": known.weight_gb,
        "context": known.max_context,
        "gated": known.gated,
        "engines": list(choice.engines),
        "toolCallParser": known.architecture.tool_call_parser,
        "reasoningParser": known.architecture.reasoning_parser,
        "known": not choice.unknown,
        "nodes": choice.nodes,
        "tensor": fit.parallel.tensor if fit else None,
        "pipeline": fit.parallel.pipeline if fit else None,
        "headroomGib": fit.worst.headroom_gib if fit else None,
        "longestContext": fit.one_context if fit else None,
        "mostSequences": fit.most_sequences if fit else None,
    }


def _number(value: float | None) -> str:
    return "?" if value is None else str(value)
