"""Draws the pull request comment as a picture for the front page, from the comment itself.

    PYTHONPATH=. python tests/make_comment_picture.py > sites/images/comment.svg

The picture shows what GitHub renders from the Markdown; of folded parts, only their titles.
"""

import re
import tempfile
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from documents import Workplace

WIDTH, MARGIN, LINE, COLUMNS = 820, 24, 22, 96
COMMANDS = (
    "sparkgen init --quiet --from spark1.txt --from spark2.txt --user nvidia sites/pair.yaml",
    "sparkgen build && git add . && git commit --quiet --message 'Describe the pair'",
    "sed -i 's/context_length: 32768/context_length: 65536/' sites/pair.yaml",
    "sparkgen build && sparkgen diff --against main --format markdown",
)
STYLE = """\
text { font: 14px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328 }
.c { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }
.h { font-size: 18px; font-weight: 600 } .b { font-weight: 600 } .m { fill: #59636e }
.page { fill: #ffffff; stroke: #d1d9e0 } .bar { fill: #f6f8fa; stroke: #d1d9e0 } .rule { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .m { fill: #9198a1 } .page { fill: #0d1117; stroke: #3d444d }
  .bar { fill: #151b23; stroke: #3d444d } .rule { stroke: #3d444d }
}"""


class Text(NamedTuple):
    """A line of the picture: its style, its indentation and its text."""

    style: str
    indent: int
    words: str


def comment() -> str:
    """The comment on the change of the front page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder)).empty()
        return [place.run(command) for command in COMMANDS][-1]


def lines(markdown: str) -> Iterator[Text]:
    """The comment as a reader sees it: without markup, and only the titles of folded parts."""
    body = re.sub(
        r"<details>\s*<summary>(.*?)</summary>.*?</details>", r"> \1", markdown, flags=re.S
    )
    # Commit hashes differ on every run.
    body = re.sub(r" \([0-9a-f]{12}\)", "", body[body.index("### ") :])
    for line in body.splitlines():
        words = _plain(line)
        if line.startswith("    "):
            yield Text("c", 0, line[4:])
        elif line.startswith("### "):
            yield Text("h", 0, words.removeprefix("### "))
        elif line.startswith("|"):
            cells = [cell.strip() for cell in words.strip("|").split("|")]
            if not set("".join(cells)) <= set("-: "):
                yield Text("b" if cells[0] == "Nodes" else "", 0, "\t".join(cells))
        elif line.startswith("- "):
            yield from _wrapped("", 16, f"•  {words[2:]}")
        elif line.startswith("> "):
            yield from _wrapped("m", 0, f"▸ {words[2:]}")
        elif words.strip():
            yield from _wrapped("", 0 if not line[0].isdigit() else 8, words)
        else:
            yield Text("", 0, "")


def _wrapped(style: str, indent: int, words: str) -> Iterator[Text]:
    return (Text(style, indent, part) for part in wrap(words, COLUMNS))


def _plain(line: str) -> str:
    """Markdown and HTML without markup; bold text becomes plain."""
    return unescape(re.sub(r"\\(.)", r"\1", re.sub(r"\*\*|`|<[^>]+>", "", line)))


def picture(found: list[Text]) -> str:
    """The framed comment, for light and dark pages."""
    shown = [text for i, text in enumerate(found) if text.words or (i and found[i - 1].words)]
    height = 44 + MARGIN + sum(LINE if text.words else LINE // 2 for text in shown) + MARGIN // 2
    head = "sparkgen commented on the change 'Serve longer contexts'"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="A comment on a pull request">',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="page" x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="6"/>',
        f'<path class="bar" d="M1 44V7a6 6 0 0 1 6-6H{WIDTH - 7}a6 6 0 0 1 6 6V44z"/>',
        f'<text class="m" x="{MARGIN}" y="28">{head}</text>',
    ]
    y = 44 + MARGIN
    for text in shown:
        for column, words in enumerate(text.words.split("\t")):
            x = MARGIN + text.indent + column * 190
            if words:
                style = f' class="{text.style}"' if text.style else ""
                parts.append(f'<text{style} x="{x}" y="{y}">{escape(words)}</text>')
        y += LINE if text.words else LINE // 2
    return "\n".join([*parts, "</svg>"]) + "\n"


def drawn() -> str:
    """The complete file."""
    return picture(list(lines(comment())))


if __name__ == "__main__":
    print(drawn(), end="")
