"""Single mistakes in where a line or a block belongs: another parent, a level, a lost head."""

import random
import re
from collections.abc import Callable

from generator.sitefile.key_rules import keys_at
from typos.text import KeyPath, Mistake, Site

# Below these, any name may be a key.
_FREE = ("args", "env", "config", "switches", "ulimits")


def wrong_parent(rng: random.Random, site: Site) -> Mistake | None:
    """A line moved to the top of any other block."""
    lines = [k for k in site.keys if len(k.path) > 1 and site.is_line(k) and k.path[0] != "waivers"]
    heads = [k for k in site.keys if site.is_head(k) and site.below(k)]
    pairs = [(k, head) for k in lines for head in heads if k.path[:-1] != head.path]
    pairs = [(k, head) for k, head in pairs if not _has(site, head.path, k.text)]
    if not pairs:
        return None
    gone, head = rng.choice(pairs)
    rest = [line for number, line in enumerate(site.lines) if number != gone.line]
    at = head.line - (gone.line < head.line) + 1
    below = site.below(head)
    new = " " * below[0].column + site.lines[gone.line].strip()
    # A key that both have, or any name among flags and variables, may be meant.
    valid = gone.text in keys_at(head.path) or head.text in _FREE
    alone = len([k for k in site.keys if k.path[:-1] == gone.path[:-1]]) == 1
    text = "\n".join([*rest[:at], new, *rest[at:]])
    return Mistake("wrong parent", text, -1 if alone else at, silent=valid, several=True)


def flattened(rng: random.Random, site: Site) -> Mistake | None:
    """A nested block whose head is missing, with its lines one level higher."""
    heads = [k for k in site.keys if len(k.path) > 1 and site.is_head(k)]
    heads = [k for k in heads if isinstance(k.path[-2], str) or k.column]
    if not heads:
        return None
    head = rng.choice(heads)
    block = site.block(head)
    if block is None or site.lines[head.line].lstrip().startswith("-"):
        return None
    first, end = block
    if site.lines[first + 1].lstrip().startswith("-"):
        return None
    width = len(site.lines[first + 1]) - len(site.lines[first + 1].lstrip()) - head.column
    lines = [line[width:] for line in site.lines[first + 1 : end]]
    text = "\n".join([*site.lines[:first], *lines, *site.lines[end:]])
    return Mistake("flattened", text, -1, silent=head.text in _FREE, several=True)


def head_gone(rng: random.Random, site: Site) -> Mistake | None:
    """A nested block whose head is missing, or commented out."""
    heads = [k for k in site.keys if site.is_head(k) and len(k.path) > 1]
    heads = [k for k in heads if not site.lines[k.line].lstrip().startswith("-")]
    if not heads:
        return None
    head = rng.choice(heads)
    line = site.lines[head.line]
    text = site.with_line(head.line, *rng.choice([[], [line.replace(head.text, f"# {head.text}")]]))
    return Mistake("head gone", text, -1, several=True)


def twice_nested(rng: random.Random, site: Site) -> Mistake | None:
    """A block inside a block of the same name."""
    heads = [k for k in site.keys if site.is_head(k)]
    if not heads or (block := site.block(head := rng.choice(heads))) is None:
        return None
    first, end = block
    inside = [f"  {line}" if line.strip() else line for line in site.lines[first:end]]
    text = "\n".join([*site.lines[: first + 1], *inside, *site.lines[end:]])
    free = head.text in _FREE
    return Mistake("nested twice", text, first + 1, silent=free, several=True)


def misnested_variable(rng: random.Random, site: Site) -> Mistake | None:
    """A variable beside 'env', under 'args', under the model, or at the margin."""
    return _elsewhere(
        rng, site, "misnested variable", "env", (("engine",), ("engine", "args"), ("model",), ())
    )


def flag_far_away(rng: random.Random, site: Site) -> Mistake | None:
    """A flag of the engine at the margin, under the topology, or among the services."""
    return _elsewhere(rng, site, "flag far away", "args", (("topology",), ("services",), ()))


def _elsewhere(
    rng: random.Random, site: Site, kind: str, home: str, places: tuple[KeyPath, ...]
) -> Mistake | None:
    own = [k for k in site.keys_below("engine", home) if len(k.path) == 3 and site.is_line(k)]
    if len(own) < 2:
        return None
    gone, place = rng.choice(own), rng.choice(places)
    rest = [line for number, line in enumerate(site.lines) if number != gone.line]
    line = site.lines[gone.line].strip()
    if not place:
        return Mistake(kind, "\n".join([*rest, line, ""]), len(rest), several=True)
    head = next((k for k in site.keys if k.path == place and site.is_head(k)), None)
    if head is None or not (below := site.below(head)):
        return None
    at = head.line - (gone.line < head.line) + 1
    text = "\n".join([*rest[:at], " " * below[0].column + line, *rest[at:]])
    return Mistake(kind, text, at, several=True)


def joined(rng: random.Random, site: Site) -> Mistake | None:
    """Two lines that became one."""
    lines = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    by_line = {k.line: k for k in lines}
    firsts = [k for k in lines if k.line + 1 in by_line]
    firsts = [k for k in firsts if by_line[k.line + 1].path[:-1] == k.path[:-1]]
    if not firsts:
        return None
    first = rng.choice(firsts)
    both = f"{site.lines[first.line]} {site.lines[first.line + 1].strip()}"
    rest = [*site.lines[: first.line], both, *site.lines[first.line + 2 :]]
    text = first.path[-1] in ("description", "label", "reason")
    return Mistake("joined lines", "\n".join(rest), first.line, silent=text, several=True)


def broken(rng: random.Random, site: Site) -> Mistake | None:
    """A value that went on to a line of its own, at the column of its key."""
    lines = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    if not lines:
        return None
    place = rng.choice(lines)
    line = site.lines[place.line]
    value = next(v for v in site.values if v.path == place.path)
    if line[value.end :].strip("'\" "):
        return None
    rest = line[place.end + 1 :].strip()
    text = site.with_line(place.line, line[: place.end + 1], " " * place.column + rest)
    return Mistake("broken line", text, -1, several=True)


def cut_off(rng: random.Random, site: Site) -> Mistake | None:
    """A file that ends in the middle of a line."""
    number = rng.randrange(len(site.lines) // 2, len(site.lines))
    line = site.lines[number]
    if "#" in line or not line.strip():
        return None
    end = rng.randrange(len(line) - len(line.lstrip()) + 1, len(line) + 1)
    text = "\n".join([*site.lines[:number], line[:end]])
    return Mistake("cut off", text, -1, silent=True, several=True)


def outdented_rest(rng: random.Random, site: Site) -> Mistake | None:
    """The further keys of a list's entry, in the column of its dash."""
    entries = [n for n, line in enumerate(site.lines[:-1]) if re.match(r" *- \w[\w-]*:", line)]
    entries = [n for n in entries if re.match(r" +\w", site.lines[n + 1])]
    if not entries:
        return None
    number = rng.choice(entries)
    dash = site.lines[number].index("-")
    below = site.lines[number + 1]
    text = site.with_line(number + 1, " " * dash + below.lstrip())
    return Mistake("outdented entry", text, -1, several=True)


def _has(site: Site, path: KeyPath, key: str) -> bool:
    return any(k.path == (*path, key) for k in site.keys)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(wrong_parent, flattened, head_gone, twice_nested, misnested_variable, flag_far_away),
    *(joined, broken, cut_off, outdented_rest),
)
