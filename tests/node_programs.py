"""Programs of a node as modules, so that tests can call their functions."""

import importlib.util
import sys
from types import ModuleType

from generator.bundle.payload import FOLDER
from generator.resources import TEMPLATES


def loaded(path: str) -> ModuleType:
    """A Python program of the payload; `path` as in `node/verify.py`."""
    file = TEMPLATES / FOLDER / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = writes
    return module
