"""The tour of the README: its commands, run one after the other, print what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from generator.resources import ROOT

README = (ROOT / "README.md").read_text()
# Commits have other names each time.
_COMMIT = re.compile(r"\b[0-9a-f]{12}\b")


def commands(section: str) -> list[tuple[str, str]]:
    """Each command of the console blocks of a section, with what it prints."""
    text = re.search(rf"^## {section}\n(.*?)^##", README, re.MULTILINE | re.DOTALL)
    assert text
    blocks = re.findall(r"^```console\n(.*?)^```$", text[1], re.MULTILINE | re.DOTALL)
    parts = (re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:] for block in blocks)
    return [pair for part in parts for pair in zip(part[::2], part[1::2], strict=True)]


def test_tour(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    script = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m generator "$@"\n'
    (programs / "sparkgen").write_text(script)
    (programs / "sparkgen").chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "Someone", f"GIT_{role}_EMAIL": "someone@example.org"}
    tour = commands("A tour")
    assert len(tour) > 10
    folder = tmp_path / "cluster"
    folder.mkdir()
    for command, printed in tour:
        done = subprocess.run(
            ("bash", "-c", command),
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert _COMMIT.sub("0" * 12, done.stdout) == _COMMIT.sub("0" * 12, printed), command
