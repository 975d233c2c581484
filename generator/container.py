"""What Docker is told on a node: the same for the Compose file and for a start by hand."""

from collections.abc import Iterator, Mapping

from generator import environment
from generator.declaration import Argument
from generator.engines import ENGINES
from generator.fit.assessment import Fit
from generator.site import Container, Engine, Health, Model, Mount, Rank, Times

ENGINE_ENV = "/etc/sparkgen/engine.env"
SECRETS_ENV = "/etc/sparkgen/secrets.env"
NCCL_CONF = "/etc/nccl.conf"

# A cap, not a reservation; shared memory of 64 GB has been reported to wedge unified-memory hosts.
SHM_GIB = 16

# A large model takes up to fifteen minutes to load. A node waits ten for cables and peers, which
# covers the boot of the others, and five starts that all fail late end within their interval.
TIMES = Times(fabric=600, join=900, load=1200, start=780, stop=120, restart=30, burst=5)
STOP_SECONDS = 60


def container(
    rank: Rank,
    engine: Engine,
    model: Model,
    args: Mapping[str, Argument],
    hub: str,
    has_fabric: bool,
    memory: Fit | None,
) -> Container:
    """The container of a rank; `hub` is the node's Hugging Face cache."""
    module = ENGINES[engine.name]
    program, *rest = module.entrypoint(rank, engine)
    return Container(
        image=engine.image,
        entrypoint=program,
        command=(tuple(rest), *module.flags(rank, engine, model, args)),
        options=module.options(engine, model, args, memory),
        mounts=tuple(_mounts(rank, engine, model, hub)),
        devices=("/dev/infiniband",) if has_fabric else (),
        env_files=(ENGINE_ENV, *((SECRETS_ENV,) if engine.secrets else ())),
        cache_variables=tuple(environment.caches(engine)),
        shm_size_gib=SHM_GIB,
        stop_seconds=STOP_SECONDS,
        health=_health(engine) if _is_asked(rank, engine) else None,
    )


def _mounts(rank: Rank, engine: Engine, model: Model, hub: str) -> Iterator[Mount]:
    for path in ENGINES[engine.name].reads(rank, model, hub):
        yield Mount(path, read_only=True)
    yield Mount(environment.ENGINE_CACHE, read_only=False)
    yield Mount(NCCL_CONF, read_only=True)
    for script in ENGINES[engine.name].scripts(rank, engine):
        yield Mount(script, read_only=True)
    if _is_asked(rank, engine):
        yield Mount(ENGINES[engine.name].HEALTH[-1], read_only=True)


def _is_asked(rank: Rank, engine: Engine) -> bool:
    """Whether Docker asks the rank if it serves: the head, unless another runs the container."""
    return rank.is_head and not engine.is_slurm_job


def _health(engine: Engine) -> Health:
    module = ENGINES[engine.name]
    return Health(
        url=engine.api.own_url,
        key=engine.key,
        generates=module.HEALTH_GENERATES,
        test=("CMD", *module.HEALTH),
        start_seconds=TIMES.load,
        # A dead rank shows within a minute: one pause and one question that gets no answer. That
        # leaves a busy engine as long as possible for the one token.
        interval_seconds=15,
        answer_seconds=40,
        timeout_seconds=44,
        retries=1,
    )
