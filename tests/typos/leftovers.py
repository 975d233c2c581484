"""Single mistakes that editors, merges, chats, templates and keyboards leave in a file."""

import random
import re
from collections.abc import Callable

from typos.text import Mistake, Scalar, Site

FREE = {"args", "env", "config", "ulimits", "switches"}
TEXTS = {"description", "label", "reason", "command"}


def lines_of_keys(site: Site) -> list[Scalar]:
    """Keys that are a line of their own with their value, and no comment."""
    keys = [k for k in site.keys if site.is_line(k) and "#" not in site.lines[k.line]]
    return [k for k in keys if k.path[0] != "waivers" and not TEXTS & set(k.path)]


def plain_values(site: Site) -> list[Scalar]:
    """Values of keys of the format, without quotes."""
    values = [v for v in site.values if v.plain and isinstance(v.path[-1], str)]
    return [v for v in values if v.path[0] != "waivers" and not (TEXTS | FREE) & set(v.path)]


_WIDE = {
    ",": "\uff0c",
    "[": "\uff3b",
    "]": "\uff3d",
    "{": "\uff5b",
    "}": "\uff5d",
    "#": "\uff03",
    "-": "\uff0d",
}


def full_width(rng: random.Random, site: Site) -> Mistake | None:
    """A sign of a Chinese or Japanese keyboard in brackets, or for a dash or a comment's '#'."""
    texts = {v.line for v in site.values if v.path[0] == "waivers" or TEXTS & set(v.path)}
    found = [
        (number, at)
        for number, line in enumerate(site.lines)
        if number not in texts and not re.match(" *#", line)
        for at, letter in enumerate(line)
        if letter in ",[]{}"
        or (letter == "#" and line[at - 1] == " ")
        or (letter == "-" and not line[:at].strip() and line[at + 1 : at + 2] == " ")
    ]
    if not found:
        return None
    number, at = rng.choice(found)
    line = site.lines[number]
    text = site.with_line(number, line[:at] + _WIDE[line[at]] + line[at + 1 :])
    return Mistake("full width", text, number, several=True)


def swallowed(rng: random.Random, site: Site) -> Mistake | None:
    """A comment in brackets or braces on one line, which takes their rest with it."""
    found = [
        (number, comma.end())
        for number, line in enumerate(site.lines)
        if "#" not in line
        for comma in re.finditer(", ", line)
        if re.search(r"[\[{]", line[: comma.start()]) and re.search(r"[\]}]", line[comma.end() :])
    ]
    if not found:
        return None
    number, at = rng.choice(found)
    line = site.lines[number]
    text = site.with_line(number, line[:at] + rng.choice(["# ", "# was: ", "#"]) + line[at:])
    return Mistake("swallowed rest", text, number, several=True)


def diff(rng: random.Random, site: Site) -> Mistake | None:
    """A hunk of a diff in place of a line: the old one and the new one, with its head or not."""
    keys = lines_of_keys(site)
    if not keys:
        return None
    key = rng.choice(keys)
    line, value = site.lines[key.line], site.value(key)
    lines = [f"-{line[: value.end]}0{line[value.end :]}", f"+{line}"]
    head = rng.choice([[], [f"@@ -{key.line},3 +{key.line},3 @@"]])
    lines = rng.choice([[], ["--- a/site.yaml", "+++ b/site.yaml"]]) + head + lines
    text = site.with_line(key.line, *lines)
    allowed = range(key.line, key.line + len(lines))
    return Mistake("diff hunk", text, key.line, several=True, lines=allowed)


_TYPED = (
    *(":wq", ":x", "jj", "ZZ", "i", "^[[A", "^X", "ddp", "q!", ":w", "~", "\\", "`", "."),
    *("\u00a7", "*** Begin Patch"),
)


def editor(rng: random.Random, site: Site) -> Mistake | None:
    """What was typed for an editor: on a line of its own, or at either end of a line."""
    keys = lines_of_keys(site)
    if not keys:
        return None
    key, typed = rng.choice(keys), rng.choice(_TYPED)
    line = site.lines[key.line]
    free = bool(FREE & set(key.path))
    # Some keys take any word.
    word = typed.isalpha() and key.path[-1] in ("image", "name", "served_name", "user", "interface")
    text, number, silent = rng.choice(
        [
            (site.with_line(key.line, line, typed), key.line + 1, False),
            (site.with_line(key.line, line + typed), key.line, free or word),
            (
                site.with_line(key.line, line[: key.column] + typed + line[key.column :]),
                key.line,
                free,
            ),
        ]
    )
    return Mistake("editor's rest", text, -1 if free else number, silent=silent, several=True)


_BEFORE = (
    *("Here is the corrected site file:", "Sure! Here's the YAML:", "**site.yaml**", "yaml"),
    *("Below is your configuration.", "# site.yaml\n\nHere is the file:", "Copy code"),
)
_BEHIND = (
    *("Let me know if you need anything else!", "This configuration sets up the cluster."),
    *("Note: replace the addresses with yours.", "Hope this helps :)"),
    "Key changes:\n- mtu is 9000 now\n- the guard is on",
)


def prose(rng: random.Random, site: Site) -> Mistake | None:
    """A sentence of a chat's answer before the file, or behind it."""
    if rng.random() < 0.5:
        first = rng.choice(_BEFORE).split("\n")
        text = "\n".join([*first, "", *site.lines])
        return Mistake("prose", text, 0, several=True, lines=range(len(first) + 1))
    body, last = site.text.rstrip("\n").split("\n"), rng.choice(_BEHIND).split("\n")
    text = "\n".join([*body, "", *last, ""])
    allowed = range(len(body), len(body) + len(last) + 1)
    return Mistake("prose", text, len(body), several=True, lines=allowed)


_DOTS = ("...", "[...]", "(as before)", "\u2026", "<same as above>", "<snip>", "{...}")


def ellipsis(rng: random.Random, site: Site) -> Mistake | None:
    """Dots, or a remark, in place of what is in a section."""
    heads = [k for k in site.keys if site.is_head(k) and len(site.below(k)) > 1]
    heads = [k for k in heads if len(k.path) == 1 and k.text not in ("services", "waivers")]
    heads = [k for k in heads if site.block(k)]
    if not heads:
        return None
    head = rng.choice(heads)
    first, end = site.block(head) or (0, 0)
    word = rng.choice([*_DOTS, "# ... rest unchanged", "# TODO"])
    text = site.instead(first + 1, end, " " * site.below(head)[0].column + word)
    return Mistake("ellipsis", text, first, several=True, lines=(first, first + 1))


_AROUND = (
    *(("{% if big %}", "{% endif %}"), ("{{- if .Values.big }}", "{{- end }}")),
    *(("<% if big %>", "<% end %>"), ("{{#big}}", "{{/big}}"), ("{# big #}", "{# end #}")),
)
_FILLED = (
    *("{{ .Values.%s }}", "<%%= %s %%>", "$(%s)", "@@%s@@", "{%s}", "%%(%s)s", "#{%s}"),
    *("[[ %s ]]", "${{ env.%s }}", "${%s:-8}"),
)


def template(rng: random.Random, site: Site) -> Mistake | None:
    """A line, or a value, of a template that was not filled in."""
    keys = lines_of_keys(site)
    if not keys:
        return None
    key = rng.choice(keys)
    line, value = site.lines[key.line], site.value(key)
    own = " " * (len(line) - len(line.lstrip()))
    if rng.random() < 0.5:
        before, behind = rng.choice(_AROUND)
        text = site.with_line(key.line, own + before, line, own + behind)
        allowed = range(key.line, key.line + 3)
        return Mistake("template", text, key.line, several=True, lines=allowed)
    text = site.replaced(value, rng.choice(_FILLED) % key.text)
    free = bool(FREE & set(key.path))
    return Mistake("template", text, -1 if free else key.line, silent=free, several=True)


_TAGS = (
    *("!include {}.yaml", "!env {}", "!secret {}", "!!python/str {}", "!Ref {}", "!!int {}"),
    *("!reset {}", "!lambda {}"),
)


def tag(rng: random.Random, site: Site) -> Mistake | None:
    """Another program's tag before a value."""
    if not (known := plain_values(site)):
        return None
    value = rng.choice(known)
    text = site.replaced(value, rng.choice(_TAGS).format(value.text))
    return Mistake("custom tag", text, value.line, several=True)


def whole_file(rng: random.Random, site: Site) -> Mistake | None:
    """A search and replace in the whole file: quotes, another sign, tabs, the form of keys."""
    keys = [k for k in site.keys if not FREE & set(k.path[:-1]) and k.path[0] != "waivers"]
    pair = re.compile(r"^( *(?:- )?[\w-]+): (?=\w)")
    made = rng.choice(
        [
            lambda: site.edited({k: k.text.replace("_", "-") for k in keys}),
            lambda: site.edited({k: k.text.capitalize() for k in keys if len(k.path) == 1}),
            lambda: site.edited({v: f"\u201c{v.text}\u201d" for v in plain_values(site)}),
            lambda: "\n".join(pair.sub(r"\1 = ", line) for line in site.lines),
            lambda: "\n".join(pair.sub(r"\1:", line) for line in site.lines),
            lambda: "\n".join(re.sub("^(  )+", _tabs, line) for line in site.lines),
        ]
    )
    return Mistake("whole file", made(), -1, several=True)


def _tabs(found: re.Match[str]) -> str:
    return "\t" * (len(found[0]) // 2)


MISTAKES: tuple[Callable[[random.Random, Site], Mistake | None], ...] = (
    *(full_width, swallowed, diff, editor, prose, ellipsis, template, tag, whole_file),
)
