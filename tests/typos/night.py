"""Single mistakes of tired people, and of those who think of TOML, Markdown, JSON or Slurm."""

import json
import random
import re
from collections.abc import Callable

import yaml

from typos.text import Mistake, Scalar, Site

_FREE = {"args", "env", "config"}
_TEXTS = ("description", "label", "reason", "command")


def _lines(site: Site) -> list[Scalar]:
    """Keys that are a line of their own with their plain value, and no comment."""
    keys = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    keys = [k for k in keys if k.path[0] != "waivers" and not {*_FREE, *_TEXTS} & set(k.path)]
    return [k for k in keys if _value(site, k).plain]


def _value(site: Site, key: Scalar) -> Scalar:
    return next(v for v in site.values if v.path == key.path)


def dotted(rng: random.Random, site: Site) -> Mistake | None:
    """A key with its section in front, in the section or at the margin."""
    keys = [k for k in _lines(site) if len(k.path) == 2 and site.lines[k.line][0] == " "]
    if not keys:
        return None
    key = rng.choice(keys)
    line = ".".join(map(str, key.path)) + site.lines[key.line][key.end :]
    if rng.random() < 0.5:
        return Mistake(
            "dotted path", site.with_line(key.line, " " * key.column + line), key.line, several=True
        )
    rest = [text for number, text in enumerate(site.lines) if number != key.line]
    text = "\n".join([*rest[:-1], line, ""])
    return Mistake("dotted path", text, len(rest) - 1, several=True)


def toml(rng: random.Random, site: Site) -> Mistake | None:
    """A section as TOML or an INI file has it."""
    heads = [k for k in site.keys if len(k.path) == 1 and site.is_head(k) and site.below(k)]
    heads = [k for k in heads if all(b in _lines(site) for b in site.below(k))]
    if not heads:
        return None
    head = rng.choice(heads)
    lines = list(site.lines)
    lines[head.line] = f"[{head.text}]"
    for key in site.below(head):
        lines[key.line] = f"{key.text} = {json.dumps(_value(site, key).text)}"
    return Mistake("TOML", "\n".join(lines), head.line, several=True)


def here_document(rng: random.Random, site: Site) -> Mistake | None:
    """The first or last line of a here document around the file."""
    word = rng.choice(["EOF", "YAML", "END"])
    if rng.random() < 0.5:
        first = rng.choice([f"cat > site.yaml <<{word}", f"cat <<'{word}' | tee site.yaml"])
        return Mistake("here document", "\n".join([first, *site.lines]), 0, several=True)
    lines = [*site.lines[:-1], word, ""]
    return Mistake("here document", "\n".join(lines), len(lines) - 2, several=True)


def comment_line(rng: random.Random, site: Site) -> Mistake | None:
    """A line that is a comment in another language."""
    number = rng.choice([k.line for k in site.keys if site.is_line(k) or site.is_head(k)])
    line = site.lines[number]
    own = " " * (len(line) - len(line.lstrip()))
    form = rng.choice(["// {}", "; {}", "-- {}", "/* {} */", "<!-- {} -->", "% {}", "rem {}"])
    words = form.format(rng.choice(["the rack in room 4", "as agreed with Kim", "see the wiki"]))
    text = site.with_line(number, f"{own}{words}", line)
    return Mistake("comment line", text, number, several=True)


def other_sign(rng: random.Random, site: Site) -> Mistake | None:
    """Another sign between a key and its value."""
    keys = _lines(site)
    if not keys:
        return None
    key = rng.choice(keys)
    value = _value(site, key)
    sign = rng.choice([" = ", " := ", " => ", " -> ", ":: ", " - ", "; ", "\t", " == ", ":= "])
    line = site.lines[key.line]
    text = site.with_line(key.line, line[: key.end] + sign + line[value.column :])
    return Mistake("other sign", text, key.line, several=True)


def bullet(rng: random.Random, site: Site) -> Mistake | None:
    """The dash of an entry as another bullet."""
    found = [n for n, line in enumerate(site.lines) if re.match(r" *- \S", line)]
    if not found:
        return None
    number = rng.choice(found)
    sign = rng.choice(["*", "\u2022", "+", "\u2013", "\u2014", "1.", "--", "o"])
    text = site.with_line(number, site.lines[number].replace("-", sign, 1))
    return Mistake("bullet", text, number, several=True)


def host_list(rng: random.Random, site: Site) -> Mistake | None:
    """The name of a node as Slurm, Ansible or a shell has several."""
    names = [v for v in site.values if v.plain and _names_a_node(v) and v.text[-1].isdigit()]
    if not names:
        return None
    name = rng.choice(names)
    stem, number = name.text[:-1], int(name.text[-1])
    forms = ("{0}[{1}-{2}]", "{0}[{1}:{2}]", "{0}{{{1},{2}}}", "{0}{{{1}..{2}}}", "{0}{1}-{0}{2}")
    slip = rng.choice(forms).format(stem, number, number + 1)
    line = -1 if name.path[0] == "nodes" else name.line
    # Such a name is a name, too.
    silent = name.path[0] == "nodes" and re.fullmatch(r"[\w-]+", slip) is not None
    return Mistake("host list", site.replaced(name, slip), line, silent=silent, several=True)


def _names_a_node(value: Scalar) -> bool:
    path = tuple(part for part in value.path if isinstance(part, str))
    return path in (("nodes", "name"), ("groups", "nodes"), ("services", "gateway", "node"))


def escaped(rng: random.Random, site: Site) -> Mistake | None:
    """A value with a web page's or a string's escapes."""
    keys = _lines(site)
    if not keys:
        return None
    value = _value(site, rng.choice(keys))
    form = rng.choice(
        ["&quot;{}&quot;", '\\"{}\\"', "{}\\n", "{}&nbsp;", "{}<br>", "{}%20", "&lt;{}&gt;", "{}\\"]
    )
    text = site.replaced(value, form.format(value.text))
    return Mistake("escapes", text, value.line, several=True)


_WITH_UNITS = {
    "context_length": ("context_length_k", "context_length_tokens", "context_k"),
    "memory_utilization": ("memory_utilization_percent", "memory_percent", "memory_gb"),
    "mtu": ("mtu_bytes", "mtu_size"),
    "length_m": ("length_cm", "length_ft", "length_meters", "length_mm"),
    "max_sequences": ("max_sequences_per_node", "sequences"),
    "port": ("port_number", "tcp_port"),
}


def unit_in_key(rng: random.Random, site: Site) -> Mistake | None:
    """A key with a unit in its name, for which its value may have to change as well."""
    keys = [k for k in site.keys if k.text in _WITH_UNITS and not _FREE & set(k.path)]
    if not keys:
        return None
    key = rng.choice(keys)
    text = site.replaced(key, rng.choice(_WITH_UNITS[key.text]))
    return Mistake("unit in a key", text, key.line, several=True)


def negated(rng: random.Random, site: Site) -> Mistake | None:
    """A service or a switch that is named by its opposite."""
    keys = [k for k in site.keys if _value_of(site, k) in ("true", "false")]
    keys = [k for k in keys if not _FREE & set(k.path) and k.path[0] != "waivers"]
    if not keys:
        return None
    key = rng.choice(keys)
    form = rng.choice(
        ["no_{}", "disable_{}", "no-{}", "not_{}", "{}_disabled", "without_{}", "!{}"]
    )
    value = _value(site, key)
    line = site.lines[key.line]
    other = {"true": "false", "false": "true"}[value.text]
    meant = site.with_line(key.line, line[: value.column] + other + line[value.end :])
    text = site.replaced(key, form.format(key.text))
    return Mistake("negated key", text, key.line, several=True, meant=meant)


def _value_of(site: Site, key: Scalar) -> str:
    return next((v.text for v in site.values if v.path == key.path and v.plain), "")


def other_list(rng: random.Random, site: Site) -> Mistake | None:
    """An entry of one list at the end of another one."""
    lists = [k for k in site.keys if len(k.path) == 1 and site.is_head(k)]
    entries = {
        k.text: sorted(
            {s.path[:2] for s in site.scalars if s.path[0] == k.text and len(s.path) > 1}
        )
        for k in lists
    }
    entries = {name: own for name, own in entries.items() if own and isinstance(own[0][1], int)}
    if len(entries) < 2:
        return None
    source, target = rng.sample(sorted(entries), 2)
    taken, last = site.lines_of(rng.choice(entries[source])), site.lines_of(entries[target][-1])
    if taken is None or last is None or taken[1] - taken[0] > 6 or len(entries[source]) < 2:
        return None
    lines = site.lines[slice(*taken)]
    if any("#" in line for line in lines):
        return None
    dash, wanted = (site.lines[at].index("-") for at in (taken[0], last[0]))
    moved = [" " * wanted + line[dash:] for line in lines]
    at = last[1]
    rest = [line for n, line in enumerate(site.lines) if not taken[0] <= n < taken[1]]
    at -= (taken[1] - taken[0]) * (taken[0] < at)
    return Mistake("other list", "\n".join([*rest[:at], *moved, *rest[at:]]), -1, several=True)


def json_section(rng: random.Random, site: Site) -> Mistake | None:
    """A section as JSON or as Python prints it, with something missing."""
    heads = [k for k in site.keys if len(k.path) == 1 and site.is_head(k)]
    heads = [k for k in heads if site.block(k) and k.path[0] != "waivers"]
    if not heads:
        return None
    head = rng.choice(heads)
    first, end = site.block(head) or (0, 0)
    data = yaml.load("\n".join(site.lines[first:end]), Loader=yaml.BaseLoader)
    lines = json.dumps(data, indent=2).split("\n")[1:-1]
    lines = [line.removeprefix("  ") for line in lines]
    if rng.random() < 0.5:
        found = [n for n, line in enumerate(lines) if line.endswith(",")]
        if not found:
            return None
        at = rng.choice(found)
        lines[at] = lines[at][:-1]
    else:
        del lines[-1]
    text = "\n".join([*site.lines[:first], *lines, *site.lines[end:]])
    return Mistake("broken JSON", text, -1, several=True)


def netplan(rng: random.Random, site: Site) -> Mistake | None:
    """Keys of netplan in a node."""
    names = [k for k in site.keys if k.path[:1] == ("nodes",) and k.path[2:] == ("name",)]
    names = [k for k in names if site.lines[k.line].strip() == f"- name: {_value_of(site, k)}"]
    if not names:
        return None
    name = rng.choice(names)
    own = " " * name.column
    lines = rng.choice(
        [
            ["ethernets:", "  enp1s0f0np0:", "    addresses: [192.168.100.10/24]"],
            ["ethernets:", "  enp1s0f0np0: {dhcp4: false, mtu: 9000}"],
            ["addresses: [10.0.0.11/24]"],
            ["dhcp4: true"],
            ["routes:", "  - {to: default, via: 10.0.0.1}"],
            ["nameservers: {addresses: [1.1.1.1]}"],
        ]
    )
    text = site.with_line(name.line, site.lines[name.line], *(own + line for line in lines))
    return Mistake("netplan in a node", text, name.line + 1, several=True)


def merge(rng: random.Random, site: Site) -> Mistake | None:
    """A merge key, as Compose files use it."""
    heads = [k for k in site.keys if site.is_head(k) and site.below(k) and len(k.path) == 1]
    if not heads:
        return None
    head = rng.choice(heads)
    own = " " * site.below(head)[0].column
    if rng.random() < 0.5:
        text = site.with_line(head.line, site.lines[head.line], f"{own}<<: *common")
        return Mistake("merge key", text, head.line + 1, several=True)
    lines = ["x-common: &common", "  restart: always", *site.lines[: head.line + 1]]
    text = "\n".join([*lines, f"{own}<<: *common", *site.lines[head.line + 1 :]])
    return Mistake("merge key", text, -1, several=True)


def ditto(rng: random.Random, site: Site) -> Mistake | None:
    """A value of a later entry that says that it is as above."""
    values = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    values = [v for v in values if v.path[0] in ("nodes", "cabling", "groups") and v.path[1]]
    values = [v for v in values if not {*_FREE, *_TEXTS} & set(v.path)]
    if not values:
        return None
    value = rng.choice(values)
    slip = rng.choice(
        ['"', "ditto", "same", "as above", "(same)", "''", "^", "same as spark1", "~"]
    )
    # Some keys take any word.
    silent = slip in ("same", "ditto", "~")
    # A name is missed where it is used.
    line = -1 if value.path[-1] == "name" else value.line
    return Mistake("ditto", site.replaced(value, slip), line, silent=silent, several=True)


def quoted_pair(rng: random.Random, site: Site) -> Mistake | None:
    """A whole line in quotes."""
    keys = _lines(site)
    if not keys:
        return None
    key = rng.choice(keys)
    mark = rng.choice("'\"`")
    line = site.lines[key.line]
    text = site.with_line(key.line, f"{line[: key.column]}{mark}{line[key.column :]}{mark}")
    return Mistake("quoted line", text, key.line, several=True)


def comma_line(rng: random.Random, site: Site) -> Mistake | None:
    """Two lines that became one, with a comma or a semicolon between them."""
    by_line = {k.line: k for k in _lines(site)}
    firsts = [k for n, k in by_line.items() if n + 1 in by_line]
    firsts = [k for k in firsts if by_line[k.line + 1].path[:-1] == k.path[:-1]]
    if not firsts:
        return None
    first = rng.choice(firsts)
    sign = rng.choice([", ", "; ", " and ", " | ", ",", " / "])
    both = site.lines[first.line] + sign + site.lines[first.line + 1].strip()
    text = "\n".join([*site.lines[: first.line], both, *site.lines[first.line + 2 :]])
    return Mistake("two on a line", text, first.line, several=True)


def grouped(rng: random.Random, site: Site) -> Mistake | None:
    """A large number with signs between its digits."""
    known = [v for v in site.values if v.plain and re.fullmatch("[0-9]{4,7}", v.text)]
    known = [v for v in known if not _FREE & set(v.path)]
    if not known:
        return None
    value = rng.choice(known)
    sign = rng.choice(["_", ",", " ", ".", "'", "\u2009", "\u00a0"])
    slip = f"{int(value.text):,}".replace(",", sign)
    return Mistake("grouped digits", site.replaced(value, slip), value.line, several=True)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(dotted, toml, here_document, comment_line, other_sign, bullet, host_list, escaped),
    *(unit_in_key, negated, other_list, json_section, netplan, merge, ditto, quoted_pair),
    *(comma_line, grouped),
)
