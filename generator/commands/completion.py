"""Shell completion of sites, nodes, files of a bundle and rules."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from generator.site import Site

Items = list["CompletionItem"]

_SITE = (".yaml", ".yml")


def sites(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Site files, then the folders that may hold some."""
    found = [path for path in _entries(incomplete, _SITE) if not path.endswith(".lock.yaml")]
    return _items(sorted(found, key=lambda path: path.endswith("/")))


def outputs(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Any file, also after `NODE=`; then folders."""
    node, equals, start = incomplete.rpartition("=")
    found = sorted(_entries(start, ("",)), key=lambda path: path.endswith("/"))
    return _items(f"{node}{equals}{path}" for path in found)


def refs(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Branches and tags of the repository in the current folder."""
    import subprocess

    words = ("git", "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags")
    try:
        done = subprocess.run((*words, "refs/remotes"), capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _items(name for name in done.stdout.split() if name.startswith(incomplete))


def bundles(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Folders that contain a manifest, and the folders that lead to them."""
    return _items(
        path.rstrip("/") if Path(path, "MANIFEST.json").exists() else path
        for path in _entries(incomplete, ())
    )


def nodes(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The nodes of the site named earlier on the line; none if it can't be read."""
    site = _named_site(context)
    names = [node.name for node in site.nodes] if site else []
    return _items(name for name in names if name.startswith(incomplete))


def bundle_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The files of the site's bundle, with or without the folder of the bundle before them."""
    from generator.bundle.render import render

    site = _named_site(context)
    if site is None:
        return []
    before, name, _ = f"/{incomplete}".rpartition(f"/{site.name}/")
    folder = f"{before}{name}".removeprefix("/") if name else f"out/{site.name}/"
    bundle = render(site, "")
    paths = [f"{start}{path}" for start in ("", folder) for path in bundle]
    return _items(path for path in paths if path.startswith(incomplete))


def rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The ids of rules, each with its summary."""
    from click.shell_completion import CompletionItem

    from generator.reports.explain import explanations

    return [
        CompletionItem(number, help=rule.title)
        for number, rule in explanations().items()
        if number.startswith(incomplete.upper())
    ]


def models(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The models of the catalog."""
    from generator.catalogs import checkpoint_names

    return _items(name for name in checkpoint_names() if name.startswith(incomplete))


def _items(values: Iterable[str]) -> Items:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value) for value in values]


def _named_site(context: click.Context) -> "Site | None":
    """The valid site named earlier; an option that lacks its value leaves the site in `args`."""
    from generator.pipeline import read_site
    from generator.sitefile.disk import beside, contents

    for word in (context.params.get("site"), *context.args):
        if word and str(word).endswith(_SITE):
            try:
                return read_site(str(word), contents(Path(word)), beside(Path(word))).site
            except OSError:
                return None
    return None


def _entries(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Folders, with a slash, and files with these suffixes whose path begins with the word."""
    folder, _, start = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(start)]
    try:
        found = sorted(Path(folder or (prefix or ".")).iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            if path.is_dir():
                yield f"{prefix}{path.name}/"
            elif path.name.endswith(suffixes) and suffixes:
                yield f"{prefix}{path.name}"
