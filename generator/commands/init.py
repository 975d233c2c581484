"""`sparkgen init`."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

from generator.commands import completion
from generator.commands.options import DATA_FORM, INVALID, QUIET, STDOUT
from generator.commands.sites import accessing, fail, publish, tell
from generator.diagnostics import has_errors
from generator.fabric.topologies import MIXED, PAIRS, SWITCH, TOPOLOGIES
from generator.fabric.topologies.kind import TopologyKind
from generator.fit.table import verdict
from generator.hardware import PORTS
from generator.scaffold.discovery import Discovery, DiscoveryError, discover
from generator.scaffold.plan import Request
from generator.scaffold.scaffold import ENGINES, MODEL, Scaffold, ScaffoldError, kind_of, scaffold
from generator.sitefile.defaults import default
from generator.sitefile.json_schema import json_schema
from generator.sitefile.text_types import TEXT_TYPES

_PORTS = {**{f"p{port}": (port,) for port in PORTS}, "both": PORTS}
# Relative to the site file: as in the examples, otherwise in the same folder.
_SCHEMAS = ("../schemas/site.schema.json", "site.schema.json")


# Those whose cables follow from the number of nodes.
_KINDS = [name for name in TOPOLOGIES if name != MIXED]


@click.command(epilog="Example: sparkgen init --kind ring --name lab sites/lab.yaml")
@click.argument("file", required=False, type=Path)
@click.option("--kind", type=click.Choice(_KINDS), help="How the nodes are joined.")
@click.option("--nodes", type=click.IntRange(1, 244), help="How many there are.")
@click.option(
    "--groups",
    metavar="SIZE,...",
    help="How many of them serve a model together, group by group, as in 2,2,1.  [default: all; of "
    "pairs 2 each]",
)
@click.option("--name", help="The name of the site.  [default: of the file, else lab]")
@click.option("--user", help="The login on the nodes.  [default: nvidia]")
@click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    help=f"What serves the model.  [default: {next(iter(ENGINES))}]",
)
@click.option(
    "--model", help=f"A model of the catalog.  [default: {MODEL}]", shell_complete=completion.models
)
@click.option("--port", type=click.Choice(list(_PORTS)), help="The QSFP port that is cabled.")
@click.option(
    "--from",
    "outputs",
    multiple=True,
    metavar="[NODE=]FILE",
    shell_complete=completion.outputs,
    help="The output of ibdev2netdev or ip -j addr on a node, or of both; without NODE, the node "
    "is named after the file. Can be given more than once.",
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: use the defaults, and list them.")
@QUIET
@DATA_FORM
def command(
    file: Path | None, outputs: tuple[str, ...], yes: bool, quiet: bool, form: str, **given: Any
) -> None:
    """Write a commented site file to start from, to FILE or to standard output.

    On a terminal it asks for what is not given. It never overwrites a file.
    """
    file = None if file == STDOUT else file
    if file and file.exists():
        fail(f"{file} is there already; init never overwrites a site file")
    discovered = _discovered(outputs)
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        _prompt(given, discovered, _name(file))
    try:
        made = scaffold(_request(given, discovered, file))
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None
    refused = has_errors(made.reading.findings)
    if file and not refused:
        _write(file, made)
    if form == "json":
        found = [(made.reading, made.reading.findings)]
        publish(form, found, rest=_data(made, file, refused))
    else:
        _report(made, file, refused, quiet)
    if refused:
        sys.exit(INVALID)


def _request(given: dict[str, Any], discovered: dict[str, Discovery], file: Path | None) -> Request:
    """Everything needed to write the site file; what was given is not marked as a guess."""
    groups = _sizes(given["groups"])
    kind, nodes = given["kind"] or _kind_of(groups), given["nodes"] or sum(groups) or None
    if kind is None and nodes is None and not discovered:
        raise click.UsageError("say --kind or --nodes, or give --from; on a terminal it asks")
    discovered = _all(discovered, kind, nodes)
    chosen = kind or kind_of(discovered)
    _fitting(chosen, len(discovered))
    groups = _grouped(groups, chosen, len(discovered))
    name = _checked(given["name"], file)
    return Request(
        file=str(file or f"{name}.yaml"),
        kind=chosen,
        discovered=discovered,
        name=name,
        engine=given["engine"] or next(iter(ENGINES)),
        model=given["model"] or MODEL,
        user=given["user"],
        ports=_PORTS[given["port"]] if given["port"] else None,
        schema=_schema(file),
        given=frozenset(word for word, value in given.items() if value is not None),
        groups=groups,
    )


def _sizes(given: str | None) -> tuple[int, ...]:
    """The sizes of the groups; empty if no groups are requested."""
    words = given.split(",") if given is not None else []
    if not all(re.fullmatch(r" *[1-9][0-9]{0,2} *", word) for word in words):
        raise click.BadParameter(f"'{given}' is not a list of sizes: 2,2,1", param_hint="--groups")
    return tuple(map(int, words))


def _kind_of(groups: tuple[int, ...]) -> str | None:
    """The topology that joins groups of these sizes, if none was given."""
    if not groups:
        return None
    return PAIRS if max(groups) == 2 else SWITCH


def _grouped(groups: tuple[int, ...], kind: str, count: int) -> tuple[int, ...]:
    """The groups of `count` nodes; empty if all serve together."""
    topology = TOPOLOGIES[kind]
    if not groups and topology.groups_alone:
        return (*(2 for _ in range(count // 2)), *(1 for _ in range(count % 2)))
    if groups and not (topology.groups_alone or topology.switched):
        raise ScaffoldError(f"groups are joined by {PAIRS} or a {SWITCH}, not by a {kind}")
    if groups and sum(groups) != count:
        raise ScaffoldError(f"the groups have {sum(groups)} nodes, and there are {count}")
    if topology.groups_alone and max(groups) > 2:
        raise ScaffoldError(
            f"{PAIRS} join two nodes each, not {max(groups)}: write --kind {SWITCH}"
        )
    return groups


def _report(made: Scaffold, file: Path | None, refused: bool, quiet: bool) -> None:
    """Report the result: the file, what fits, what was guessed, and the next step."""
    tell(made.reading, made.reading.findings, strict=False)
    if refused:
        click.echo("nothing was written", err=True)
        return
    if file is None:
        click.echo(made.text, nl=False)
    if quiet:
        return
    if file is not None:
        click.echo(f"{file} is written")
    site = made.reading.site
    for part in site.parts if site else ():
        if part.memory:
            title = part.group or part.model.served_name
            click.echo(f"{title}: {verdict(part.memory)[0]}", err=file is None)
    for guess in made.guesses:
        click.echo(f"guessed: {guess}", err=True)
    if file is not None:
        click.echo(f"next: {_next(made, file)}")


def _next(made: Scaffold, file: Path) -> str:
    look = "correct what was guessed, then " if made.guesses else ""
    return f"{look}sparkgen build {file}"


def _data(made: Scaffold, file: Path | None, refused: bool) -> dict[str, Any]:
    part = made.reading.site.serving if made.reading.site else None
    fit = part.memory if part else None
    return {
        "written": bool(file) and not refused,
        "file": str(file) if file else None,
        "text": made.text,
        "guesses": list(made.guesses),
        "fit": verdict(fit)[0] if fit else None,
        "next": _next(made, file) if file else None,
    }


def _discovered(outputs: tuple[str, ...]) -> dict[str, Discovery]:
    """What the files say about each node, in the order in which the nodes are first named."""
    found: dict[str, Discovery] = {}
    for output in outputs:
        name, equals, file = output.partition("=")
        if not equals:
            name, file = Path(output).name.partition(".")[0], output
        if not TEXT_TYPES["hostname"].fits(name):
            raise click.BadParameter(
                f"'{name}' does not name a node: NODE={file}", param_hint="--from"
            )
        try:
            text = Path(file).read_text()
            found[name] = found.get(name, Discovery()) | discover(text)
        except OSError as error:
            fail(f"{file}: {error.strerror}")
        except (DiscoveryError, UnicodeDecodeError) as error:
            fail(f"{file}: {error if isinstance(error, DiscoveryError) else 'not text'}")
    return found


def _all(
    discovered: dict[str, Discovery], kind: str | None, nodes: int | None
) -> dict[str, Discovery]:
    """The discovered nodes, and as many more as the site is to have."""
    count = nodes or max(len(discovered), _fewest(kind) if kind else 1)
    if len(discovered) > count:
        raise click.BadParameter(f"--from names {len(discovered)} nodes", param_hint="--nodes")
    for position in range(len(discovered) + 1, count + 1):
        numbers = (position, *range(1, count + 1))
        names = (f"spark{number}" for number in numbers)
        discovered[next(name for name in names if name not in discovered)] = Discovery()
    return discovered


def _fewest(kind: str) -> int:
    """The nodes that a draft joins at least: one alone on a cable has somebody's own workload."""
    topology = TOPOLOGIES[kind]
    return min(max(topology.fewest, 2), topology.most)


def _fitting(kind: str, count: int) -> None:
    fewest, most = _fewest(kind), TOPOLOGIES[kind].most
    if not fewest <= count <= most:
        wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        nodes = "node" if most == 1 else "nodes"
        raise ScaffoldError(f"{kind} takes {wanted} {nodes}, not {count}")


def _prompt(given: dict[str, Any], discovered: dict[str, Discovery], name: str) -> None:
    """Ask on standard error for everything that was not given, offering the defaults."""
    if given["kind"] is None:
        for kind in _KINDS:
            click.echo(f"  {kind:<7} {TOPOLOGIES[kind].meaning}", err=True)
        usual = kind_of(discovered) if discovered and given["nodes"] is None else None
        given["kind"] = _answer("How are the nodes joined", usual, click.Choice(_KINDS))
    topology = TOPOLOGIES[given["kind"]]
    if given["nodes"] is None and not discovered and _fewest(given["kind"]) < topology.most:
        size = click.IntRange(_fewest(given["kind"]), topology.most)
        given["nodes"] = _answer("How many nodes are there", None, size)
    if given["port"] is None and _needs_port(topology, discovered):
        choice = click.Choice([p for p in _PORTS if topology.switched or p != "both"])
        given["port"] = _answer(
            "Which QSFP port of each node is cabled", next(iter(_PORTS)), choice
        )
    questions = {
        "name": ("What is the site called", name, click.STRING),
        "user": ("Which login do the nodes have", default("user"), click.STRING),
        "engine": ("Which engine serves", next(iter(ENGINES)), click.Choice(list(ENGINES))),
        "model": ("Which model of the catalog", MODEL, click.STRING),
    }
    for key, question in questions.items():
        if given[key] is None:
            given[key] = _answer(*question)


def _needs_port(topology: TopologyKind, discovered: dict[str, Discovery]) -> bool:
    """Whether to ask for a port: the topology needs one, and no output shows which has a link."""
    return topology.uses_same_port and not any(found.linked for found in discovered.values())


def _answer(question: str, usual: str | None, choice: Any) -> Any:
    return click.prompt(question, default=usual, type=choice, err=True)


def _checked(name: str | None, file: Path | None) -> str:
    """The given name, or else the file's, if that is a valid name for a site."""
    found = name or _name(file)
    if TEXT_TYPES["hostname"].fits(found):
        return found
    hint = f"'{found}' can't be the name of a site: lower-case letters, digits and '-'"
    if name:
        raise click.BadParameter(hint, param_hint="--name")
    raise click.UsageError(f"{hint}; call the file otherwise, or add --name")


def _name(file: Path | None) -> str:
    return file.name.partition(".")[0] if file else "lab"


def _schema(file: Path | None) -> str:
    """The path of the JSON Schema: as in the examples if it exists, otherwise beside the file."""
    beside = file.parent if file else Path("sites")
    return next((path for path in _SCHEMAS if (beside / path).exists()), _SCHEMAS[-1])


def _write(file: Path, made: Scaffold) -> None:
    """Write the file, and beside it the schema with which editors complete and validate it."""
    schema = file.parent / _SCHEMAS[-1]
    with accessing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(made.text)
        if made.schema == schema.name and not schema.exists():
            schema.write_text(f"{json.dumps(json_schema(), indent=2)}\n", encoding="utf-8")
