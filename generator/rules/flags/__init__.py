"""Rules about what `engine.args` and `engine.env` tell the engine, by its catalog."""

from generator.rules.flags import model, names, values, variables, versions

__all__ = ["model", "names", "values", "variables", "versions"]
