"""Kills builds with SIGKILL, and checks that the next build recovers from what is left.

    python tests/killed_builds.py random KILLS [SEED]   `sparkgen build` at random moments
    python tests/killed_builds.py each [STRIDE]         its writing, before each change of a file

Each build replaces the bundle of one site with that of another, which changes, adds and removes
files. After the kill, a build of either site has to make the bundle complete. Prints the state in
which each kill left the bundle.

`random 100 7` on a busy machine with two cores, 2026-11-22: 36 half written, 64 complete; the next
build completed every one of them.
"""

import contextlib
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from click.testing import CliRunner, Result

from generator.bundle.output import Comparison, compare
from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.bundle.writing import write
from generator.cli import main
from generator.pipeline import read_site

SITE = """\
version: 1
name: lab
nodes:
{nodes}cabling:
{cables}topology: {{kind: switch}}
model: {{name: gpt-oss-120b, context_length: {context}}}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  parallel: {{pipeline: {count}}}
"""


def site(count: int, prefix: str, context: int) -> str:
    """A site on a switch."""
    names = [f"{prefix}{number}" for number in range(count)]
    return SITE.format(
        nodes="".join(f"  - name: {name}\n" for name in names),
        cables="".join(f"  - endpoints: [{name}:p0, rack:{name}]\n" for name in names),
        context=context,
        count=count,
    )


SITES = [site(2, "old", 8192), site(3, "new", 4096), site(2, "old", 4096)]
FOLDER = Path("out/lab")
STAGE = Path("out/.lab.build")

Contents = dict[str, tuple[int, bytes]]


def contents() -> Contents:
    """Everything in the bundle: modes and bytes."""
    files = (path for path in FOLDER.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}


def run(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, prog_name="sparkgen")


def forked(call: Callable[[], object]) -> int:
    """Fork a process that makes a call and exits; returns its id."""
    child = os.fork()
    if not child:
        try:
            call()
        finally:
            os._exit(0)
    return child


def at_random(kills: int, chance: random.Random) -> Counter[str]:
    """Kill `sparkgen build` the given number of times, at moments spread over its writing."""
    wanted = {}
    for text in SITES:
        Path("lab.yaml").write_text(text)
        run("build", "lab.yaml")
        wanted[text] = contents()
    found: Counter[str] = Counter()
    texts = itertools.cycle(SITES)
    for number in range(kills + 1):
        Path("lab.yaml").write_text(next(texts))
        child = forked(lambda: run("build", "lab.yaml"))
        while not STAGE.exists() and not os.waitpid(child, os.WNOHANG)[0]:
            time.sleep(0.0005)
        if not number:
            # The first build is not killed: the kills are spread over the time that it takes.
            begun = time.monotonic()
            # On a busy machine it may have ended before its writing was seen.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
            span = time.monotonic() - begun
            continue
        time.sleep(span * (number - chance.random()) / kills)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        checked = run("check", "lab.yaml").output
        assert "SG803" not in checked, checked
        half = "SG807" in checked
        text = chance.choice(SITES)
        Path("lab.yaml").write_text(text)
        built = run("build", "lab.yaml")
        assert built.exit_code == 0, built.output
        assert ("finished what an interrupted build began" in built.output) == half
        assert contents() == wanted[text]
        assert list(Path("out").iterdir()) == [FOLDER]
        found["half written" if half else "whole"] += 1
    return found


def at_each_step(stride: int) -> Counter[str]:
    """Kill the writing of a bundle before its first change to a file or folder, and so on."""
    old, new, other = (_tree(text) for text in SITES)
    wanted = {}
    for name, tree in {"old": old, "new": new, "other": other}.items():
        write(tree, FOLDER, compare(tree, FOLDER))
        wanted[name] = contents()
    found: Counter[str] = Counter()
    for step in range(0, 10_000, stride):
        write(old, FOLDER, compare(old, FOLDER))
        comparison = compare(new, FOLDER)
        child = forked(partial(_write_until, step, new, comparison))
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            return found
        name, tree = ("new", new) if step % 2 else ("other", other)
        left = compare(tree, FOLDER)
        assert not left.edited, (step, left.edited)
        found["half written" if left.interrupted else "whole"] += 1
        write(tree, FOLDER, left)
        assert contents() == wanted[name], step
        assert list(Path("out").iterdir()) == [FOLDER], step
    raise AssertionError("the writing does not end")


def _write_until(step: int, tree: Tree, comparison: Comparison) -> None:
    steps = itertools.count()

    def hook(event: str, _: object) -> None:
        if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir") and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    write(tree, FOLDER, comparison)


def _tree(text: str) -> Tree:
    reading = read_site("lab.yaml", text.encode())
    assert reading.site
    return render(reading.site, reading.sha256)


if __name__ == "__main__":
    mode, *numbers = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        if mode == "each":
            result = at_each_step(int(numbers[0]) if numbers else 1)
        else:
            kills, seed = int(numbers[0]), int(numbers[1]) if numbers[1:] else time.time_ns()
            print(f"seed {seed}", file=sys.stderr)
            result = at_random(kills, random.Random(seed))
        print(*(f"{count} {word}" for word, count in sorted(result.items())), sep=", ")
