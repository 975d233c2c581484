"""sparkgen: one site file in, one reviewable configuration bundle out.

`read` and `parse` are for programs: they return a site file with its findings, its derived site and
the files of its bundle. They are loaded on first use.
"""

__version__ = "0.3.0.dev0"

_FACE = ("File", "Finding", "Place", "Severity", "Site", "SiteFile", "Tree", "parse", "read")


def __getattr__(name: str) -> object:
    if name not in _FACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("generator.library"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_FACE})
