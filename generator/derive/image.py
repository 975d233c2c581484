"""An image that is built on a node: its build context, and the checksum of all its inputs."""

import json
from collections.abc import Mapping
from hashlib import sha256

from generator.catalogs.engines import ENGINE_TRAITS
from generator.site import CarriedFile, ImageBuild
from generator.sitefile.beside import Source
from generator.sitefile.declaration import DeclaredEngine, DerivedImage

# Where mods look for their own files, as spark-vllm-docker does. What the engine has to find by
# name alone, they put into WORKSPACE_DIR, the working folder of the image.
MODS = "/workspace/mods"
# What engines on several nodes need and their images lack.
_ADDED = {
    "ray": "pip install --no-cache-dir 'ray[default]==2.60.0'",
    "ssh": "apt-get update && apt-get install --yes --no-install-recommends openssh-server "
    "&& rm -rf /var/lib/apt/lists/*",
}
# Each command ends the build if any part of it fails.
_SHELL = ("/bin/bash", "-euo", "pipefail", "-c")


def image_build(engine: DeclaredEngine, sources: Mapping[str, Source]) -> ImageBuild | None:
    """The inputs of the image, unless it is built elsewhere."""
    image = engine.derived
    if image is None:
        return None
    traits = ENGINE_TRAITS[engine.name]
    named = dict.fromkeys([*(source for source, _ in image.copies), *image.mods])
    files = tuple(
        CarriedFile(f"{source}/{each.path}" if each.path else source, each.data, each.is_executable)
        for source in named
        for each in sources[source].files
    )
    mods = tuple((mod, _place(mod)) for mod in image.mods)
    commands = [_ADDED[name] for name in image.adds if name in _ADDED]
    commands += [_command(mod) for mod in image.mods]
    return ImageBuild(
        name=engine.image,
        base=image.base,
        files=files,
        copies=(*image.copies, *mods),
        mods=image.mods,
        run=tuple((*_SHELL, command) for command in (*commands, *image.run)),
        commit=traits.commit(engine.version) if traits.addition in image.adds else None,
        inputs=_checksum(engine, image, files),
    )


def _place(mod: str) -> str:
    return f"{MODS}/{mod.rsplit('/', 1)[-1]}"


def _command(mod: str) -> str:
    return f"export WORKSPACE_DIR=$PWD; cd {_place(mod)} && bash ./run.sh"


def _checksum(engine: DeclaredEngine, image: DerivedImage, files: tuple[CarriedFile, ...]) -> str:
    inputs: list[object] = [image.base, image.copies, image.mods, image.run]
    inputs += [(name, engine.version, _ADDED.get(name)) for name in image.adds]
    inputs += [_command(mod) for mod in image.mods]
    inputs += [(file.path, file.is_executable, sha256(file.data).hexdigest()) for file in files]
    return sha256(json.dumps(inputs).encode()).hexdigest()
