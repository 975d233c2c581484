"""Rules about SGLang's settings."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.engines import ENGINES
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine
from generator.sitefile.defaults import default

NAME = "sglang"

# With data parallel attention, SGLang takes this many ports after the rendezvous port.
_DERIVED_PORTS = 6


@rule("SG652", unless="SG602 SG603", engine=NAME)
def port_of_attention(engine: DeclaredEngine) -> Faults:
    """With data parallel attention, the six ports above the rendezvous port belong to SGLang."""
    if "attn-dp-size" not in engine.settings:
        return
    module = ENGINES[engine.name]
    defaults = module.default_ports("native", engine.parallel)
    first = engine.ports.get("dist_init", defaults.get("dist_init", 0)) + 1
    last = first + _DERIVED_PORTS - 1
    if first <= (engine.port or ENGINE_TRAITS[NAME].api_port) <= last:
        yield Fault(
            f"SGLang's own processes take the ports {first} to {last}",
            ("engine", "port") if engine.port else ("engine", "ports", "dist_init"),
            f"choose one outside of them, such as {ENGINE_TRAITS[NAME].api_port}"
            if engine.port
            else f"choose another one, such as {default('engine.ports.dist_init')}",
        )
