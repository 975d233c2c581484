"""Single mistakes with whole lines and blocks: swapped, copied, pasted, misnested."""

import random
import re
from collections.abc import Callable, Sequence

from typos.text import KeyPath, Mistake, Scalar, Site


def swapped_lines(rng: random.Random, site: Site) -> Mistake | None:
    """The values of two keys of one mapping, swapped."""
    values = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    values = [v for v in values if not {"args", "env"} & set(v.path) and v.path[0] != "waivers"]
    pairs = [
        (one, other)
        for one in values
        for other in values
        if one.path[:-1] == other.path[:-1] and one.path < other.path and one.text != other.text
    ]
    pairs = [pair for pair in pairs if not _text_keys(pair)]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    text = _with(site, {one: other.text, other: one.text})
    return Mistake("swap", text, -1, silent=True)


def swapped_nodes(rng: random.Random, site: Site) -> Mistake | None:
    """A name and an address swapped, or an interface and an address, of one node."""
    names = [v for v in site.values_below("nodes") if v.path[2:] == ("name",)]
    if not names:
        return None
    name = rng.choice(names)
    own = [v for v in site.values_below("nodes") if v.path[1] == name.path[1] and v.plain]
    address = [v for v in own if v.path[2:] == ("management", "address")]
    other = [v for v in own if v.path[2:] in (("name",), ("management", "interface"))]
    if not address or not other:
        return None
    second = rng.choice(other)
    text = _with(site, {address[0]: second.text, second: address[0].text})
    return Mistake("swap", text, -1)


def copied_entry(rng: random.Random, site: Site) -> Mistake | None:
    """A node, cable or group that is there twice, since a copy was not edited."""
    section = rng.choice(["nodes", "cabling", "groups"])
    entries = {s.path[1] for s in site.scalars if s.path[0] == section and len(s.path) > 1}
    if not entries or section not in {k.path[0] for k in site.keys}:
        return None
    lines = site.lines_of((section, rng.choice(sorted(entries, key=str))))
    if lines is None or not re.match(r" *- ", site.lines[lines[0]]):
        return None
    first, end = lines
    block = site.lines[first:end]
    text = "\n".join([*site.lines[:end], *block, *site.lines[end:]])
    return Mistake("copy", text, -1, several=True)


def copied_with_edit(rng: random.Random, site: Site) -> Mistake | None:
    """A copied node whose name alone was changed."""
    entries = [v for v in site.values_below("nodes") if v.path[2:] == ("name",) and v.plain]
    if not entries:
        return None
    name = rng.choice(entries)
    lines = site.lines_of(("nodes", name.path[1]))
    if lines is None or not re.match(r" *- ", site.lines[lines[0]]):
        return None
    first, end = lines
    block = site.lines[first:end]
    at = name.line - first
    block[at] = f"{block[at][: name.column]}{name.text}x{block[at][name.end :]}"
    text = "\n".join([*site.lines[:end], *block, *site.lines[end:]])
    return Mistake("copy", text, -1, several=True)


def misnested_flag(rng: random.Random, site: Site) -> Mistake | None:
    """A flag of the engine written beside 'args', under 'env', or under the model."""
    flags = [k for k in site.keys_below("engine", "args") if len(k.path) == 3]
    flags = [k for k in flags if site.is_line(k)]
    if not flags:
        return None
    flag = rng.choice(flags)
    line = site.lines[flag.line].strip()
    rest = [text for number, text in enumerate(site.lines) if number != flag.line]
    alone = len([k for k in site.keys_below("engine", "args") if len(k.path) == 3]) == 1
    if alone:
        return None
    place = rng.choice(["engine", "model", "env"])
    path: KeyPath = ("engine", "env") if place == "env" else (place,)
    head = next((k for k in site.keys if k.path == path), None)
    if head is None or site.lines[head.line].strip() != f"{head.text}:":
        return None
    below = [k for k in site.keys if k.path[:-1] == path]
    if not below or below[0].line <= head.line:
        return None
    at = head.line - (flag.line < head.line) + 1
    new = " " * below[0].column + line
    return Mistake("misnested flag", "\n".join([*rest[:at], new, *rest[at:]]), at)


def misnested_block(rng: random.Random, site: Site) -> Mistake | None:
    """A block indented under the section above, or a nested block moved to the margin."""
    heads = [k for k in site.keys if len(k.path) in (1, 2) and k.path[0] not in ("version", "name")]
    heads = [k for k in heads if site.lines[k.line].strip() == f"{k.text}:"]
    heads = [k for k in heads if isinstance(k.path[-1], str)]
    if not heads:
        return None
    head = rng.choice(heads)
    lines = site.lines_of(head.path)
    if lines is None:
        return None
    first, end = lines
    if len(head.path) == 1:
        above = [n for n in range(first) if site.lines[n].strip()]
        if not above or not site.lines[above[-1]].startswith(" "):
            return None
        block = [f"  {text}" if text.strip() else text for text in site.lines[first:end]]
    else:
        width = head.column
        block = [text[width:] if text[:width].isspace() else text for text in site.lines[first:end]]
    text = "\n".join([*site.lines[:first], *block, *site.lines[end:]])
    # What was below a block that is now at the margin has become a part of it.
    below = next((line for line in site.lines[end:] if line.strip()), "")
    swallows = len(head.path) > 1 and below.startswith(" ")
    return Mistake("misnested block", text, -1, several=swallows)


def pasted_section(rng: random.Random, site: Site) -> Mistake | None:
    """A section that was pasted a second time at the end of the file."""
    heads = [k for k in site.keys if len(k.path) == 1 and k.text not in ("version",)]
    head = rng.choice(heads)
    lines = site.lines_of(head.path)
    if lines is None:
        return None
    block = site.lines[lines[0] : lines[1]]
    return Mistake("paste", "\n".join([*site.lines, *block, ""]), -1, several=True)


def pasted_command_line(rng: random.Random, site: Site) -> Mistake | None:
    """A flag under 'args' as it stands on a command line."""
    flags = [k for k in site.keys_below("engine", "args") if len(k.path) == 3]
    flags = [k for k in flags if site.is_line(k) and _is_plain(site, k)]
    if not flags:
        return None
    flag = rng.choice(flags)
    value = next(v for v in site.values if v.path == flag.path)
    form = rng.choice(["--{0}: {1}", "--{0}={1}", "--{0} {1}", "{0}={1}", "{0} {1}"])
    indent = site.lines[flag.line][: flag.column]
    new = indent + form.format(flag.text, value.text)
    return Mistake("paste", site.with_line(flag.line, new), flag.line)


def pasted_exports(rng: random.Random, site: Site) -> Mistake | None:
    """A variable under 'env' as it stands in a shell script."""
    names = [k for k in site.keys_below("engine", "env") if len(k.path) == 3]
    names = [k for k in names if site.is_line(k) and _is_plain(site, k)]
    if not names:
        return None
    name = rng.choice(names)
    value = next(v for v in site.values if v.path == name.path)
    form = rng.choice(["{0}={1}", "export {0}={1}", "- {0}={1}", "-e {0}={1}"])
    indent = site.lines[name.line][: name.column]
    new = indent + form.format(name.text, value.text)
    return Mistake("paste", site.with_line(name.line, new), name.line)


def _text_keys(pair: Sequence[Scalar]) -> bool:
    """Whether either value is text that nobody checks."""
    return any(one.path[-1] in ("description", "label", "reason") for one in pair)


def _with(site: Site, texts: dict[Scalar, str]) -> str:
    lines = list(site.lines)
    for place in sorted(texts, key=lambda s: (s.line, s.column), reverse=True):
        line = lines[place.line]
        lines[place.line] = line[: place.column] + texts[place] + line[place.end :]
    return "\n".join(lines)


def _is_plain(site: Site, place: Scalar) -> bool:
    """Whether a value has no quotes, which a shell would read in its own way."""
    return next(v for v in site.values if v.path == place.path).plain


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(swapped_lines, swapped_nodes, copied_entry, copied_with_edit, misnested_flag),
    *(misnested_block, pasted_section, pasted_command_line, pasted_exports),
)
