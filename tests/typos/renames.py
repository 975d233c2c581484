"""Single mistakes of half a change: names, ports, units and copies edited in one place alone."""

import random
import re
from collections.abc import Callable

from typos.leftovers import TEXTS, plain_values
from typos.text import Mistake, Scalar, Site
from typos.words import OTHER_NAMES, of_format


def _uses(site: Site, name: Scalar) -> list[Scalar]:
    """Where the name of a node or a group is used."""
    form = re.compile(rf"{re.escape(name.text)}(:.*)?")
    values = [v for v in site.values if v != name and form.fullmatch(v.text)]
    names = {*TEXTS, "served_name", "name"}
    return [v for v in values if v.path[0] != "waivers" and v.path[-1] not in names]


def _names(site: Site, *lists: str) -> list[Scalar]:
    named = [v for v in site.values if v.path[-1] == "name" and len(v.path) > 2 and v.plain]
    return [v for v in named if v.path[-3] in lists]


def half_rename(rng: random.Random, site: Site) -> Mistake | None:
    """A node that was renamed everywhere but in one place."""
    names = _names(site, "nodes")
    if len(names) < 2 or not (uses := _uses(site, name := rng.choice(names))):
        return None
    kept = rng.choice(uses)
    new = rng.choice([f"dgx-{name.text}", f"{name.text}a", "gx10-7f3c", "head"])
    if new in [n.text for n in names]:
        return None
    edits = {v: v.text.replace(name.text, new, 1) for v in (name, *uses)}
    meant = site.edited(edits)
    text = site.edited({v: to for v, to in edits.items() if v != kept})
    return Mistake("half rename", text, kept.line, several=True, meant=meant)


def gone(rng: random.Random, site: Site) -> Mistake | None:
    """A node, a group or an alternative that was deleted, and is still named elsewhere."""
    names = _names(site, rng.choice(["nodes", "groups", "alternatives"]))
    if len(names) < 2:
        return None
    name = rng.choice(names)
    span = site.lines_of(name.path[:-1])
    if span is None or not re.match(r" *- ", site.lines[span[0]]):
        return None
    cut = span[1] - span[0]
    uses = [v.line for v in _uses(site, name) if not span[0] <= v.line < span[1]]
    lines = [line - cut * (line >= span[1]) for line in uses]
    # What is left may be a site of another kind.
    allowed = [*lines, *(k.line for k in site.keys if k.path == ("topology", "kind"))]
    text = site.instead(*span)
    return Mistake("gone entry", text, lines[0], several=True, lines=allowed) if lines else None


def renamed_group(rng: random.Random, site: Site) -> Mistake | None:
    """A group or alternative of which the name alone was changed."""
    names = [n for n in _names(site, "groups", "alternatives") if _uses(site, n)]
    if not names:
        return None
    name = rng.choice(names)
    text = site.replaced(name, rng.choice(["main", "prod", f"{name.text}-new", "big"]))
    lines = [use.line for use in _uses(site, name)]
    return Mistake("renamed group", text, lines[0], several=True, lines=lines)


_CAGES = (
    *(("p1", "p2"), ("left", "right"), ("1", "2"), ("0", "1"), ("P0", "P1"), ("port0", "port1")),
    *(("enp1s0f0np0", "enp1s0f1np1"), ("cx7-0", "cx7-1"), ("qsfp0", "qsfp1")),
)


def cages(rng: random.Random, site: Site) -> Mistake | None:
    """The ports of all cables counted from one, or named by side, by interface or by card."""
    nodes = {name.text for name in _names(site, "nodes")}
    ends = [v for v in site.values_below("cabling") if re.search(":p[01]$", v.text)]
    ends = [v for v in ends if v.text.partition(":")[0] in nodes]
    if not ends:
        return None
    names = rng.choice(_CAGES)
    edits = {v: f"{v.text.partition(':')[0]}:{names[int(v.text[-1])]}" for v in ends}
    # Cables at the second ports alone make another site.
    silent = names[0] == "p1" and not any(v.text.endswith("1") for v in ends)
    lines = [v.line for v in ends]
    line = -1 if silent else lines[0]
    text = site.edited(edits)
    return Mistake("cage names", text, line, silent=silent, several=True, lines=lines)


def mask(rng: random.Random, site: Site) -> Mistake | None:
    """A prefix length where none belongs, none where one does, or a range in another form."""
    known = [v for v in site.values if re.match(r"\d+\.\d+\.", v.text)]
    known = [v for v in known if {"gateway", "subnet_pool", "address", "subnets"} & set(v.path)]
    if not known:
        return None
    value = rng.choice(known)
    host, _, length = value.text.partition("/")
    first = host.rpartition(".")[0]
    if value.path[-1] == "gateway":
        forms = ["{0}/24", "{0}/32", "{0}:80", "none", "via {0}", "true", "[{0}]", "{0}.1"]
    elif value.path[-1] == "address":
        forms = ["{0}/0", "{0}/32", "{0}/24/", "{0}%enP7s7", "[{0}/{1}]", "inet {0}/{1}"]
        forms += ["{0} - {1}", "{0}/{1} brd {2}.255", "{0}/ 24"]
    else:
        forms = ["{0}", "{0}/{1}/", "{0}/31", "{0}/255.255.255.0", "{2}/{1}", "{2}.x/{1}", "{2}.*"]
        forms += ["{0}-{2}.255", "{0}/4", "auto"]
    text = site.replaced(value, rng.choice(forms).format(host, length, first))
    return Mistake("mask", text, value.line, several=True)


_HUBS = (
    *("openai/{0}", "{1}:latest", "ollama/{1}", "models--openai--{0}", "{0}@main", "{1}.gguf"),
    *("hf.co/unsloth/{1}-GGUF:Q4_K_M", "https://huggingface.co/openai/{0}", "unsloth/{1}-GGUF"),
    *("lmstudio-community/{1}", "/models/{0}", "azure/{0}", "{1}-Q4_K_M", "{0}-instruct"),
)


def hub(rng: random.Random, site: Site) -> Mistake | None:
    """A model by the name that another hub or program has for it."""
    known = [v for v in site.values if v.path[-2:] == ("model", "name")]
    if not known:
        return None
    value = rng.choice(known)
    stem = re.sub("-(?:gptq|awq|int4|fp8|nvfp4|autoround).*$", "", value.text)
    text = site.replaced(value, rng.choice(_HUBS).format(value.text, stem))
    return Mistake("hub's name", text, value.line, several=True)


_UNITS = {
    "shm": ("{0}", "{0}GB", "{0} GiB", "{1}m", "{0}Gi", "{1}MB"),
    "clock_mhz": ("{2}", "{2}GHz", "{0}MHz", "{0} MHz", "{1}", "{0}M"),
    "length_m": ("{3}", "{0}ft", "{3} mm", "{0}km"),
    "oom_score": ("5000", "-17000", "high", "50%"),
    "gib": ("{1}", "{0}GB", "{0} GiB", "{1}MB", "{0}Gi", "{0}T"),
}
_UNITS |= {"memory": _UNITS["shm"], "visible_gib": _UNITS["gib"], "memory_gb": _UNITS["gib"]}


def size(rng: random.Random, site: Site) -> Mistake | None:
    """A size in another unit than its key's."""
    known = [v for v in site.values if v.path[-1] in _UNITS and re.match(r"-?[\d.]+", v.text)]
    if not known:
        return None
    value = rng.choice(known)
    number = float(re.sub("[a-z]", "", value.text))
    parts = (number, number * 1024, number / 1000, number * 1000)
    form = rng.choice(_UNITS[str(value.path[-1])])
    slip = form.format(*(f"{part:g}" for part in parts))
    return Mistake("size's unit", site.replaced(value, slip), value.line, several=True)


def bounds(rng: random.Random, site: Site) -> Mistake | None:
    """Zero, a negative number, none at all, or one out of all reason."""
    known = [v for v in plain_values(site) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", v.text)]
    known = [v for v in known if v.path[-1] not in ("version", "name", "nccl", "os", "oom_score")]
    if not known:
        return None
    value = rng.choice(known)
    slip = rng.choice(["0", "-1", f"-{value.text}", "999999999", "1e9", ".inf", ".nan", "NaN"])
    return Mistake("out of bounds", site.replaced(value, slip), value.line, several=True)


_TRUE = ("1", "enabled", "active", '"true"', "oui", "x", "always", "True.", "present", "[x]", "+")
_FALSE = ("0", "disabled", "never", '"false"', "absent", "f", "-", "[ ]", "none", "nein", "{}")


def truth(rng: random.Random, site: Site) -> Mistake | None:
    """True or false as a number, in another word, or in quotes."""
    known = [v for v in plain_values(site) if v.text in ("true", "false")]
    if not known:
        return None
    value = rng.choice(known)
    slip = rng.choice(_TRUE if value.text == "true" else _FALSE)
    return Mistake("truth's word", site.replaced(value, slip), value.line, several=True)


_OTHERS = {"true": "false", "false": "true", "0.33.0": "0.32.0", "pairs": "mixed"}


def pasted(rng: random.Random, site: Site) -> Mistake | None:
    """A section that was pasted a second time, and of which one value was changed."""
    heads = [k for k in site.keys if len(k.path) == 1 and site.is_head(k)]
    if not heads:
        return None
    head = rng.choice(heads)
    values = [v for v in plain_values(site) if v.path[0] == head.text and v.line > head.line]
    values = [v for v in values if v.text in _OTHERS or v.path[-1] in ("mtu", "served_name")]
    span = site.lines_of(head.path)
    if span is None or not values:
        return None
    value = rng.choice(values)
    new = "1500" if value.path[-1] == "mtu" else _OTHERS.get(value.text, f"{value.text}x")
    block = site.replaced(value, new).split("\n")[slice(*span)]
    at = rng.choice([0, span[1]])
    return Mistake("paste, edited", site.instead(at, at, *block), -1, several=True)


def synonym(rng: random.Random, site: Site) -> Mistake | None:
    """A key, and below it another tool's word for the same."""
    places = [k for k in site.keys if of_format(k) in OTHER_NAMES and site.is_line(k)]
    if not places:
        return None
    key = rng.choice(places)
    name, value = rng.choice(OTHER_NAMES[of_format(key)]), site.value(key).text
    if any(other.path == (*key.path[:-1], name) for other in site.keys):
        return None
    other = str(int(value) * 2) if value.isdigit() else value
    new = f"{' ' * key.column}{name}: {other}"
    text = site.with_line(key.line, site.lines[key.line], new)
    lines = (key.line, key.line + 1)
    return Mistake("synonym beside", text, key.line + 1, several=True, lines=lines)


_IMAGES = {
    "vllm": "lmsysorg/sglang:v0.5.23-cu130",
    "sglang": "vllm/vllm-openai:v0.33.0",
    "llama": "lmsysorg/sglang:v0.5.23-cu130",
}


def other_image(rng: random.Random, site: Site) -> Mistake | None:
    """The image of another engine, left from a change."""
    known = [v for v in site.values if v.path[-2:] == ("engine", "image")]
    pairs = [(v, new) for v in known for own, new in _IMAGES.items() if own in v.text]
    if not pairs or "SG6" in site.text:
        return None
    value, new = rng.choice(pairs)
    near = ("name", "image", "version")
    lines = [k.line for k in site.keys if k.path[:-1] == value.path[:-1] and k.text in near]
    text = site.replaced(value, new)
    return Mistake("other image", text, value.line, several=True, lines=lines)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(half_rename, gone, renamed_group, cages, mask, hub, size, bounds, truth, pasted, synonym),
    other_image,
)
