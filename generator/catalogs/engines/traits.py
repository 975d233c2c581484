"""What there is to know of an engine: its memory, its settings, and how people start it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from generator.catalogs.versions import Release, release
from generator.origin import Origin
from generator.records import record

# What clients ask of a model, and of no other kind of model.
Task = Literal["chat", "embedding", "rerank"]


@record
class BatchDefaults:
    """From a release on: the most tokens of one step, and the most sequences at once."""

    since: Release
    tokens: int
    sequences: int


@record
class Start:
    """The version and image that a new site file starts with.

    `launcher` and `ranks_image` are for several nodes, where they are others; `is_made` says that
    nobody publishes the image of so many, and the runbook how it is made. Nobody would do without
    `args`.
    """

    version: str
    image: str
    launcher: str = ""
    ranks_image: str = ""
    is_made: bool = False
    args: Mapping[str, str] = MappingProxyType({})


@record
class Paging:
    """An engine whose layers of all kinds share one pool of blocks: since when it does what.

    `caches_states`: prefixes of models with recurrent layers are cached unless switched off.
    `two_steps`: windows have room for all steps under way. `packs`: pages of several sizes lie side
    by side and aren't padded to one another. `counts_graphs`: graphs are part of the engine's
    share. `draws_unsorted`: tokens are drawn without a sorted copy of the vocabulary.
    `checkpoints_states` and `checkpoints_delta`: prefilling keeps one more state a sequence for its
    prefix, of Mamba and Kimi's layers and of gated delta layers. `compresses`: it has compressed
    attention (DeepSeek-V4). `caches_pooled`: it caches 8 bits where an entry of the index stands
    for several tokens of plain attention (Qwen3.8-Flash-Next). `sizes_gathers`: what a sparse
    attention's index is gathered in is smaller for long contexts.
    """

    caches_states: Release
    two_steps: Release
    packs: Release
    counts_graphs: Release
    draws_unsorted: Release
    checkpoints_states: Release
    checkpoints_delta: Release
    compresses: Release
    caches_pooled: Release
    sizes_gathers: Release


@record
class Pools:
    """An engine that divides its room at the start, among a pool for each kind of layers.

    `windows` are the tokens of layers with a window for each of those without, `states` the bytes
    of states for each of KV cache: the flag and its default. `slots` are the states of a request,
    by `strategy`, a flag's value; `slots_flag` fixes how many there are in all, and `uncached_flag`
    leaves prefixes uncached, which need states of their own.
    """

    windows: tuple[str, float]
    states: tuple[str, float]
    strategy: str
    slots: Mapping[str, int]
    slots_flag: str
    uncached_flag: str


Need = Literal["needed", "optional", "class", "none"]


@record
class Method:
    """A method of speculative decoding as an engine spells it, with what it takes.

    `source` is a draft model or class, `tokens` their number. A `tree` has branches and depth
    (`topk`, `steps`). The engine has it from the release `since` on, and before `until`.
    """

    spelled: str
    source: Need
    tokens: Need = "needed"
    tree: bool = False
    since: Release = ()
    until: Release = ()

    def is_in(self, version: str) -> bool:
        """Whether a version of the engine has it."""
        number = release(version)
        return number >= self.since and (not self.until or number < self.until)


@record
class Program:
    """What begins a command that serves: a word, and the one behind it, if it needs one."""

    word: str
    second: str = ""


@record
class Recipe:
    """How a recipe of sparkrun that has no command starts an engine, and its defaults as flags.

    `runtime` is part of what recipes call it.
    """

    runtime: str
    start: tuple[str, ...]
    flags: Mapping[str, str]


@record
class Commands:
    """How people start an engine themselves.

    `workers` hold a part of a model for another node's server. `servers` are parts of the names of
    images that start the server, for tags that the catalog does not know. `package` is what its
    Python package is called where that is another name, and `version_variable` what its images say
    their version in. `first_release` is that of the first image for Sparks, where it is older than
    all flags that are known. `own_shares` are what it takes of the memory unless told, by release;
    none where it works that out. `listens_everywhere`: on all addresses, unless told.
    `is_under_ray`: it is what is served where a container says no more than `ray start`.

    Sources: the engines' own documentation, and the Compose files and scripts that people publish.
    """

    programs: tuple[Program, ...] = ()
    workers: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    package: str = ""
    version_variable: str = ""
    first_release: str = ""
    recipe: Recipe | None = None
    own_shares: tuple[tuple[Release, str], ...] = ()
    listens_everywhere: bool = False
    is_under_ray: bool = False

    def own_share(self, version: str) -> str:
        """What it takes of the memory unless told, of a version that need not be known."""
        if version:
            since_then = [share for since, share in self.own_shares if since <= release(version)]
            return since_then[-1] if since_then else ""
        return self.own_shares[-1][1] if self.own_shares else ""


@record
class EngineTraits:
    """What an engine is like; flags by their names without dashes, empty where there is none.

    `batches` are its defaults on a GB10, oldest first. `step_flag` sets the tokens of a step,
    `eager_flag` switches graphs off, `pool_flag` fixes the size of the KV cache, and
    `settings_flag` names a file of settings that sparkgen writes. `variables_file` is a list of
    variables that it reads, of which its catalog has none. `stage_variable` gives the layers
    of each pipeline stage. `eight_bit_cache` is a KV cache of 8 bits as the engine spells it.

    `allocates_all`: the cache of all sequences is allocated at the start, and not shared as they
    grow. `captures_graphs`: of many sizes. `reserves_outside`: activations and graphs come out of
    what the engine's fraction leaves. `shares_free`: the fraction is of what is free at its start.
    `shares_experts`: replicas share the experts of a model, spread or sliced. `larger_first`:
    layers that don't divide make the first stages larger, and not the middle ones.

    `finest_blocks` are the fewest columns that a scale of FP8 blocks may stand for where a slice
    cuts through one, from a release on; None where that is not known.
    `drafts_over_stages` are the methods of speculative decoding that go with pipeline stages.

    `delta_kernels` is the first release with kernels of its own for gated delta layers on a GB10,
    `nvfp4_kernels` the first whose NVFP4 is right there; None where it is not known to matter.
    `startup_since` is the oldest release whose checks at the start are known.

    `tasks` are the flags with which it serves something else than chats, with their values, which
    switches have none of, and what that is.

    `joins_dense_replicas`: copies of a model without experts may span nodes. `tuned_by_one` are the
    first release in which one rank alone keeps FlashInfer's tuning, and the first after it.
    `eagle3_over_stages` is the first release that runs EAGLE-3 over pipeline stages. Either is None
    where it is not known to matter.

    `runs_from_venv`: it is a Python package that needs nothing of a container. `addition` is what
    its images lack for several nodes, as `engine.image.adds` calls it. `drafts_flag` takes the
    settings of speculative decoding as JSON. `commits` are what git calls the versions of one that
    is built from its source. `logs_memory` are the arguments without which its log says nothing of
    its memory.

    `reads_modelopt`: it reads a checkpoint's kind of quantization by ModelOpt, whatever it is told.

    Where its share is of what others on its node leave free, `tokens_flag` bounds what it caches,
    or `tokens_setting` of its options. Releases before `shares_since` have no such bound.

    `names_parsers`: models' parsers are known by its names for them. `locks_metrics`: they need the
    API's key too. `is_built_for_ranks`: no registry has an image that runs on several nodes.

    `context_flags` set how many ranks share the KV cache of a sequence. `exchanges` are the flags
    that choose how ranks hand experts or a cache to one another, each with the values by which they
    gather and reduce, and not all send to all. `rings_reported`: it runs on rings of four or more.

    `paging` is how one pool of blocks is shared by layers of several kinds, None where each kind
    has its own; then windows are rounded up to `window_cells` tokens. `wide_states`: recurrent
    states are in 32 bits with all that belongs to them, once more for each drafted token. `pools`
    is how such an engine divides its room among them, None where they grow as they are needed.
    `tile` are the multiples to which kernels of 4 bit experts pad their input and their inside.

    `draft_methods` are its methods of speculative decoding by their names in a site file; a name
    with `mtp_ending` is that of a model's own layers, too. `drafts_prefix` begins the flags of
    speculative decoding where they are no JSON. `self_chosen` are flags of a model that it sets by
    itself, from the model's files and its attention backend.
    """

    ORIGIN = Origin("engine.name", "what the engine is like, generator/catalogs/engines")

    title: str
    batches: tuple[BatchDefaults, ...]
    step_flag: str
    eight_bit_cache: str
    eager_flag: str = ""
    pool_flag: str = ""
    settings_flag: str = ""
    variables_file: str = ""
    stage_variable: str = ""
    splits_tensors: bool = True
    drafts_over_stages: tuple[str, ...] = ("eagle3", "draft", "mtp")
    uses_nccl: bool = True
    shares_since: Release = ()
    tokens_flag: str = ""
    tokens_setting: str = ""
    reads_gguf: bool = False
    allocates_all: bool = False
    logs_memory: str = ""
    captures_graphs: bool = True
    reserves_outside: bool = False
    shares_free: bool = False
    shares_experts: bool = False
    joins_dense_replicas: bool = True
    tuned_by_one: tuple[Release, Release] | None = None
    eagle3_over_stages: Release | None = None
    runs_from_venv: bool = False
    addition: str = ""
    drafts_flag: str = ""
    reads_modelopt: bool = False
    commits: Mapping[str, str] | None = None
    larger_first: bool = False
    finest_blocks: tuple[tuple[Release, int | None], ...] = ()
    delta_kernels: Release | None = None
    nvfp4_kernels: Release | None = None
    startup_since: Release = ()
    context_flags: tuple[str, ...] = ()
    exchanges: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    rings_reported: bool = False
    names_parsers: bool = False
    locks_metrics: bool = False
    is_built_for_ranks: bool = False
    tasks: Mapping[tuple[str, str], Task] = MappingProxyType({})
    paging: Paging | None = None
    pools: Pools | None = None
    window_cells: int = 1
    wide_states: bool = False
    tile: tuple[int, int] = (1, 1)
    start: Start | None = None
    draft_methods: Mapping[str, Method] = MappingProxyType({})
    mtp_ending: str = ""
    drafts_prefix: str = ""
    self_chosen: tuple[str, ...] = ()
    commands: Commands = Commands()

    def task(self, args: Mapping[str, object]) -> Task:
        """What it serves when it is given these."""
        given = {name.replace("_", "-"): value for name, value in args.items()}
        found = [
            task
            for (flag, value), task in self.tasks.items()
            if flag in given and (given[flag] == value or (not value and given[flag] is True))
        ]
        return found[-1] if found else "chat"

    def tunes_anew(self, version: str, ranks: int) -> bool:
        """Whether FlashInfer's tuning may not outlive the container of a rank.

        Where rank 0 alone writes it, it has it at the next start, the others tune, and all wait for
        each other.
        """
        if self.tuned_by_one is None or ranks == 1:
            return False
        first, end = self.tuned_by_one
        return first <= release(version) < end

    def commit(self, version: str) -> str | None:
        """What git calls a version, if that is known: builds are counted, and tagged with a b."""
        if self.commits is None:
            return None
        return f"b{version}" if version.isdecimal() else self.commits.get(version)

    def batch(self, version: str) -> BatchDefaults:
        """The defaults of a version."""
        return [batch for batch in self.batches if batch.since <= release(version)][-1]

    def finest_block(self, version: str) -> int | None:
        """The fewest columns of a scale of FP8 blocks that a version takes, if that is known."""
        found = [least for since, least in self.finest_blocks if since <= release(version)]
        return found[-1] if found else None
