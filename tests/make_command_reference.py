"""Prints `generator/commands/README.md`: every command, from the program itself.

    python tests/make_command_reference.py > generator/commands/README.md

What Click does not know, the exit statuses and the shape of JSON, stands here, and the tests hold it
against what the commands do.
"""

from collections.abc import Iterator, Mapping

import click

from generator.cli import COMMANDS, main

COMMON: Mapping[int, str] = {
    2: "a wrong call",
    3: "a site is not valid",
    4: "a file or folder can't be read or written",
}
_NOTHING_ELSE: Mapping[int, str] = {}
# Beside 0, and 2 for a wrong call: which of the common ones a command has, and what 1 says.
EXITS: Mapping[str, Mapping[int, str]] = {
    "build": {1: "files were edited by hand, or a later sparkgen made them: nothing is written"},
    "validate": _NOTHING_ELSE,
    "check": {1: "a bundle, or with `--live` a node, is not what its site says"},
    "diff": {1: "anything differs, with `--exit-code`"},
    "show": _NOTHING_ELSE,
    "fit": {1: "a figure of `--measured` is more than a tenth off"},
    "model": _NOTHING_ELSE,
    "models": _NOTHING_ELSE,
    "diagram": _NOTHING_ELSE,
    "fix": {1: "there is something to write"},
    "schema": {3: "", 4: ""},
    "explain": {3: "", 4: ""},
    "init": {3: "what would be written is not valid, such as a model that does not fit"},
    "verify": {1: "a check fails, or with `--strict` a program is missing", 3: ""},
    "capture": {3: "", 4: ""},
    "import": {3: "a file says nothing of a cluster, or what was written has errors"},
    "audit": {
        1: "there is an error, with `--strict` a warning",
        3: "a file says nothing of a cluster",
    },
    "lock": {1: "nodes have different images or commits: nothing is written"},
    "lsp": {3: "", 4: "pygls is not installed"},
}

PREFACE = """\
# Commands

Printed by `tests/make_command_reference.py` from the program itself; not to be edited.

Results go to standard output, findings and remarks to standard error. Where a command takes sites and none
is named, all of `sites/*.yaml` are meant, without `*.lock.yaml` and the bases that others extend. Where nothing is written beside a site,
`-` is standard input: for `validate`, `fit`, `show` and `diagram`.

| exit status | says |
|---|---|
| 0 | all is well, or done |
| 1 | the answer is no: drift, something to write, a check that fails |
| 2 | a wrong call |
| 3 | a site is not valid, or a model can't be read |
| 4 | a file or folder can't be read or written; or a fault of sparkgen's own (SG901) |

A table is made to fit the terminal. Colors are for terminals: `NO_COLOR` takes them away, `FORCE_COLOR`
brings them to files and pipes too. `python -m generator` is the same program.

The Tab key knows commands, sites, nodes, files of a bundle, bundles, rules, models and the refs of git, once
the shell has been told (bash from 4.4):

```sh
eval "$(_SPARKGEN_COMPLETE=bash_source sparkgen)"      # in ~/.bashrc
eval "$(_SPARKGEN_COMPLETE=zsh_source sparkgen)"       # in ~/.zshrc, after compinit
_SPARKGEN_COMPLETE=fish_source sparkgen | source       # in ~/.config/fish/config.fish
```
"""

MORE: Mapping[str, str] = {
    "build": """\
It replaces only what changed, removes only what its manifest lists, leaves foreign files alone, stops before
it overwrites a file that somebody edited, and finishes what a killed build left half written. What git left
as a conflict in a generated file is overwritten.

In JSON, beside `findings` and `summary` as in `validate`:

| key | holds |
|---|---|
| `written` | whether anything was; if not, `sites` has what would have been |
| `sites[]` | `site`, `folder`, `nodes`, `files` (how many), `new`, `changed`, `removed`, `edited` and `foreign` (paths), `madeBy` (the version that wrote the folder) |
""",
    "validate": """\
| `--format` | is |
|---|---|
| `json` | stable, for scripts: `{"version": 1, "findings": [...], "summary": {"errors", "warnings", "notes"}}` |
| `sarif` | SARIF 2.1.0, for code scanning; files below the current directory are named relative to it, and `fixes` are the changes of text that `sparkgen fix` would make |
| `github` | annotations of GitHub Actions; the text too, on standard error, for GitHub shows ten annotations per step |

Each finding in JSON has all of these keys:

| key | holds |
|---|---|
| `rule`, `severity` | `SG204`; `error`, `warning` or `note`, whatever `--strict` makes of it |
| `message`, `help` | what is wrong, and what to write; `help` may be empty |
| `file` | the site file as it was named, or the file of the bundle that drifted |
| `path` | the path in the site, `cabling[1].endpoints[0]`; empty for all of the file |
| `line`, `column`, `endLine`, `endColumn` | from 1, in characters, the end after the last one; `null` for a file of a bundle |
| `related` | other places of the site file, each with `text`, `path`, `line`, `column` |
| `fixes` | what `sparkgen fix` would do: for each reading of the mistake a list of edits, each with `edit`, `path` and, for `replace` `value`, for `rename` `key`, for `remove` `again` (the second key of that name), for `add` `value` and `after`; empty where nothing can be proposed |
""",
    "check": "Its `--format` is that of `validate`; a file that drifted is a finding about that file.\n",
    "diff": """\
What changed in the site file and the impact come before the lines. With `--against REF` it compares with the
bundle that is committed there; where there is none, the site file at that commit is built by the sparkgen
that runs, and the review says so. Bundles whose site was removed or renamed are part of it.

| what changes | what must be done | what is down |
|---|---|---|
| netplan | `netplan apply`, then restart the engine | links drop; the API, until the model is loaded |
| environment, Compose file, `nccl.conf`, scripts of the container | restart the engine | the API, until the model is loaded |
| a systemd unit | `systemctl daemon-reload`; it counts from the next start | nothing |
| a unit, script or Compose file of another service | restart it | that service, as the chat page |
| `hosts`, sysctl, scripts for people, comments | `install.sh` | nothing |
| a node more or less | the engine restarts on all nodes: the ranks serve together | the API, until the model is loaded |

Where one rank restarts, all do; the head stops first and starts last. Markdown is one comment for a pull
request, with equal nodes folded into one, cut with a word about it at 65,000 characters. JSON is stable:

| key of `sites[]` | holds |
|---|---|
| `site`, `was`, `against`, `changed` | the name of the site, its name until now (empty for a new one), what it was compared with, whether anything differs |
| `edits`, `notes` | what was changed in the site file, line by line; what to look at, such as a renumbered node |
| `downtimeSeconds` | how long the API may be down: to stop, and to load the model; `null` where it stays up, with groups for each name that is still served |
| `headroomGib` | the memory left on the fullest node, before and after; `null` where it is not known |
| `nodes[]` | `node`; `was`, its name until now; `state` (`new`, `changed`, `unchanged`, `renamed`, `removed`); `effect` (`nothing`, `files`, `reload`, `service`, `restart`, `links`); `restarts`, for whatever reason; `todo` in words; `files` |
| `files[]` | files of no node; each with `path`, `kind` (`added`, `removed`, `changed`), `change`, `added` and `removed` lines, `diff` |
| `order[]` | what to do, each `step` with its `nodes` in order |
""",
    "fit": """\
It says one of three things: fits, does not fit, or unknown, with what is missing. `--compare` shows other
tensor and pipeline sizes, a node fewer and a node more, a KV cache in 8 bits, and other checkpoints of the
same model. `--measured` reads what vLLM, SGLang, TensorRT-LLM or llama.cpp printed at its start, and shows
weights, graphs and room for the KV cache beside the prediction. Where engines share nodes, the last table, in JSON
`together[]`, adds up what they hold: `node`, `engines`, `together_gib`, `system_gib`. [How memory is counted](../../schemas/README.md#will-it-fit).
""",
    "models": """\
`models[]` in JSON: `name`, `source`, `model`, `format`, `weightGb`, `context`, `gated`, `engines`,
`toolCallParser`, `reasoningParser`; `known`, whether enough is known to say what holds it; `nodes`, `tensor`,
`pipeline`, `headroomGib`, `longestContext`, `mostSequences`, each `null` where nothing here holds it.
""",
    "fix": """\
It applies a finding's help where it has one reading, and names it (`applied`): what it means by a misspelt
key, name or value, what is to be taken out, the cable that a ring lacks. Where there are several it says
which (`choose one`) and changes nothing for that finding; nor does it change what it wrote itself. Each
change is proved by reading the file again; a result that has not fewer findings than before is shown, and
not written. It keeps comments, quotes, line ends, the file's mode and owner, and a link to it; what an alias
repeats it leaves to you.
""",
    "explain": """\
In JSON `rules[]` has `rule`, `severity`, `title`, `text`, `source`, `bad` and `good`; `advisories[]` has
`advisory`, `date`, `subject`, `effect`, `remedy` and `source`.
""",
    "init": """\
JSON has, beside `findings` and `summary`, `written`, `file`, `text`, `guesses` (what nobody said), `fit`
and `next`.
""",
    "verify": """\
In JSON `valid` says whether all went well, and `bundles[]` has each `bundle` with its `checks[]`: `check`,
`status` (`ok`, `failed`, `missing`, `nothing`), `what` and `complaints`.
""",
    "lsp": """\
`pip install 'sparkgen[lsp]'` brings what it needs. An editor starts it for YAML files and shows findings as
they are typed, the documentation of a rule where it speaks, and what a finding proposes as changes to choose.
YAML files that are no sites are left alone.
""",
}  # fmt: skip


def page() -> str:
    """The whole document."""
    return "\n".join([PREFACE, *(_section(name) for name in COMMANDS)])


def exits(name: str) -> dict[int, str]:
    """The exit statuses of a command beside 0."""
    found = {**COMMON, **EXITS[name]}
    return {status: found[status] for status in sorted(found) if found[status]}


def _section(name: str) -> str:
    context = click.Context(main, info_name="sparkgen")
    command = main.get_command(context, name)
    assert command
    own = click.Context(command, info_name=name, parent=context)
    usage = " ".join(("sparkgen", name, *command.collect_usage_pieces(own)))
    help_text = " ".join((command.help or "").split("\n\n", 1)[0].split())
    rest = (command.help or "").partition("\n\n")[2].strip()
    parts = [f"## {name}", f"`{usage}`", help_text, rest]
    parts += ["\n".join(_options(command, own)), f"{command.epilog or ''}".strip()]
    statuses = "; ".join(f"{status} {text}" for status, text in exits(name).items())
    parts += [f"Exit status: 0; {statuses}.", MORE.get(name, "").strip()]
    return "\n\n".join(filter(None, parts)) + "\n"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    options = [option for option in command.params if isinstance(option, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    if not records:
        return
    yield from ("| option | |", "|---|---|")
    for names, text in records:
        told = " ".join(text.split()).replace("|", "\\|")
        yield f"| `{names.replace(chr(124), chr(92) + chr(124))}` | {told} |".replace(
            " |  |", " | |"
        )


if __name__ == "__main__":
    click.echo(page(), nl=False)
