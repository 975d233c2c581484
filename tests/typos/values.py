"""Single mistakes in the values of keys: numbers, addresses, names, flags, variables."""

import random
import re
from collections.abc import Callable, Sequence

from typos.text import Mistake, Scalar, Site, misspelt, with_variable


def flag_value(rng: random.Random, site: Site) -> Mistake | None:
    """A value that the engine's flag does not accept."""
    known = [v for v in site.values_below("engine", "args") if v.path[2:] in _WORDS]
    if not known:
        return None
    value = rng.choice(known)
    # In a word of two letters, one is half of it.
    several = len(value.text) < 3
    text = site.replaced(value, misspelt(rng, value.text))
    return Mistake("flag value", text, value.line, several=several)


_WORDS = {
    (name,)
    for name in (
        *("tool-call-parser", "reasoning-parser", "attention-backend", "quantization", "dtype"),
        *("moe-runner-backend", "tool_parser", "reasoning_parser", "flash-attn", "load-format"),
    )
}


def nccl_value(rng: random.Random, site: Site) -> Mistake | None:
    """A value that NCCL does not accept."""
    name, value, meant = rng.choice(_NCCL_VALUES)
    return with_variable(site, "NCCL value", name, value, value_meant=meant)


_NCCL_VALUES = (
    *(("NCCL_DEBUG", "INFOO", "INFO"), ("NCCL_DEBUG", "DEBUG", ""), ("NCCL_DEBUG", "wanr", "WARN")),
    *(("NCCL_IB_TIMEOUT", "220", ""), ("NCCL_IB_TIMEOUT", "-22", ""), ("NCCL_IB_SL", "80", "")),
    *(("NCCL_BUFFSIZE", "-1", ""), ("NCCL_BUFFSIZE", "4M", "4194304")),
    *(
        ("NCCL_ALGO", "Rinng", "Ring"),
        ("NCCL_PROTO", "Simpel", "Simple"),
        ("NCCL_IB_TC", "1060", ""),
    ),
    *(("NCCL_IB_DISABLE", "1", ""), ("NCCL_DEBUG_SUBSYS", "INIT,NETT", "INIT,NET")),
    *(("NCCL_MIN_NCHANNELS", "-4", ""), ("NCCL_MAX_NCHANNELS", "0", "")),
    *(("NCCL_NTHREADS", "100", ""), ("NCCL_IB_QPS_PER_CONNECTION", "x", "")),
    *(("NCCL_IB_TC", "1060", ""), ("NCCL_IB_RETRY_CNT", "70", "")),
    ("NCCL_IB_QPS_PER_CONNECTION", "0", ""),
)


def config_key(rng: random.Random, site: Site) -> Mistake | None:
    """A key that TensorRT-LLM's settings do not have."""
    known = [k for k in site.keys_below("engine", "args", "config") if len(k.path) > 3]
    if not known:
        return None
    key = rng.choice(known)
    return Mistake("config key", site.replaced(key, misspelt(rng, key.text)), key.line)


def model_name(rng: random.Random, site: Site) -> Mistake | None:
    """A model that is not in the catalog."""
    return _word(rng, site, "model name", [("model", "name")])


def image(rng: random.Random, site: Site) -> Mistake | None:
    """An image with one wrong character; it might be somebody's own image."""
    return _word(rng, site, "image", [("engine", "image")], silent=True)


def version(rng: random.Random, site: Site) -> Mistake | None:
    """A version that is malformed, or was never released."""
    found = _at(site, [("engine", "version")])
    if not found:
        return None
    value = rng.choice(found)
    text = value.text
    sure = [f"v{text}", text.replace(".", ",", 1)]
    # One more digit may make a future version.
    slip = rng.choice([*sure, f"{text}.", f"{text}0", text.replace(".", "", 1)])
    # A comma in braces makes two of it.
    several = slip not in sure or ("," in slip and "{" in site.lines[value.line])
    silent = slip[-2:] != "00" and slip == f"{text}0"
    where = site.replaced(value, slip)
    return Mistake("version", where, value.line, silent=silent, several=several)


def interface(rng: random.Random, site: Site) -> Mistake | None:
    """A management interface with nearly the right name."""
    known = [v for v in site.values if v.path[-2:] == ("management", "interface")]
    known = [v for v in known if v.text == "enP7s7"]
    if not known:
        return None
    value = rng.choice(known)
    slip = rng.choice(["enp7s7", "enP7s77", "enP7s", "eno7s7", "enP7S7", "enP7s8", "enP77s7"])
    return Mistake("interface", site.replaced(value, slip), value.line)


def address(rng: random.Random, site: Site) -> Mistake | None:
    """A management address that is invalid, or in another network."""
    known = [v for v in site.values if v.path[-2:] == ("management", "address")]
    if not known:
        return None
    value = rng.choice(known)
    host, _, length = value.text.partition("/")
    first, *rest = host.split(".")
    slips = [
        host,
        f"{host}/{length}4",
        f"{host}/2",
        f"{host.replace('.', ',', 1)}/{length}",
        f"{host}99/{length}",
        f"{'.'.join([first, *rest[1:]])}/{length}",
        f"{host[:-1]}l/{length}",
        f"{host}\\{length}",
        f"{host} /{length}",
        f"{host}.{length}",
        f"{first}.{rest[0]}.{int(rest[1]) + 1}.{rest[2]}/{length}",
    ]
    slip = rng.choice(slips)
    # Another network is wrong only if there are peers.
    managed = len([v for v in site.values if v.path[-2:] == ("management", "address")])
    silent = slip == slips[-1] and managed == 1
    # With two that differ, nobody can tell which one is wrong.
    line = -1 if slip == slips[-1] and managed == 2 else value.line
    return Mistake("address", site.replaced(value, slip), line, silent=silent, several=True)


def truth(rng: random.Random, site: Site) -> Mistake | None:
    """True or false in another language, or misspelt."""
    known = [v for v in site.values if v.plain and v.text in ("true", "false")]
    if not known:
        return None
    value = rng.choice(known)
    slips = {"true": ["TURE", "ture", "yes", "on", "ok"], "false": ["flase", "no", "off", "FASLE"]}
    slip = rng.choice(slips[value.text])
    free = value.path[:2] in (("engine", "args"), ("engine", "env"))
    return Mistake("truth", site.replaced(value, slip), value.line, silent=free)


def empty(rng: random.Random, site: Site) -> Mistake | None:
    """A key without its value."""
    known = [v for v in site.values if isinstance(v.path[-1], str)]
    value = rng.choice(known)
    line = site.lines[value.line]
    if line[value.end :].strip():
        return None
    text = site.with_line(value.line, line[: value.column].rstrip())
    return Mistake("empty value", text, value.line, several=True)


def hidden(rng: random.Random, site: Site) -> Mistake | None:
    """A value that is commented out."""
    known = [v for v in site.values if isinstance(v.path[-1], str)]
    value = rng.choice(known)
    line = site.lines[value.line]
    if line[value.end :].strip():
        return None
    text = site.with_line(value.line, f"{line[: value.column]}# {line[value.column :]}")
    return Mistake("hidden value", text, value.line, several=True)


def unit(rng: random.Random, site: Site) -> Mistake | None:
    """A number as people write it in prose."""
    numbers = {v.path: v for v in site.values if v.plain and v.text.isdigit()}
    known = [v for path, v in numbers.items() if path[-1] == "context_length"]
    if not known:
        return None
    value = rng.choice(known)
    number = int(value.text)
    slips = [f"{number:,}", f"{number:_}", f"{number:_}".replace("_", "'")]
    slips += [f"{number // 1024}k", f"{number // 1024}K"] if not number % 1024 else []
    return Mistake("unit", site.replaced(value, rng.choice(slips)), value.line)


def decimal_comma(rng: random.Random, site: Site) -> Mistake | None:
    """A decimal comma, or a percentage."""
    found = _at(site, [("engine", "memory_utilization")])
    if not found:
        return None
    value = rng.choice(found)
    percent = f"{round(float(value.text) * 100)}"
    slip = rng.choice([value.text.replace(".", ","), f"{percent}%", percent, f"{percent} %"])
    in_flow = "{" in site.lines[value.line]
    return Mistake("fraction", site.replaced(value, slip), value.line, several=in_flow)


def swapped(rng: random.Random, site: Site) -> Mistake | None:
    """Two values of one section, swapped."""
    path, other_path = rng.choice(
        [
            (("model", "context_length"), ("model", "max_sequences")),
            (("engine", "version"), ("engine", "image")),
            (("engine", "name"), ("engine", "version")),
            (("topology", "kind"), ("topology", "subnet_pool")),
            (("model", "name"), ("model", "served_name")),
        ]
    )
    first, second = _at(site, [path]), _at(site, [other_path])
    if not first or not second or first[0].line == second[0].line:
        return None
    lines = list(site.lines)
    for place, text in ((first[0], second[0].text), (second[0], first[0].text)):
        line = lines[place.line]
        lines[place.line] = line[: place.column] + text + line[place.end :]
    return Mistake("swapped", "\n".join(lines), -1, silent=True, several=True)


def zero(rng: random.Random, site: Site) -> Mistake | None:
    """A letter that looks like a digit."""
    known = [v for v in site.values if v.plain and re.fullmatch(r"[0-9]{2,}", v.text)]
    known = [v for v in known if re.search("[01]", v.text) and v.path[-1] in NUMBERS]
    if not known:
        return None
    value = rng.choice(known)
    slip = value.text.replace("0", "O", 1) if "0" in value.text else value.text.replace("1", "l", 1)
    return Mistake("look-alike", site.replaced(value, slip), value.line)


def dash(rng: random.Random, site: Site) -> Mistake | None:
    """A typographic dash in a name."""
    known = [v for v in site.values if "-" in v.text and v.path[-1] in _NAMES]
    if not known:
        return None
    value = rng.choice(known)
    slip = value.text.replace("-", rng.choice("\u2013\u2014\u2011\u2212"), 1)
    return Mistake("dash", site.replaced(value, slip), value.line)


_NAMES = ("name", "served_name", "image", "tool-call-parser", "reasoning-parser")
NUMBERS = ("mtu", "context_length", "max_sequences", "port", "host")


def service(rng: random.Random, site: Site) -> Mistake | None:
    """A service that does not exist, or a switch of one that is not a boolean."""
    known = [k for k in site.keys_below("services") if len(k.path) == 2]
    if not known:
        return None
    key = rng.choice(known)
    return Mistake("service", site.replaced(key, misspelt(rng, key.text)), key.line)


def _at(site: Site, paths: Sequence[tuple[str, ...]]) -> list[Scalar]:
    return [v for v in site.values if v.path in paths and not v.text.startswith("*")]


def _word(
    rng: random.Random,
    site: Site,
    kind: str,
    paths: Sequence[tuple[str, ...]],
    silent: bool = False,
) -> Mistake | None:
    found = _at(site, paths)
    if not found:
        return None
    value = rng.choice(found)
    wrong = misspelt(rng, value.text)
    return Mistake(kind, site.replaced(value, wrong), value.line, silent=silent, several=silent)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(flag_value, nccl_value, config_key, model_name, image, version, interface, address, truth),
    *(empty, hidden, unit, decimal_comma, swapped, zero, dash, service),
)
