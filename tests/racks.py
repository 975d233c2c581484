"""Site files of as many nodes as a test wants."""


def site_text(
    nodes: int = 2, model: str = "gpt-oss-120b", image: str = "v0.33.0", ports: int = 1
) -> str:
    """A site on a switch, which may have any number of nodes."""
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
