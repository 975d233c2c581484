"""Checks whether two folders of bundles mean the same, for changes that should not alter meaning.

    python tests/same_meaning.py BEFORE AFTER

Ignores comments and layout. Compares data, variables, unit settings, lines of configuration, and
the words of the commands that launch.sh, serve.sbatch and the operator's scripts run; also the
addresses, devices, options, paths and numbers in the runbook, in the picture, and in all scripts of
a node taken together: a fact may move from one script to another, or to the file that they read.
Prints the differences, and exits with 1 if there are any. Needs root, to mount a node's tree over
/etc and /opt.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from bundles import on_node

# The meaning of a bundle: under each heading, how often each item occurs.
Meaning = Mapping[str, Counter[str]]

_STAND_IN = """\
#!/bin/sh
{ printf '%s' "${0##*/}"; printf ' <%s>' "$@"; echo; } >>"$CALLS"
"""
_STAND_INS = ("docker", "srun", "ufw", "ss", "sshd", "rsync", "ssh")
_COMMANDS = {
    "opt/sparkgen/launch.sh": (),
    "opt/sparkgen/serve.sbatch": (),
    "opt/sparkgen/wait-fabric.sh": ("--peers",),
    "opt/sparkgen/firewall.sh": ("--dry-run",),
    "deploy.sh": (),
    "tunnels.sh": ("status",),
}
# The site-specific parts of a script: addresses, devices, options, paths, numbers of some size.
_FACT = re.compile(
    r"\d+\.\d+\.\d+\.\d+(?:/\d+)?(?::\d+)?"
    r"|\b(?:roce|en)[pP]\w+"
    r"|(?<![\w-])--?[a-z][\w.-]*(?:=[^\s\"']+)?"
    r"|(?<![\w$}])/(?:etc|opt|srv|home|var|dev|usr)/[\w./-]+"
    r"|\b\d{3,}\b"
)
_SCRIPTS = (".sh", ".py", ".sbatch")
# The files from which scripts that are the same everywhere read the facts of a node or site.
_FACTS = ("node.env", "site.env", "nodes.env", "container.env", "firewall.rules")
_LINES = ("hosts", "hostfile", ".conf", "ssh_config")


def meaning(folder: Path) -> Meaning:
    """Everything that a bundle means, by file or by node."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    found = {"files": Counter(f"{p} {e['mode']}" for p, e in manifest["files"].items())}
    for path in manifest["files"]:
        if facts := Counter(of_file(path, (folder / path).read_text(errors="replace"))):
            found[path] = facts
    for part in (*manifest["nodes"], "operator"):
        if (folder / part).is_dir():
            found[f"scripts of {part}"] = Counter(of_scripts(folder / part))
            found |= {f"{part}: {name}": facts for name, facts in of_commands(folder / part)}
    return found


def of_file(path: str, text: str) -> Iterator[str]:
    """Data, variables, settings or lines, depending on the file."""
    if path.endswith((".yaml", ".yml")):
        yield from flat(spread(yaml.safe_load(text)))
    elif path.endswith(".json") and path != "MANIFEST.json":
        yield from flat(json.loads(text))
    elif path.endswith(".service"):
        yield from settings(text)
    elif path.endswith((".md", ".svg")):
        yield from set(_FACT.findall(text))
    elif path.endswith((".env", *_LINES)) and not path.endswith(_FACTS):
        yield from (" ".join(line.split()) for line in lines(text))


def spread(data: Any) -> Any:
    """Netplan's renderer applies to each interface, wherever it is written."""
    match data:
        case {"network": {"renderer": renderer, "ethernets": ethernets, **rest}}:
            named = {
                name: {"renderer": renderer} | settings for name, settings in ethernets.items()
            }
            return {"network": {**rest, "ethernets": named}}
    return data


def flat(data: Any, at: str = "") -> Iterator[str]:
    """Each value, preceded by its path."""
    if isinstance(data, dict | list) and data:
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from flat(value, f"{at}.{key}")
    else:
        yield f"{at} = {data!r}"


def settings(text: str) -> Iterator[str]:
    """Each setting of a unit, preceded by its section; settings of one name keep their order."""
    section, seen = "", Counter[str]()
    for line in lines(text.replace("\\\n", " ")):
        if line.startswith("["):
            section = line
        else:
            name, _, value = line.partition("=")
            seen[name] += 1
            yield f"{section} {name}#{seen[name]} = {' '.join(value.split())}"


def lines(text: str) -> Iterator[str]:
    """The lines that are not comments."""
    for line in text.splitlines():
        if content := re.sub(r"(^|\s)#.*", "", line).strip():
            yield content


def of_scripts(folder: Path) -> set[str]:
    """The facts in the scripts of a node, and in the files that they read."""
    files = (path for path in folder.rglob("*") if path.is_file())
    texts = (path.read_text() for path in files if path.suffix in _SCRIPTS or path.name in _FACTS)
    return {fact for text in texts for line in lines(text) for fact in _FACT.findall(line)}


def of_commands(folder: Path) -> Iterator[tuple[str, Counter[str]]]:
    """The output of each script that can run without a node, and the programs that it calls."""
    for name, arguments in _COMMANDS.items():
        if (folder / name).exists():
            yield (
                f"{name} {shlex.join(arguments)}".strip(),
                Counter(called(folder, name, arguments)),
            )


def called(folder: Path, name: str, arguments: Iterable[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch:
        for program in _STAND_INS:
            Path(scratch, program).write_text(_STAND_IN)
            Path(scratch, program).chmod(0o755)
        calls = Path(scratch, "calls")
        env = {
            "PATH": f"{scratch}:/usr/sbin:/usr/bin:/sbin:/bin",
            "CALLS": str(calls),
            "HOME": "/h",
        }
        argv = ["bash", str(folder / name), *arguments]
        if folder.name != "operator":
            argv = on_node(folder, "bash", f"/{name}", *arguments)
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr + (calls.read_text() if calls.exists() else "")
        # Names that a script makes up, and the folder that happens to contain the bundle.
        text = re.sub(r"/tmp/tmp\.\w+", "SCRATCH", text.replace(str(folder.parent), "BUNDLE"))
        yield f"status {done.returncode}"
        yield from text.splitlines()


def differences(before: Meaning, after: Meaning) -> Iterator[str]:
    """The items under a heading of one bundle that are missing from it in the other."""
    for heading in sorted(before.keys() | after.keys()):
        old, new = before.get(heading, Counter()), after.get(heading, Counter())
        yield from (f"{heading}: - {item}" for item in sorted(old - new))
        yield from (f"{heading}: + {item}" for item in sorted(new - old))


def main(before: Path, after: Path) -> int:
    """Compare the bundles of two folders by name."""
    names = sorted(
        {path.parent.name for root in (before, after) for path in root.glob("*/MANIFEST.json")}
    )
    different = 0
    for name in names:
        sides = [root / name for root in (before, after)]
        if missing := [side for side in sides if not side.exists()]:
            found = [f"not in {missing[0].parent}"]
        else:
            found = list(differences(*map(meaning, sides)))
        different += bool(found)
        for line in found:
            print(f"{name}: {line}")
    print(f"{len(names)} bundles, {different} of them different", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*(Path(folder).resolve() for folder in sys.argv[1:])))
