"""Rules about flags and variables of the engine, checked against its catalog."""

from generator.rules.flags import model, names, values, variables, versions

__all__ = ["model", "names", "values", "variables", "versions"]
