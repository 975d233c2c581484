"""The engines: each package defines its engine's ports, environment and command lines."""

from generator.engines.modules import ENGINES as ENGINES
from generator.engines.modules import EngineModule as EngineModule
from generator.engines.modules import conditions as conditions
from generator.engines.modules import logged_memory as logged_memory
from generator.engines.modules import written_offload as written_offload
