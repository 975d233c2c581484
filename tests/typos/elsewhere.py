"""Single mistakes with names, words and numbers that are right elsewhere: hubs, tools, shells."""

import random
import re
from collections.abc import Callable
from dataclasses import replace

from typos.leftovers import FREE, TEXTS, lines_of_keys, plain_values
from typos.text import Mistake, Scalar, Site


def _chosen(rng: random.Random, known: list[Scalar]) -> Scalar | None:
    return rng.choice(known) if known else None


_PARTS = (
    *("ollama/{0}", "ghcr.io/{0}", "docker.io/library/{0}", "{0}:latest", "{0}@sha256", "./{0}"),
    *(
        "{0}:q4",
        "{0}/",
        "/{0}",
        "~/{0}",
        "${0}",
        "@{0}",
        "{0}-hf",
        "{0}-local",
        "{0}.local",
        "{0}/v1",
    ),
    *("my/{0}", "{0}-x", "{0}.git", "hf://{0}", "'{0} '", "{0}%", "{0}!"),
)


def part_of_name(rng: random.Random, site: Site) -> Mistake | None:
    """A name with an owner, a registry, a tag, a path, a domain or a sign that its key has not."""
    names = {"name", "served_name", "image", "user", "interface", "node", "source", "label"}
    known = [v for v in site.values if v.plain and v.path[-1] in names and v.path[0] != "waivers"]
    if not (value := _chosen(rng, [v for v in known if "args" not in v.path])):
        return None
    text = site.replaced(value, rng.choice(_PARTS).format(value.text))
    # Some keys take any name, and that of a node is missed where it is used.
    return Mistake("part of a name", text, -1, silent=True, several=True)


def octal(rng: random.Random, site: Site) -> Mistake | None:
    """A number with zeros before it, or in another base."""
    known = [v for v in plain_values(site) if re.fullmatch("[0-9]+", v.text)]
    known = [v for v in known if v.path[-1] not in ("version", "name", "nccl", "os")]
    if not (value := _chosen(rng, known)):
        return None
    slip = rng.choice(["0{0}", "00{0}", "0o{1:o}", "0x{1:x}", "{1:,}", "+{0}", "{0}.0", "{0}e0"])
    text = site.replaced(value, slip.format(value.text, int(value.text)))
    # A number in another base of YAML is the same number.
    same = slip[:2] in ("0o", "0x") or slip in ("+{0}", "{0}.0", "{0}e0")
    same |= slip == "{1:,}" and int(value.text) < 1000
    return Mistake("number's base", text, value.line, silent=same, several=True)


def colon_in_text(rng: random.Random, site: Site) -> Mistake | None:
    """A text with a colon, a hash or a sign of YAML in it, without quotes."""
    known = [v for v in site.values if v.plain and v.path[-1] in ("description", "label", "reason")]
    if not (value := _chosen(rng, known)):
        return None
    slip = rng.choice(["Note: {0}", "[draft] {0}", "{0}: see wiki", "*{0}*", "@ops {0}", "`{0}`"])
    slip = rng.choice(
        [slip, "%{0}", "&{0}", "!{0}", "- {0}", "{{{0}}} as before", '"{0}" as agreed']
    )
    text = slip.format(value.text)
    meant = site.replaced(value, "'" + text.replace("'", "''") + "'")
    return Mistake("sign in a text", site.replaced(value, text), value.line, True, True, meant)


def alias_of_entry(rng: random.Random, site: Site) -> Mistake | None:
    """An entry of a list that repeats the first one by an alias, as people shorten files."""
    heads = [k for k in site.keys if k.path[0] in ("nodes", "cabling") and k.path[1:2] == (0,)]
    head = next((k for k in heads if len(k.path) == 3), None)
    span = site.lines_of(head.path[:2]) if head else None
    if head is None or span is None or not site.lines[span[0]].lstrip().startswith("- "):
        return None
    first = site.lines[span[0]]
    dash = first.index("-")
    marked = f"{first[: dash + 2]}&base {first[dash + 2 :]}"
    if first.lstrip()[2:3] not in "{[":
        marked = f"{first[: dash + 2]}&base\n{' ' * (dash + 2)}{first[dash + 2 :]}"
    again = " " * dash + rng.choice(["- *base", "- <<: *base", "- {<<: *base}"])
    lines = [*marked.split("\n"), *site.lines[span[0] + 1 : span[1]], again]
    allowed = range(span[0], span[0] + len(lines))
    return Mistake("alias as entry", site.instead(*span, *lines), -1, several=True, lines=allowed)


def copied_group(rng: random.Random, site: Site) -> Mistake | None:
    """A group that was copied, and of which only the name was changed."""
    names = [v for v in site.values if v.path[0] == "groups" and v.path[2:] == ("name",)]
    if not (name := _chosen(rng, names)):
        return None
    span = site.lines_of(name.path[:2])
    if span is None or not re.match(r" *- ", site.lines[span[0]]):
        return None
    copy = site.replaced(name, f"{name.text}-2").split("\n")[slice(*span)]
    text = site.instead(span[1], span[1], *copy)
    return Mistake("copied group", text, -1, several=True)


def block_sign(rng: random.Random, site: Site) -> Mistake | None:
    """A value on the next line, with a sign of a block text or without, in some column."""
    keys = [k for k in lines_of_keys(site) if site.value(k).plain and k.path[-1] != "version"]
    if not (key := _chosen(rng, keys)):
        return None
    own, value = " " * key.column, site.value(key).text
    sign = rng.choice([" |", " >", " >-", " |-", ""])
    indent = rng.choice(["", "  ", "    "])
    lines = [f"{site.lines[key.line][: key.column]}{key.text}:{sign}", f"{own}{indent}{value}"]
    text = site.with_line(key.line, *lines)
    allowed = (key.line, key.line + 1)
    # A folded text may be the same value.
    return Mistake("value below", text, -1, silent=bool(indent), several=True, lines=allowed)


def flag_with_value(rng: random.Random, site: Site) -> Mistake | None:
    """A flag and its value in one word of 'args', or with a sign too many."""
    keys = [k for k in site.keys_below("engine", "args") if len(k.path) == 3 and site.is_line(k)]
    if not (key := _chosen(rng, keys)):
        return None
    value, own = site.value(key).text, site.lines[key.line][: key.column]
    form = rng.choice(
        ["{0} {1}:", "{0}={1}:", "--{0} {1}", "{0} {1}", "- {0}", "{0}:: {1}", "{0} : : {1}"]
    )
    form = rng.choice([form, "{0}; {1}", "? {0}", "{0}: --{1}", "{0}: {0}={1}", "no_{0}: {1}:"])
    text = site.with_line(key.line, own + form.format(key.text, value))
    return Mistake("flag and value", text, key.line, several=True)


_COMPOSE = (
    *('ports: ["8000:8000"]', "volumes: [/srv/models:/models]", "ipc: host", "runtime: nvidia"),
    *("network_mode: host", "restart: unless-stopped", "shm_size: 16gb", "privileged: true"),
    *("deploy: {resources: {limits: {memory: 100g}}}", "command: --max-model-len 8192"),
    *("container_name: vllm", "depends_on: [redis]", "entrypoint: vllm serve", "gpus: all"),
    *("healthcheck: {test: curl localhost, interval: 30s}", "cap_add: [IPC_LOCK]", "build: ."),
)


def _added(
    rng: random.Random, site: Site, kind: str, path: tuple[str, ...], line: str
) -> Mistake | None:
    """A line more at the end of a block."""
    heads = [k for k in site.keys if k.path == path and site.is_head(k) and site.below(k)]
    if not heads or not (block := site.block(heads[0])):
        return None
    column = site.below(heads[0])[0].column
    written = {k.text for k in site.below(heads[0])}
    if line.partition(":")[0] in written:
        return None
    text = site.instead(block[1], block[1], " " * column + line)
    return Mistake(kind, text, block[1], several=True)


def compose(rng: random.Random, site: Site) -> Mistake | None:
    """A line of a Compose file in the engine."""
    return _added(rng, site, "Compose's line", ("engine",), rng.choice(_COMPOSE))


_RECIPES = (
    *("recipe: glm-5", "hosts: [10.0.0.11, 10.0.0.12]", "solo: true", "container: vllm-node"),
    *("cluster: lab", "head: 10.0.0.11", "workers: [10.0.0.12]", "mods: [fix-glm]"),
    *("recipe_version: '1'", "cluster_only: true", "build_args: [--pre-tf]", "hf_token: hf_abc"),
    *("network: {version: 2, renderer: networkd}", "ethernets: {enp1s0f0np0: {mtu: 9000}}"),
    *("inventory: hosts.ini", "all: {hosts: {spark1: }}", "replicas: 2", "apiVersion: v1"),
)


def recipe(rng: random.Random, site: Site) -> Mistake | None:
    """A line of a recipe, an inventory or netplan at the margin."""
    heads = [k for k in site.keys if len(k.path) == 1 and site.is_head(k)]
    if not (head := _chosen(rng, heads)):
        return None
    line = rng.choice(_RECIPES)
    text = site.instead(head.line, head.line, line)
    return Mistake("recipe's line", text, head.line, several=True)


_OWN = (
    "memory_utilization: 0.8",
    "context_length: 8192",
    "max_sequences: 4",
    "parallel: {tensor: 2}",
)


def own_key_among_flags(rng: random.Random, site: Site) -> Mistake | None:
    """A key of the format among the engine's flags."""
    return _added(rng, site, "key among flags", ("engine", "args"), rng.choice(_OWN))


_SET = (
    *("tensor-parallel-size: 2", "pipeline-parallel-size: 2", "port: 8000", "host: 0.0.0.0"),
    *("gpu-memory-utilization: 0.9", "max-model-len: 8192", "max-num-seqs: 4", "model: /models/x"),
    *("served-model-name: x", "kv-cache-dtype: fp8", "tp-size: 2", "context-length: 8192"),
    *("mem-fraction-static: 0.8", "nnodes: 2", "node-rank: 0", "api-key: secret"),
)


def set_twice(rng: random.Random, site: Site) -> Mistake | None:
    """A flag that a key of the format sets, or one of another engine."""
    line = rng.choice(_SET)
    made = _added(rng, site, "flag of a key", ("engine", "args"), line)
    flag, _, value = line.partition(": ")
    path = _KEYS.get(flag)
    is_free = path and not any(key.path == path for key in site.keys)
    meant = _added(rng, site, "", path[:1], f"{path[-1]}: {value}") if path and is_free else None
    return replace(made, meant=meant.text) if made and meant else made


_KEYS = {
    **dict.fromkeys(("max-model-len", "context-length"), ("model", "context_length")),
    "gpu-memory-utilization": ("engine", "memory_utilization"),
    "mem-fraction-static": ("engine", "memory_utilization"),
    "port": ("engine", "port"),
    "max-num-seqs": ("model", "max_sequences"),
    "kv-cache-dtype": ("model", "kv_cache_dtype"),
    "served-model-name": ("model", "served_name"),
}


def arithmetic(rng: random.Random, site: Site) -> Mistake | None:
    """A number as people calculate or speak: a product, a power, a fraction, about so many."""
    known = [v for v in plain_values(site) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", v.text)]
    known = [v for v in known if v.path[-1] not in ("version", "name", "nccl", "os")]
    if not (value := _chosen(rng, known)):
        return None
    number = float(value.text)
    forms = [f"{number / 2:g} * 2", f"{number / 2:g}*2", f"~{value.text}", f"={value.text}"]
    forms += [
        f"{value.text}+",
        f"<{value.text}",
        f"> {value.text}",
        f"{value.text}?",
        f"<= {value.text}",
    ]
    forms += [f"{value.text} or more", f"{value.text}-{number * 2:g}", f"ca. {value.text}"]
    forms += [
        f"{value.text}/1",
        f"{value.text}..{number * 2:g}",
        f"({value.text})",
        f"#{value.text}",
    ]
    text = site.replaced(value, rng.choice(forms))
    return Mistake("arithmetic", text, value.line, several=True)


def pasted_address(rng: random.Random, site: Site) -> Mistake | None:
    """An address with what stands around it in a terminal or a browser."""
    known = [v for v in site.values if re.match(r"\d+\.\d+\.\d+\.\d+", v.text)]
    known = [v for v in known if {"address", "gateway"} & set(v.path) and not FREE & set(v.path)]
    if not (value := _chosen(rng, known)):
        return None
    host = value.text.partition("/")[0]
    forms = [f"{host}:22", f"nvidia@{host}", f"http://{host}", f"ssh {host}", f"{value.text},"]
    forms += [f"{value.text};", f"({value.text})", f"{host}:8000/v1", f"{value.text} dev enP7s7"]
    forms += [f"'{value.text}", f"{host}\\24", f"{host}/24 # was /16", f"ip: {host}", f"<{host}>"]
    slip = rng.choice(forms)
    silent = "# was" in slip
    return Mistake("pasted address", site.replaced(value, slip), value.line, silent, True)


def trailing_sign(rng: random.Random, site: Site) -> Mistake | None:
    """A comma, a semicolon, a colon or a bracket at the end of a line."""
    if not (key := _chosen(rng, lines_of_keys(site))):
        return None
    line = site.lines[key.line] + rng.choice(
        [",", ";", " ,", " ;", ":", "}", "]", ")", ",,", " \\", '"']
    )
    free = bool(FREE & set(key.path))
    text = site.with_line(key.line, line)
    return Mistake("trailing sign", text, -1 if free else key.line, silent=free, several=True)


def secret(rng: random.Random, site: Site) -> Mistake | None:
    """A secret with its value, as a variable, or in the form of another tool."""
    names = [v for v in site.values if v.path[-2:-1] == ("secrets",) and v.plain]
    if not (name := _chosen(rng, names)):
        return None
    forms = ["{0}=hf_abcdefgh", "${0}", "${{{0}}}", "{{{0}: hf_abcdefgh}}", "{{name: {0}}}", "{0}:"]
    forms += ["{1}", "{0} ", "env:{0}", "/run/secrets/{0}", "{{{{ {0} }}}}", "--{0}"]
    slip = rng.choice(forms)
    text = site.replaced(name, slip.format(name.text, name.text.lower()))
    lines = (name.line, *(k.line for k in site.keys if k.path == name.path[:-1]))
    same = slip in ("{0} ",)
    return Mistake("secret's form", text, name.line, silent=same, several=True, lines=lines)


def lost_newline(rng: random.Random, site: Site) -> Mistake | None:
    """Two lines that became one."""
    by_line = {k.line: k for k in lines_of_keys(site)}
    firsts = [k for n, k in by_line.items() if n + 1 in by_line]
    firsts = [k for k in firsts if by_line[k.line + 1].path[:-1] == k.path[:-1]]
    if not (first := _chosen(rng, firsts)):
        return None
    below = site.lines[first.line + 1].strip()
    both = site.lines[first.line] + rng.choice([" ", "  ", ""]) + below
    text = site.instead(first.line, first.line + 2, both)
    free = bool((FREE | TEXTS) & set(first.path))
    return Mistake("lost newline", text, -1 if free else first.line, silent=free, several=True)


def wrong_bracket(rng: random.Random, site: Site) -> Mistake | None:
    """A bracket closed by a brace, or another sign that looks like it."""
    found = [
        (number, at)
        for number, line in enumerate(site.lines)
        if "#" not in line and "'" not in line and '"' not in line
        for at, letter in enumerate(line)
        if letter in "[]{}"
    ]
    if not found:
        return None
    number, at = rng.choice(found)
    line = site.lines[number]
    other = rng.choice({"[": "{(", "]": "})", "{": "[(", "}": "])"}[line[at]])
    text = site.with_line(number, line[:at] + other + line[at + 1 :])
    return Mistake("wrong bracket", text, number, several=True)


_PORTS = (
    "eth0",
    "mlx5_0",
    "enp1s0f0np0",
    "rocep1s0f0",
    "bond0",
    "docker0",
    "lo",
    "wlan0",
    "enp1s0f0np0:",
)
_PORTS += (
    "enP2p1s0f0np0",
    "ibp1s0f0",
    "enP7s7:",
    "enp7s7",
    "enP7s7/24",
    "en P7s7",
    "any",
    "192.168.1.11",
)


def other_interface(rng: random.Random, site: Site) -> Mistake | None:
    """An interface by another machine's, another program's or the fabric's name."""
    known = [v for v in site.values if v.path[-1] == "interface" and v.plain]
    if not (value := _chosen(rng, known)):
        return None
    slip = rng.choice(_PORTS)
    silent = slip in ("eth0", "wlan0", "enp7s7", "bond0", "any", "docker0", "mlx5_0")
    return Mistake("interface", site.replaced(value, slip), value.line, silent=silent, several=True)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(part_of_name, octal, colon_in_text, alias_of_entry, copied_group, block_sign),
    *(flag_with_value, compose, recipe, own_key_among_flags, set_twice, arithmetic),
    *(pasted_address, trailing_sign, secret, lost_newline, wrong_bracket, other_interface),
)
