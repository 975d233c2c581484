"""Single mistakes of people who paste: from other files, terminals, web pages and mails."""

import random
import re
from collections.abc import Callable

from typos.text import Mistake, Site

_BLOCKS = (
    "networks:\n  default:\n    driver: host",
    "volumes:\n  models: {}",
    "network:\n  version: 2\n  ethernets:\n    enp1s0f0np0:\n      addresses: [192.168.100.10/24]",
    "ethernets:\n  enp1s0f0np0:\n    dhcp4: false\n    mtu: 9000",
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: vllm\nspec:\n  hostNetwork: true",
    "metadata:\n  name: vllm\n  namespace: default",
    "x-common:\n  restart: always\n  network_mode: host",
    "recipe_version: '1'\ncluster_only: true\nsolo_only: false",
    "all:\n  hosts:\n    spark1: {}\n    spark2: {}",
    "Host spark1\n  HostName 10.0.0.11\n  User nvidia",
    "docker run --rm --gpus all vllm/vllm-openai:latest",
)


def block(rng: random.Random, site: Site) -> Mistake | None:
    """A block of another program's file, at the end or at the top."""
    own = rng.choice(_BLOCKS).split("\n")
    lines = [line for line in site.lines if line]
    at = rng.choice([0, len(lines)])
    text = "\n".join([*lines[:at], *own, *lines[at:], ""])
    return Mistake("foreign block", text, -1, several=True)


def service(rng: random.Random, site: Site) -> Mistake | None:
    """A service of a Compose file among the services."""
    heads = [k for k in site.keys if k.path == ("services",) and site.is_head(k)]
    below = site.below(heads[0]) if heads else []
    if not below:
        return None
    indent, name = " " * below[0].column, rng.choice(["vllm", "nginx-proxy", "redis", "app"])
    own = [f"{indent}{name}:", f"{indent}  image: nginx:1.27", f"{indent}  ports: ['80:80']"]
    lines = [*site.lines[: heads[0].line + 1], *own, *site.lines[heads[0].line + 1 :]]
    return Mistake("foreign service", "\n".join(lines), heads[0].line + 1, several=True)


def marked(rng: random.Random, site: Site) -> Mistake | None:
    """A line with what a terminal, a diff or a viewer puts before it."""
    lines = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    if not lines:
        return None
    key = rng.choice(lines)
    line = site.lines[key.line]
    mark = rng.choice(["+", "$ ", "> ", f"{key.line + 1}: ", f"{key.line + 1}  ", "│ ", "* "])
    free = {"args", "env"} & set(key.path) and mark in ("$ ",)
    return Mistake(
        "mark", site.with_line(key.line, mark + line), key.line, silent=bool(free), several=True
    )


def fence(rng: random.Random, site: Site) -> Mistake | None:
    """A whole file with the fence of a web page, or with its document's end."""
    text = site.text.rstrip("\n")
    first, last = rng.choice([("```yaml", "```"), ("```", "```"), ("", "```"), ("'''", "'''")])
    lines = [*([first] if first else []), text, last, ""]
    return Mistake("fence", "\n".join(lines), -1, several=True)


def document(rng: random.Random, site: Site) -> Mistake | None:
    """A second document in one file."""
    heads = [k for k in site.keys if len(k.path) == 1 and k.line and not k.column]
    if not heads:
        return None
    at = rng.choice(heads).line
    text = "\n".join([*site.lines[:at], "---", *site.lines[at:]])
    return Mistake("two documents", text, -1, several=True)


def left_of_a_conflict(rng: random.Random, site: Site) -> Mistake | None:
    """A single line of git's marks of a conflict."""
    at = rng.choice([k for k in site.keys if site.is_line(k)] or site.keys).line
    mark = rng.choice(["=======", ">>>>>>> main", "<<<<<<< HEAD"])
    text = "\n".join([*site.lines[:at], mark, *site.lines[at:]])
    return Mistake("rest of conflict", text, at, several=True)


def wrapped(rng: random.Random, site: Site) -> Mistake | None:
    """The whole site below one key."""
    root = rng.choice(["site", "cluster", "spec", "sparkgen", "config"])
    inside = [f"  {line}" if line.strip() else line for line in site.lines]
    return Mistake("one root", "\n".join([f"{root}:", *inside]), -1, several=True)


def folded(rng: random.Random, site: Site) -> Mistake | None:
    """A line in brackets that a mail program broke."""
    found = [n for n, line in enumerate(site.lines) if re.search(r"[\[{][^#]*, ", line)]
    if not found:
        return None
    number = rng.choice(found)
    line = site.lines[number]
    cuts = [m.end() for m in re.finditer(", ", line) if re.search(r"[\[{]", line[: m.start()])]
    at = rng.choice(cuts)
    text = site.with_line(number, line[: at - 1], line[at:])
    return Mistake("folded line", text, -1, silent=True, several=True)


_TALK = ("/* why */", "; why", "-- why", "<!-- why -->", "(why)", "← here", "\\")


def talk(rng: random.Random, site: Site) -> Mistake | None:
    """A comment in the style of another language behind a value."""
    keys = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    keys = [k for k in keys if k.path[-1] not in ("description", "label", "reason")]
    if not keys:
        return None
    key = rng.choice(keys)
    text = site.with_line(key.line, f"{site.lines[key.line]} {rng.choice(_TALK)}")
    free = {"args", "env"} & set(key.path)
    return Mistake("foreign comment", text, key.line, silent=bool(free), several=True)


def invisible(rng: random.Random, site: Site) -> Mistake | None:
    """A character in a key or a value that can't be seen, or that looks like another one."""
    known = [s for s in site.scalars if s.plain and s.path[0] != "waivers" and len(s.text) > 1]
    known = [s for s in known if s.path[-1] not in ("description", "label", "reason")]
    place = rng.choice(known)
    like = {
        "a": "\u0430",
        "e": "\u0435",
        "o": "\u043e",
        "p": "\u0440",
        "c": "\u0441",
        "1": "\uff11",
    }
    at = rng.randrange(1, len(place.text))
    slip = place.text[:at] + rng.choice("\u200b\u00ad\ufeff\u2060") + place.text[at:]
    letters = [i for i, letter in enumerate(place.text) if letter in like]
    if letters and rng.random() < 0.5:
        at = rng.choice(letters)
        slip = place.text[:at] + like[place.text[at]] + place.text[at + 1 :]
    free = {"args", "env"} & set(place.path)
    text = site.replaced(place, slip)
    return Mistake("odd character", text, place.line, silent=bool(free), several=True)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(block, service, marked, fence, document, left_of_a_conflict, wrapped, folded, talk),
    invisible,
)
