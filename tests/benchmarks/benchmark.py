"""Measures sparkgen as whole processes, comparing each figure with a baseline.

Run it with the environment's Python: `.venv/bin/python tests/benchmarks/benchmark.py`. The two
commands of a row alternate, so that a machine which slows down slows both. Times are CPU seconds of
the package as a wheel installs it, with all files in memory.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

RUNS = 9
RUNS_OF_LARGE = 5
NODES = 240
GROUPS = 60
INVALID = 3
ROOT = Path(__file__).parents[2]
SPARKGEN = [sys.executable, "-m", "generator"]
# An in-memory file system, if the machine has one there.
MEMORY = Path("/dev/shm")
LIBRARIES = [sys.executable, "-c", "import click, jinja2, cerberus, yaml"]
CLICK = [sys.executable, "-c", "import click"]


def switch_site(name: str, nodes: int) -> str:
    """A site of that many nodes on one switch."""
    lines = [f"version: 1\nname: {name}\ntopology: {{kind: switch}}\nnodes:"]
    for n in range(nodes):
        lines.append(f"  - {{name: n{n}, management: {{address: 10.0.1.{n + 1}/16}}}}")
    lines.append("cabling:")
    lines += [f"  - endpoints: [n{n}:p0, switch:{n}]" for n in range(nodes)]
    lines.append("model: {name: gpt-oss-120b}")
    lines.append("engine:")
    lines.append("  {name: vllm, version: 0.33.0, image: 'vllm/vllm-openai:v0.33.0',")
    lines.append(f"   parallel: {{tensor: 8, pipeline: {nodes // 8}}}}}")
    return "\n".join(lines) + "\n"


def in_groups(name: str, nodes: int, groups: int) -> str:
    """The same nodes in groups, where every second group is a replica of the first."""
    head, _, _ = switch_site(name, nodes).partition("model:")
    lines = [f"{head}groups:"]
    size = nodes // groups
    for n in range(groups):
        members = ", ".join(f"n{node}" for node in range(n * size, (n + 1) * size))
        lines.append(f"  - name: g{n}\n    nodes: [{members}]")
        if n % 2:
            lines.append("    same_as: g0")
        else:
            lines.append("    model: {name: gpt-oss-120b}")
            lines.append("    engine:")
            lines.append("      {name: vllm, version: 0.33.0, image: 'vllm/vllm-openai:v0.33.0',")
            lines.append(f"       parallel: {{tensor: {size}}}}}")
    return "\n".join(lines) + "\n"


def with_mistakes(site: str) -> str:
    """That site with fifty mistakes: ten each of five kinds, all of which are reported."""
    for n in range(10):
        unknown, twice, same = n, 20 + n, 40 + n
        site = site.replace(f"[n{unknown}:p0,", f"[nn{unknown}:p0,")
        site = site.replace(f"[n{twice}:p0,", f"[n{100 + twice}:p0,")
        site = site.replace(f" 10.0.1.{same}/", f" 10.0.1.{100 + same}/")
    misspelt = "".join(f" prot{n}: {9000 + n}," for n in range(10))
    values = ", ".join(f"BAD{n}: two words" for n in range(10))
    return site.replace("  {name: vllm,", f"  {{name: vllm,{misspelt} env: {{{values}}},")


def seconds(
    command: Sequence[str], before: Callable[[], None], status: int = 0
) -> tuple[float, float]:
    """CPU seconds and peak MiB of one run, which must exit with that status."""
    before()
    errors = subprocess.DEVNULL if status else None
    process = subprocess.Popen(
        command, cwd=Path(os.environ["PYTHONPATH"]), stdout=subprocess.DEVNULL, stderr=errors
    )
    _, ended, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(ended)
    assert process.returncode == status, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def installed(work: Path) -> Path:
    """A folder with a wheel's contents, its modules compiled as pip installs them."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(work)]
    subprocess.run([*build, str(ROOT)], check=True, stdout=subprocess.DEVNULL)
    folder = work / "installed"
    for wheel in work.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=True)
    return folder


def compare(
    label: str,
    aim: float,
    ours: Sequence[str],
    theirs: Sequence[str],
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
    runs: int = RUNS,
    status: int = 0,
) -> float:
    """Print the median of both and of their ratios; return the peak memory of ours.

    `status` is the expected exit status of ours.
    """
    pairs: list[tuple[float, float, float]] = []
    seconds(ours, before, status)
    seconds(theirs, after)
    for _ in range(runs):
        pairs.append((*seconds(ours, before, status), seconds(theirs, after)[0]))
    mine = statistics.median(a for a, _, _ in pairs)
    other = statistics.median(b for _, _, b in pairs)
    ratio = statistics.median(a / b for a, _, b in pairs)
    print(f"{label:52} {mine * 1000:7.0f} ms {other * 1000:7.0f} ms {ratio:6.2f} (aim {aim})")
    return statistics.median(peak for _, peak, _ in pairs)


def main() -> None:
    """Print every figure of the README's performance section."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        work = Path(scratch)
        os.environ["PYTHONPATH"] = str(installed(work))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        out, copy = work / "out", work / "copy"
        sites = [work / f"big{i}.yaml" for i in range(4)]
        for i, site in enumerate(sites):
            site.write_text(switch_site(f"big{i}", NODES), encoding="utf-8")
        grouped = work / "grouped.yaml"
        grouped.write_text(in_groups("grouped", NODES, GROUPS), encoding="utf-8")
        faulty = work / "faulty.yaml"
        faulty.write_text(with_mistakes(switch_site("faulty", NODES)), encoding="utf-8")

        def build(*files: Path) -> list[str]:
            return [*SPARKGEN, "build", *map(str, files), "--out", str(out)]

        def clean() -> None:
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(copy, ignore_errors=True)

        def uncopy() -> None:
            shutil.rmtree(copy, ignore_errors=True)

        print(f"{'':52} {'sparkgen':>10} {'other':>10} {'ratio':>6}")
        mesh = ROOT / "sites" / "lab-mesh.yaml"
        small = "build, three nodes / import of its libraries"
        compare(small, 1.5, build(mesh), LIBRARIES, clean)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        compare(f"{small}, no cache", 1.5, build(mesh), LIBRARIES, clean)
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        compare("--version / import click", 1.2, [*SPARKGEN, "--version"], CLICK)
        copying = ["cp", "-r", str(out), str(copy)]
        large = f"build, {NODES} nodes / cp -r"
        compare(large, 3, build(sites[0]), copying, clean, uncopy, RUNS_OF_LARGE)
        label = f"build, {NODES} nodes in {GROUPS} groups / cp -r"
        compare(label, 3, build(grouped), copying, clean, uncopy, RUNS_OF_LARGE)
        fresh = [*SPARKGEN, "diff", str(sites[0]), "--out", str(work / "none")]
        for label, diff in (("diff", fresh), ("diff --stat", [*fresh, "--stat"])):
            compare(
                f"{label}, {NODES} new nodes / build",
                3,
                diff,
                build(sites[0]),
                after=clean,
                runs=RUNS_OF_LARGE,
            )
        # Changes of what was built: all groups start anew, replicas one after the other.
        doubled = []
        for groups in (GROUPS, 2 * GROUPS):
            changed = work / f"changed{groups}.yaml"
            text = in_groups(f"changed{groups}", NODES, groups)
            changed.write_text(text, encoding="utf-8")
            kept = work / "kept"
            seconds([*SPARKGEN, "build", str(changed), "--out", str(kept)], lambda: None)
            edited = text.replace("gpt-oss-120b}", "gpt-oss-120b, context_length: 65536}")
            changed.write_text(edited, encoding="utf-8")
            doubled.append([*SPARKGEN, "diff", str(changed), "--out", str(kept)])
        label = f"diff of a change, {NODES} nodes in {GROUPS} groups / build"
        compare(label, 3, doubled[0], build(grouped), after=clean, runs=RUNS_OF_LARGE)
        label = f"diff of a change, {2 * GROUPS} groups / {GROUPS}"
        compare(label, 2**1.1, doubled[1], doubled[0], runs=RUNS_OF_LARGE)
        compare(
            f"validate, {NODES} nodes with 50 mistakes / without",
            2,
            [*SPARKGEN, "validate", str(faulty)],
            [*SPARKGEN, "validate", str(sites[0])],
            status=INVALID,
        )
        peak = compare(
            "build, four such sites / two",
            2.1,
            build(*sites),
            build(*sites[:2]),
            clean,
            clean,
            RUNS_OF_LARGE,
        )
        print(f"{'peak memory with four':52} {peak:7.0f} MiB{'':18} (aim 300)")


if __name__ == "__main__":
    main()
