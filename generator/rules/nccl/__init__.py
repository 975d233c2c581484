"""Rules about what `engine.env` tells NCCL, and the programs that share its interfaces."""

from generator.rules.nccl import addresses, interfaces, names, rings, settings, values

__all__ = ["addresses", "interfaces", "names", "rings", "settings", "values"]
