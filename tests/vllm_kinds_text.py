"""Writes `schemas/vllm-kinds.tsv` with one more release, from the bases of its classes of models.

A class is found by its architecture's name in the registry, which is the kind's own name in other
letters. Adapters and EAGLE-3 are interfaces among its bases. Pipeline stages and prediction layers
are decided in code, which people read.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FEATURES = {"adapters": "SupportsLoRA", "eagle3": "SupportsEagle3"}
_ARCHITECTURE = r"(\w+?)(ForCausalLM|ForConditionalGeneration)"


class Classes:
    """The classes of models of an unpacked wheel, none of whose code is run."""

    def __init__(self, package: Path) -> None:
        self._bases: dict[str, set[str]] = defaultdict(set)
        for folder in ("model_executor/models", "models"):
            for path in sorted((package / folder).rglob("*.py")):
                for name, base in _bases(ast.parse(path.read_text("utf-8"))):
                    self._bases[name].add(base)
        registry = (package / "model_executor/models/registry.py").read_text("utf-8")
        self._registered = dict(_registered(ast.parse(registry)))

    def of_kind(self, kind: str, takes_images: bool) -> str | None:
        """The class of a kind of model; one that takes images may have another for text."""
        forms = ("ForConditionalGeneration", "ForCausalLM")
        named = self._registered.get(_bare(kind.removesuffix("_text")), {})
        order = forms if takes_images else reversed(forms)
        return next((named[form] for form in order if form in named), None)

    def interfaces(self, name: str) -> set[str]:
        """A class with everything that it derives from."""
        found, left = set[str](), [name]
        while left:
            each = left.pop()
            if each not in found:
                found.add(each)
                left += self._bases.get(each, ())
        return found


def _bases(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Classes with their bases, and other names for classes."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                yield node.name, ast.unparse(base).partition("[")[0].rpartition(".")[2]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            yield ast.unparse(node.targets[0]), node.value.id


def _registered(module: ast.Module) -> Iterator[tuple[str, dict[str, str]]]:
    """The classes by the bare names of their architectures, and by their forms."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    dictionaries = (node for node in ast.walk(module) if isinstance(node, ast.Dict))
    for key, value in (
        pair for node in dictionaries for pair in zip(node.keys, node.values, strict=True)
    ):
        match key, value:
            case ast.Constant(value=str(name)), ast.Tuple(elts=[_, ast.Constant(value=str(its))]):
                if form := re.fullmatch(_ARCHITECTURE, name):
                    found[_bare(form[1])].setdefault(form[2], its)
    yield from found.items()


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


def kinds_text(text: str, version: str, package: Path) -> tuple[str, list[str]]:
    """The table with one more release, and what people must decide about it."""
    classes, remarks = Classes(package), list[str]()
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if not line.startswith("#")) + 1
    names = lines[start - 1].split("\t")
    for place, line in enumerate(lines[start:], start):
        row = dict(zip(names, line.split("\t"), strict=True))
        name = classes.of_kind(row["kind"], row["images"] == "yes")
        held = classes.interfaces(name) if name else set()
        if not name:
            remarks.append(f"vllm-kinds.tsv: no class is registered for {row['kind']}")
            continue
        for feature, interface in FEATURES.items():
            if row[feature] == "-" and interface in held:
                row[feature] = version
            elif row[feature] != "-" and interface not in held:
                remarks.append(f"vllm-kinds.tsv: {row['kind']} has no {feature} any more")
        lines[place] = "\t".join(row.values())
    head = "\n".join(lines[: start - 1])
    minor = ".".join(version.split(".")[:2])
    new = re.sub(r"(?<= to )\d+(\.\d+)+(?=, the bases)", version, head)
    new = re.sub(r"(?<=up to )\d+\.\d+", minor, new)
    if new != head:
        remarks.append("vllm-kinds.tsv: kinds that are new, and the columns stages and prediction")
    return "\n".join([new, *lines[start - 1 :]]) + "\n", remarks
