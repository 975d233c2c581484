"""What the runs by hand have measured, as rows of a table in README.md."""

import re
from datetime import date
from pathlib import Path

README = Path(__file__).parent / "README.md"
_HEAD = "| engine | what happens | what is seen | after | measured |\n|---|---|---|---|---|\n"


def record(engine: str, fault: str, seen: str, seconds: float) -> None:
    """Write down what was seen so many seconds after a fault, in place of what was there."""
    row = f"| {engine} | {fault} | {seen} | {seconds:.0f} s | {date.today()} |\n"
    head, _, rows = README.read_text().partition(_HEAD)
    name = re.escape(f"| {engine.split()[0]}")
    same = rf"^{name} [^|]*\| {re.escape(fault)} \| {re.escape(seen)} \|.*\n"
    left = re.sub(same, "", rows, flags=re.MULTILINE)
    README.write_text(head + _HEAD + "".join(sorted([*left.splitlines(keepends=True), row])))
