"""Stand-ins for programs that need a GPU, a container engine or other machines.

They precede the machine's own programs on the search path, and record how they were called.
"""

import subprocess
from pathlib import Path

from programs import require, require_root
from waiting import PATIENCE

_RECORD = """\
#!/bin/bash
printf '%s\\0' "$@" >"$CALLS/{name}.arguments"
env --null >"$CALLS/{name}.environment"
echo "$$" >"$CALLS/{name}.pid"
"""


class StandIns:
    """A folder of programs, and the records of their calls."""

    def __init__(self, folder: Path) -> None:
        require_root()
        require("ip", "mount", "unshare")
        self.programs, self.calls = folder / "programs", folder / "calls"
        self.programs.mkdir()
        self.calls.mkdir()
        path = f"{self.programs}:/usr/sbin:/usr/bin:/sbin:/bin"
        self.env = {"PATH": path, "HOME": str(folder), "CALLS": str(self.calls)}

    def add(self, name: str, script: str = "") -> Path:
        """Add a program that records its call, or runs the script."""
        program = self.programs / name
        program.write_text(script or _RECORD.format(name=name))
        program.chmod(0o755)
        return program

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program that calls them to its end, whatever its exit status."""
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=PATIENCE)

    def replaced(self, name: str, *argv: str) -> list[str]:
        """Run a program that must exec one of them, to pass signals on; return its arguments."""
        with subprocess.Popen(argv, env=self.env) as process:
            assert process.wait(PATIENCE) == 0
        assert int((self.calls / f"{name}.pid").read_text()) == process.pid
        return self.arguments(name)

    def called(self, name: str) -> bool:
        """Whether a program was called."""
        return (self.calls / f"{name}.pid").exists()

    def arguments(self, name: str) -> list[str]:
        """The arguments with which a program was called."""
        return self.read(f"{name}.arguments")

    def environment(self, name: str) -> dict[str, str]:
        """The environment in which a program was called."""
        return dict(line.split("=", 1) for line in self.read(f"{name}.environment"))

    def read(self, record: str) -> list[str]:
        """What a script recorded, as texts that each end with NUL."""
        return (self.calls / record).read_text().split("\0")[:-1]
