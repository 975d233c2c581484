"""vLLM on the CPU with LMCache, in an environment of its own on top of vllm_cpu.py's.

LMCache copies between its memory and the KV cache of six kinds of devices, and a CPU is none: "No
supported cpu connector found". A plugin copies whole blocks, whose insides are the CPU kernel's
own. It also takes the allocator that LMCache's registered memory needs on a GPU, which vLLM refuses
on a CPU. All else is theirs: hashes, look-ups, files. What LMCache requires beside these packages,
such as CuPy, is not loaded here.
"""

from pathlib import Path

from cluster.vllm_cpu import on_top

LMCACHE = "0.5.6"
_PACKAGES = (f"lmcache=={LMCACHE}", "aiofile", "aiofiles", "caio", "sortedcontainers")
_PLUGIN = """\
def copier():
    import torch
    from lmcache.v1.gpu_connector import GPUConnectorInterface

    class Blocks(GPUConnectorInterface):
        def __init__(self, config, metadata, *_, **__):
            self.shape, self.layers = metadata.kv_shape, []

        def initialize_kvcaches_ptr(self, **given):
            self.layers = list(given.get("kvcaches", self.layers))

        def blocks(self, start, end, given):
            self.initialize_kvcaches_ptr(**given)
            size = self.layers[0].shape[2]
            assert start % size == end % size == 0
            return given["slot_mapping"][start:end:size] // size

        def to_gpu(self, kept, start, end, **given):
            blocks = self.blocks(start, end, given)
            for layer, stored in zip(self.layers, kept.tensor.reshape(len(self.layers), -1)):
                layer[blocks] = stored.reshape(len(blocks), *layer.shape[1:])

        def from_gpu(self, kept, start, end, **given):
            blocks = self.blocks(start, end, given)
            held = torch.stack([layer[blocks] for layer in self.layers])
            kept.tensor.copy_(held.reshape(kept.tensor.shape))

        def batched_to_gpu(self, *parts, **given):
            for part in zip(*parts):
                self.to_gpu(*part, **given)

        def batched_from_gpu(self, *parts, **given):
            for part in zip(*parts):
                self.from_gpu(*part, **given)

        def get_shape(self, tokens):
            layers, kinds, _, heads, size = self.shape
            return torch.Size([kinds, layers, tokens, heads * size])

    return Blocks

def register():
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.platforms.cpu import CpuPlatform

    CpuPlatform.is_cumem_allocator_available = lambda self: True
    create = KVConnectorFactory.create_connector

    # Not earlier: vLLM looks through what is imported for kernels to replace.
    def with_copier(*words, **settings):
        from lmcache.v1 import gpu_connector

        gpu_connector.CreateGPUConnector = copier()
        return create(*words, **settings)

    KVConnectorFactory.create_connector = with_copier
"""


def vllm_lmcache() -> Path:
    """The environment's bin folder; the first call installs the environment."""
    plugin = ("sparkgen_lmcache", _PLUGIN, "vllm.general_plugins", "register")
    return on_top(f"lmcache-{LMCACHE}", ("--no-deps", *_PACKAGES), plugin)
