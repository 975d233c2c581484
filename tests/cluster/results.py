"""Records what manual runs have measured, as rows of the table in measured.md."""

import re
from datetime import date
from pathlib import Path

MEASURED = Path(__file__).parent / "measured.md"
_HEAD = (
    "| engine | what happens | what is seen | after | promised within | measured |\n"
    "|---|---|---|---|---|---|\n"
)


def record(engine: str, fault: str, seen: str, seconds: float, promised: float = 0) -> None:
    """Record what was seen this many seconds after a fault, replacing an earlier row."""
    limit = f"{promised:.0f} s" if promised else ""
    after = f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"
    row = f"| {engine} | {fault} | {seen} | {after} s | {limit} | {date.today()} |\n"
    head, _, rows = MEASURED.read_text().partition(_HEAD)
    name, version, *place = engine.split(" ", 2)
    assert version[0].isdigit()
    same = rf"^\| {re.escape(' '.join([name, '~', *place]))} \| {re.escape(fault)} \| "
    same = same.replace(re.escape("~"), r"[\w.]+,?") + rf"{re.escape(seen)} \|.*\n"
    left = re.sub(same, "", rows, flags=re.MULTILINE)
    MEASURED.write_text(head + _HEAD + "".join(sorted([*left.splitlines(keepends=True), row])))
