"""Flags and variables of the engines that depend on a version or on how the engine is started."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from declared import a_model, an_engine, some_nodes

from generator.bundle.render import render
from generator.catalogs.engines import ENGINE_TRAITS, names
from generator.engines import handed_on
from generator.engines.vllm import engine as vllm
from generator.fit.alternatives import alternatives
from generator.pipeline import Reading, read_site
from generator.site import Site
from generator.sitefile.declaration import Parallel
from generator.sitefile.sections import site_schema


def _pair(engine: Mapping[str, Any], **others: Any) -> Site:
    site = {
        "version": 1,
        "name": "pair",
        "nodes": [
            {"name": f"spark{n}", "management": {"address": f"10.0.0.1{n}/24"}} for n in (1, 2)
        ],
        "cabling": [{"endpoints": ["spark1:p0", "spark2:p0"]}],
        "topology": {"kind": "direct"},
        "model": {"name": "qwen3-30b-a3b-nvfp4", "context_length": 8192},
        "engine": {"name": "vllm", "image": "example.org/engine:1", "parallel": {"tensor": 2}}
        | dict(engine),
        **others,
    }
    read = read_site("pair.yaml", yaml.safe_dump(site).encode())
    assert read.site, read.findings
    return read.site


def test_a_page_beside_a_slurm_job_asks_its_api() -> None:
    engine = {"name": "tensorrt-llm", "version": "1.3.0rc29", "launcher": "slurm"}
    site = _pair(engine, services={"web_ui": True})
    page = render(site, "")["spark1/opt/sparkgen/web-ui.yaml"].text
    assert f"{site.engine.api.own_url}/v1" in page


def test_layouts_that_the_engine_refuses_to_draft_on_are_not_offered() -> None:
    model = a_model(name="glm-4.5-air-fp8", speculative={"method": "mtp", "tokens": 3})
    engine = an_engine(name="sglang", version="0.5.23", parallel=Parallel(tensor=2))
    found = alternatives(some_nodes(2), model, engine)
    assert {other.fit.parallel.pipeline for other in found} == {1}


@pytest.mark.parametrize(
    ("version", "kept"),
    [("0.27.0", True), ("0.27.1", False), ("0.31.0+own", False), ("0.32.0", True)],
)
def test_tuning_of_one_rank_ends_with_the_container(version: str, kept: bool) -> None:
    """If it were kept in the mounted cache, it would make the next start hang."""
    tree = render(_pair({"version": version}), "")
    for node in ("spark1", "spark2"):
        text = tree[f"{node}/etc/sparkgen/engine.env"].text
        assert (f"{vllm.TUNING}=/tmp/flashinfer-autotune\n" in text) is not kept
        assert f"{vllm.TUNING}=/var" not in text


HANDED_ON = {
    key: entry["meta"]
    for key, entry in site_schema()["model"]["schema"].items()
    if "flags" in entry.get("meta", {})
}


@pytest.mark.parametrize(
    ("engine", "key"), [(e, key) for key, meta in HANDED_ON.items() for e in names()]
)
def test_no_engine_ignores_a_key_that_others_get_as_a_flag(engine: str, key: str) -> None:
    start = ENGINE_TRAITS[engine].start
    assert start

    def read(**model: Any) -> Reading:
        model |= {"file": "/srv/models/qwen.gguf"} if engine == "llama.cpp" else {}
        site = {
            "version": 1,
            "name": "lab",
            "nodes": [{"name": "spark1", "management": {"address": "10.0.0.11/24"}}],
            "model": {"name": "qwen3-8b", **model},
            "engine": {
                "name": engine,
                "version": start.version,
                "image": "example.org/engine:1",
            },
        }
        return read_site("lab.yaml", yaml.safe_dump(site).encode())

    plain, changed = read(), read(**{key: HANDED_ON[key]["example"]})
    assert plain.site, plain.findings
    if changed.site and render(changed.site, "") == render(plain.site, ""):
        pytest.fail(
            f"{engine} ignores model.{key}: name its flag, or refuse the key by a row in "
            f"schemas/startup/{engine}.yaml",
            pytrace=False,
        )


def test_zero_is_handed_on() -> None:
    model: Any = SimpleNamespace(handed_on=dict.fromkeys(HANDED_ON, 0))
    engine: Any = SimpleNamespace(name="vllm", version="0.33.0")
    own = handed_on.flags("vllm")
    assert {*handed_on.words(engine, model)} == {(f"--{flag}=0",) for flag in own}
