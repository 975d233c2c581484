"""What vLLM's API serves without its key.

Read in the wheels of 0.19.0 to 0.33.0: `AuthenticationMiddleware`, and everything that calls
`include_router` (vllm/entrypoints). A later release may protect all of it.
"""

from collections.abc import Iterator

from generator.catalogs.versions import version as parsed
from generator.settings.environment import Environment
from generator.settings.flags import EngineSettings

_FIRST_UNREAD = "0.34"
# /v2 and /inference are protected from this release on.
_GUARDS_MORE = "0.22"
_SCORES = "0.20"

_ALWAYS = ("/invocations", "/tokenize", "/detokenize", "/scale_elastic_ep")
_IN_DEVELOPMENT = ("/pause", "/sleep", "/collective_rpc", "/update_weights")


def open_paths(version: str, environment: Environment, settings: EngineSettings) -> tuple[str, ...]:
    """The paths that matter, without those that only tell whether the engine is healthy."""
    if parsed(version).public >= parsed(_FIRST_UNREAD):
        return ()
    return tuple(_open_paths(version, environment, settings))


def _open_paths(version: str, environment: Environment, settings: EngineSettings) -> Iterator[str]:
    public = parsed(version).public
    yield from _ALWAYS
    if public >= parsed(_SCORES):
        yield "/generative_scoring"
    if public < parsed(_GUARDS_MORE):
        yield "/inference/v1/generate"
    if environment.first("VLLM_SERVER_DEV_MODE") == "1":
        yield from _IN_DEVELOPMENT
    if settings.is_on("enable-tokenizer-info-endpoint"):
        yield "/tokenizer_info"
    if "profiler-config" in settings:
        yield "/start_profile"
