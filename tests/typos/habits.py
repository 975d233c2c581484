"""Single mistakes of habit: how other programs write ports, numbers, lists and names."""

import random
import re
from collections.abc import Callable, Mapping

from typos.text import Mistake, Site

_FREE = {"args", "env", "config"}


def port(rng: random.Random, site: Site) -> Mistake | None:
    """An end of a cable in another form."""
    ends = [v for v in site.values_below("cabling") if v.path[2:3] == ("endpoints",)]
    ends = [v for v in ends if re.search(":p[01]$", v.text)]
    if not ends:
        return None
    end = rng.choice(ends)
    node, _, number = end.text.rpartition(":p")
    form = rng.choice(
        [
            *("{0}/p{1}", "{0}.p{1}", "{0}:port{1}", "{0}:{1}", "{0}-p{1}", "p{1}:{0}", "{0}:P{1}"),
            *("{0}:p2", "{0}:enp1s0f{1}np{1}", "{0}:rocep1s0f{1}", "{0}:eth{1}", "{0}@p{1}", "{0}"),
            *('"{0} p{1}"', "{0}::p{1}", "{0}:p{1}:", "{0}:qsfp{1}", "{0}:p{1}.0"),
        ]
    )
    text = site.replaced(end, form.format(node, number))
    return Mistake("port form", text, end.line, several=True)


_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "port": ("{0}/tcp", "{0}:{0}", ":{0}", "0x{1:x}", "0o{1:o}", "[{0}]", "tcp/{0}"),
    "mtu": ("{0}b", "9k", "jumbo", "0x{1:x}", "{0}/1500", "auto"),
    "context_length": ("1M", "0x{1:x}", "1e5", "{0}tok", "2**15", "{0}/2", "~{0}", "max"),
    "max_sequences": ("{0}x", "0x{1:x}", "{0} seqs", "unlimited", "-1", "{0}/node"),
    "memory_utilization": ("{0}f", "high", "100%", "8/10", "0,,8", ".{0}", "110 GB", "1.2"),
    "length_m": ("{0} metres", "{0} ft", "50", "1,5", "{0}M", "short"),
    "host": ("{0}.0", "#{0}", "0x{1:x}", "node{0}", "{0}/24", "10.0.0.{0}"),
    "tensor": ("{0}x", "all", "TP{0}", "{0} GPUs", "auto", "0x{1:x}"),
}


def number(rng: random.Random, site: Site) -> Mistake | None:
    """A number in a unit, a base or a form of its own."""
    known = [v for v in site.values if v.plain and v.path[-1] in _NUMBERS]
    known = [v for v in known if re.fullmatch(r"[0-9]+(\.[0-9]+)?", v.text)]
    if not known:
        return None
    value = rng.choice(known)
    slip = rng.choice(_NUMBERS[str(value.path[-1])]).format(value.text, int(float(value.text)))
    # In hexadecimal it is the same.
    silent = slip.startswith("0x") or slip == "auto" or slip == value.text
    text = site.replaced(value, slip)
    meant = site.replaced(value, "1.5") if slip == "1,5" else ""
    return Mistake("number habit", text, value.line, silent, several=True, meant=meant)


def decorated(rng: random.Random, site: Site) -> Mistake | None:
    """A key with a mark of its own: an asterisk, a question mark, a number, a remark."""
    known = [k for k in site.keys if not _FREE & set(k.path[:-1]) and len(k.text) > 2]
    key = rng.choice([k for k in known if k.path[0] != "waivers"])
    slip = rng.choice(["{}?", "{}*", "_{}", "{}_", "{}1", "{} (optional)", "{}[]", ".{}", "my_{}"])
    return Mistake("marked key", site.replaced(key, slip.format(key.text)), key.line, several=True)


def alternatives(rng: random.Random, site: Site) -> Mistake | None:
    """Two values in place of one."""
    known = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    known = [v for v in known if v.path[-1] not in ("description", "label", "reason")]
    known = [v for v in known if not _FREE & set(v.path) and v.path[0] != "waivers"]
    if not known:
        return None
    value = rng.choice(known)
    form = rng.choice(
        ["{0} or {0}", "{0} | {0}", "{0} / {0}", "{0} ({0})", "[{0}, {0}]", "{0},{0}"]
    )
    line = -1 if "{" in site.lines[value.line] else value.line
    return Mistake("two values", site.replaced(value, form.format(value.text)), line, several=True)


def dashed(rng: random.Random, site: Site) -> Mistake | None:
    """A mapping whose keys are entries of a list, each with a dash."""
    heads = [k for k in site.keys if site.is_head(k) and site.below(k)]
    heads = [k for k in heads if all(site.is_line(b) for b in site.below(k))]
    if not heads:
        return None
    head = rng.choice(heads)
    lines = list(site.lines)
    for key in site.below(head):
        lines[key.line] = lines[key.line][: key.column] + "- " + lines[key.line][key.column :]
    return Mistake("list of keys", "\n".join(lines), -1, several=True)


def undashed(rng: random.Random, site: Site) -> Mistake | None:
    """A list in a block whose entries have all lost their dashes."""
    heads = [k for k in site.keys if site.is_head(k) and not site.below(k)]
    found = []
    for head in heads:
        lines = site.block(head)
        if lines and any(re.match(r" *- ", line) for line in site.lines[lines[0] + 1 : lines[1]]):
            found.append(lines)
    if not found:
        return None
    first, end = rng.choice(found)
    block = site.lines[first + 1 : end]
    width = min(line.index("-") for line in block if re.match(r" *- ", line))
    inside = [re.sub(rf"^( {{{width}}})- ", r"\1  ", line) for line in block]
    text = "\n".join([*site.lines[: first + 1], *inside, *site.lines[end:]])
    return Mistake("no dashes", text, -1, several=True)


def reversed_pair(rng: random.Random, site: Site) -> Mistake | None:
    """A key and its value in each other's place."""
    keys = [k for k in site.keys if site.is_line(k) and not _FREE & set(k.path)]
    keys = [k for k in keys if k.path[0] != "waivers" and "#" not in site.lines[k.line]]
    keys = [k for k in keys if k.path[-1] not in ("description", "label", "reason")]
    if not keys:
        return None
    key = rng.choice(keys)
    value = next(v for v in site.values if v.path == key.path)
    line = site.lines[key.line]
    if not value.plain or line[value.end :].strip():
        return None
    text = site.with_line(key.line, f"{line[: key.column]}{value.text}: {key.text}")
    return Mistake("value as key", text, key.line, several=True)


def block_text(rng: random.Random, site: Site) -> Mistake | None:
    """A value as a text of lines."""
    keys = [k for k in site.keys if site.is_line(k) and not _FREE & set(k.path)]
    keys = [k for k in keys if "#" not in site.lines[k.line]]
    keys = [k for k in keys if k.path[-1] not in ("description", "label", "reason")]
    if not keys:
        return None
    key = rng.choice(keys)
    value = next(v for v in site.values if v.path == key.path)
    line = site.lines[key.line]
    if line[value.end :].strip("'\" ") or not value.plain:
        return None
    sign = rng.choice(["|", ">", "|-", ">-"])
    lines = f"{line[: value.column]}{sign}", f"{' ' * (key.column + 2)}{value.text}"
    text = site.with_line(key.line, *lines)
    return Mistake("block text", text, -1, silent=True, several=True)


def anchored(rng: random.Random, site: Site) -> Mistake | None:
    """The values of one node repeated for another by an anchor."""
    found = [v for v in site.values if v.path[0] == "nodes" and v.path[2:] in _OF_A_NODE]
    pairs = [(a, b) for a in found for b in found if a.line < b.line and a.path[2:] == b.path[2:]]
    pairs = [(a, b) for a, b in pairs if a.plain and b.plain]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    lines = list(site.lines)
    for place, text in ((other, "*own"), (one, f"&own {one.text}")):
        line = lines[place.line]
        lines[place.line] = line[: place.column] + text + line[place.end :]
    return Mistake("anchor", "\n".join(lines), -1, several=True)


_OF_A_NODE = (("name",), ("management", "address"))


def renamed_elsewhere(rng: random.Random, site: Site) -> Mistake | None:
    """A node that has another name in all cables, groups and services than in the list."""
    names = [v for v in site.values_below("nodes") if v.path[2:] == ("name",) and v.plain]
    if len(names) < 2:
        return None
    name = rng.choice(names)
    other = rng.choice([f"{name.text}.local", f"my-{name.text}", "gx10-a", name.text.upper()])
    text = site.replaced(name, other)
    used = re.search(rf"(?<![\w-]){re.escape(name.text)}(?![\w-])", text)
    return Mistake("other host name", text, -1, several=True) if used else None


def other_site(rng: random.Random, site: Site) -> Mistake | None:
    """An end of a cable at a node of another site."""
    ends = [v for v in site.values_below("cabling") if v.path[2:3] == ("endpoints",)]
    ends = [v for v in ends if ":p" in v.text]
    if not ends:
        return None
    end = rng.choice(ends)
    node = rng.choice(["dgx-a", "gx10-3", "node7", "spark-9f2c", "promaxgb10"])
    text = site.replaced(end, f"{node}:{end.text.rpartition(':')[2]}")
    return Mistake("other site", text, end.line, several=True)


def quoted(rng: random.Random, site: Site) -> Mistake | None:
    """A number or truth in quotes, with a space in them."""
    known = [v for v in site.values if v.plain and re.fullmatch(r"[0-9.]+|true|false", v.text)]
    known = [v for v in known if v.path[-1] not in ("version", "nccl") and not _FREE & set(v.path)]
    known = [v for v in known if not re.fullmatch(r"\d+\.\d+\.\d+", v.text)]
    if not known:
        return None
    value = rng.choice(known)
    slip = rng.choice(
        [f"'{value.text} '", f'" {value.text}"', f'"{value.text}"', f"''{value.text}''"]
    )
    return Mistake("quoted number", site.replaced(value, slip), value.line, several=True)


def case(rng: random.Random, site: Site) -> Mistake | None:
    """A value in another case, or with underscores for dashes."""
    known = [
        v for v in site.values if v.plain and v.path[-1] in ("kind", "name", "bind", "launcher")
    ]
    known = [v for v in known if v.path[0] in ("topology", "engine", "model", "groups")]
    known = [v for v in known if len(v.path) == 2]
    if not known:
        return None
    value = rng.choice(known)
    slip = rng.choice([value.text.capitalize(), value.text.upper(), value.text.replace("-", "_")])
    return Mistake("case of a value", site.replaced(value, slip), value.line)


def commented_head(rng: random.Random, site: Site) -> Mistake | None:
    """A required key that is commented out, or a comment that took the next line's start."""
    needed = (("nodes", "name"), ("cabling", "endpoints"), ("topology", "kind"), ("engine", "name"))
    known = [k for k in site.keys if site.is_line(k) and len(k.path) in (2, 3)]
    known = [k for k in known if (k.path[0], k.path[-1]) in needed]
    if not known:
        return None
    key = rng.choice(known)
    line = site.lines[key.line]
    text = site.with_line(key.line, f"{line[: key.column]}# {line[key.column :]}")
    return Mistake("hidden key", text, -1, several=True)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(port, number, decorated, alternatives, dashed, undashed, reversed_pair, block_text),
    *(anchored, renamed_elsewhere, other_site, quoted, case, commented_head),
)
