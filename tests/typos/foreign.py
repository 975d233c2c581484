"""Single mistakes of form: lists for mappings, and other tools' ways to write things."""

import random
import re
from collections.abc import Callable, Sequence

from typos.text import KeyPath, Mistake, Site


def environment(rng: random.Random, site: Site) -> Mistake | None:
    """Variables as Compose, Kubernetes or a shell has them."""
    forms = (
        lambda pairs: [f"- {name}={value}" for name, value in pairs],
        lambda pairs: [f"{name}={value}" for name, value in pairs],
        lambda pairs: [f"export {name}={value}" for name, value in pairs],
        lambda pairs: [t for n, v in pairs for t in (f"- name: {n}", f"  value: {v}")],
        lambda pairs: [f"- {name}: {value}" for name, value in pairs],
        lambda pairs: [f"-e {name}={value}" for name, value in pairs],
    )
    return _rewritten(rng, site, "env", "env as elsewhere", forms)


def arguments(rng: random.Random, site: Site) -> Mistake | None:
    """Flags as on a command line, in a list or in a text."""
    forms = (
        lambda pairs: [f"- --{name}={value}" for name, value in pairs],
        lambda pairs: [f"--{name} {value}" for name, value in pairs],
        lambda pairs: [f"--{name} {value} \\" for name, value in pairs],
        lambda pairs: [t for n, v in pairs for t in (f"- --{n}", f"- '{v}'")],
        lambda pairs: [f"--{name}: {value}" for name, value in pairs],
        lambda pairs: [f"- {name}: {value}" for name, value in pairs],
        lambda pairs: [f"{name.replace('-', '_')}: {value}" for name, value in pairs],
    )
    return _rewritten(rng, site, "args", "args as elsewhere", forms)


def _rewritten(
    rng: random.Random,
    site: Site,
    key: str,
    kind: str,
    forms: Sequence[Callable[[list[tuple[str, str]]], list[str]]],
) -> Mistake | None:
    head = next((k for k in site.keys if k.path == ("engine", key) and site.is_head(k)), None)
    block = site.block(head) if head else None
    if head is None or block is None:
        return None
    inside = site.below(head)
    if not inside or not all(site.is_line(k) for k in inside):
        return None
    values = {v.path: v for v in site.values}
    if not all(values[k.path].plain and " " not in values[k.path].text for k in inside):
        return None
    pairs = [(k.text, values[k.path].text) for k in inside]
    lines = [" " * inside[0].column + line for line in rng.choice(forms)(pairs)]
    if lines == site.lines[block[0] + 1 : block[1]]:
        return None
    text = "\n".join([*site.lines[: block[0] + 1], *lines, *site.lines[block[1] :]])
    # For flags, '_' and '-' are the same.
    return Mistake(kind, text, -1, several=True, silent="_" in lines[0] and key == "args")


def shape(rng: random.Random, site: Site) -> Mistake | None:
    """A section in another shape: a list of names, a mapping by name, a single word."""
    known = [made for form in _SHAPES if (made := form(rng, site)) is not None]
    if not known:
        return None
    path, lines, *meant = rng.choice(known)
    where = site.lines_of(path)
    if where is None:
        return None
    first, end = where
    before, after = site.lines[:first], site.lines[end:]
    text = "\n".join([*before, *lines, *after])
    whole = "\n".join([*before, *meant, *after]) if meant else ""
    return Mistake("other shape", text, -1, several=True, meant=whole)


# The path, the lines, and what is meant if that is less than the site had.
_Shape = tuple[tuple[str | int, ...], list[str]] | tuple[KeyPath, list[str], str] | None


def _names(site: Site, *path: str) -> list[str]:
    return [v.text for v in site.values if (v.path[0], *v.path[2:]) == path and len(v.path) > 2]


def _nodes_by_name(rng: random.Random, site: Site) -> _Shape:
    names = _names(site, "nodes", "name")
    each = [f"  {n}: {{management: {{address: 10.0.0.{i + 11}/24}}}}" for i, n in enumerate(names)]
    return (("nodes",), ["nodes:", *each]) if names else None


def _nodes_as_names(rng: random.Random, site: Site) -> _Shape:
    names = _names(site, "nodes", "name")
    # All that is left of a node is its name.
    whole = ", ".join(f"{{name: {name}}}" for name in names)
    form = f"nodes: [{', '.join(names)}]"
    return (("nodes",), [form], f"nodes: [{whole}]") if names else None


def _bare_cables(rng: random.Random, site: Site) -> _Shape:
    ends: dict[int, list[str]] = {}
    for v in site.values_below("cabling"):
        if v.path[2:3] == ("endpoints",):
            ends.setdefault(int(v.path[1]), []).append(v.text)
    if not ends or any(len(e) != 2 for e in ends.values()):
        return None
    form = rng.choice(
        [
            "  - [{}, {}]",
            "  - {} - {}",
            "  - endpoints: {} -> {}",
            "  - {{from: {}, to: {}}}",
            "  - endpoints: {}, {}",
            "  - endpoints: {{a: {}, b: {}}}",
            "  {}: {}",
        ]
    )
    whole = ["cabling:", *(f"  - endpoints: [{a}, {b}]" for a, b in ends.values())]
    made = ["cabling:", *(form.format(*e) for e in ends.values())]
    return ("cabling",), made, "\n".join(whole)


def _services_as_names(rng: random.Random, site: Site) -> _Shape:
    names = [k.text for k in site.keys_below("services") if len(k.path) == 2]
    form = rng.choice([f"services: [{', '.join(names)}]", f"services: {' '.join(names)}"])
    return (("services",), [form]) if names else None


def _word(rng: random.Random, site: Site) -> _Shape:
    pairs = [("topology", "kind"), ("model", "name"), ("engine", "name")]
    known = [
        (section, key, v.text)
        for section, key in pairs
        for v in site.values
        if v.path == (section, key)
    ]
    if not known:
        return None
    section, key, word = rng.choice(known)
    return (section,), [f"{section}: {word}"], f"{section}: {{{key}: {word}}}"


def _listed_section(rng: random.Random, site: Site) -> _Shape:
    heads = [k for k in site.keys if len(k.path) == 1 and site.is_head(k) and site.below(k)]
    heads = [k for k in heads if k.text in ("model", "engine", "topology", "services")]
    if not heads or (block := site.block(head := rng.choice(heads))) is None:
        return None
    first, *rest = site.lines[block[0] + 1 : block[1]]
    if first.lstrip().startswith("#"):
        return None
    return head.path, [f"{head.text}:", f"- {first[2:]}", *rest]


_SHAPES: Sequence[Callable[[random.Random, Site], _Shape]] = (
    *(_nodes_by_name, _nodes_as_names, _bare_cables, _services_as_names, _word, _listed_section),
)


def camel(rng: random.Random, site: Site) -> Mistake | None:
    """A key of two words in camelCase, PascalCase, with a space, or without anything between."""
    known = [k for k in site.keys if "_" in k.text and not {"args", "env"} & set(k.path[:-1])]
    known = [k for k in known if k.path[0] != "waivers" and not k.text.isupper()]
    if not known:
        return None
    place = rng.choice(known)
    first, *rest = place.text.split("_")
    slip = rng.choice(
        [
            first + "".join(word.capitalize() for word in rest),
            "".join(word.capitalize() for word in (first, *rest)),
            " ".join((first, *rest)),
            "".join((first, *rest)),
            "__".join((first, *rest)),
            ".".join((first, *rest)),
        ]
    )
    return Mistake("camel case", site.replaced(place, slip), place.line)


# What config.json calls the same.
_CONFIG = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "max_context": "max_position_embeddings",
    "experts": "num_experts",
    "hidden_size": "hidden_size",
    "vocabulary": "vocab_size",
}


def configuration(rng: random.Random, site: Site) -> Mistake | None:
    """Keys of a model's config.json in place of ours, with JSON's quotes and commas or without."""
    own = [k for k in site.keys if k.path[:2] == ("model", "architecture") and site.is_line(k)]
    own = [k for k in own if _CONFIG.get(k.text, k.text) != k.text]
    if not own:
        return None
    lines = list(site.lines)
    form = rng.choice(["{}: {}", '"{}": {},'])
    several = rng.choice([own, own[:1]])
    for key in several:
        value = next(v for v in site.values if v.path == key.path)
        new = form.format(_CONFIG[key.text], value.text)
        lines[key.line] = lines[key.line][: key.column] + new
    return Mistake("config.json", "\n".join(lines), several[0].line, several=True)


def json_line(rng: random.Random, site: Site) -> Mistake | None:
    """A line as in JSON: quotes around the key, a comma at its end."""
    lines = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    if not lines:
        return None
    key = rng.choice(lines)
    line, value = site.lines[key.line], next(v for v in site.values if v.path == key.path)
    if line[value.end :].strip():
        return None
    slip = rng.choice([f'"{key.text}": {value.text},', f'"{key.text}": "{value.text}",'])
    text = key.path[-1] in ("description", "label", "reason")
    free = {"args", "env"} & set(key.path)
    return Mistake(
        "JSON line",
        site.with_line(key.line, f"{line[: key.column]}{slip}"),
        key.line,
        silent=text or bool(free),
        several=True,
    )


def placeholder(rng: random.Random, site: Site) -> Mistake | None:
    """A value that still has to be filled in, or that another tool would fill in."""
    values = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    values = [v for v in values if v.path[-1] not in ("description", "label", "reason")]
    values = [v for v in values if not {"args", "env"} & set(v.path) and v.path[0] != "waivers"]
    if not values:
        return None
    value = rng.choice(values)
    name = str(value.path[-1])
    slip = rng.choice(
        [
            f"{{{{ {name} }}}}",
            f"${{{name.upper()}}}",
            "TODO",
            "???",
            "...",
            "<...>",
            '""',
            "null",
            f"%{name}%",
            "None",
            "n/a",
            "tbd",
            "xxx",
            "-",
            "[]",
            "{}",
        ]
    )
    word = slip in ("TODO", "xxx", "tbd", "None", "n/a", "-")
    # Some keys take any word.
    return Mistake("placeholder", site.replaced(value, slip), value.line, silent=word, several=True)


def list_of_one(rng: random.Random, site: Site) -> Mistake | None:
    """A list written as its only entry, as a text with commas, or as a mapping."""
    lists = {
        k.path: k
        for k in site.keys
        if k.text in ("secrets", "nodes", "subnets", "aliases", "endpoints", "order", "uplinks")
    }
    known = {
        path: [v for v in site.values if v.path[:-1] == path and isinstance(v.path[-1], int)]
        for path in lists
    }
    known = {p: vs for p, vs in known.items() if vs and len({v.line for v in vs}) == 1}
    if not known:
        return None
    path = rng.choice(list(known))
    entries = known[path]
    line = site.lines[entries[0].line]
    found = re.search(r"\[[^\]]*\]", line[lists[path].end :])
    if found is None or lists[path].line != entries[0].line:
        return None
    start, end = (lists[path].end + at for at in found.span())
    words = [v.text for v in entries]
    slip = rng.choice(
        [
            ", ".join(words),
            " ".join(words),
            f'"{", ".join(words)}"',
            f"{{{', '.join(words)}}}",
            f"[[{', '.join(words)}]]",
            f"[{' '.join(words)}]",
            f"({', '.join(words)})",
            "true",
        ]
    )
    in_flow = "{" in line[: lists[path].column]
    text = site.with_line(entries[0].line, line[:start] + slip + line[end:])
    # One word in brackets with or without commas is the same.
    same = slip == f"[{', '.join(words)}]"
    return Mistake(
        "list as text", text, -1 if in_flow else entries[0].line, silent=same, several=True
    )


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(environment, arguments, shape, camel, configuration, json_line, placeholder, list_of_one),
)
