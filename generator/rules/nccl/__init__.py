"""Rules about NCCL's settings in `engine.env`, and about programs that use the same interfaces."""

from generator.rules.nccl import addresses, interfaces, names, rings, settings, values

__all__ = ["addresses", "interfaces", "names", "rings", "settings", "values"]
