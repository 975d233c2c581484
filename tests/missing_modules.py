"""Stand-ins for modules that are not installed, so that a wheel's parser can be built.

They have every name and do nothing. The checks that records make on creation are skipped too: a
parser only needs to know which fields they have.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

# The version of packages that are not installed.
NEW = "999.0"


class _Base:
    """The base class of classes that derive from stand-ins."""

    def __init__(self, *_: object, **values: object) -> None:
        self.__dict__.update(values)

    def __init_subclass__(cls, **_: object) -> None: ...

    def __class_getitem__(cls, _: object) -> type:
        return cls


class _Anything:
    """Has every attribute, accepts every call, is a no-op decorator, and can be a base class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __call__(self, *args: Any, **options: object) -> Any:
        is_code = len(args) == 1 and isinstance(args[0], types.FunctionType | type)
        decorates = is_code and not options
        return args[0] if decorates else _Anything()

    def __getitem__(self, _: object) -> "_Anything":
        return self

    def __setitem__(self, *_: object) -> None: ...

    def __or__(self, _: object) -> "_Anything":
        return self

    __ror__ = __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __or__
    __truediv__ = __rtruediv__ = __or__

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Anything)

    def __hash__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 0

    def __lt__(self, _: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __instancecheck__(self, _: object) -> bool:
        return False

    def __get_pydantic_core_schema__(self, *_: object) -> Any:
        return {"type": "any"}

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        first = next(base for base in bases if isinstance(base, _Anything))
        return (_Base,) if self is first else ()


class _StandIn(types.ModuleType):
    """A module that has every name, except for those that should be absent."""

    def __init__(self, name: str, absent: Sequence[str]) -> None:
        super().__init__(name)
        self.__absent = absent

    def __getattr__(self, name: str) -> Any:
        if f"{self.__name__}.{name}" in self.__absent:
            raise AttributeError(name)
        if name == "__version__":
            return NEW
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that no other finder finds, except for those that should be absent.

    Missing submodules of installed packages and of the standard library stay absent too.
    """

    def __init__(self, package: str, absent: Sequence[str]) -> None:
        self.package = package
        self.absent = absent

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        first, dot, _rest = name.partition(".")
        is_installed = dot and not isinstance(sys.modules.get(first), _StandIn | None)
        if name in self.absent or first in sys.stdlib_module_names:
            return None
        if is_installed and first != self.package:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name, self.absent)

    def exec_module(self, module: types.ModuleType) -> None: ...


def loaded(
    where: str, folder: Path | None, absent: Sequence[str] = (), replaced: Sequence[str] = ()
) -> tuple[Any, Path]:
    """Import `package.module:name.attribute`; returns the object and the package's folder.

    From then on, stand-ins take the place of modules that are missing or to be replaced, because
    parsers import more while they are built. If the package lies in a separate folder, its
    `__init__` is not run, since it expects a machine with a GPU.
    """
    module, _, names = where.partition(":")
    name = module.partition(".")[0]
    if folder and name not in sys.modules:
        sys.path.insert(0, str(folder))
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(folder / name)]
    sys.meta_path.append(_StandIns(name, absent))
    for each in replaced:
        sys.modules[each] = _StandIn(each, absent)
        sys.modules[each].__path__ = []
    found = reduce(getattr, names.split("."), importlib.import_module(module))
    return found, Path(sys.modules[name].__path__[0])


@contextmanager
def pretended() -> Iterator[None]:
    """Pretend that missing packages are installed, in a new version; leave records unchecked."""
    with patch.object(importlib.metadata, "version", _version), _without_validation():
        yield


def _version(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return NEW


@contextmanager
def _without_validation() -> Iterator[None]:
    """Skip the checks of records, which look for a GPU; without pydantic there are none."""
    if find_spec("pydantic") is None:
        yield
        return
    import pydantic
    import pydantic.dataclasses

    def unchecked(*_: object, **__: object) -> Callable[[Any], Any]:
        return lambda function: function

    with (
        patch.object(pydantic, "model_validator", unchecked),
        patch.object(pydantic, "field_validator", unchecked),
        patch.object(pydantic.dataclasses, "dataclass", _plain(pydantic.dataclasses.dataclass)),
    ):
        yield


def _plain(dataclass: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator, for classes without their `__post_init__`."""

    def decorate(cls: Any = None, **options: object) -> Any:
        if cls is None:
            return lambda its: decorate(its, **options)
        if "__post_init__" in vars(cls):
            del cls.__post_init__
        return dataclass(cls, **options)

    return decorate
