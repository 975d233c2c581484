"""The defaults in the schema are what the program uses where a site file omits a key."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
import yaml
from valid_sites import EXAMPLES

from generator.pipeline import read_site
from generator.site import Site
from generator.sitefile import defaults, sections


def _defaults(rules: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for key, value in rules.items():
        if "default" in value.get("meta", {}):
            yield ".".join((*path, key)), value["meta"]["default"]
        inner = value.get("schema", {})
        while "list" in value.get("type", "") and "schema" in value:
            value, inner = inner, inner.get("schema", {})
        if isinstance(inner, dict):
            yield from _defaults(inner, (*path, key))


DEFAULTS = dict(_defaults(sections.site_schema()))
# The word for the engine's own default: the flag is then omitted.
del DEFAULTS["model.kv_cache_dtype"], DEFAULTS["groups.model.kv_cache_dtype"]
# Alternatives have the same keys as groups.
DEFAULTS = {path: value for path, value in DEFAULTS.items() if ".alternatives." not in path}
# Examples for keys that mean nothing in lab-mesh.
_EXAMPLES = {
    "engine.parallel.tensor": "single",
    "engine.parallel.pipeline": "single",
    "engine.parallel.data": "single",
    "engine.parallel.expert": "single",
    "engine.ports.dist_init": "pair-sglang",
    "engine.ports.ssh": "pair-trtllm-235b",
    "engine.ports.rpc": "pair-llamacpp",
    "engine.files.writable": "single",
    "model.kv_offload.buffer_gib": "single",
    "model.kv_offload.connector": "single",
}
_JOB = {"name": "finetune", "launcher": "torchrun", "command": "train.py"}
_BESIDE: Mapping[str, Mapping[str, Any]] = {
    "access.clear": {"access.tls": {"authority": "site"}, "services.proxy": True},
    "engine.ports.ray": {"engine.launcher": "ray"},
    "engine.ports.dashboard": {"engine.launcher": "ray"},
    "engine.ports.data_parallel_rpc": {"engine.parallel": {"data": 3}},
    "engine.files.writable": {"engine.files": [{"path": "/srv/state"}]},
    "engine.nccl.patched": {"engine.nccl": {"version": "2.30.7"}},
    "jobs.stops": {"jobs": [_JOB]},
    "jobs.files.writable": {"jobs": [_JOB | {"files": [{"path": "/srv/data"}]}]},
    "model.kv_offload.buffer_gib": {"model.kv_offload": {"path": "/srv/kv", "gib": 200}},
    "model.kv_offload.connector": {"model.kv_offload": {"path": "/srv/kv", "gib": 200}},
    "nodes.other.starts": {"nodes.other": [{"name": "desktop", "gib": 2}]},
    "services.gateway.port": {"services.gateway": {"node": "spark1"}},
    "services.gateway.image": {"services.gateway": {"port": 4000}},
    "services.gateway.balance": {"services.gateway": {"node": "spark1"}},
    "services.proxy.port": {"services.proxy": {"image": "example.org/nginx:1"}},
    "services.proxy.image": {"services.proxy": {"port": 8088}},
    "services.web_ui.port": {"services.web_ui": {"image": "example.org/web-ui:v1"}},
    "services.web_ui.image": {"services.web_ui": {"port": 3001}},
}
_OF_A_MODEL = "model.architecture."
_OF_A_GROUP = "groups."


def _site(path: str) -> dict[str, Any]:
    """A site file in which the key can be set."""
    if path.startswith(_OF_A_GROUP):
        return _of_one_group(_site(path.removeprefix(_OF_A_GROUP)))
    text = EXAMPLES[_EXAMPLES.get(path, "lab-mesh")].read_text("utf-8")
    site: dict[str, Any] = yaml.safe_load(text)
    if path.startswith(_OF_A_MODEL):
        facts = {"layers": 60, "hidden_size": 4096, "heads": 32, "kv_heads": 4, "weight_gb": 200}
        site["model"] |= {"source": "someone/a-model", "architecture": facts}
        del site["model"]["name"]
    for beside, value in _BESIDE.get(path, {}).items():
        _write(site, beside.split("."), value)
    return site


def _of_one_group(site: dict[str, Any]) -> dict[str, Any]:
    """The same site with one group of all nodes that serves the site's model."""
    group: dict[str, Any] = {"name": "chat", "nodes": [node["name"] for node in site["nodes"]]}
    group |= {key: site.pop(key) for key in ("model", "engine")}
    return site | {"groups": [group]}


def _write(data: Any, path: list[str], value: Any) -> None:
    """Write a key into a section, or into each of a list of sections; None removes the key."""
    first, *rest = path
    for section in data if isinstance(data, list) else [data]:
        if rest:
            section.setdefault(first, {})
            _write(section[first], rest, value)
        elif value is None:
            section.pop(first, None)
        else:
            section[first] = deepcopy(value)


def _read(data: Mapping[str, Any]) -> Site:
    read = read_site("lab.yaml", yaml.safe_dump(dict(data)).encode())
    assert read.site, read.findings
    return read.site


@pytest.mark.parametrize("path", DEFAULTS)
def test_writing_a_default_changes_nothing(path: str) -> None:
    silent, written = _site(path), _site(path)
    _write(silent, path.split("."), None)
    _write(written, path.split("."), DEFAULTS[path])
    assert _read(silent) == _read(written)


def test_the_program_reads_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = deepcopy(sections.site_schema())
    rules["engine"]["schema"]["memory_utilization"]["meta"]["default"] = 0.7
    monkeypatch.setattr(defaults, "site_schema", lambda: rules)
    defaults.defaults.cache_clear()
    site = _site("engine.memory_utilization")
    _write(site, ["engine", "memory_utilization"], None)
    assert _read(site).engine.memory_utilization == 0.7
    monkeypatch.undo()
    defaults.defaults.cache_clear()
