"""What a site serves: the model, the engine and its API."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import PurePosixPath
from typing import Any

from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.engines.traits import EngineTraits, Task
from generator.catalogs.vocabularies import Vocabulary
from generator.records import record
from generator.site.container import Words
from generator.sitefile.declaration import KvOffload, Parallel, Speculative

# The branch that is downloaded if a site names none.
DEFAULT_REVISION = "main"
MODEL_PART = r"-(\d{5})-of-(\d{5})\.gguf$"


@record
class Model:
    """The model as the engine serves it; lengths in tokens, None is the engine's default."""

    source: str
    served_name: str
    aliases: Words
    format: str | None
    revision: str | None
    context_length: int | None
    max_sequences: int | None
    kv_cache_dtype: str | None
    quantization: str | None
    speculative: Speculative | None
    file: str | None
    gated: bool
    vocabularies: tuple[Vocabulary, ...] = ()
    kv_cache_gib: float | None = None
    kv_offload: KvOffload | None = None
    commits: Mapping[str, str] = {}
    handed_on: Mapping[str, Any] = {}

    @property
    def folders(self) -> Words:
        """Folders on the nodes from which the model and the draft model are read."""
        return tuple(source for source in self._sources if source.startswith("/"))

    @property
    def downloads(self) -> Words:
        """Those of the two that are in the Hugging Face cache, by id."""
        return tuple(source for source in self._sources if not source.startswith("/"))

    def checkpoints(self, path: str | None) -> tuple[Words, ...]:
        """What is read: its role, its folder or id, and of a download its revision and commit.

        A node may have the model's folder at another `path`.
        """
        folders = [
            (self._role(source), path if path and source == self.source else source)
            for source in self.folders
        ]
        downloads = [
            (self._role(source), source, self.revision_of(source), *self._commit(source))
            for source in self.downloads
        ]
        return (*folders, *downloads)

    def _role(self, source: str) -> str:
        return "model" if source == self.source else "draft-model"

    def revision_of(self, source: str) -> str:
        """The revision that is downloaded of one of the two."""
        return (self.revision if source == self.source else None) or DEFAULT_REVISION

    def _commit(self, source: str) -> Words:
        return (self.commits[source],) if source in self.commits else ()

    @property
    def files(self) -> Words:
        """The GGUF files that are read instead: all parts of the model, and the draft model.

        A part is named `NAME-00001-of-00003.gguf`.
        """
        if not self.file:
            return ()
        draft = self.speculative.checkpoint if self.speculative else None
        return (*_parts(self.file), *((draft,) if draft else ()))

    @property
    def file_folder(self) -> str:
        """The folder of the GGUF file."""
        return str(PurePosixPath(self.file or "").parent)

    @property
    def file_pattern(self) -> str:
        """The common pattern of the names of the GGUF file's parts, or its own name."""
        return re.sub(MODEL_PART, r"-*-of-\2.gguf", PurePosixPath(self.file or "").name)

    @property
    def repository(self) -> str | None:
        """The Hugging Face id of a GGUF file's repository; the catalog has none of those."""
        return None if self.format or self.source.startswith("/") else self.source

    @property
    def _sources(self) -> Words:
        if self.file:
            return ()
        draft = self.speculative.checkpoint if self.speculative else None
        return (self.source, draft) if draft else (self.source,)


def _parts(file: str) -> Words:
    """All files of a model, given its first or only one."""
    found = re.search(MODEL_PART, file)
    if not found:
        return (file,)
    stem, count = file[: found.start()], found[2]
    return tuple(f"{stem}-{part:05}-of-{count}.gguf" for part in range(1, int(count) + 1))


@record
class Api:
    """Where the engine's API is: the address it listens on, and the one that clients use."""

    listen: str
    host: str
    port: int
    has_tls: bool = False

    @property
    def scheme(self) -> str:
        """The scheme of its URLs."""
        return "https" if self.has_tls else "http"

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def own_url(self) -> str:
        """The base URL for programs on the head itself."""
        host = "127.0.0.1" if self.listen == "0.0.0.0" else self.listen
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only programs on the head itself can reach it."""
        return IPv4Address(self.listen).is_loopback


@record
class Engine:
    """The engine with all its settings determined.

    `key` names the secret with the API's key, None if the site has none. `held_by_others` is the
    largest share that other engines and the system may hold on any of its nodes, if any.
    """

    name: str
    title: str
    version: str
    image: str
    venv: str | None
    nccl: str | None
    launcher: str
    api: Api
    ports: Mapping[str, int]
    parallel: Parallel
    memory_utilization: float
    key: str | None
    secrets: Words
    env_files: Words
    is_derived: bool
    task: Task = "chat"
    held_by_others: float = 0.0

    @property
    def rendezvous(self) -> int | None:
        """The head's port at which ranks meet, open for as long as rank 0 lives."""
        return self.ports.get("master") or self.ports.get("dist_init")

    @property
    def replicas(self) -> int | None:
        """The port at which the head waits for replicas, until all of them have loaded."""
        return self.ports.get("data_parallel_rpc")

    @property
    def is_slurm_job(self) -> bool:
        """Whether Slurm starts the ranks, so that no unit of systemd does."""
        return self.launcher == "slurm"

    @property
    def is_in_pyxis(self) -> bool:
        """Whether Slurm itself starts the containers, so that no launch.sh does."""
        return self.is_slurm_job and self.traits.needs_pmix

    @property
    def traits(self) -> EngineTraits:
        """The traits of the engine, independent of the site."""
        return ENGINE_TRAITS[self.name]

    @property
    def expects_nccl(self) -> bool:
        """Whether a release of NCCL is to be in its image, which can be compared there."""
        return bool(self.nccl) and self.traits.uses_nccl and not self.venv

    @property
    def squashfs(self) -> str:
        """The path at which nodes keep the image for pyxis."""
        return f"/var/lib/sparkgen/{self.name}-{self.version}.sqsh"

    @property
    def is_pinned(self) -> bool:
        """Whether the image is named by its digest, which always means the same image."""
        return "@" in self.image

    @property
    def is_built_here(self) -> bool:
        """Whether no registry is known to have the image: it is built on a node and copied."""
        return self.is_derived or (bool(self.image) and "/" not in self.image)
