"""What each package may know: compares the table of `generator/README.md` with imports and names.

Names of engines and of kinds of topology appear only in their own packages.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from generator.catalogs.engines import module_name
from generator.engines import ENGINES
from generator.fabric.topologies import TOPOLOGIES
from generator.resources import ROOT, TEMPLATES

PACKAGE = ROOT / "generator"
README = (PACKAGE / "README.md").read_text(encoding="utf-8")
NAME = re.compile(r"`(\w+)(?:/|\.py)?`")
ANY = {"any"}


def table() -> dict[str, set[str]]:
    """The packages in their order, and what each may import from."""
    rows = [line.split("|")[1:-1] for line in README.splitlines() if line.startswith("| `")]
    return {
        NAME.findall(package)[0]: ANY if allowed.strip() == "any" else set(NAME.findall(allowed))
        for package, _, allowed in rows
    }


def base_modules() -> set[str]:
    """What everything may import from."""
    sentence = re.search(r"from these modules: (.*?), which import", README, re.DOTALL)
    return set(NAME.findall(sentence[1])) if sentence else set()


@cache
def sources() -> Mapping[str, Sequence[ast.AST]]:
    """All nodes of each module, the module itself first."""
    return {
        path.relative_to(PACKAGE).as_posix(): [*ast.walk(ast.parse(path.read_bytes()))]
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imports() -> dict[str, set[str]]:
    """The packages that each imports from, including imports within functions."""
    found = defaultdict(set)
    for module, nodes in sources().items():
        package = module.partition("/")[0].removesuffix(".py")
        found[package] |= {*modules(nodes)} - {package}
    return found


def modules(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """What a module imports from this package, by the first name below it."""
    for node in nodes:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            from_package = node.module == "generator"
            names = (
                [f"{node.module}.{a.name}" for a in node.names] if from_package else [node.module]
            )
        for package, _, rest in (name.partition(".") for name in names):
            if package == "generator":
                # A name like __version__ is one of the package's own module.
                yield "__init__" if rest.startswith("__") else rest.partition(".")[0]


def test_class_names_have_one_meaning() -> None:
    """A name that several modules define for different classes makes each of them hard to find."""
    places = defaultdict(set)
    for module, (top, *_) in sources().items():
        for node in ast.iter_child_nodes(top):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(module)
    shared = {name: sorted(files) for name, files in places.items() if len(files) > 1}
    assert shared == {}


def test_imports_are_those_of_the_table() -> None:
    packages, shared, imported = table(), base_modules(), imports()
    assert not {*packages} & shared
    assert {*imported} == {*packages} | shared
    used = {name: imported[name] - shared for name in imported}
    assert {name for name in shared if used[name]} == set()
    above = {name: {*list(packages)[:place]} for place, name in enumerate(packages)}
    assert {name: below for name in packages if (below := used[name] - above[name])} == {}
    listed = {name: allowed for name, allowed in packages.items() if allowed != ANY}
    assert {name: used[name] for name in listed} == listed


# Where engines and topologies are at home, and where the same word means something else.
AT_HOME = {
    **{f"engines/{module_name(engine)}": {engine} for engine in ENGINES},
    **{f"rules/{module_name(engine)}.py": {engine} for engine in ENGINES},
    "fabric/topologies/": {*TOPOLOGIES},
    # A cache of recent tokens, a flag without a value, a way of exchanging data.
    "fit/": {"ring"},
    "rules/flags/value_faults.py": {"switch"},
    "adoption/command.py": {"switch"},
    "settings/values.py": {"switch"},
}


def test_names_of_engines_and_topologies_stay_in_their_rooms() -> None:
    assert dict(strangers()) == {}


def strangers() -> Iterator[tuple[str, set[str]]]:
    """Modules that contain such names but should not know them."""
    for module, nodes in sources().items():
        known = {
            name for home, names in AT_HOME.items() if module.startswith(home) for name in names
        }
        compared = [node for node in nodes if isinstance(node, ast.Compare | ast.MatchValue)]
        # The kinds are common words, so only comparisons with them count.
        kinds = {text for node in compared for text in texts(ast.walk(node))} & {*TOPOLOGIES}
        if found := (texts(nodes) & {*ENGINES} | kinds) - known:
            yield module, found


def texts(nodes: Iterable[ast.AST]) -> set[object]:
    return {node.value for node in nodes if isinstance(node, ast.Constant)}


def test_templates_compare_no_name_of_an_engine_or_a_topology() -> None:
    names = "|".join(map(re.escape, {*ENGINES, *TOPOLOGIES}))
    # A name printed in a sentence is not a comparison.
    compared = re.compile(rf"""(?:==|!=|\bin\b) *\(?["'](?:{names})["']|["'](?:{names})["'] *==""")
    found = [
        path.relative_to(TEMPLATES).as_posix()
        for path in TEMPLATES.rglob("*.j2")
        if compared.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


# What makes the normal form of settings, and the rules about how they are spelled.
OF_SPELLING = ("settings/", "rules/flags/checking.py")


def test_only_rules_about_spelling_see_settings_as_written() -> None:
    """Everything else asks for settings in their normal form, which has one meaning for each."""
    seen = {
        module
        for module, nodes in sources().items()
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr == "as_written"
    }
    assert seen
    assert {module for module in seen if not module.startswith(OF_SPELLING)} == set()
