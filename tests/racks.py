"""Site files with any number of nodes."""


def site_text(
    nodes: int = 2, model: str = "gpt-oss-120b", image: str = "v0.33.0", ports: int = 1
) -> str:
    """A site on a switch, with any number of nodes."""
    members = "".join(
        f"  - name: spark{i}\n    management: {{interface: enP7s7, address: 10.0.0.{i}/16}}\n"
        for i in range(1, nodes + 1)
    )
    cables = "".join(
        f"  - endpoints: [spark{i}:p{port}, rack:{i}.{port}]\n"
        for i in range(1, nodes + 1)
        for port in range(ports)
    )
    return f"""\
version: 1
name: lab
nodes:
{members}cabling:
{cables}topology: {{kind: switch}}
model: {{name: {model}, context_length: 8192}}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:{image}
  parallel: {{pipeline: {nodes}}}
"""


def ring_text(nodes: int, topology: str = "{kind: ring}") -> str:
    """A ring whose cables have the same port at both ends where possible."""
    members = "".join(
        f"  - name: spark{i}\n    management: {{address: 10.0.0.{i}/24}}\n"
        for i in range(1, nodes + 1)
    )
    ends = ("p0", "p0", "p1", "p1") if nodes % 2 == 0 else ("p0", "p1")
    cables = "".join(
        f"  - endpoints: [spark{i}:{ends[2 * i % len(ends)]}, "
        f"spark{i % nodes + 1}:{ends[(2 * i + 1) % len(ends)]}]\n"
        for i in range(1, nodes + 1)
    )
    return f"""\
version: 1
name: ring
nodes:
{members}cabling:
{cables}topology: {topology}
model: {{name: gpt-oss-120b, context_length: 8192}}
engine:
  name: vllm
  version: 0.33.0
  image: vllm/vllm-openai:v0.33.0
  nccl: 2.30.7
  parallel: {{pipeline: {nodes}}}
"""
