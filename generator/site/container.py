"""What Docker runs on a node, and the files that it gets."""

from collections.abc import Mapping
from typing import Any

from generator.records import record

Words = tuple[str, ...]

# The environment of the engine: what all readers read the same way, what only Docker does; secrets.
ENGINE_ENV = "/etc/sparkgen/engine.env"
RAW_ENV = "/etc/sparkgen/engine.raw.env"
SECRETS_ENV = "/etc/sparkgen/secrets.env"
# The part that the engine's container gets, as a file: `docker inspect` shows variables.
GIVEN_SECRETS = "/run/sparkgen-engine/secrets"
SECRETS_SCRIPT = "/opt/sparkgen/secrets.sh"


@record
class Mount:
    """A folder or file of the node, mounted at `inside` in the container.

    If it `may_be_made`, Docker creates a missing folder; all else must exist. If it `is_secret`, it
    is prepared at each start, with those of the node's secrets that the engine may know.
    """

    path: str
    read_only: bool
    inside: str
    may_be_made: bool = False
    is_secret: bool = False


@record
class CarriedFile:
    """A file that the bundle carries from beside the site file; `path` is its path on the node."""

    path: str
    data: bytes
    is_executable: bool


@record
class ImageBuild:
    """An image that is built on a node, from the files of its own folder.

    `copies` are paths in that folder and in the image, `mods` folders in both that contain a
    run.sh. `commit` is the one of the engine that is built in a stage of its own, if any.
    `inputs` is the checksum of everything it is built from, which the image has as a label.
    """

    name: str
    base: str
    files: tuple[CarriedFile, ...]
    copies: tuple[tuple[str, str], ...]
    mods: Words
    run: tuple[Words, ...]
    commit: str | None
    inputs: str


@record
class PlacedFile:
    """A file or folder that users put on the node, and its checksum if that is known.

    The engine may change it if it is `writable`.
    """

    path: str
    sha256: str | None
    writable: bool


@record
class Health:
    """The health check of the head's container; times in seconds.

    `key` names the variable with the API's key, None if the engine has none. `generates` is the
    engine's own endpoint that generates a token, None if the check requests one itself.
    """

    url: str
    key: str | None
    generates: str | None
    test: Words
    start_seconds: int
    interval_seconds: int
    answer_seconds: int
    timeout_seconds: int
    retries: int


@record
class Times:
    """Time limits in seconds, and how often a start may fail.

    A `step` is one that ranks compute together; an engine that waits longer for it exits.
    """

    fabric: int
    join: int
    load: int
    start: int
    step: int
    stop: int
    restart: int
    burst: int

    @property
    def burst_interval(self) -> int:
        """Long enough to count starts that fail late, which would otherwise be repeated forever."""
        return self.burst * (self.start + self.load + self.step + self.restart + self.stop)


@record
class Container:
    """What Docker runs on a node.

    `command` is grouped as it is printed: one flag with its values per line. `options` are settings
    that the engine reads from a file. `env_files` are in Docker's own format; Compose reads its own
    subset, `compose_env_files`, the same way. `ulimits` are both soft and hard; `log_size` is the
    size of each of the `log_files`.
    """

    image: str
    entrypoint: str
    command: tuple[Words, ...]
    options: Mapping[str, Any]
    mounts: tuple[Mount, ...]
    devices: Words
    env_files: Words
    shm_size_gib: int
    memory_gib: int | None
    cpus: str | None
    capabilities: Words
    dropped: Words
    security_options: Words
    ulimits: Mapping[str, int]
    log_size: str
    log_files: int
    stop_seconds: int
    health: Health | None

    @property
    def compose_env_files(self) -> Words:
        """The files that Compose reads in the same way as Docker."""
        return tuple(file for file in self.env_files if file != RAW_ENV)

    @property
    def keys(self) -> Words:
        """Files that a person creates on the node for MPI's SSH."""
        names = {"ssh_config": "known_hosts", "sshd_config": "authorized_keys"}
        mounted = {mount.path.rpartition("/")[2] for mount in self.mounts}
        own = [names[name] for name in names if name in mounted]
        return tuple(f"/etc/sparkgen/mpi/{name}" for name in ("key", *own) if own)

    @property
    def pyxis_mounts(self) -> str:
        """Mounts and devices in the syntax of pyxis, Slurm's container plugin."""
        mounts = [
            f"{mount.path}:{mount.inside}{':ro' if mount.read_only else ''}"
            for mount in self.mounts
        ]
        return ",".join([*mounts, *(f"{device}:{device}" for device in self.devices)])
