"""Adds what `generator.precompiled` reads to a wheel; an editable install goes without it."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Precompiled(BuildHookInterface[Any]):
    """Precompiles into a temporary folder that lasts until the wheel is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Precompile, and register the folder's place in the wheel."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from generator import precompiled
        from generator.bundle.templates import IsolatedEnvironment, environment, sources

        self._folder = TemporaryDirectory()
        precompiled.write(Path(self._folder.name), environment(IsolatedEnvironment, sources()))
        build_data["force_include"][self._folder.name] = "generator/precompiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder, now that the wheel contains its files."""
        if version != "editable":
            self._folder.cleanup()
