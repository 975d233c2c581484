"""Single mistakes of form: entries for words, words for entries, blocks and lists apart."""

import random
import re
from collections.abc import Callable

from generator.sitefile.key_rules import keys_at
from typos.leftovers import FREE, TEXTS
from typos.text import KeyPath, Mistake, Scalar, Site

_LISTS = {
    **dict.fromkeys(("nodes", "secrets", "aliases", "order", "stops"), "name"),
    "endpoints": "node",
    "subnets": "subnet",
    "paths": "path",
    "uplinks": "port",
}


def _lists(site: Site) -> list[list[Scalar]]:
    """The words of each list of words."""
    lists: dict[KeyPath, list[Scalar]] = {}
    for value in site.values:
        if isinstance(value.path[-1], int) and value.path[-2] in _LISTS:
            lists.setdefault(value.path[:-1], []).append(value)
    return list(lists.values())


def item_as_mapping(rng: random.Random, site: Site) -> Mistake | None:
    """Words of a list, each as a mapping."""
    if not (lists := _lists(site)):
        return None
    words = rng.choice(lists)
    name = str(words[0].path[-2])
    ends = ("{{node: {1}, port: {2}}}", "{{{1}: {2}}}", "{{name: '{0}'}}")
    form = rng.choice(ends if name == "endpoints" else ("{{{3}: {0}}}", "{{{0}: true}}"))
    chosen = rng.choice([words, words[:1]])
    edits = {
        v: form.format(v.text, v.text.partition(":")[0], v.text[-2:], _LISTS[name]) for v in chosen
    }
    lines = [v.line for v in words] + [k.line for k in site.keys if k.path == words[0].path[:-1]]
    text = site.edited(edits)
    return Mistake("item as mapping", text, lines[0], several=True, lines=lines)


def mapping_as_item(rng: random.Random, site: Site) -> Mistake | None:
    """An entry that is a mapping as a word: its name, both ends of a cable, a volume."""
    entries = {
        path[:end]
        for path in (v.path for v in site.values)
        for end, part in enumerate(path, 1)
        if isinstance(part, int) and end < len(path) and path[end] in ("name", "path", "endpoints")
    }
    entries = {path for path in entries if path[0] != "waivers"}
    if not entries:
        return None
    path = rng.choice(sorted(entries, key=str))
    span = site.lines_of(path)
    if span is None or not re.match(r" *- ", site.lines[span[0]]):
        return None
    own = {v.path[len(path) :]: v.text for v in site.values if v.path[: len(path)] == path}
    before = " " * site.lines[span[0]].index("-") + "- "
    if ("path",) in own:
        source, target = own["path",], own.get(("target",), own["path",])
        word, meant = f"{source}:{target}", f"{{path: {source}, target: {target}}}"
    elif ends := [text for part, text in own.items() if part[0] == "endpoints"]:
        word, meant = rng.choice(["{}--{}", "{} <-> {}", "{}/{}"]).format(*ends), ""
    else:
        word, meant = own["name",], f"{{name: {own['name',]}}}"
    text = site.instead(*span, before + word)
    # What else was in it is gone.
    whole = site.instead(*span, before + meant) if meant else ""
    return Mistake("mapping as item", text, span[0], several=True, meant=whole)


_WORDS = {
    "guard": ("embed", "strict"),
    "web_ui": ("3000", "open-webui", ":3000"),
    "power": ("2100", "2100MHz"),
    "proxy": ("nginx", "8088"),
    "gateway": ("8088", "nginx"),
    "monitoring": ("prometheus", "9090", "{port: 9090}"),
    "firewall": ("ufw", "strict", "{allow: [22]}", "[22, 8000]"),
    "ssh": ("22", "hardened", "{port: 22}"),
    "models": ("/models", "{path: /models}", "[gpt-oss-120b]"),
    "qos": ("pfc", "{priority: 3}"),
    "ansible": ("inventory.ini", "{user: ops}"),
}


def service_as_word(rng: random.Random, site: Site) -> Mistake | None:
    """A service as one word, or with settings that it does not have."""
    keys = [k for k in site.keys_below("services") if len(k.path) == 2 and k.text in _WORDS]
    found = [
        (key, match)
        for key in keys
        if (match := re.compile(r": (\{[^{}]*\}|\w+)").match(site.lines[key.line], key.end))
    ]
    if not found:
        return None
    key, match = rng.choice(found)
    line = site.lines[key.line]
    new = line[: match.start(1)] + rng.choice(_WORDS[key.text]) + line[match.end() :]
    return Mistake("service as word", site.with_line(key.line, new), key.line, several=True)


_OF_ENV = (
    *("- name: {0}\n  value: '{1}'", "- {{name: {0}, value: {1}}}", "{0}: {{value: {1}}}"),
    *("{0}: [{1}]", "- key: {0}\n  value: {1}", "- {0}\n- {1}", "${0}: {1}"),
    "- name: {0}\n  valueFrom: {{secretKeyRef: {{name: x, key: {0}}}}}",
)


def env_entries(rng: random.Random, site: Site) -> Mistake | None:
    """Variables of any 'env' as Kubernetes has them."""
    heads = [k for k in site.keys if k.text == "env" and site.is_head(k) and site.block(k)]
    heads = [k for k in heads if all(site.is_line(b) for b in site.below(k))]
    if not heads:
        return None
    head = rng.choice(heads)
    inside, form = site.below(head), rng.choice(_OF_ENV)
    if not all(site.value(key).plain for key in inside):
        return None
    made = [form.format(key.text, site.value(key).text) for key in inside]
    lines = [" " * inside[0].column + line for each in made for line in each.split("\n")]
    first, end = site.block(head) or (0, 0)
    text = site.instead(first + 1, end, *lines)
    allowed = range(first, first + 1 + len(lines))
    return Mistake("env entries", text, first, several=True, lines=allowed)


def numbered(rng: random.Random, site: Site) -> Mistake | None:
    """A list as a mapping, its entries by number or by name."""
    heads = [k for k in site.keys if site.is_head(k) and not site.below(k) and site.block(k)]
    heads = [k for k in heads if k.text in ("nodes", "cabling", "groups", "jobs", "files", "other")]
    if not heads:
        return None
    head = rng.choice(heads)
    first, end = site.block(head) or (0, 0)
    body = site.lines[first + 1 : end]
    dash = min((line.index("-") for line in body if re.match(" *- ", line)), default=-1)
    if dash < 0 or any("#" in line for line in body):
        return None
    lines: list[str] = []
    wide, form = max(dash, head.column + 2), rng.choice(["{}:", "item{}:", "'{}':"])
    for line in body:
        if line[dash : dash + 2] == "- ":
            lines.append(" " * wide + form.format(len(lines) + 1))
        lines.append(" " * (wide + 2) + line[dash + 2 :])
    text = site.instead(first + 1, end, *lines)
    allowed = range(first, first + 1 + len(lines))
    return Mistake("numbered list", text, first, several=True, lines=allowed)


def moved_block(rng: random.Random, site: Site) -> Mistake | None:
    """A nested block under another parent."""
    heads = [k for k in site.keys if site.is_head(k) and len(k.path) > 1 and k.path[0] != "waivers"]
    heads = [k for k in heads if not site.lines[k.line].lstrip().startswith("-") and site.block(k)]
    parents = [k for k in site.keys if site.is_head(k) and site.below(k)]
    parents = [k for k in parents if not FREE & set(k.path)]
    pairs = [(head, to) for head in heads for to in parents if to.path != head.path[:-1]]
    pairs = [(head, to) for head, to in pairs if to.path[: len(head.path)] != head.path]
    if not pairs:
        return None
    head, to = rng.choice(pairs)
    beside = [k for k in site.keys if k.path[:-1] == head.path[:-1]]
    if len(beside) == 1 or any(k.path == (*to.path, head.text) for k in site.keys):
        return None
    first, end = site.block(head) or (0, 0)
    own = " " * site.below(to)[0].column
    lines = [own + line[head.column :] if line.strip() else line for line in site.lines[first:end]]
    rest = [*site.lines[:first], *site.lines[end:]]
    at = to.line + 1 - (end - first) * (to.line >= first)
    text = "\n".join([*rest[:at], *lines, *rest[at:]])
    silent = head.text in keys_at(to.path)
    # Where it is gone from may be what is told.
    return Mistake("moved block", text, -1, silent=silent, several=True)


def child_above(rng: random.Random, site: Site) -> Mistake | None:
    """A line of a block above the block's head."""
    heads = [k for k in site.keys if site.is_head(k) and len(site.below(k)) > 1]
    heads = [k for k in heads if not site.lines[k.line].lstrip().startswith("-")]
    pairs = [(h, c) for h in heads for c in site.below(h) if site.is_line(c)]
    pairs = [(h, c) for h, c in pairs if h.path[0] != "waivers"]
    if not pairs:
        return None
    head, child = rng.choice(pairs)
    rest = [line for number, line in enumerate(site.lines) if number != child.line]
    text = "\n".join([*rest[: head.line], site.lines[child.line], *rest[head.line :]])
    above = [k for k in site.keys if k.line < head.line and k.column == child.column]
    free = bool(above) and bool(FREE & set(above[-1].path[:-1]))
    lines = range(head.line - 1, head.line + 2)
    return Mistake("child above", text, head.line, silent=free, several=True, lines=lines)


def cable_ends(rng: random.Random, site: Site) -> Mistake | None:
    """A cable with one end, with three, with none, or with both at one node."""
    ends: dict[KeyPath, list[Scalar]] = {}
    for value in site.values_below("cabling"):
        if value.path[2:3] == ("endpoints",):
            ends.setdefault(value.path[:2], []).append(value)
    pairs = [pair for pair in ends.values() if len(pair) == 2 and pair[0].line == pair[1].line]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    line = site.lines[one.line]
    node, _, port = one.text.partition(":")
    new = rng.choice(
        [
            line[: one.end] + line[other.end :],
            line[: other.end] + f", {node}:p1" + line[other.end :],
            line[: other.column] + one.text + line[other.end :],
            line[: one.column] + line[other.end :],
            line[: other.column] + f"{node}:{'p0' if port == 'p1' else 'p1'}" + line[other.end :],
        ]
    )
    lines = [end.line for pair in ends.values() for end in pair]
    text = site.with_line(one.line, new)
    return Mistake("cable ends", text, one.line, several=True, lines=lines)


def shifted(rng: random.Random, site: Site) -> Mistake | None:
    """The rest of a block in another column than its first line."""
    heads = [k for k in site.keys if site.is_head(k) and len(site.below(k)) > 2 and site.block(k)]
    heads = [k for k in heads if not FREE & set(k.path)]
    if not heads:
        return None
    head = rng.choice(heads)
    at, end = rng.choice(site.below(head)[1:]).line, (site.block(head) or (0, 0))[1]
    by = rng.choice([1, 2, 3, -1])
    lines = [" " * by + line if by > 0 else line[-by:] for line in site.lines[at:end]]
    text = site.instead(at, end, *lines)
    return Mistake("shifted block", text, at, several=True, lines=range(at - 1, end))


_WAIVERS = (
    *("[SG609]", "{SG609: why not}", "SG609", "\n  - SG609", "\n  - rule: SG609"),
    *("\n  - {rule: sg609, path: engine.image, reason: agreed}", "\n  SG609: engine.image"),
    *("\n  - {rule: SG609, path: engine/image, reason: agreed}",),
    *("\n  - {rule: [SG609, SG531], path: engine.image, reason: agreed}",),
)


def waivers(rng: random.Random, site: Site) -> Mistake | None:
    """Waivers as other programs have them."""
    if any(k.path == ("waivers",) for k in site.keys):
        return None
    body = site.text.rstrip("\n").split("\n")
    new = f"waivers: {rng.choice(_WAIVERS)}".replace(": \n", ":\n").split("\n")
    text = "\n".join([*body, *new, ""])
    allowed = range(len(body), len(body) + len(new))
    return Mistake("waivers' form", text, len(body), several=True, lines=allowed)


def twice_in_a_list(rng: random.Random, site: Site) -> Mistake | None:
    """A word that is twice in a list."""
    words = [value for one in _lists(site) for value in one if "[" in site.lines[value.line]]
    words = [value for value in words if value.path[-2] != "endpoints"]
    if not words:
        return None
    value = rng.choice(words)
    text = site.replaced(value, f"{value.text}, {value.text}")
    return Mistake("twice in a list", text, value.line, several=True)


_JOINED = (
    *("[{0}] [{1}]", "[{0}], [{1}]", "- {0} - {1}", "[{0}] + [{1}]", "[{0}, {1}", "{0}, {1}]"),
    *("[{0}, {1}]]", "[ {0} {1} ]", "({0}, {1})", "<{0}, {1}>", "[{0}; {1}]", "[{0} | {1}]"),
)


def joined(rng: random.Random, site: Site) -> Mistake | None:
    """A list in two pairs of brackets, in others, or with other signs between its entries."""
    form = re.compile(r": \[([^\[\]{}\"',]+), ([^\[\]{}\"',]+)\]")
    texts = {v.line for v in site.values if v.path[0] == "waivers" or (TEXTS | FREE) & set(v.path)}
    found = [
        (number, match)
        for number, line in enumerate(site.lines)
        if number not in texts and "#" not in line
        for match in form.finditer(line)
    ]
    if not found:
        return None
    number, match = rng.choice(found)
    line, new = site.lines[number], rng.choice(_JOINED).format(*match.groups())
    text = site.with_line(number, f"{line[: match.start()]}: {new}{line[match.end() :]}")
    return Mistake("joined lists", text, number, several=True)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(item_as_mapping, mapping_as_item, service_as_word, env_entries, numbered, moved_block),
    *(child_above, cable_ends, shifted, waivers, twice_in_a_list, joined),
)
