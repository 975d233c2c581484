"""The options of Docker on a node."""

from collections.abc import Iterator

from generator.catalogs.engines import ENGINE_TRAITS
from generator.derive import environment
from generator.derive.files import mounts, script
from generator.engines import ENGINES
from generator.records import replace
from generator.settings.flags import EngineSettings
from generator.site import (
    GIVEN_SECRETS,
    SECRETS_ENV,
    SECRETS_SCRIPT,
    Container,
    Engine,
    Health,
    Model,
    Mount,
    Rank,
    Times,
    Words,
)
from generator.site.complete import CompletePart
from generator.site.places import given_secrets, mounted, place
from generator.sitefile.declaration import DeclaredEngine, DeclaredNode

CONTAINER_ENV = "/etc/sparkgen/container.env"

# A cap, not a reservation; shared memory of 64 GB has been reported to wedge unified-memory hosts.
SHM_GIB = 16

# RDMA pins the memory that it uses, which takes the capability and no memlock limit.
_RDMA = ("/dev/infiniband",)
CAPABILITIES = ("IPC_LOCK",)
SECURITY_OPTIONS = ("no-new-privileges:true",)
ULIMITS = {"memlock": -1, "stack": 64 << 20, "nofile": 1 << 20}
LOG_SIZE, LOG_FILES = "50m", 5

# A large model takes up to fifteen minutes to load. A node waits ten minutes for cables and peers,
# enough for the others to boot, and five starts that all fail late end within their interval.
TIMES = Times(fabric=600, join=900, load=1200, start=780, step=300, stop=120, restart=30, burst=5)
STOP_SECONDS = 60


def times(engine: DeclaredEngine) -> Times:
    """The time limits, including those that the site sets itself."""
    own = engine.environment.first(ENGINE_TRAITS[engine.name].step_seconds_variable)
    return replace(TIMES, step=int(own)) if own.isdecimal() and own.isascii() else TIMES


def container(
    rank: Rank,
    engine: Engine,
    model: Model,
    settings: EngineSettings,
    hub: str,
    declared: CompletePart,
    node: DeclaredNode,
    has_nccl_conf: bool,
) -> Container:
    """The container of a rank; `hub` is the node's Hugging Face cache.

    `has_nccl_conf`: the node's nccl.conf is for this engine, not for another one on the node.
    """
    module, own = ENGINES[engine.name], declared.engine.container
    group, prepare = declared.group, script(declared.engine)
    first = (*_handed_over(rank, engine), *(("bash", prepare) if prepare else ()))
    program, *rest = first + module.entrypoint(rank, engine)
    kept, rdma = model.kv_offload, _RDMA if declared.fabric.interfaces[node.name] else ()
    return Container(
        image=engine.image,
        entrypoint=program,
        command=(tuple(rest), *module.flags(rank, engine, model, settings)),
        options=module.options(engine, model, settings, declared.memory),
        mounts=(
            *_mounts(rank, engine, model, hub, node.model_path, group, has_nccl_conf),
            *mounts(declared.engine.given_files, node.name),
        ),
        devices=tuple(dict.fromkeys((*rdma, *own.devices))),
        env_files=engine.env_files,
        # The file that buffers vLLM's KV cache on disk is in it, too.
        shm_size_gib=own.shm_gib or SHM_GIB + (kept.buffer_gib if kept else 0),
        memory_gib=own.memory_gib,
        cpus=own.cpus,
        capabilities=CAPABILITIES,
        dropped=("ALL",) if own.hardened else (),
        security_options=SECURITY_OPTIONS,
        ulimits=ULIMITS | dict(own.ulimits),
        log_size=LOG_SIZE,
        log_files=LOG_FILES,
        stop_seconds=STOP_SECONDS,
        health=_health(engine) if _is_checked(rank, engine) else None,
    )


def _mounts(
    rank: Rank,
    engine: Engine,
    model: Model,
    hub: str,
    model_path: str | None,
    group: str,
    has_nccl_conf: bool,
) -> Iterator[Mount]:
    for path in ENGINES[engine.name].reads(rank, model, hub):
        # If nothing is downloaded, the cache may not exist.
        is_spare = path == hub and not model.downloads
        own = model_path if model_path and path == model.source else path
        yield Mount(own, read_only=True, inside=path, may_be_made=is_spare)
    if model.kv_offload:
        kept = model.kv_offload.path
        yield Mount(kept, read_only=False, inside=kept, may_be_made=True)
    cache = environment.ENGINE_CACHE
    yield Mount(cache, read_only=False, inside=cache, may_be_made=True)
    if has_nccl_conf:
        yield _generated(environment.NCCL_CONF)
    yield Mount(place(CONTAINER_ENV, group), read_only=True, inside=CONTAINER_ENV)
    for own in ENGINES[engine.name].scripts(rank, engine):
        yield Mount(mounted(own, group), read_only=True, inside=own)
    if _handed_over(rank, engine):
        yield _generated(SECRETS_SCRIPT)
    if engine.secrets and engine.is_in_pyxis:
        # The Slurm job has the user's file of secrets, and nothing shows its values.
        yield _generated(SECRETS_ENV)
    elif engine.secrets:
        prepared = given_secrets(group)
        yield Mount(prepared, read_only=True, inside=GIVEN_SECRETS, is_secret=True)
    if _is_checked(rank, engine):
        yield _generated(ENGINE_TRAITS[engine.name].health[-1])


def _handed_over(rank: Rank, engine: Engine) -> Words:
    """What passes secrets to the engine, if no script of its own does."""
    own = ENGINES[engine.name].scripts(rank, engine)
    return ("bash", SECRETS_SCRIPT) if engine.secrets and SECRETS_SCRIPT not in own else ()


def _generated(path: str) -> Mount:
    return Mount(path, read_only=True, inside=path)


def _is_checked(rank: Rank, engine: Engine) -> bool:
    """Whether Docker checks the rank's health: the head's, unless Slurm runs the container."""
    return rank.is_head and not engine.is_slurm_job


def _health(engine: Engine) -> Health:
    traits = ENGINE_TRAITS[engine.name]
    needs_key = engine.key and not traits.health_generates
    return Health(
        url=engine.api.own_url,
        key=engine.key,
        generates=traits.health_generates,
        test=("CMD", *(("bash", SECRETS_SCRIPT) if needs_key else ()), *traits.health),
        start_seconds=TIMES.load,
        # A dead rank is noticed within a minute: one interval and one probe without an answer. That
        # gives a busy engine as long as possible to return a single token.
        interval_seconds=15,
        answer_seconds=40,
        timeout_seconds=44,
        retries=1,
    )
