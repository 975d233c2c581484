"""TensorRT-LLM's settings: in which of two places each is, and what each version calls it."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from bundles import BUNDLES, NODES, Bundle, NodeFolder

from generator.catalogs.flag_files import catalog
from generator.engines.tensorrt_llm import engine as tensorrt_llm
from generator.fit.assessment import Fit
from generator.sitefile.declaration import Speculative

SERVED = [
    bundle for bundle in BUNDLES if bundle.site.parts and bundle.part.engine.name == "tensorrt-llm"
]
HEADS = [folder for folder in NODES if folder.bundle in SERVED and folder.node.is_head]

each_head = pytest.mark.parametrize("folder", HEADS, ids=str)


def settings(folder: NodeFolder) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((folder.path / "opt/sparkgen/options.yaml").read_text())
    return read


def names(bundle: Bundle, words: list[str]) -> Iterator[str]:
    """The full names of flags, whatever a command calls them."""
    known = catalog("tensorrt-llm", bundle.part.engine.version)
    assert known
    for word in words:
        found = known.find(word.partition("=")[0].removeprefix("--"))
        yield found.flag.name if found else word


@each_head
def test_settings_are_those_of_the_site(folder: NodeFolder) -> None:
    assert settings(folder) == folder.member.container.options


@each_head
def test_no_setting_is_in_both_places(folder: NodeFolder) -> None:
    options = settings(folder)
    flags = {*names(folder.bundle, [word for word in folder.command if word.startswith("--")])}
    keys = {*names(folder.bundle, [f"--{key}" for key in (*options, *options["kv_cache_config"])])}
    assert not flags & keys
    assert "config" in flags


@pytest.mark.parametrize("folder", [h for h in HEADS if "--config" in str(h.command)], ids=str)
def test_arguments_have_no_space_for_the_launcher_to_split(folder: NodeFolder) -> None:
    assert not [word for word in folder.command if " " in word]


@pytest.mark.parametrize("bundle", SERVED, ids=str)
def test_engine_takes_its_share(bundle: Bundle) -> None:
    """Weights, activations and the KV cache together, on the node with the least room."""
    memory, utilization = bundle.part.memory, bundle.part.engine.memory_utilization
    fraction = bundle.site.head.container.options["kv_cache_config"]["free_gpu_memory_fraction"]
    parts = [
        (n.weights_gib + n.draft_gib + n.reserve_gib, n.visible_gib)
        for n in (memory.nodes if isinstance(memory, Fit) else ())
    ]
    taken = max(((held + fraction * (all_ - held)) / all_ for held, all_ in parts), default=None)
    if taken is None:
        assert fraction == 0.5
    else:
        assert utilization - 0.01 <= taken <= utilization


@pytest.mark.parametrize("utilization", [0.05, 0.5, 0.8, 0.99])
def test_unknown_memory(utilization: float) -> None:
    """If three quarters of the share are not KV cache, the fraction is the rest of it."""
    held = 0.75 * utilization
    fraction = tensorrt_llm.free_fraction(utilization, None)
    assert held + fraction * (1 - held) <= utilization or fraction == 0.01


@pytest.mark.parametrize(
    ("version", "named"),
    [
        ("1.2.1", False),
        ("1.3.0rc5", False),
        ("1.3.0rc29", True),
        ("1.3.0rc30", True),
        ("1.3.0", True),
        ("1.10.0", True),
    ],
)
def test_flags_of_a_version(version: str, named: bool) -> None:
    assert tensorrt_llm.has_names(version) is named
    drafts = {
        method: tensorrt_llm._speculative(Speculative(method, source, 3, None), version)
        for method, source in (("eagle3", "a/b"), ("draft", "a/b"), ("mtp", None))
    }
    assert drafts["eagle3"]["decoding_type"] == ("Eagle3" if named else "Eagle")
    assert drafts["draft"]["decoding_type"] == "Draft_Target"
    assert drafts["mtp"] == {
        "decoding_type": "MTP",
        "max_draft_len" if named else "num_nextn_predict_layers": 3,
    }
