"""Sites of a model so small that it runs anywhere: the lines of theirs are a real site's."""

import textwrap

from cluster.tiny_model import CONTEXT, HEADS, LAYERS, WIDTH

FOLDER = "/srv/models/tiny"
MODEL = f"{FOLDER}/tiny.gguf"
_SHAPE = (
    f"{{layers: {LAYERS}, heads: {HEADS}, kv_heads: {HEADS}, head_dim: {WIDTH // HEADS}, "
    f"hidden_size: {WIDTH}, vocab_size: 260, max_context: {CONTEXT}, weight_gb: 0.01}}"
)
_CABLES = {
    2: ("direct", ((1, 0, 2, 0),)),
    3: ("ring", ((1, 0, 2, 1), (2, 0, 3, 1), (3, 0, 1, 1))),
    4: ("ring", ((1, 0, 2, 0), (2, 1, 3, 1), (3, 0, 4, 0), (4, 1, 1, 1))),
}


_LLAMA = f"""\
model:
  source: sparkgen-tests/tiny
  file: {MODEL}
  served_name: tiny
  architecture: {_SHAPE}
  context_length: {CONTEXT // 2}
  max_sequences: 2
engine:
  name: llama.cpp
  version: 0.5.0-dev
  image: llama.cpp-rpc:tests
  memory_utilization: 0.85
  args: {{load-mode: mmap}}
"""
# Of each kind of model the shape, as vllm_cpu.py makes it.
_SHAPES = {
    "dense": _SHAPE,
    "experts": _SHAPE.replace(
        "}", ", experts: 8, experts_per_token: 2, expert_intermediate_size: 128}"
    ),
    "latent": _SHAPE.replace(
        "}",
        ", kv_lora_rank: 512, qk_rope_head_dim: 64, "
        "qk_nope_head_dim: 64, v_head_dim: 64, experts: 8, experts_per_token: 2, "
        "expert_intermediate_size: 128, dense_layers: 1, shared_experts: 1}",
    ),
    "embedding": _SHAPE,
}
_VLLM = """\
model:
  source: {folder}
  served_name: tiny
  architecture: {shape}
  context_length: 512
  max_sequences: 4
{more}engine:
  name: vllm
  version: 0.32.0
  image: vllm/vllm-openai:v0.32.0
  nccl: 2.30.7
  args: {args}
  env: {{VLLM_CPU_KVCACHE_SPACE: 1, VLLM_CPU_OMP_THREADS_BIND: nobind, OMP_NUM_THREADS: 1}}
"""


def llama_text(nodes: int) -> str:
    """A pair or a ring of three under llama.cpp."""
    return _text(nodes, _LLAMA)


def groups_text() -> str:
    """Two pairs with one model, a node with another, and the address of both, all llama.cpp."""
    served = textwrap.indent(_LLAMA, "    ")
    pair, single = (f"    parallel: {{pipeline: {nodes}}}\n" for nodes in (2, 1))
    other = served.replace("served_name: tiny", "served_name: other")
    return (
        f"version: 1\nname: tiny\nnodes:\n{_members(5)}cabling:\n"
        "  - endpoints: [spark1:p0, spark2:p0]\n  - endpoints: [spark3:p0, spark4:p0]\n"
        "topology: {kind: pairs}\ngroups:\n"
        f"  - name: chat\n    nodes: [spark1, spark2]\n{served}  {pair}"
        "  - name: chat-b\n    nodes: [spark3, spark4]\n    like: chat\n"
        f"  - name: other\n    nodes: [spark5]\n{other}  {single}"
        "services: {gateway: {node: spark5}}\n"
    )


def vllm_text(nodes: int, kind: str = "dense", parallel: str = "", drafts: bool = False) -> str:
    """Nodes under vLLM, which runs on the processor by its environment."""
    draft = f"  speculative: {{method: draft, source: {FOLDER}/draft, tokens: 3}}\n"
    served = _VLLM.format(
        folder=FOLDER,
        shape=_SHAPES[kind],
        more=draft if drafts else "",
        args="{runner: pooling}" if kind == "embedding" else "{}",
    )
    return _text(nodes, served, parallel)


def _text(nodes: int, served: str, parallel: str = "") -> str:
    kind, cables = _CABLES[nodes]
    cabling = "".join(
        f"  - endpoints: [spark{a}:p{port}, spark{b}:p{other}]\n" for a, port, b, other in cables
    )
    return (
        f"version: 1\nname: tiny\nnodes:\n{_members(nodes)}cabling:\n{cabling}"
        f"topology: {{kind: {kind}}}\n{served}  parallel: {parallel or f'{{pipeline: {nodes}}}'}\n"
    )


def _members(nodes: int) -> str:
    return "".join(
        f"  - {{name: spark{n}, management: {{interface: enP7s7, address: 10.0.0.{10 + n}/24}}}}\n"
        for n in range(1, nodes + 1)
    )
