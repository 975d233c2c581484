"""Sites of a tiny model that runs anywhere; apart from the model they are like real sites."""

import textwrap

from cluster.tiny_model import CONTEXT, HEADS, LAYERS, WIDTH

FOLDER = "/srv/models/tiny"
MODEL, DRAFT = f"{FOLDER}/tiny.gguf", f"{FOLDER}/draft.gguf"
_SHAPE = (
    f"{{layers: {LAYERS}, heads: {HEADS}, kv_heads: {HEADS}, head_dim: {WIDTH // HEADS}, "
    f"hidden_size: {WIDTH}, vocab_size: 260, max_context: {CONTEXT}, weight_gb: 0.01}}"
)
_CABLES = {
    1: ("single", ()),
    2: ("direct", ((1, 0, 2, 0),)),
    3: ("ring", ((1, 0, 2, 1), (2, 0, 3, 1), (3, 0, 1, 1))),
    4: ("ring", ((1, 0, 2, 0), (2, 1, 3, 1), (3, 0, 4, 0), (4, 1, 1, 1))),
}


_LLAMA = """\
model:
  source: sparkgen-tests/tiny
  file: {file}
  served_name: tiny
  architecture: {shape}
  context_length: {context}
  max_sequences: 2
{more}engine:
  name: llama.cpp
  version: 0.5.0-dev
  image: llama.cpp-rpc:tests
  memory_utilization: 0.85
  args: {{load-mode: mmap{args}}}
"""
# The shape of each kind of model, as tiny_model.py and vllm_cpu.py make it.
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
_ARGS = {"embedding": "{runner: pooling}"}
_IMAGE = "vllm/vllm-openai:v0.32.0"
_WITH_RAY = f"{{name: vllm-ray:0.32.0, from: {_IMAGE}, adds: [ray]}}"
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
  image: {image}
  nccl: 2.30.7
{launcher}  args: {args}
  env: {{VLLM_CPU_KVCACHE_SPACE: 1, VLLM_CPU_OMP_THREADS_BIND: nobind, OMP_NUM_THREADS: 1}}
"""
_SGLANG = """\
model:
  source: {folder}
  served_name: tiny
  architecture: {shape}
  context_length: 512
  max_sequences: 4
{more}engine:
  name: sglang
  version: 0.5.23
  image: lmsysorg/sglang:v0.5.23-cu130
  args: {{device: cpu, attention-backend: torch_native, max-total-tokens: 8192{args}}}
  env: {{SGLANG_USE_CPU_ENGINE: 1, SGLANG_CPU_OMP_THREADS_BIND: "0|1", OMP_NUM_THREADS: 1}}
"""


def llama_text(nodes: int, kind: str = "dense", drafts: bool = False) -> str:
    """A pair or a ring of three under llama.cpp."""
    return _text(nodes, _llama(kind, drafts))


def _llama(kind: str = "dense", drafts: bool = False) -> str:
    return _LLAMA.format(
        file=MODEL,
        shape=_SHAPES[kind],
        context=CONTEXT // 2,
        more=f"  speculative: {{method: draft, source: {DRAFT}, tokens: 3}}\n" if drafts else "",
        args=", embedding: true" if kind == "embedding" else "",
    )


def groups_text() -> str:
    """Two pairs with one model and a node with another, under one address, all llama.cpp."""
    served = textwrap.indent(_llama(), "    ")
    pair, single = (f"    parallel: {{pipeline: {nodes}}}\n" for nodes in (2, 1))
    other = served.replace("served_name: tiny", "served_name: other")
    return (
        f"version: 1\nname: tiny\nnodes:\n{_members(5)}cabling:\n"
        "  - endpoints: [spark1:p0, spark2:p0]\n  - endpoints: [spark3:p0, spark4:p0]\n"
        "topology: {kind: pairs}\ngroups:\n"
        f"  - name: chat\n    nodes: [spark1, spark2]\n{served}  {pair}"
        "  - name: chat-b\n    nodes: [spark3, spark4]\n    same_as: chat\n"
        f"  - name: other\n    nodes: [spark5]\n{other}  {single}"
        "services: {gateway: {node: spark5}}\n"
    )


def replicas_text() -> str:
    """Two nodes with one model and a third with another, under one address, all llama.cpp."""
    served = textwrap.indent(_llama(), "    ")
    other = served.replace("served_name: tiny", "served_name: other")
    return (
        f"version: 1\nname: tiny\nnodes:\n{_members(3)}cabling:\n"
        "  - endpoints: [spark1:p0, spark2:p0]\n"
        "topology: {kind: pairs}\ndefaults: {user: root}\ngroups:\n"
        f"  - name: chat\n    nodes: [spark1]\n{served}"
        "  - name: chat-b\n    nodes: [spark2]\n    same_as: chat\n"
        f"  - name: other\n    nodes: [spark3]\n{other}"
        "services: {gateway: {node: spark3}}\n"
    )


def vllm_text(
    nodes: int,
    kind: str = "dense",
    parallel: str = "",
    drafts: bool = False,
    launcher: str = "",
    offload: str = "",
) -> str:
    """Nodes under vLLM, which runs on the CPU through its environment."""
    draft = f"  speculative: {{method: draft, source: {FOLDER}/draft, tokens: 3}}\n"
    kept = f"  kv_offload: {offload}\n"
    served = _VLLM.format(
        folder=FOLDER,
        shape=_SHAPES[kind],
        more=draft * drafts + kept * bool(offload),
        image=_WITH_RAY if launcher == "ray" else _IMAGE,
        launcher=f"  launcher: {launcher}\n" if launcher else "",
        args=_ARGS.get(kind, "{enforce-eager: true}" if offload else "{}"),
    )
    return _text(nodes, served, parallel)


def sglang_text(nodes: int, kind: str = "dense", parallel: str = "") -> str:
    """Nodes under SGLang, on the CPU."""
    served = _SGLANG.format(
        folder=FOLDER,
        shape=_SHAPES[kind],
        more="",
        args=", is-embedding: true" if kind == "embedding" else "",
    )
    return _text(nodes, served, parallel)


def _text(nodes: int, served: str, parallel: str = "") -> str:
    kind, cables = _CABLES[nodes]
    cabling = "".join(
        f"  - endpoints: [spark{a}:p{port}, spark{b}:p{other}]\n" for a, port, b, other in cables
    )
    split = parallel or f"{{pipeline: {nodes}}}"
    return (
        f"version: 1\nname: tiny\nnodes:\n{_members(nodes)}{'cabling:' * bool(cables)}\n{cabling}"
        f"topology: {{kind: {kind}}}\n{served}  parallel: {split}\n"
    )


def _members(nodes: int) -> str:
    return "".join(
        f"  - {{name: spark{n}, management: {{interface: enP7s7, address: 10.0.0.{10 + n}/24}}}}\n"
        for n in range(1, nodes + 1)
    )
