"""A separate control group for each systemd: two in the same one kill and remove each other's.

A namespace does not separate them: the mounts under /sys/fs/cgroup show the tree of the whole
machine, where both would have a system.slice in the same place.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waiting import until

_ROOT = Path("/sys/fs/cgroup")
# Part of a boot script: mount the group over this machine's tree. Under `ip netns exec`, which has
# its own /sys, there is no such tree, and systemd mounts what its namespace shows.
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
    """The hierarchies that systemd uses: version 2, and perhaps a named one of version 1."""
    if (_ROOT / "cgroup.procs").exists():
        return (".",)
    return tuple(name for name in ("systemd", "unified") if (_ROOT / name).is_dir())


@contextmanager
def separate_group(name: str) -> Iterator[tuple[str, ...]]:
    """Create a group and return the prefix that runs a command in it; it is removed at the end.

    If this machine does not allow that, commands run in the machine's group.
    """
    created = [hierarchy for hierarchy in _hierarchies() if _is_created(_ROOT / hierarchy / name)]
    try:
        yield ("env", f"GROUP={name}", f"HIERARCHIES={' '.join(created)}", "sh", "-c", _ENTER, "sh")
    finally:
        until(lambda: all(_is_removed(_ROOT / hierarchy / name) for hierarchy in created))


def _is_created(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def _is_removed(top: Path) -> bool:
    """Remove a group; that is possible only once its last process is gone."""
    for folder, _, _ in os.walk(top, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not top.exists()
