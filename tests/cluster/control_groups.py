"""A control group of its own for each systemd: two in one kill and remove each other's.

A namespace does not part them: the mounts under /sys/fs/cgroup show the whole of this machine's
tree, where both would have a system.slice in the same place.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waiting import until

_ROOT = Path("/sys/fs/cgroup")
# Part of a boot script: lay the group over this machine's tree. Under `ip netns exec`, which has a
# /sys of its own, there is no such tree, and systemd mounts what its namespace shows.
BIND = f"""\
for hierarchy in $HIERARCHIES; do
  if [ -d "{_ROOT}/$hierarchy/$GROUP" ]; then
    mount --bind "{_ROOT}/$hierarchy/$GROUP" "{_ROOT}/$hierarchy"
  fi
done
"""
_ENTER = f"""\
for hierarchy in $HIERARCHIES; do
  echo $$ >"{_ROOT}/$hierarchy/$GROUP/cgroup.procs"
done
exec "$@"
"""


def _hierarchies() -> tuple[str, ...]:
    """Those that systemd uses: of version 2 alone, or also one of version 1 by name."""
    if (_ROOT / "cgroup.procs").exists():
        return (".",)
    return tuple(name for name in ("systemd", "unified") if (_ROOT / name).is_dir())


@contextmanager
def own_group(name: str) -> Iterator[tuple[str, ...]]:
    """Make a group, and give the prefix of a command that runs in it; at the end none is left.

    Where this machine lets nobody make one, the group is that of the machine.
    """
    made = [hierarchy for hierarchy in _hierarchies() if _is_made(_ROOT / hierarchy / name)]
    try:
        yield ("env", f"GROUP={name}", f"HIERARCHIES={' '.join(made)}", "sh", "-c", _ENTER, "sh")
    finally:
        until(lambda: all(_is_removed(_ROOT / hierarchy / name) for hierarchy in made))


def _is_made(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def _is_removed(top: Path) -> bool:
    """A group can't be removed before its last process is gone."""
    for folder, _, _ in os.walk(top, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not top.exists()
