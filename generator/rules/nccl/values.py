"""Rules about the values that NCCL reads."""

import re

from generator.catalogs.nccl import AllowedValues, is_ours, parameter, values
from generator.diagnostics import (
    Data,
    Related,
    Severity,
    all_nearest,
    listed,
    misspelt,
    replacements,
)
from generator.rules.nccl.grammar import INTERFACES, ValueFault, is_subnet, names_fault
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine
from generator.sitefile.text_types import PLAIN_VALUE, before_comment

# An algorithm or protocol may be limited to one function: `allreduce:ring`.
_FUNCTIONS = "AllGather AllReduce Broadcast Reduce ReduceScatter"
_INTEGER = r"[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)"
_FLAG_WORDS = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}
_ROCE = ("infiniband", "rdma", "roce", "verbs")
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@rule("SG413", suppressed_by="SG410 SG411 SG412")
def value_of_a_variable(engine: DeclaredEngine) -> Faults:
    """An NCCL variable has a value that NCCL accepts."""
    for variable in engine.environment:
        fault = _value_fault(variable.name, variable.value, engine)
        if fault:
            message, help_text, meant = fault
            right: Data = int(meant) if meant.isdigit() else meant
            proposals = replacements(variable.path, [right] if meant else [])
            yield Fault(message, variable.path, help_text, proposals=proposals)


_BOUNDS = (
    ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"),
    ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"),
    ("NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"),
)


@rule("SG440", Severity.WARNING, suppressed_by="SG413")
def crossed_bounds(engine: DeclaredEngine) -> Faults:
    """A minimum is no larger than its maximum."""
    for low, high in _BOUNDS:
        for given in engine.environment.together((low, high)):
            least, most = given.get(low), given.get(high)
            if least.isdigit() and most.isdigit() and int(least) > int(most):
                yield Fault(
                    f"{low} is {least}, and {high} {most}",
                    given.path(low),
                    f"write {most} or less",
                    related=(Related(high, given.path(high)),),
                )


def _value_fault(name: str, value: str, engine: DeclaredEngine) -> ValueFault | None:
    if is_ours(name) and (fault := _raw_fault(name, value)):
        return fault
    known, taken = parameter(name) if is_ours(name) else None, values().get(name)
    if taken and taken.words:
        return _words_fault(name, value, taken)
    if taken or (known and known.is_integer):
        return _integer_fault(name, value, taken)
    if name in INTERFACES:
        return names_fault(name, value)
    if name == "NCCL_NET":
        return _network_fault(value, engine)
    if name == "NCCL_IB_ADDR_RANGE" and not is_subnet(value):
        message = f"'{name}: {value}' is not a subnet"
        return message, "write ADDRESS/LENGTH, such as 10.100.0.0/16", ""
    return None


def _raw_fault(name: str, value: str) -> ValueFault | None:
    """The fault of an empty value, or of characters that only a shell would remove."""
    if not value:
        message = f"{name} is empty, which overrides the value in /etc/nccl.conf"
        return message, "remove it: NCCL has a default for what is not set", ""
    if not PLAIN_VALUE.fits(value):
        bare = before_comment(value).strip(" '\"")
        meant = bare if PLAIN_VALUE.fits(bare) else ""
        message = f"NCCL takes spaces and quotes in {name} as part of the value"
        return message, f"write {meant}" if meant else "write it without them", meant
    return None


def _integer_fault(name: str, value: str, taken: AllowedValues | None) -> ValueFault | None:
    wanted = (
        f"write a number from {taken.least} to {taken.most}" if taken else "write a whole number"
    )
    found = re.match(_INTEGER, value)
    read = _strtoll(found[0]) if found else 0
    octal = found and re.match(r"[+-]?0[0-9]", value)
    if not found or found[0] != value or octal:
        meant = _meant_number(value)
        message = f"{name} is a whole number, and NCCL reads '{value}' as {read}"
        return message, f"write {meant}" if meant else wanted, meant
    if taken and not taken.least <= read <= taken.most:
        if name == "NCCL_IB_TIMEOUT":
            wanted += "; 20, the default, waits 4.096 us x 2^20, some 4 s"
        return f"'{name}: {value}' is out of range: {taken.least} to {taken.most}", wanted, ""
    if name == "NCCL_NTHREADS" and read % _WARP:
        return f"'{name}: {value}' is not a multiple of {_WARP}", "write 64, 128, 256 or 512", ""
    return None


# Threads of a warp: NCCL uses its maximum in place of a value that is not a multiple.
_WARP = 32


def _strtoll(text: str) -> int:
    """A whole number as C reads it with base 0."""
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-").lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    return sign * int(digits, base)


def _meant_number(value: str) -> str:
    if value.isdigit():
        return str(int(value))
    if value.lower() in _FLAG_WORDS:
        return str(_FLAG_WORDS[value.lower()])
    size = re.fullmatch(r"([1-9][0-9]*)([KMG])(i?B)?", value.upper().replace("IB", "iB"))
    return str(int(size[1]) * _SIZES[size[2]]) if size else ""


def _words_fault(name: str, value: str, taken: AllowedValues) -> ValueFault | None:
    known = {word.upper(): word for word in taken.words}
    words = re.split(r"[\^,;:]+", value) if taken.is_list else [value]
    functions = _FUNCTIONS.split() if taken.is_list else []
    for word in filter(None, words):
        if word.upper() not in {*known, *map(str.upper, functions)}:
            near = [known[found] for found in all_nearest(word.upper(), known)]
            choices = f"one of: {', '.join(known.values())}"
            guess = f"; did you mean {listed(map(repr, near))}?" if near else ""
            sure = misspelt(word, near)
            meant = value.replace(word, sure[0], 1) if len(sure) == 1 else ""
            return f"{name} has no '{word}'", choices + guess, meant
    return None


def _network_fault(value: str, engine: DeclaredEngine) -> ValueFault | None:
    """The fault of a network that NCCL does not have, unless a plugin may provide it."""
    plugins = engine.environment.of("NCCL_NET_PLUGIN")
    has_plugin = engine.nccl_patched or any(plugin.value != "none" for plugin in plugins)
    if has_plugin or value.lower() in ("ib", "socket") or value.lower().startswith("ibext"):
        return None
    return (
        f"NCCL has no built-in network '{value}'",
        "write IB, which includes RoCE, or name the plugin in NCCL_NET_PLUGIN",
        "IB" if value.lower() in _ROCE else "",
    )
