"""The finding of each fault by itself: what is wrong, and what to write."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import (
    Add,
    Finding,
    KeyPath,
    Proposal,
    Related,
    Remove,
    all_nearest,
    listed,
    misspelt,
    reading_error,
    removal,
    renamings,
    replacements,
    scalar,
    slips,
)
from generator.hardware import PORT_NAMES
from generator.records import replace
from generator.sitefile.automatic import automatic
from generator.sitefile.key_rules import (
    KINDS,
    example_of,
    flow_text,
    group_around,
    is_of_type,
    key_name,
    keys_at,
    list_around,
    place_name,
    quoted,
    rules_at,
    section_of,
    smallest_value,
    types_of,
)
from generator.sitefile.mistakes import meanings, other_words
from generator.sitefile.mistakes.faults import SchemaFault, SchemaFaults
from generator.sitefile.source import Plain, value_at
from generator.sitefile.text_types import TEXT_HELP, valid_text
from generator.sitefile.typed_values import as_typed
from generator.sitefile.validation import is_valid, takes


def finding_of(fault: SchemaFault, faults: SchemaFaults) -> Finding:
    """The finding of a fault of the schema."""
    data, path = faults.typed, fault.path
    if fault.kind == "unknown":
        unknown = _unknown_key(fault, path, value_at(data, path[:-1]) or data)
        if not _may_be_of_a_service(str(path[-1]), fault.value, data):
            return unknown
        other = ", or under its service" * unknown.help.startswith("write it under")
        return replace(unknown, help=unknown.help + other, unsafe=True)
    if fault.kind == "required":
        return _missing_key(path, data)
    if fault.kind == "dependencies":
        return _missing_other(fault.beside, str(path[-1]), data)
    if fault.kind == "excludes":
        return _excluded(fault, value_at(data, path[:-1]))
    made = _BY_RULE.get(fault.kind, _form_fault)(fault, path)
    if made.rule == "SG106" and rules_at(path).get("check_with") == "node_name":
        made = _of_a_node(made, fault.value, data)
    if made.unsafe and path[-2:] == _ADDRESS:
        # The other nodes say how long the prefix is.
        others = {str(value_at(node, _ADDRESS)).partition("/")[2] for node in data["nodes"]}
        made = replace(made, unsafe=others - {""} != {made.help.split("'")[1].partition("/")[2]})
    return made if made.at_key else meanings.in_plain_characters(made, fault.value)


def _may_be_of_a_service(key: str, value: Any, data: Any) -> bool:
    """Whether a service of the site lacks a key and would take its value, too."""
    services = value_at(data, ("services",))
    settings = services.items() if isinstance(services, dict) else ()
    lacking = [name for name, own in settings if isinstance(own, dict) and key not in own]
    return any(takes(("services", name, key), value) for name in lacking)


def guesses(fault: SchemaFault, finding: Finding, faults: SchemaFaults) -> Iterator[Proposal]:
    """The edits that may undo a fault: those of its finding, and keys with nearly its name."""
    yield from finding.proposals
    if fault.kind == "unknown" and not finding.proposals:
        here = value_at(faults.data, fault.path[:-1]) or faults.data
        free = [name for name in keys_at(fault.path[:-1]) if name not in here]
        key = str(fault.path[-1])
        near = [other_words.meant(key, free), *all_nearest(key, free)]
        yield from renamings(fault.path, filter(None, near))


def _unknown_key(fault: SchemaFault, path: KeyPath, siblings: Collection[str]) -> Finding:
    every = keys_at(path[:-1])
    key = str(path[-1])
    # A key that is already present can't be meant, unless nothing else is close.
    known = [name for name in every if name not in siblings]
    is_near = bool(other_words.meant(key, known) or misspelt(key, all_nearest(key, known)))
    # What is in it says more than another tool's name for something else.
    is_known = is_near or bool(_holding(path, known, fault.value))
    home, is_switch = section_of(key, path[:-1]), str(fault.value).lower() in ("true", "false")
    is_known |= bool(home and is_switch and takes((home, key), fault.value))
    if (other := other_words.of(key, path[:-1])) and not is_known:
        return reading_error(
            other.rule,
            f"unknown key '{path[-1]}'",
            path,
            at_key=True,
            help=other.help,
            proposals=removal(path) if other.is_needless else (),
        )
    meant = other_words.meant(key, known)
    # Another name of a key that is already here.
    twin = "" if is_near else other_words.meant(key, [one for one in every if one in siblings])
    known = known if meant or (all_nearest(key, known) and not twin) else every
    meant = meant or twin
    others = misspelt(key, all_nearest(key, known))
    takers = [name for name in others if takes((*path[:-1], name), fault.value)]
    if (home or takers) and not twin and not takes((*path[:-1], meant), fault.value):
        meant = ""
    meant = meant or _holding(path, known, fault.value)
    near = [meant] if meant else all_nearest(key, known)
    if not meant and all(slips(key, name) > 1 for name in near):
        near = _fitting(path, near, known, fault.value)
    near = [name for name in near if len(near) > 1 and name.startswith(key)] or near
    sure = [] if twin else [meant] if meant else misspelt(key, near)
    # If another section has exactly this key and accepts the value, it isn't a misspelled key that
    # would not accept it.
    is_here = any(is_valid((*path[:-1], name), fault.value) for name in sure)
    if meant or is_here or (near and not is_valid((home, key), fault.value)):
        home = ""
    around = "" if home or is_here else list_around(key, path)
    sure = [] if home or around else sure
    near = [] if home or around else near
    belongs = takes((home, key), fault.value) if home else False
    under = f"write it under '{home}'" if home else around
    if home and not belongs:
        under = f"it belongs under '{home}', {example_of((home, key)) or 'with another value'}"
    elsewhere = "" if near or not known else under or other_words.elsewhere(key)
    if meant == "endpoints" and not is_here:
        near, sure, elsewhere = [], [], "write 'endpoints: [NODE:PORT, NODE:PORT]'"
    if opposite := _opposite(path, known, fault.value):
        near, sure, elsewhere = [], [], opposite
    several = meanings.several_meant((*path[:-1], near[0]), fault.value) if near else ""
    several = f"remove it: '{twin}' is here already" if twin and near else several
    sure = [] if several else sure
    help_text = several or (
        f"did you mean {listed(map(repr, near))}?"
        if near
        else elsewhere or f"the keys here are {listed(every, 'and')}"
    )
    return reading_error(
        "SG101",
        f"unknown key '{path[-1]}'",
        path,
        at_key=True,
        help=help_text,
        proposals=_move(path, home, fault) if belongs else renamings(path, sure),
        unsafe=other_words.is_like(key, meant),
    )


def _opposite(path: KeyPath, known: Iterable[str], value: Any) -> str:
    """What to write in place of `no_guard: true`, or of `enabled: true` in what can be true."""
    can_be_off = "boolean" in types_of(rules_at(path[:-1]))
    if can_be_off and re.fullmatch("enabled?|active", str(path[-1])):
        return f"write '{path[-2]}: {str(value).lower()}' in place of the mapping, or remove this"
    found = re.fullmatch(
        r"(?:no|not|non|disable|without|skip)[-_](.+)|(.+)[-_](?:off|disabled)",
        str(path[-1]).lower(),
    )
    name = (found[1] or found[2]).replace("-", "_") if found else ""
    is_switch = name in known and "boolean" in types_of(rules_at((*path[:-1], name)))
    meant = "false" if str(value).lower() == "true" else "true"
    return f"write '{name}: {meant}'" if is_switch else ""


def _fitting(path: KeyPath, near: list[str], known: Iterable[str], value: Any) -> list[str]:
    """The keys that a name stands for, by the value: those that take it, or have this choice."""
    begun = [name for name in near if name.startswith(str(path[-1]))]
    taking = [name for name in begun if is_valid((*path[:-1], name), value)]
    choosing = [
        name
        for name in known
        if str(value).isidentifier() and str(value) in _choices((*path[:-1], name))
    ]
    if taking or begun or len(choosing) == 1:
        return taking or begun or choosing
    key = str(path[-1])
    return [
        name
        for name in near
        if slips(key, name) < 3 or key.startswith(name) or takes((*path[:-1], name), value)
    ]


def _holding(path: KeyPath, known: Iterable[str], value: Any) -> str:
    """The only free key that takes such a mapping or list: what is in it shows what it is."""
    first, at = (value[:1], (0,)) if isinstance(value, list) else ([value], ())
    if not first or not isinstance(first[0], dict) or not first[0]:
        return ""
    found = [
        name
        for name in known
        if not set(first[0]) - set(keys_at((*path[:-1], name, *at)))
        and is_valid((*path[:-1], name), value)
    ]
    return found[0] if len(found) == 1 else ""


def _choices(path: KeyPath) -> list[str]:
    """The words that a key takes."""
    rules = rules_at(path)
    also = rules.get("meta", {}).get("also", {})
    return [str(word) for one in rules.get("allowed", ()) for word in (one, *also.get(one, ()))]


def _move(path: KeyPath, home: str, fault: SchemaFault) -> tuple[Proposal, ...]:
    """The proposal to move a key with its value to its section."""
    place = (*group_around(path, home), home, str(path[-1]))
    rules = rules_at(place)
    # The word 'auto' is read as a number that stands for it.
    is_word = automatic(fault.value, rules) is not None
    value = str(fault.value) if is_word else as_typed(fault.value, rules)
    return ((Remove(path), Add(place, value)),)


def _missing_other(path: KeyPath, other: str, data: Any) -> Finding:
    """The finding of a model without an engine, or the reverse."""
    key, value = path[-1], smallest_value(rules_at((other,)))
    nodes = value_at(data, (*path[:-1], "nodes"))
    if other == "engine" and isinstance(nodes, list) and len(nodes) > 1:
        value = {**value, "parallel": {"pipeline": len(nodes)}}
    example = flow_text(value)
    return reading_error(
        "SG102",
        f"'{key}' needs the key '{other}', which is missing",
        path,
        at_key=True,
        help=f"write '{other}: {example}', or remove '{key}' to keep the network alone",
    )


def _missing_key(path: KeyPath, data: Any) -> Finding:
    key = str(path[-1])
    place = f" in {place_name(path[:-1])}" if path[:-1] else ""
    message = f"the key '{key}' is missing{place}"
    rules = rules_at(path)
    example = smallest_value(rules)
    match path:
        case (*above, int(index), "name"):
            taken = [value_at(entry, ("name",)) for entry in value_at(data, tuple(above))]
            names = [example, *(f"{example.rstrip('1')}{n + 1}" for n in range(1, len(taken) * 2))]
            example = next(name for name in names[index:] if name not in taken)
        case ("nodes",) if named := _named_nodes(data.get("cabling"), ("endpoints",)):
            example = [{"name": name} for name in named]
        case ("groups", int(), "nodes"):
            example = _free_nodes(data) or example
    help_text = f"write '{key}: {flow_text(example)}'"
    if path[:2] == ("model", "architecture"):
        # Any number here would be a guess.
        help_text = (
            f"write '{key}: N' from the model's config.json, as 'sparkgen describe-model' reads it"
        )
    if path[-2:-1] == ("engine",) and key in ("version", "image"):
        help_text = _of_the_engine(key, value_at(data, path[:-1]))
    only = rules.get("allowed", ())
    return reading_error(
        "SG102",
        message,
        path[:-1],
        at_key=True,
        help=help_text,
        proposals=((Add(path, only[0]),),) if len(only) == 1 else (),
    )


def _free_nodes(data: Any) -> list[str]:
    """The nodes that no group has; only one of them if several groups lack nodes."""
    nodes, used = data.get("nodes"), _named_nodes(data["groups"], ("nodes",))
    names = [value_at(node, ("name",)) for node in nodes] if isinstance(nodes, list) else []
    free = [name for name in names if isinstance(name, str) and name not in used]
    lacking = [each for each in data["groups"] if value_at(each, ("nodes",)) is None]
    return free[:1] if len(lacking) > 1 else free


def _named_nodes(entries: Any, key: KeyPath) -> list[str]:
    """The nodes that the entries of a list name under a key, each once."""
    lists = [value_at(entry, key) for entry in entries] if isinstance(entries, list) else []
    ends = [str(end).partition(":") for each in lists if isinstance(each, list) for end in each]
    # A cable also ends at switches, whose ports have other names.
    return list(dict.fromkeys(name for name, _, port in ends if port in ("", *PORT_NAMES)))


def _of_the_engine(key: str, engine: Mapping[str, Any]) -> str:
    """The version that is in the image, or else what new sites with this engine start with."""
    reference = engine.get("image")
    if isinstance(reference, str) and (known := catalogs.image(reference)) and known.version:
        return f"write 'version: {known.version}', as in the image"
    own = ENGINE_TRAITS.get(str(engine.get("name")))
    start = (own or next(iter(ENGINE_TRAITS.values()))).start
    return f"write '{key}: {getattr(start, key)}'"


def _wrong_kind(fault: SchemaFault, path: KeyPath) -> Finding:
    types = types_of({"type": fault.constraint})
    wanted = listed(KINDS[kind] for kind in types)
    message = f"{quoted(path, fault.value)} must be {wanted}"
    if isinstance(fault.value, str) and is_of_type(types, Plain(fault.value).meaning()):
        message = f"'{key_name(path)}: \"{fault.value}\"' must be {wanted}"
    help_text, meant = (
        meanings.meant_value(types, path, fault.value)
        or meanings.unwrapped(types, path, fault.value)
        or meanings.json_text(path, fault.value)
        or meanings.wrapped(path, fault.value)
        or meanings.mapping_of(path, fault.value)
        or meanings.listed_alone(types, path, fault.value)
        or meanings.named_entries(path, fault.value)
        or meanings.one_of_several(types, path, fault.value)
        or (example_of(path) or f"write {wanted}", None)
    )
    if path[-2:-1] == ("secrets",) and isinstance(fault.value, dict):
        name = next(iter(fault.value), "NAME")
        help_text = f"write '{name}' alone; values go into /etc/sparkgen/secrets.env on the nodes"
    proposals = () if meant is None else replacements(path, [meant])
    # Another digit may be missing before the zero.
    unsafe = isinstance(fault.value, str) and bool(re.match("[+-]?0[0-9]", fault.value))
    return reading_error("SG103", message, path, help=help_text, proposals=proposals, unsafe=unsafe)


def _empty(fault: SchemaFault, path: KeyPath) -> Finding:
    subject = place_name(path)
    help_text = example_of(path)
    if not help_text and "boolean" in types_of(rules_at(path)):
        help_text = "write true or false"
    proposals = () if help_text else removal(path)
    message = f"{subject} is empty"
    return reading_error(
        "SG108",
        message,
        path,
        at_key=True,
        help=help_text or "write a value, or remove the key",
        proposals=proposals,
        # The value may be what is missing.
        unsafe=True,
    )


def _not_allowed(fault: SchemaFault, path: KeyPath) -> Finding:
    allowed = [scalar(choice) for choice in fault.constraint]
    choices = f"one of: {', '.join(allowed)}" if len(allowed) > 1 else f"write {allowed[0]}"
    word, rules = str(fault.value), rules_at(path)
    # Text that is one of the choices in another type: "false" in place of false.
    typed = meanings.meant_value(types_of(rules), path, fault.value)
    if typed and typed[1] in fault.constraint:
        fix, message = replacements(path, [typed[1]]), f"{quoted(path, fault.value)} is a string"
        return reading_error("SG104", message, path, help=typed[0], proposals=fix)
    meant = other_words.choice(word, allowed, rules.get("meta", {}).get("also", {}))
    near = [meant] if meant else all_nearest(word, allowed)
    guess = f"did you mean {listed(map(repr, near))}?" if near else ""
    help_text = "; ".join(filter(None, (choices, guess)))
    sure = allowed if len(allowed) == 1 else [meant] if meant else misspelt(word, near)
    return reading_error(
        "SG104",
        f"{quoted(path, fault.value)} is not allowed",
        path,
        help=help_text,
        proposals=replacements(path, [c for c in fault.constraint if str(c) in sure]),
    )


def _out_of_range(fault: SchemaFault, path: KeyPath) -> Finding:
    rules = rules_at(path)
    unit = rules.get("meta", {}).get("unit", "")
    bounds = f"{rules['min']} to {rules['max']}"
    message = f"{quoted(path, fault.value)} is out of range: {bounds}"
    message += f" ({unit})" if unit else ""
    is_share = unit == "fraction" and rules["max"] < fault.value < 100
    help_text = f"write {fault.value / 100:g}" if is_share else example_of(path)
    proposals = replacements(path, [fault.value / 100] if is_share else [])
    return reading_error("SG105", message, path, help=help_text, proposals=proposals)


def _wrong_length(fault: SchemaFault, path: KeyPath) -> Finding:
    rules, count = rules_at(path), len(fault.value)
    low, high = rules.get("minlength"), rules.get("maxlength")
    bounds = f"{low}" if low == high else f"{low} to {high}" if low else f"at most {high}"
    bounds = bounds if high is not None else f"at least {low}"
    parts = ("characters", "character") if isinstance(fault.value, str) else ("entries", "entry")
    message = f"'{key_name(path)}' has {count or 'no'} {parts[count == 1]}; it takes {bounds}"
    return reading_error("SG107", message, path, help=example_of(path))


def _excluded(fault: SchemaFault, siblings: Any) -> Finding:
    others = types_of({"type": fault.constraint})
    path, other = fault.path, next((key for key in others if key in siblings), others[0])
    return reading_error(
        "SG109",
        f"'{path[-1]}' and '{other}' can't be used together",
        path,
        at_key=True,
        related=(Related("the other one", (*path[:-1], other)),),
        help="keep one of the two",
        proposals=(*removal(path), *removal((*path[:-1], other))),
    )


def _form_fault(fault: SchemaFault, path: KeyPath) -> Finding:
    is_key, unsafe = fault.of_name, False
    if is_key:
        meant = meanings.meant_key(path)
        message = f"the name '{path[-1]}' {fault.reason}"
        help_text = f"write '{meant}'" if meant else ""
        if pair := re.fullmatch(r"(?:--)?(\w[\w-]*)(?:=| +)(\S+)", str(path[-1])):
            help_text = f"write '{pair[1]}: {pair[2]}'"
        proposals = renamings(path, filter(None, [meant]))
    else:
        meant = valid_text(rules_at(path).get("check_with", ""), fault.value)
        message = f"{quoted(path, fault.value)} {fault.reason}"
        check = rules_at(path).get("check_with", "")
        help_text = f"write '{meant}'" if meant else example_of(path) or TEXT_HELP.get(check, "")
        # Two words may be two names, and what follows a '.' may be a domain.
        joins = re.search("[ .]", str(fault.value).strip()) is not None
        unsafe = joins and meant.count("-") > str(fault.value).count("-")
        # Capitals at the end are often left of an editor's command.
        unsafe |= bool(re.search("[a-z0-9][A-Z]+$", str(fault.value))) and check != "model_name"
        if meant and meant.startswith(f"{fault.value}/"):
            unsafe = True
            help_text += ", or with the prefix length that your network has"
        if check == "model_name" and catalogs.checkpoint(str(meant or fault.value)) is None:
            near, meant = catalogs.near_checkpoints(str(fault.value))[:_MOST_MODELS], ""
            help_text = f"did you mean {listed(map(repr, near))}?" if near else _OF_NO_CATALOG
        is_placeholder = str(fault.value).lower() in _PLACEHOLDERS
        proposals = replacements(path, filter(None, [meant])) if not is_placeholder else ()
    return reading_error(
        "SG106", message, path, at_key=is_key, help=help_text, proposals=proposals, unsafe=unsafe
    )


_MOST_MODELS = 6
_OF_NO_CATALOG = (
    "write a name that 'sparkgen models' lists, or 'source: OWNER/NAME' for one that it doesn't"
)
# What people write for what they do not know yet.
_PLACEHOLDERS = ("none", "null", "todo", "tbd", "xxx", "n/a", "changeme")


def _of_a_node(made: Finding, value: str, data: Any) -> Finding:
    """If the value should name a node, suggest one that exists, and nothing else."""
    nodes = value_at(data, ("nodes",))
    if made.path[0] == "nodes" or not isinstance(nodes, list):
        return made
    names = {value_at(node, ("name",)): value_at(node, _ADDRESS) for node in nodes}
    own = [name for name, address in names.items() if str(address).partition("/")[0] == value]
    meant = own or [name for name in names if made.help == f"write '{name}'"]
    help_text = f"write '{meant[0]}'" if meant else "write the name of a node"
    return replace(made, help=help_text, proposals=replacements(made.path, meant[:1]))


_ADDRESS = ("management", "address")

_BY_RULE = {
    "type": _wrong_kind,
    "nullable": _empty,
    "allowed": _not_allowed,
    "min": _out_of_range,
    "max": _out_of_range,
    "minlength": _wrong_length,
    "maxlength": _wrong_length,
}
