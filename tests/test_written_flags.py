"""What a bundle starts an engine with is in its catalog, for each release that has one."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from generator.bundle.render import render
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import catalog, versions
from generator.pipeline import read_site

# Of each engine: the parallel sizes of a pair, and keys of a model that become flags.
_DENSE = {"name": "qwen3-8b", "context_length": 8192, "max_sequences": 4}
_FILE = {"file": "/srv/models/model.gguf"}
_DRAFTS = {"method": "draft", "source": "Qwen/Qwen3-0.6B", "tokens": 3}
_CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "vllm": ("tensor", {}),
    "sglang": ("tensor", {}),
    "llama.cpp": ("pipeline", _FILE),
    "tensorrt-llm": ("tensor", {}),
}
# How findings say that a release lacks a flag with which it would be started.
_TOLD = ("with which it ", "on several nodes with Ray only", "takes no size of its KV cache")
_MORE: tuple[Mapping[str, Any], ...] = (
    {},
    {"kv_cache_dtype": "fp8"},
    {"kv_cache_gib": 8},
    {"quantization": "fp8"},
    {"revision": "b968826d9c46dd6066d109eabc6255188de91218"},
    {"aliases": ["small"]},
    {"speculative": {"method": "ngram", "tokens": 3}},
    {"speculative": _DRAFTS},
)


def _sites(engine: str, version: str) -> Iterator[dict[str, Any]]:
    key, own = _CASES[engine]
    for count in (1, 2):
        nodes = [
            {"name": f"spark{n}", "management": {"address": f"10.0.0.1{n}/24"}}
            for n in range(1, count + 1)
        ]
        cable = [{"endpoints": ["spark1:p0", "spark2:p0"]}] if count == 2 else []
        fabric = {"topology": {"kind": "direct"}, "cabling": cable} if cable else {}
        for more in _MORE:
            model = {**_DENSE, **own, **more}
            if engine == "llama.cpp" and model.get("speculative") == _DRAFTS:
                model["speculative"] = _DRAFTS | {"source": "/srv/models/draft.gguf"}
            image = {"name": engine, "version": version, "image": "example.org/engine:1"}
            described = image | {"parallel": {key: count}, "secrets": []}
            yield {
                "version": 1,
                "name": "lab",
                "nodes": nodes,
                "model": model,
                "engine": described,
                **fabric,
            }


def _written(site: Mapping[str, Any]) -> Iterator[str]:
    """The flags of each node's command; none if a finding says that the engine refuses them."""
    read = read_site("lab.yaml", yaml.safe_dump(site, sort_keys=False).encode())
    if read.site is None or any(said in f.message for said in _TOLD for f in read.findings):
        return
    files = render(read.site, "")
    # A worker of llama.cpp runs another program.
    for node in site["nodes"][: 1 if site["engine"]["name"] == "llama.cpp" else None]:
        compose = yaml.safe_load(files[f"{node['name']}/opt/sparkgen/compose.yaml"].text)
        for service in compose["services"].values():
            yield from (w for w in service.get("command", ()) if str(w).startswith("--"))


def _sampled(engine: str) -> list[str]:
    """The first releases, the last, and some between."""
    known = [each for each in versions(engine) if each[0].isdigit()]
    return sorted({*known[:3], *known[-2:], *known[:: max(1, len(known) // 6)]}, key=known.index)


@pytest.mark.parametrize(
    ("engine", "version"), [(engine, v) for engine in _CASES for v in _sampled(engine)]
)
def test_written_flags_are_known(engine: str, version: str) -> None:
    known = catalog(engine, version)
    assert known
    unknown = {
        flag
        for site in _sites(engine, version)
        for word in _written(site)
        for flag in [word.partition("=")[0]]
        if not known.find(flag.lstrip("-"))
    }
    assert unknown == set(), ENGINE_TRAITS[engine].title
