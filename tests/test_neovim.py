"""Neovim, set up as the documents say, asks our server about a site."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from programs import require
from waiting import PATIENCE

from generator.resources import ROOT

SITE = "version: 1\nname: lab\nnodes: [{name: spark1}]\ntopology:\n  kind: x\n  mtuu: 9000\n"


def test_neovim_shows_findings_and_explains_and_completes_keys(tmp_path: Path) -> None:
    require("nvim")
    page = (ROOT / "schemas/editors.md").read_text("utf-8")
    (setup,) = re.findall(r"```lua\n(.*?)```", page, re.DOTALL)
    (tmp_path / "init.lua").write_text(setup, "utf-8")
    (tmp_path / "lab.yaml").write_text(SITE, "utf-8")
    command = tmp_path / "sparkgen"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m generator "$@"\n', "utf-8")
    command.chmod(0o755)
    env = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PATIENCE": str(PATIENCE),
        **{f"XDG_{name}_HOME": str(tmp_path) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
    }
    session = ROOT / "tests/editor_session.lua"
    done = subprocess.run(
        ["nvim", "--headless", "-u", "init.lua", "lab.yaml", "-c", f"luafile {session}"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    answers = json.loads(done.stdout or "{}")
    assert answers, done.stderr
    assert answers["codes"] == ["SG104", "SG101"], done.stderr
    assert "`ring`" in answers["hover"]
    assert {"direct", "ring", "switch"} <= set(answers["labels"])
