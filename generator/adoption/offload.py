"""A KV cache on the nodes' disks, from the engine's settings for it."""

from generator.adoption.command import Command
from generator.adoption.draft import Draft
from generator.adoption.mounts import outside
from generator.engines import written_offload
from generator.settings.flags import EngineSettings
from generator.sitefile.text_types import TEXT_TYPES

_GUESSED_GIB = 100


def fill(draft: Draft, command: Command | None) -> None:
    """Write the site file's key for flags and variables that mean exactly that."""
    if command is None:
        return
    version = str(draft.get("engine", "version"))
    settings = EngineSettings(command.engine, version, draft.get("engine", "args") or {})
    env = {v.name: v.value.text for v in command.container.env}
    stated = written_offload(command.engine, settings, env)
    if not stated or stated.more:
        return
    if not TEXT_TYPES["path"].fits(path := outside(command.container, stated.path)):
        return
    places = (draft.origins.get(("engine", "args", flag)) for flag in stated.flags)
    place = next(filter(None, places), None)
    draft.put(("model", "kv_offload", "path"), path, place)
    guess = "" if stated.gib else "how much of the disk the KV cache may take"
    draft.put(("model", "kv_offload", "gib"), stated.gib or _GUESSED_GIB, place, guess)
    if stated.buffer_gib:
        draft.put(("model", "kv_offload", "buffer_gib"), stated.buffer_gib, place)
    if stated.connector != "native":
        draft.put(("model", "kv_offload", "connector"), stated.connector, place)
    for flag in stated.flags:
        draft.drop("engine", "args", flag)
    for name in [*(draft.get("engine", "env") or {})]:
        if name.startswith(stated.prefix):
            draft.drop("engine", "env", name)
