"""Single mistakes in names that refer to something, in addresses, numbers and copies."""

import random
import re
from collections.abc import Callable

from typos.text import Mistake, Scalar, Site, misspelt


def reference(rng: random.Random, site: Site) -> Mistake | None:
    """The misspelt name of a node, a group or a switch, where something refers to it."""
    known = [
        v
        for v in site.values
        if (v.path[0] == "groups" and v.path[2:3] == ("nodes",))
        or v.path[-1] in ("same_as", "active", "node")
        or v.path[1:3] == ("guard", "order")
    ]
    known = [v for v in known if v.path[0] in ("groups", "services")]
    if not known:
        return None
    value = rng.choice(known)
    wrong = rng.choice([misspelt(rng, value.text), value.text[:-1], f"{value.text}0", "nowhere"])
    return Mistake("reference", site.replaced(value, wrong), value.line, several=True)


def address_form(rng: random.Random, site: Site) -> Mistake | None:
    """A management address in another form."""
    known = [v for v in site.values if v.path[-2:] == ("management", "address")]
    if not known:
        return None
    value = rng.choice(known)
    host, _, _ = value.text.partition("/")
    octets = host.split(".")
    slip = rng.choice(
        [
            f"{host}/255.255.255.0",
            f"{'.'.join(octets[:3])}/24",
            f"{host}:22",
            f"{host}/33",
            f"{'.'.join(octets)}.1/24",
            f"{octets[0]}.{octets[1]}.{octets[2]}.311/24",
            "dhcp",
            f"{host}/24/24",
            f"{host} 255.255.255.0",
            f"fe80::{octets[3]}/64",
            f"{host}/",
            "auto",
            f"{'.'.join(octets[:3])}.0/24",
            f"{'.'.join(octets[:3])}.255/24",
        ]
    )
    return Mistake("address form", site.replaced(value, slip), value.line, several=True)


def subnet(rng: random.Random, site: Site) -> Mistake | None:
    """A subnet twice, with host bits, or with a prefix length that can't be."""
    known = [v for v in site.values_below("cabling") if v.path[2:3] == ("subnets",)]
    if len(known) < 2:
        return None
    value, other = rng.sample(known, 2)
    network = value.text.partition("/")[0]
    base = network.rpartition(".")[0]
    sure = [f"{network}/33", f"{base}.5/24", network, f"{network}/8", f"{base}/24"]
    slip = rng.choice([other.text, *sure])
    line = -1 if slip == other.text else value.line
    return Mistake("subnet", site.replaced(value, slip), line, several=True)


def image_form(rng: random.Random, site: Site) -> Mistake | None:
    """An image with a scheme, in capitals, with a space or two tags."""
    known = [v for v in site.values if v.path[-2:] == ("engine", "image")]
    if not known:
        return None
    value = rng.choice(known)
    name, _, tag = value.text.rpartition(":")
    slip = rng.choice(
        [
            f"https://{value.text}",
            f"docker://{value.text}",
            f"{name.upper()}:{tag}",
            f"{name}:",
            f"{name} {tag}",
            f"{value.text}:latest",
            f"docker pull {value.text}",
            f"{name}@{tag}",
        ]
    )
    return Mistake("image form", site.replaced(value, slip), value.line, several=True)


def number_form(rng: random.Random, site: Site) -> Mistake | None:
    """A number in a form that is not one, or out of all reason."""
    names = ("mtu", "context_length", "max_sequences", "port", "host", "tensor", "pipeline")
    known = [v for v in site.values if v.plain and v.text.isdigit() and v.path[-1] in names]
    if not known:
        return None
    value = rng.choice(known)
    word = value.text
    slip = rng.choice(
        [
            f"-{word}",
            f"{word}.5",
            f"~{word}",
            f">={word}",
            f"{word}/2",
            f"{word}+1",
            f"0{word}",
            "two",
            "max",
            f"{word}f",
            f"#{word}",
            f"{word}e",
            f"{word} {word}",
            f"{word}-{word}",
            "0",
            f"{word}00000000",
            f"={word}",
        ]
    )
    return Mistake("number form", site.replaced(value, slip), value.line, several=True)


def secret_form(rng: random.Random, site: Site) -> Mistake | None:
    """A secret with its value, or under a name that is none."""
    known = [v for v in site.values if v.path[-2:-1] == ("secrets",)]
    if not known:
        return None
    value = rng.choice(known)
    word = value.text
    slip = rng.choice([f"{word}=abc123", f"{word}: abc123", f"${word}", word.replace("_", "-")])
    return Mistake("secret form", site.replaced(value, slip), value.line, several=True)


def waiver(rng: random.Random, site: Site) -> Mistake | None:
    """A waiver of a rule that does not exist, or at a path where nothing is."""
    known = [v for v in site.values_below("waivers") if v.path[2:3] in (("rule",), ("path",))]
    if not known:
        return None
    value = rng.choice(known)
    word = value.text
    slips = {
        "rule": [word[:-1], f"{word}0", word.replace("SG", "")],
        "path": [f"{word}x", word[:-1]],
    }
    slip = rng.choice(slips[str(value.path[2])])
    return Mistake("waiver", site.replaced(value, slip), value.line, several=True)


def copied_group(rng: random.Random, site: Site) -> Mistake | None:
    """A copied group of which the name alone was changed."""
    return _copied(rng, site, "groups", "copied group")


def copied_cable(rng: random.Random, site: Site) -> Mistake | None:
    """A copied cable of which one end was changed, to a port that has none or that is taken."""
    ends = [v for v in site.values_below("cabling") if v.path[2:3] == ("endpoints",)]
    if not ends:
        return None
    end = rng.choice(ends)
    lines = site.lines_of(("cabling", end.path[1]))
    if lines is None or not re.match(r" *- ", site.lines[lines[0]]):
        return None
    first, last = lines
    block = site.lines[first:last]
    at = end.line - first
    block[at] = f"{block[at][: end.column]}{end.text}9{block[at][end.end :]}"
    text = "\n".join([*site.lines[:last], *block, *site.lines[last:]])
    return Mistake("copied cable", text, -1, several=True)


def new_node(rng: random.Random, site: Site) -> Mistake | None:
    """A copied node with a name and an address of its own, which nothing else names."""
    names = [v for v in site.values_below("nodes") if v.path[2:] == ("name",)]
    addresses = [v for v in site.values_below("nodes") if v.path[3:] == ("address",)]
    if not names:
        return None
    name = rng.choice(names)
    own = [v for v in addresses if v.path[1] == name.path[1]]
    lines = site.lines_of(("nodes", name.path[1]))
    if lines is None or not own or not re.match(r" *- ", site.lines[lines[0]]):
        return None
    first, last = lines
    block = list(site.lines[first:last])
    for place, text in sorted(
        ((name, f"{name.text}-new"), (own[0], re.sub(r"[0-9]+/", "99/", own[0].text))),
        key=lambda p: -p[0].column,
    ):
        at = place.line - first
        block[at] = f"{block[at][: place.column]}{text}{block[at][place.end :]}"
    text = "\n".join([*site.lines[:last], *block, *site.lines[last:]])
    # With groups, a node outside all of them is idle.
    idle = any(k.path == ("groups",) for k in site.keys) or "engine" not in site.text
    return Mistake("new node", text, -1, silent=idle, several=True)


def doubled_block(rng: random.Random, site: Site) -> Mistake | None:
    """A block that stands twice, right below itself or in another section."""
    heads = [k for k in site.keys if site.is_head(k) and len(k.path) > 1]
    heads = [k for k in heads if not site.lines[k.line].lstrip().startswith("-")]
    if not heads or (block := site.block(rng.choice(heads))) is None:
        return None
    first, end = block
    lines = site.lines[first:end]
    if rng.random() < 0.5 and len(lines) > 2:
        # One line of the copy was edited.
        lines = lines[:-1]
    text = "\n".join([*site.lines[:end], *lines, *site.lines[end:]])
    return Mistake("doubled block", text, -1, several=True)


def _copied(rng: random.Random, site: Site, section: str, kind: str) -> Mistake | None:
    names: list[Scalar] = [v for v in site.values_below(section) if v.path[2:] == ("name",)]
    if not names:
        return None
    name = rng.choice(names)
    lines = site.lines_of((section, name.path[1]))
    if lines is None or not re.match(r" *- ", site.lines[lines[0]]):
        return None
    first, end = lines
    block = list(site.lines[first:end])
    at = name.line - first
    block[at] = f"{block[at][: name.column]}{name.text}x{block[at][name.end :]}"
    text = "\n".join([*site.lines[:end], *block, *site.lines[end:]])
    return Mistake(kind, text, -1, several=True)


def conflict(rng: random.Random, site: Site) -> Mistake | None:
    """What git leaves of two changes of one line."""
    lines = [k for k in site.keys if site.is_line(k)]
    if not lines:
        return None
    line = rng.choice(lines).line
    own = site.lines[line]
    text = site.with_line(line, "<<<<<<< HEAD", own, "=======", f"{own}1", ">>>>>>> main")
    return Mistake("conflict", text, line, several=True)


def odd_start(rng: random.Random, site: Site) -> Mistake | None:
    """A value that begins with a sign that YAML reads in its own way, in a key's own place."""
    lines = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    if not lines:
        return None
    key = rng.choice(lines)
    line = site.lines[key.line]
    slip = rng.choice(
        [
            line.replace(": ", "\uff1a", 1),
            line.replace(": ", " => ", 1),
            line.replace(": ", " := ", 1),
            f"{line[: key.column]}? {line[key.column :]}",
            f"{line[: key.column]}<<: {line[key.column :]}",
            f"{line[: key.column]}*{line[key.column :]}",
            f"{line[: key.column]}- {line[key.column :]}",
            f"{line}]",
            f"{line}}}",
            f"{line[: key.column]}${line[key.column :]}",
            f"{line[: key.column]}|{line[key.column :]}",
        ]
    )
    text = key.path[-1] in ("description", "label", "reason") and slip[:-1] == line
    free = {"args", "env"} & set(key.path)
    return Mistake(
        "odd sign",
        site.with_line(key.line, slip),
        key.line,
        silent=text or bool(free),
        several=True,
    )


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(reference, address_form, subnet, image_form, number_form, secret_form, waiver),
    *(copied_group, copied_cable, new_node, doubled_block, conflict, odd_start),
)
