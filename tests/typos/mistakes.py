"""Single mistakes that people make in a site file: pure functions of a random source and a text.

A mistake holds the line that it is on, and whether it must be reported: a wrong digit in a context
length makes another valid site, a misspelt key never does.
"""

import random
import re
from collections.abc import Callable, Mapping

from typos.text import KeyPath, Mistake, Scalar, Site, misspelt, with_variable

_FREE_KEYS = ("args", "env")
_CHOICES: Mapping[KeyPath, None] = dict.fromkeys(
    [
        ("topology", "kind"),
        ("topology", "control_plane"),
        ("engine", "name"),
        ("engine", "launcher"),
        ("engine", "bind"),
        ("model", "kv_cache_dtype"),
        ("model", "speculative", "method"),
    ]
)


def key(rng: random.Random, site: Site) -> Mistake | None:
    """A misspelt key of the site format."""
    known = [k for k in site.keys if not set(k.path[1:-1]) & set(_FREE_KEYS) and len(k.text) > 2]
    return _misspelt(rng, site, "misspelt key", known)


def choice(rng: random.Random, site: Site) -> Mistake | None:
    """A misspelt value, where a key allows only certain ones."""
    known = [v for v in site.values if v.path in _CHOICES and len(v.text) > 2]
    return _misspelt(rng, site, "misspelt value", known)


def flag(rng: random.Random, site: Site) -> Mistake | None:
    """A misspelt flag of the engine."""
    known = [k for k in site.keys_below("engine", "args") if len(k.path) == 3]
    return _misspelt(rng, site, "misspelt flag", known)


def endpoint(rng: random.Random, site: Site) -> Mistake | None:
    """A misspelt node or port of a cable."""
    ends = [
        v for v in site.values_below("cabling") if v.path[2:3] == ("endpoints",) and ":p" in v.text
    ]
    if not ends:
        return None
    end = rng.choice(ends)
    node, _, port = end.text.partition(":")
    slip = rng.choice([f"{misspelt(rng, node)}:{port}", f"{node}:{port[1]}", f"{node}{port}"])
    return Mistake("endpoint", site.replaced(end, slip), end.line)


def nccl_name(rng: random.Random, site: Site) -> Mistake | None:
    """A variable of NCCL that does not exist."""
    name = rng.choice(["NCCL_IB_TIMEOUT", "NCCL_DEBUG", "NCCL_IB_QPS_PER_CONNECTION"])
    value = {"NCCL_DEBUG": "INFO"}.get(name, "4")
    return with_variable(site, "NCCL name", "NCCL_" + misspelt(rng, name[5:]), value, name)


def other_variable(rng: random.Random, site: Site) -> Mistake | None:
    """A variable of something else whose first word, or another, is misspelt."""
    name, value = rng.choice(
        [
            ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            ("NCCL_DEBUG", "INFO"),
            ("OMP_NUM_THREADS", "8"),
            ("CUDA_LAUNCH_BLOCKING", "1"),
        ]
    )
    first, _, rest = name.partition("_")
    return with_variable(site, "other variable", f"{misspelt(rng, first)}_{rest}", value, name)


def deleted(rng: random.Random, site: Site) -> Mistake | None:
    """A missing line: a required key, or the head of a section."""
    sections = [k for k in site.keys if len(k.path) == 1 and k.text not in _OPTIONAL_SECTIONS]
    needed = [k for k in site.keys if k.path in _NEEDED]
    lines = sections + needed
    if not lines:
        return None
    gone = rng.choice(lines)
    line = gone.line if site.lines[gone.line].endswith(":") else -1
    return Mistake("deleted line", site.with_line(gone.line), line, several=line < 0)


_OPTIONAL_SECTIONS = ("description", "defaults", "services", "waivers", "user")
_NEEDED = {
    ("topology", "kind"),
    ("model", "name"),
    ("engine", "name"),
    ("engine", "version"),
    ("engine", "image"),
}


def doubled(rng: random.Random, site: Site) -> Mistake | None:
    """A duplicated line."""
    lines = [k for k in site.keys if site.lines[k.line].lstrip().startswith(k.text)]
    twice = rng.choice(lines)
    text = site.lines[twice.line]
    both = site.with_line(twice.line, text, text)
    return Mistake("doubled line", both, twice.line + 1, several=True)


def moved(rng: random.Random, site: Site) -> Mistake | None:
    """A line moved to another section."""
    movable = [k for k in site.keys if len(k.path) == 2 and k.path[0] in ("model", "engine")]
    movable = [
        k for k in movable if _is_a_line(site, k) and not site.lines[k.line][: k.column].strip()
    ]
    other = {"model": "engine", "engine": "model"}
    if not movable:
        return None
    gone = rng.choice(movable)
    head = next(k for k in site.keys if k.path == (other[str(gone.path[0])],))
    if site.lines[head.line].strip() != f"{head.text}:":
        return None
    text = site.lines[gone.line]
    lines = [line for number, line in enumerate(site.lines) if number != gone.line]
    at = head.line - (gone.line < head.line) + 1
    return Mistake("moved key", "\n".join([*lines[:at], text, *lines[at:]]), at)


def _is_a_line(site: Site, place: Scalar) -> bool:
    """Whether the key's value is one scalar on the same line."""
    values = [v for v in site.values if v.path == place.path]
    return bool(values) and values[0].line == place.line


def wrong_type(rng: random.Random, site: Site) -> Mistake | None:
    """A value of the wrong type: a text for a number, a list for a text."""
    numbers = [v for v in site.values if v.plain and re.fullmatch(r"[0-9.]+", v.text)]
    numbers = [v for v in numbers if v.path[-1] in _NUMBERS]
    if not numbers:
        return None
    value = rng.choice(numbers)
    sure = [f"[{value.text}]", f"'{value.text}'"]
    slip = rng.choice([*sure, "yes", f"{value.text}x"])
    several = slip not in sure
    return Mistake("wrong type", site.replaced(value, slip), value.line, several=several)


_NUMBERS = ("mtu", "context_length", "max_sequences", "memory_utilization", "port", "host")


def indent(rng: random.Random, site: Site) -> Mistake | None:
    """A line indented by one space too many or too few."""
    lines = [k for k in site.keys if len(k.path) == 2 and _is_a_line(site, k)]
    if not lines:
        return None
    place = rng.choice(lines)
    text = site.lines[place.line]
    wrong = rng.choice([f" {text}", text[1:]])
    return Mistake("wrong indent", site.with_line(place.line, wrong), place.line)


def quote(rng: random.Random, site: Site) -> Mistake | None:
    """A quote that is opened and not closed."""
    value = rng.choice([v for v in site.values if v.plain])
    return Mistake("open quote", site.replaced(value, rng.choice("'\"") + value.text), value.line)


def smart_quote(rng: random.Random, site: Site) -> Mistake | None:
    """Typographic quotes around a value."""
    values = [v for v in site.values if v.plain and v.path[-1] != "description"]
    value = rng.choice([v for v in values if v.path[0] != "waivers"])
    return Mistake("smart quotes", site.replaced(value, f"\u201c{value.text}\u201d"), value.line)


def no_break(rng: random.Random, site: Site) -> Mistake | None:
    """A no-break space after a colon, as copied from a web page."""
    keys = [k for k in site.keys if _is_a_line(site, k) and f"{k.text}: " in site.lines[k.line]]
    place = rng.choice(keys)
    text = site.lines[place.line].replace(f"{place.text}: ", f"{place.text}:\u00a0", 1)
    return Mistake("no-break blank", site.with_line(place.line, text), place.line)


def same_name(rng: random.Random, site: Site) -> Mistake | None:
    """A node with the name of another, or nearly so."""
    names = [v for v in site.values_below("nodes") if v.path[2:] == ("name",)]
    if len(names) < 2:
        return None
    first, second = rng.sample(names, 2)
    wrong = rng.choice([second.text, misspelt(rng, first.text), f"{first.text}0"])
    # A longer name may be the intended one, with the slip in the cables.
    several = wrong in (second.text, f"{first.text}0")
    return Mistake("node name", site.replaced(first, wrong), -1, several=several)


def same_address(rng: random.Random, site: Site) -> Mistake | None:
    """A node with the management address of another."""
    found = [v for v in site.values_below("nodes") if v.path[3:] == ("address",)]
    if len(found) < 2:
        return None
    first, second = rng.sample(found, 2)
    return Mistake("address twice", site.replaced(first, second.text), -1, several=True)


def cable_gone(rng: random.Random, site: Site) -> Mistake | None:
    """A missing cable."""
    cables = [k for k in site.keys_below("cabling") if k.text == "endpoints"]
    if len(cables) < 3:
        return None
    gone = rng.choice(cables)
    number = gone.path[1]
    lines = {s.line for s in site.scalars if s.path[:2] == ("cabling", number)}
    rest = [line for at, line in enumerate(site.lines) if at not in lines]
    # Any cables make a network, and each node needs one to a switch.
    silent = not any(k.path == ("engine",) for k in site.keys) and "groups" not in site.text
    silent |= "kind: switch" in site.text
    return Mistake("cable gone", "\n".join(rest), -1, silent=silent, several=True)


def digit(rng: random.Random, site: Site) -> Mistake | None:
    """A number with one digit too many, too few, or wrong."""
    numbers = [v for v in site.values if v.plain and v.path[-1] in _NUMBERS]
    if not numbers:
        return None
    value = rng.choice(numbers)
    at = rng.randrange(len(value.text))
    other = rng.choice([value.text + "0", value.text[:at] + value.text[at + 1 :]])
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", other):
        return None
    return Mistake("digit", site.replaced(value, other), value.line, silent=True, several=True)


def _misspelt(rng: random.Random, site: Site, kind: str, places: list[Scalar]) -> Mistake | None:
    if not places:
        return None
    place = rng.choice(places)
    return Mistake(kind, site.replaced(place, misspelt(rng, place.text)), place.line)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(key, choice, flag, endpoint, nccl_name, other_variable, deleted, doubled, moved),
    *(wrong_type, indent, quote, smart_quote, no_break, same_name, same_address, cable_gone),
    digit,
)
