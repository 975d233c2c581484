"""Single mistakes in the syntax of a site file: brackets, colons, dashes, spaces, comments."""

import random
import re
from collections.abc import Callable

from typos.text import Mistake, Scalar, Site


def tab(rng: random.Random, site: Site) -> Mistake | None:
    """A line indented with a tab."""
    lines = [k for k in site.keys if _begins(site, k) and site.lines[k.line].startswith("  ")]
    if not lines:
        return None
    place = rng.choice(lines)
    text = site.lines[place.line]
    return Mistake("tab", site.with_line(place.line, "\t" + text.lstrip()), place.line)


def bracket(rng: random.Random, site: Site) -> Mistake | None:
    """A missing bracket or brace."""
    lines = [n for n, line in enumerate(site.lines) if re.search(r"[\]}]\s*$", _code(line))]
    if not lines:
        return None
    number = rng.choice(lines)
    line = site.lines[number]
    marks = [at for at, letter in enumerate(_code(line)) if letter in "]}"]
    at = rng.choice(marks)
    text = site.with_line(number, line[:at] + line[at + 1 :])
    return Mistake("bracket", text, number)


def comma(rng: random.Random, site: Site) -> Mistake | None:
    """A missing comma in brackets or braces."""
    found = [
        (n, mark.start())
        for n, line in enumerate(site.lines)
        if re.search(r"[\[{]", _code(line))
        for mark in re.finditer(", ", _code(line))
    ]
    if not found:
        return None
    number, at = rng.choice(found)
    line = site.lines[number]
    return Mistake("comma", site.with_line(number, line[:at] + line[at + 1 :]), number)


def colon(rng: random.Random, site: Site) -> Mistake | None:
    """A colon that is missing, doubled, without a space after it, or replaced by '='."""
    place = _key_with_value(rng, site)
    if place is None:
        return None
    line = site.lines[place.line]
    end = place.end
    rest = line[end + 1 :].lstrip()
    slip = rng.choice(
        [f" {rest}", f":{rest}", f":: {rest}", f"={rest}", f" = {rest}", f" : {rest}"]
    )
    text = site.with_line(place.line, line[:end] + slip)
    return Mistake("colon", text, place.line)


def head_without_colon(rng: random.Random, site: Site) -> Mistake | None:
    """A section's key without its colon."""
    heads = [k for k in site.keys if site.lines[k.line].strip() == f"{k.text}:"]
    if not heads:
        return None
    place = rng.choice(heads)
    return Mistake("head", site.with_line(place.line, site.lines[place.line][:-1]), place.line)


def dash(rng: random.Random, site: Site) -> Mistake | None:
    """A list entry without its dash, or without a space after it."""
    found = [n for n, line in enumerate(site.lines) if re.match(r"\s*- \w", line)]
    if not found:
        return None
    number = rng.choice(found)
    line = site.lines[number]
    slip = rng.choice([line.replace("- ", "  ", 1), line.replace("- ", "-", 1)])
    return Mistake("list dash", site.with_line(number, slip), number)


def comment(rng: random.Random, site: Site) -> Mistake | None:
    """A comment without its '#', or without a space before it."""
    place = _key_with_value(rng, site)
    if place is None:
        return None
    line = site.lines[place.line]
    slip = rng.choice([f"{line}# why", f"{line} // why"])
    values = [v for v in site.values if v.path == place.path]
    quoted = not values or not values[0].plain
    silent = place.path[-1] in ("description", "label", "reason")
    text = site.with_line(place.line, slip)
    return Mistake("comment", text, place.line, silent=silent, several=quoted)


def upper(rng: random.Random, site: Site) -> Mistake | None:
    """A key in another case, or with a dash for an underscore."""
    known = [k for k in site.keys if not {"args", "env", "config"} & set(k.path[:-1])]
    known = [k for k in known if k.path[:1] != ("waivers",)]
    place = rng.choice(known)
    slip = rng.choice([place.text.capitalize(), place.text.upper(), place.text.replace("_", "-")])
    return Mistake("case of a key", site.replaced(place, slip), place.line)


def number_of_a_key(rng: random.Random, site: Site) -> Mistake | None:
    """A key in the plural instead of the singular, or the reverse."""
    known = [k for k in site.keys if not {"args", "env", "config"} & set(k.path[:-1])]
    known = [k for k in known if len(k.text) > 3]
    place = rng.choice(known)
    slip = place.text[:-1] if place.text.endswith("s") else f"{place.text}s"
    return Mistake("number of a key", site.replaced(place, slip), place.line)


def outdented(rng: random.Random, site: Site) -> Mistake | None:
    """A line that is one level too high, or too low."""
    lines = [k for k in site.keys if len(k.path) == 2 and _is_a_line(site, k)]
    if not lines:
        return None
    place = rng.choice(lines)
    text = site.lines[place.line]
    wrong = rng.choice([text.lstrip(), f"  {text}"])
    return Mistake("level", site.with_line(place.line, wrong), place.line)


def quotes_that_differ(rng: random.Random, site: Site) -> Mistake | None:
    """A text with mismatched quotes."""
    values = [v for v in site.values if v.plain]
    value = rng.choice(values)
    slip = rng.choice([f"'{value.text}\"", f"\"{value.text}'", f"{value.text}'"])
    silent = value.path[-1] in ("description", "label", "reason")
    free = value.path[:2] in (("engine", "args"), ("engine", "env"))
    text = site.replaced(value, slip)
    return Mistake("other quote", text, value.line, silent=silent or free)


def _code(line: str) -> str:
    return re.sub(r"(^|\s)#.*", "", line)


def _begins(site: Site, place: Scalar) -> bool:
    return site.lines[place.line][: place.column].strip() in ("", "-")


def _is_a_line(site: Site, place: Scalar) -> bool:
    values = [v for v in site.values if v.path == place.path]
    return bool(values) and values[0].line == place.line and _begins(site, place)


def _key_with_value(rng: random.Random, site: Site) -> Scalar | None:
    found = [k for k in site.keys if _is_a_line(site, k) and "#" not in site.lines[k.line]]
    found = [k for k in found if site.lines[k.line][: k.column].strip() == ""]
    return rng.choice(found) if found else None


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(tab, bracket, comma, colon, head_without_colon, dash, comment, upper, number_of_a_key),
    *(outdented, quotes_that_differ),
)
