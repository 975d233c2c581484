"""Sites of a model so small that it runs anywhere: the lines of theirs are a real site's."""

from cluster.tiny_model import CONTEXT, HEADS, LAYERS, WIDTH

MODEL = "/srv/models/tiny/tiny.gguf"
_CABLES = {
    2: ("direct", ((1, 0, 2, 0),)),
    3: ("ring", ((1, 0, 2, 1), (2, 0, 3, 1), (3, 0, 1, 1))),
}


def llama_text(nodes: int) -> str:
    """A pair or a ring of three under llama.cpp."""
    kind, cables = _CABLES[nodes]
    members = "".join(
        f"  - {{name: spark{n}, management: {{interface: enP7s7, address: 10.0.0.{10 + n}/24}}}}\n"
        for n in range(1, nodes + 1)
    )
    cabling = "".join(
        f"  - endpoints: [spark{a}:p{port}, spark{b}:p{other}]\n" for a, port, b, other in cables
    )
    return f"""\
version: 1
name: tiny
nodes:
{members}cabling:
{cabling}topology: {{kind: {kind}}}
model:
  source: sparkgen-tests/tiny
  file: {MODEL}
  served_name: tiny
  architecture:
    {{layers: {LAYERS}, heads: {HEADS}, kv_heads: {HEADS}, head_dim: {WIDTH // HEADS},
     hidden_size: {WIDTH}, vocab_size: 260, max_context: {CONTEXT}, weight_gb: 0.01}}
  context_length: {CONTEXT // 2}
  max_sequences: 2
engine:
  name: llama.cpp
  version: 0.5.0-dev
  image: llama.cpp-rpc:tests
  parallel: {{pipeline: {nodes}}}
  memory_utilization: 0.85
  args: {{load-mode: mmap}}
"""
