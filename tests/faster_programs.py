"""Programs that come first on the tests' search path: they answer like the real ones, faster."""

import shutil
from pathlib import Path

_SCRIPTS = {
    # The real netplan starts Python only to run this program with the same arguments.
    "netplan": """\
#!/bin/sh
if [ "$1" = generate ]; then
  shift
  exec /usr/libexec/netplan/generate "$@"
fi
exec {program} "$@"
""",
    # A script that passed once passes again: most scripts are the same in all bundles.
    "shellcheck": """\
#!/bin/sh
files=''
for word; do
  if [ -f "$word" ]; then files=1; fi
done
[ "$files" ] || exec {program} "$@"
digest=$(for word; do if [ -f "$word" ]; then cat "$word"; else echo "$word"; fi; done | sha256sum)
passed={folder}/shellcheck-${{digest%% *}}
if [ -e "$passed" ]; then
  exit 0
fi
{program} "$@" || exit
touch "$passed"
""",
}


def place(folder: Path) -> None:
    """Write those for the programs that are installed."""
    folder.mkdir()
    for name, script in _SCRIPTS.items():
        program = shutil.which(name)
        if program and (name != "netplan" or Path("/usr/libexec/netplan/generate").exists()):
            (folder / name).write_text(script.format(folder=folder, program=program))
            (folder / name).chmod(0o755)
