"""Rules about flags and variables of the engine, checked against its catalog."""

from generator.rules.flags import entries, model, versions

__all__ = ["entries", "model", "versions"]
