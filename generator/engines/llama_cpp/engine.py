"""llama.cpp: `llama-server` on the head, which hands layers to `ggml-rpc-server` on the workers.

Flags and environment names are those of llama.cpp 0.5.0-dev, commit 0c1e57098 (common/arg.cpp,
tools/rpc/rpc-server.cpp, ggml/src/ggml-rpc). Its parsers expect a flag and its value as two words.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from generator.catalogs.flag_files import catalogs
from generator.catalogs.speculation import method_of
from generator.engines import handed_on
from generator.engines.arguments import arguments, draft_flags
from generator.engines.defaults import OFFLOAD as OFFLOAD
from generator.engines.defaults import draft_settings as draft_settings
from generator.engines.defaults import offload_variables as offload_variables
from generator.engines.defaults import open_paths as open_paths
from generator.engines.defaults import option_names as option_names
from generator.engines.defaults import options as options
from generator.settings.flags import EngineSettings
from generator.site import MODEL_PART, Engine, Model, Rank, Words
from generator.sitefile.declaration import Parallel, Speculative
from generator.sitefile.defaults import default

if TYPE_CHECKING:
    from generator.engines import EngineModule
    from generator.engines.llama_cpp import engine as own

    # The module is imported by name, so its type is checked here.
    _: EngineModule = own

NAME = "llama.cpp"


LLAMA_SCRIPT = "/opt/sparkgen/llama.sh"
FOLLOW_SCRIPT = "/opt/sparkgen/follow.sh"


# A failed attempt at such a name: too many or too few digits, another word.
_NEARLY_PART = r"-(\d+)-?(?:of|fo|off?)-?(\d+)\.gguf$"
_MIB = 1024


def default_ports(launcher: str, parallel: Parallel) -> Mapping[str, int]:
    """The port of each worker."""
    return {"rpc": default("engine.ports.rpc")} if parallel.ranks > 1 else {}


def environment(rank: Rank, engine: Engine) -> Mapping[str, str]:
    """None: llama.cpp is configured by its command line."""
    return {}


def entrypoint(rank: Rank, engine: Engine) -> Words:
    """A script that finds the programs and workers; another ends a worker whose head is gone."""
    if rank.is_head:
        return ("bash", LLAMA_SCRIPT, "llama-server")
    return ("bash", FOLLOW_SCRIPT, "bash", LLAMA_SCRIPT, "ggml-rpc-server")


def scripts(rank: Rank, engine: Engine) -> Words:
    """Both of them."""
    return (LLAMA_SCRIPT,) if rank.is_head else (FOLLOW_SCRIPT, LLAMA_SCRIPT)


def part(file: str) -> int:
    """The number of a GGUF file among the parts of a model, from 1; 0 for a single file."""
    found = re.search(MODEL_PART, file)
    return int(found[1]) if found else 0


def is_no_part(file: str) -> bool:
    """Whether a file is named almost like a part, or like one that can't exist."""
    found = re.search(MODEL_PART, file)
    if found:
        return not 1 <= int(found[1]) <= int(found[2])
    return re.search(_NEARLY_PART, file) is not None


def reads(rank: Rank, model: Model, hub: str) -> Words:
    """Only the head opens files: it hands the workers their layers.

    Whole folders are listed, since a model may have several parts, and Docker would create a folder
    in place of a missing file. The Hugging Face cache contains links, so it is needed as a whole.
    """
    draft = model.speculative.source if model.speculative else None
    files = [PurePosixPath(file) for file in (model.file, draft) if file and rank.is_head]
    folders = (hub if file.is_relative_to(hub) else str(file.parent) for file in files)
    return tuple(dict.fromkeys(folders))


def flags(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> tuple[Words, ...]:
    """The head gets all flags; a worker listens where the head reaches it over a cable or switch.

    `ggml-rpc-server` requires no key. It keeps the layers that it is sent, below LLAMA_CACHE.
    """
    if rank.is_head:
        return tuple(_serve(rank, engine, model, settings))
    link = rank.links[rank.index - 1]
    return (("--cache",), ("--host", str(link.worker)), ("--port", str(engine.ports["rpc"])))


def _serve(rank: Rank, engine: Engine, model: Model, settings: EngineSettings) -> Iterator[Words]:
    assert model.file, "a rule sees to it that the file is named"
    yield ("--model", model.file)
    yield ("--alias", ",".join((model.served_name, *model.aliases)))
    yield ("--host", engine.api.listen)
    yield ("--port", str(engine.api.port))
    yield ("--offline",)
    if rank.links:
        port = engine.ports["rpc"]
        yield ("--rpc", ",".join(f"{link.worker}:{port}" for link in rank.links))
        yield ("--split-mode", "layer")
    yield from _memory(rank, engine, model)
    if model.speculative:
        yield from _speculative(model.speculative, engine.version)
    # Direct I/O: what mmap leaves in the page cache would count as used memory.
    if not any(name in settings for name in ("load-mode", "mmap", "no-mmap")):
        # Of builds between two that are known, both count.
        has_modes = all(known.find("load-mode") for known in catalogs(NAME, engine.version))
        yield ("--load-mode", "dio") if has_modes else ("--no-mmap",)
    if "metrics" not in settings:
        yield ("--metrics",)
    yield from arguments(settings)


def _memory(rank: Rank, engine: Engine, model: Model) -> Iterator[Words]:
    """The memory that stays free on each node, and a KV cache for all sequences at full length.

    Memory that other engines hold is not free: if it were requested, layers would not be put on the
    GPU.

    `--ctx-size` is the total of the slots (`--parallel`), which share it evenly.
    """
    free = max(0.0, 1 - engine.memory_utilization - engine.held_by_others) * rank.visible_gib
    yield ("--fit-target", str(round(free * _MIB)))
    if model.context_length:
        yield ("--ctx-size", str(model.context_length * (model.max_sequences or 1)))
    yield from handed_on.words(engine, model)
    if (dtype := model.kv_cache_dtype) and dtype != "auto":
        yield ("--cache-type-k", dtype)
        yield ("--cache-type-v", dtype)


def _speculative(drafts: Speculative, release: str) -> Iterator[Words]:
    known = method_of(NAME, drafts.method)
    kind = known.spelled if known else drafts.method
    yield ("--spec-type", kind)
    if drafts.source:
        yield ("--spec-draft-model", drafts.source)
    if drafts.tokens:
        yield (_LENGTHS.get(kind, "--spec-draft-n-max"), str(drafts.tokens))
    yield from arguments(draft_flags(NAME, release, drafts))


# The length in tokens of drafts that are taken from the text itself.
_LENGTHS = {
    "ngram-simple": "--spec-ngram-simple-size-m",
    "ngram-map-k": "--spec-ngram-map-k-size-m",
    "ngram-map-k4v": "--spec-ngram-map-k4v-size-m",
    "ngram-mod": "--spec-ngram-mod-n-max",
}
