"""Rules about what `engine.env` tells NCCL, and the programs that share its interfaces."""

from generator.rules.nccl import interfaces, names, settings, values

__all__ = ["interfaces", "names", "settings", "values"]
