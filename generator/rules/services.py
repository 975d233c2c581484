"""Rules about the services beside the engine."""

from collections.abc import Iterator, Mapping

from generator.declaration import DeclaredModel, Settings, Topology
from generator.diagnostics import Severity
from generator.rules.registry import Fault, rule


@rule("SG680")
def flow_control_without_a_switch(
    services: Mapping[str, Settings], topology: Topology
) -> Iterator[Fault]:
    """Priority flow control is for a switch.

    It pauses a sender when a port of the switch is full. On a cable between two nodes there is
    nothing to fill, and nobody to pause for.

    Bad:
        services:
          qos: true

    Good:
        services:
          qos: false
    """
    if "qos" in services and topology.kind != "switch":
        yield Fault(
            f"'qos' is for nodes on a switch, and the topology is '{topology.kind}'",
            ("services", "qos"),
            "take 'qos' out",
            at_key=True,
        )


@rule("SG681", Severity.WARNING)
def models_that_one_node_reads(
    services: Mapping[str, Settings], model: DeclaredModel
) -> Iterator[Fault]:
    """A GGUF file is not copied: the head alone reads it.

    llama.cpp's head hands each worker its layers.

    Source: llama.cpp, tools/rpc/README.md.

    Bad:
        engine:
          name: llama.cpp
          version: 0.5.0-dev
          image: registry.lan/llama.cpp:0c1e570
        model:
          name: gpt-oss-120b
          file: /srv/models/gpt-oss-120b.gguf
        services:
          models: true

    Good:
        services:
          models: true
    """
    if "models" in services and model.file:
        yield Fault(
            "the service 'models' has nothing to copy: of a GGUF file only the head reads",
            ("services", "models"),
            "take 'models' out",
            at_key=True,
        )
