"""The traits of an engine: its memory, its settings, and how people start it.

In `schemas/traits/` a release is text, and a record may be a list of its first fields.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType, UnionType
from typing import Any, Literal, get_args, get_origin

from generator.catalogs.versions import Release, place
from generator.records import record

# What clients request of a model, which other kinds of models don't serve.
Task = Literal["chat", "embedding", "rerank"]


@record
class BatchDefaults:
    """From a release on: the maximum number of tokens per step, and of sequences at once.

    Estimates of memory count the `counted` ones, if given.
    """

    since: Release
    tokens: int
    sequences: int
    counted_tokens: int | None = None
    counted_sequences: int | None = None


@record
class NewSiteDefaults:
    """The version and image that a new site file starts with.

    `launcher` and `ranks_image` are for several nodes, if they differ there; `is_made` means that
    nobody publishes an image for several nodes, and the runbook says how it is made. `args` are
    settings that everybody needs.
    """

    version: str
    image: str
    launcher: str = ""
    ranks_image: str = ""
    is_made: bool = False
    args: Mapping[str, str] = MappingProxyType({})


@record
class Paging:
    """Paging in an engine whose layers of all kinds share one pool of blocks, by release.

    `caches_states`: prefixes of models with recurrent layers are cached by default. `two_steps`:
    windows have room for all steps under way. `packs`: pages of several sizes are put side by side
    and not padded to one another. `counts_graphs`: graphs are part of the engine's share.
    `draws_unsorted`: tokens are sampled without a sorted copy of the vocabulary.
    `checkpoints_states` and `checkpoints_delta`: prefilling keeps one more state per sequence for
    its prefix, for Mamba and Kimi's layers and for gated delta layers. `compresses`: it has
    compressed attention (DeepSeek-V4), and `shares_entries`: those of others (V4.1).
    `windows_drafts`: layers of a DFlash draft that have a window keep no more than it.
    `caches_pooled`: it caches 8 bits if an entry of the index stands for several tokens of plain
    attention (Qwen3.8-Flash-Next). `sizes_gathers`: the buffer that gathers a sparse attention's
    index is smaller for long contexts. `scores_variable` sets the MiB of scores that this index
    computes at once, `graphs_variable` whether graphs are part of the share, whatever the release.
    """

    caches_states: Release
    two_steps: Release
    packs: Release
    counts_graphs: Release
    draws_unsorted: Release
    checkpoints_states: Release
    checkpoints_delta: Release
    compresses: Release
    shares_entries: Release
    windows_drafts: Release
    caches_pooled: Release
    sizes_gathers: Release
    scores_variable: str
    graphs_variable: str


@record
class Pools:
    """An engine that divides its room at startup, into one pool for each kind of layer.

    `windows` are the tokens of layers with a window for each token of those without, `states` the
    bytes of states for each byte of KV cache: the flag and its default. `slots` are the states of a
    request by `strategy`, a flag's value; `slots_flag` fixes their total, and `uncached_flag`
    disables the caching of prefixes, which need states of their own.
    """

    windows: tuple[str, float]
    states: tuple[str, float]
    strategy: str
    slots: Mapping[str, int]
    slots_flag: str
    uncached_flag: str


SourceNeed = Literal["needed", "optional", "class", "none"]


@record
class Method:
    """A method of speculative decoding, with the engine's name for it and what it needs.

    `source` is a draft model or class, `tokens` the number of tokens. A `tree` has branches and
    depth (`topk`, `steps`). The engine has it from the release `since` on, and before `until`.
    """

    spelled: str
    source: SourceNeed
    tokens: SourceNeed = "needed"
    tree: bool = False
    since: Release = ()
    until: Release = ()

    def is_in(self, version: str) -> bool:
        """Whether a version of the engine has it."""
        number = place(version)
        return number >= self.since and (not self.until or number < self.until)


@record
class ServeCommand:
    """The beginning of a command that serves: a word, and the following one, if it needs one."""

    word: str
    second: str = ""


@record
class Recipe:
    """How a sparkrun recipe without a command starts an engine, and its defaults as flags.

    `runtime` is part of the recipes' name for it.
    """

    runtime: str
    start: tuple[str, ...]
    flags: Mapping[str, str]


@record
class Commands:
    """How people start an engine themselves.

    `workers` hold a part of the model of another node's server. `servers` are parts of the names of
    images that start the server, for tags that the catalog does not have. `package` is the name of
    its Python package if that differs, and `version_variable` the variable in which its images
    state their version; `variables` begin the names of what it reads. `marks` are parts of words of
    containers that may run it, and `scripts` the commands that its Python package installs.
    `launcher` starts it on several ranks. `first_release` is that of the first image for Sparks, if
    that is older than all known flags. `draft_keys` are the keys of `model.speculative`, by its
    flags or the keys of its JSON, and `inferred_drafts` the methods that it infers from the name of
    a draft model.
    `own_shares` are its default shares of the memory, by release; empty if it determines them
    itself. `listens_everywhere`: on all addresses by default. `is_under_ray`: it is what is served
    if a container only runs `ray start`.

    Sources: the engines' own documentation, and the Compose files and scripts that people publish.
    """

    programs: tuple[ServeCommand, ...] = ()
    workers: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    package: str = ""
    version_variable: str = ""
    variables: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    launcher: str = ""
    first_release: str = ""
    recipe: Recipe | None = None
    draft_keys: Mapping[str, str] = MappingProxyType({})
    inferred_drafts: tuple[str, ...] = ()
    own_shares: tuple[tuple[Release, str], ...] = ()
    listens_everywhere: bool = False
    is_under_ray: bool = False

    def own_share(self, version: str) -> str:
        """Its default share of the memory in a version, which need not be known."""
        if version:
            since_then = [share for since, share in self.own_shares if since <= place(version)]
            return since_then[-1] if since_then else ""
        return self.own_shares[-1][1] if self.own_shares else ""


@record
class EngineTraits:
    """The traits of an engine; flags by their names without dashes, empty if there is none.

    `batches` are its defaults on a GB10, oldest first. `step_flag` sets the tokens of a step,
    `eager_flag` disables graphs, `pool_flag` fixes the size of the KV cache, and `settings_flag`
    names a file of settings that sparkgen writes. `variables_file` is a list of variables that it
    reads but that its catalog does not have. `stage_variable` sets the layers of each pipeline
    stage, `step_seconds_variable` how long the head waits for a step of the ranks before it exits.
    `eight_bit_cache` is the engine's name for a KV cache of 8 bits.

    `allocates_all`: the cache of all sequences is allocated at startup, and not shared as they
    grow. `captures_graphs`: for many sizes. `reserves_outside`: activations and graphs are taken
    from what the engine's fraction leaves. `shares_free`: the fraction is of what is free at
    startup. `shares_experts`: replicas share the experts of a model, spread or sliced.
    `larger_first`: layers that don't divide evenly make the first stages larger, not the middle
    ones. `starts_short`: it starts with any room for KV cache, and rejects longer requests.

    `finest_blocks` is the fewest columns per scale of FP8 blocks that a slice may cut through, from
    a release on; None if not known. `drafts_over_stages` are the methods of speculative decoding
    that work with pipeline stages.

    `delta_kernels` is the first release with its own kernels for gated delta layers on a GB10,
    `nvfp4_kernels` the first with correct NVFP4 there; None if it is not known to matter.
    `startup_since` is the oldest release whose startup checks are known.

    `tasks` are the flags with which it serves something other than chats, each with its value,
    which switches don't have, and the task.

    `joins_dense_replicas`: replicas of a model without experts may span nodes. `tuned_by_one` are
    the first release in which only one rank keeps FlashInfer's tuning, and the first one after
    that; None if it is not known to matter.

    `runs_from_venv`: it is a Python package that needs nothing from a container. `addition` is what
    its images lack for several nodes, by its name in `engine.image.adds`. `needs_pmix`: under Slurm
    its ranks meet by PMIx, so that pyxis has to start their containers. `determines` are
    the keys of a model that it settles at startup, since a release, each with the word for it.
    `drafts_flag` takes the settings of speculative decoding as JSON. `commits` are the git commits
    of its versions, if it is built from source. `logs_memory` are the arguments without which its
    log does not mention its memory.

    `reads_modelopt`: it reads a checkpoint's kind of quantization through ModelOpt, whatever its
    flag says.

    If its share is of what others on its node leave free, `tokens_flag` limits what it caches, or
    `tokens_setting` in its options. Releases before `shares_since` have no such limit.

    `names_parsers`: models' parsers are known by its names for them. `locks_metrics`: they need the
    API's key too. `answers_any_name`: chats and completions need not name its model.
    `asked_when_ready` are the paths that it answers once it serves.
    `is_built_for_ranks`: no registry has an image that runs on several nodes.

    `context_flags` set how many ranks share the KV cache of a sequence. `exchanges` are the flags
    for how ranks pass expert inputs or a cache to each other, each with the values that gather and
    reduce instead of sending all to all. `rings_reported`: it runs on rings of four or more.

    `paging` is how layers of several kinds share one pool of blocks, None if each kind has its own;
    in that case windows are rounded up to `window_cells` tokens. `wide_states`: recurrent states
    are entirely in 32 bits, with one more for each drafted token. `pools` is how such an engine
    divides its room among them, None if they grow as needed. `tile` are the multiples to which
    kernels for 4 bit experts pad their input and inner widths.

    The first of its `launchers` is the default. `api_key` names the variable from which it reads
    its API's key, and `caches` has its own cache folders by variable. `health` is the program and
    the generated script that check whether the head serves, `health_generates` its own endpoint for
    that, if it has one that generates a token. With `tls_flags` the API uses TLS.
    `address_variable` is the one with the node's own address. An imported site gets
    `replaced_variables` in place of its own.

    `work_metrics` are its metrics for verify.py, by fact. `owned_flags` are the flags that follow
    from keys of the site file, by the key, empty if the generator alone determines it.

    `draft_methods` are its methods of speculative decoding by their names in a site file; a name
    that ends with `mtp_ending` also stands for a model's own layers. `drafts_prefix` begins the
    flags of speculative decoding if they are not JSON. `self_chosen` are a model's flags that it
    sets itself, from the model's files and its attention backend.
    """

    title: str
    batches: tuple[BatchDefaults, ...]
    step_flag: str
    eight_bit_cache: str
    launchers: tuple[str, ...]
    api_port: int
    health: tuple[str, ...]
    api_key: str | None = None
    caches: Mapping[str, str] = MappingProxyType({})
    health_generates: str | None = None
    tls_flags: tuple[str, ...] = ()
    address_variable: str = ""
    replaced_variables: Mapping[str, str] = MappingProxyType({})
    eager_flag: str = ""
    pool_flag: str = ""
    settings_flag: str = ""
    variables_file: str = ""
    stage_variable: str = ""
    step_seconds_variable: str = ""
    splits_tensors: bool = True
    drafts_over_stages: tuple[str, ...] = ("eagle3", "draft", "mtp")
    uses_nccl: bool = True
    shares_since: Release = ()
    tokens_flag: str = ""
    tokens_setting: str = ""
    reads_gguf: bool = False
    allocates_all: bool = False
    starts_short: bool = False
    logs_memory: str = ""
    captures_graphs: bool = True
    reserves_outside: bool = False
    shares_free: bool = False
    shares_experts: bool = False
    joins_dense_replicas: bool = True
    tuned_by_one: tuple[Release, Release] | None = None
    runs_from_venv: bool = False
    addition: str = ""
    needs_pmix: bool = False
    determines: Mapping[str, tuple[Release, str]] = MappingProxyType({})
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
    answers_any_name: bool = False
    asked_when_ready: tuple[str, ...] = ("/v1/models",)
    is_built_for_ranks: bool = False
    tasks: Mapping[str, Task] = MappingProxyType({})
    paging: Paging | None = None
    pools: Pools | None = None
    window_cells: int = 1
    wide_states: bool = False
    tile: tuple[int, int] = (1, 1)
    start: NewSiteDefaults | None = None
    draft_methods: Mapping[str, Method] = MappingProxyType({})
    mtp_ending: str = ""
    drafts_prefix: str = ""
    self_chosen: tuple[str, ...] = ()
    work_metrics: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    owned_flags: Mapping[str, str] = MappingProxyType({})
    commands: Commands = Commands()

    def task(self, value: Callable[[str], object]) -> Task:
        """What it serves with the flags that have these values."""
        words = ((*name.partition(" "), task) for name, task in self.tasks.items())
        found = [task for flag, _, word, task in words if value(flag) == (word or True)]
        return found[-1] if found else "chat"

    def tunes_anew(self, version: str, ranks: int) -> bool:
        """Whether FlashInfer's tuning must not outlive the container of a rank.

        If only rank 0 writes it, rank 0 has it at the next start while the others tune, and all
        ranks wait for each other.
        """
        if self.tuned_by_one is None or ranks == 1:
            return False
        first, end = self.tuned_by_one
        return first <= place(version) < end

    def commit(self, version: str) -> str | None:
        """The git commit of a version, if known: builds are counted, and tagged with a b."""
        if self.commits is None:
            return None
        build = version.removeprefix("b")
        return f"b{build}" if build.isdecimal() else self.commits.get(version)

    def settles(self, version: str) -> Mapping[str, str]:
        """The word for each key of a model that a version settles at startup."""
        found = self.determines.items()
        return {key: word for key, (since, word) in found if since <= place(version)}

    def batch(self, version: str) -> BatchDefaults:
        """The defaults of a version."""
        return [batch for batch in self.batches if batch.since <= place(version)][-1]

    def finest_block(self, version: str) -> int | None:
        """The fewest columns per scale of FP8 blocks that a version accepts, if known."""
        found = [least for since, least in self.finest_blocks if since <= place(version)]
        return found[-1] if found else None


def read(kind: Any, value: Any) -> Any:
    """A value of one of these types, from what YAML has in its place."""
    parts = get_args(kind)
    if kind == Release:
        return place(value)
    if hasattr(kind, "__match_args__"):
        fields, types = kind.__match_args__, kind.__annotations__
        named = dict(zip(fields, value, strict=False)) if isinstance(value, list) else value
        return kind(**{name: read(types[name], one) for name, one in named.items()})
    if isinstance(kind, UnionType):
        return read(parts[0], value)
    if get_origin(kind) is tuple:
        kinds = parts[:1] * len(value) if parts[-1] is ... else parts
        return tuple(read(part, one) for part, one in zip(kinds, value, strict=True))
    if get_origin(kind) is Mapping:
        return {name: read(parts[1], one) for name, one in value.items()}
    return value
